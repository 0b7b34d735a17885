"""The examples of docs/python.md do what the page says."""

import doctest
import re

from conftest import ROOT

PAGE = ROOT / "docs" / "python.md"


def blocks():
    """Each example with its line; fences with another word than "python" are not run."""
    text = PAGE.read_text(encoding="utf-8")
    for match in re.finditer(r"^```python\n(.*?)^```$", text, flags=re.S | re.M):
        yield text[: match.start()].count("\n") + 1, match[1]


def test_the_examples_of_the_page_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    names: dict = {}
    failures: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    count = 0
    for line, example in blocks():
        test = doctest.DocTestParser().get_doctest(example, names, PAGE.name, str(PAGE), line)
        runner.run(test, out=failures.append, clear_globs=False)
        names.update(test.globs)
        count += len(test.examples)
    assert not failures, "".join(failures)
    assert count > 25


def test_the_page_uses_public_names_alone():
    import sinter

    text = PAGE.read_text(encoding="utf-8")
    used = set(re.findall(r"\bsinter\.([A-Za-z_]+)", text))
    assert used <= {*sinter.__all__, "errors"}, used
