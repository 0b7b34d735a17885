"""docs/pytorch.md, docs/bisect.md and docs/pytorch_ops.md say what is true."""

import contextlib
import doctest
import io
import os
import re
import runpy
import tempfile
import unittest

import make_tables
import torch._dynamo

from sinter.pytorch import OPTIONS
from sinter.pytorch.convert.ops import CONVERSIONS

GUIDE = make_tables.ROOT / "docs" / "pytorch.md"


README = make_tables.ROOT / "README.md"
BISECT = make_tables.ROOT / "docs" / "bisect.md"
TRAINING = make_tables.ROOT / "docs" / "pytorch_training.md"


def run_examples(page):
    """Runs the examples of a page in an empty folder. The runner has the counts."""
    torch._dynamo.reset()
    text = page.read_text().replace("```", "")
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            os.mkdir("build")
            runner.run(test)
        finally:
            os.chdir(here)
    return runner


class TestGuide(unittest.TestCase):
    def test_examples_print_what_the_page_says(self):
        runner = run_examples(GUIDE)
        self.assertEqual(runner.failures, 0)
        self.assertGreater(runner.tries, 15)

    def test_examples_of_the_readme_print_what_it_says(self):
        runner = run_examples(README)
        self.assertEqual(runner.failures, 0)
        self.assertGreater(runner.tries, 4)

    def test_examples_of_the_page_on_training_print_what_it_says(self):
        runner = run_examples(TRAINING)
        self.assertEqual(runner.failures, 0)
        self.assertGreater(runner.tries, 14)

    def test_examples_of_the_page_on_bisection_print_what_it_says(self):
        runner = run_examples(BISECT)
        self.assertEqual(runner.failures, 0)
        self.assertGreater(runner.tries, 6)

    def test_all_options_are_in_the_table(self):
        listed = re.findall(r"^\| `(\w+)` \|", GUIDE.read_text(), flags=re.M)
        self.assertEqual(sorted(listed), sorted(OPTIONS))


class TestSamples(unittest.TestCase):
    def test_the_hand_fused_kernel_prints_what_its_readme_says(self):
        folder = make_tables.ROOT / "samples" / "pytorch"
        text = (folder / "README.md").read_text()
        shown = re.search(r"hand_fused.py\n(.*?)```", text, flags=re.S)[1]
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            runpy.run_path(str(folder / "hand_fused.py"), run_name="__main__")
        text = printed.getvalue()
        matches = doctest.OutputChecker().check_output(shown, text.rstrip("\n") + "\n", doctest.ELLIPSIS)
        self.assertTrue(matches, text)


class TestOps(unittest.TestCase):
    def test_the_page_is_fresh_or_from_another_torch(self):
        text = make_tables.PAGE.read_text()
        if f"with torch {make_tables.version()}." in text:
            self.assertEqual(text, make_tables.page(), "write it anew: python make_tables.py")

    def test_every_op_with_a_conversion_is_in_the_page(self):
        listed = set(re.findall(r"`([a-z0-9_.]+)`", make_tables.PAGE.read_text()))
        missing = {packet for packet in (str(op).rpartition(".")[0] for op in CONVERSIONS)
                   if packet.removeprefix("aten.") not in listed}
        self.assertEqual(missing, set())


if __name__ == "__main__":
    unittest.main()
