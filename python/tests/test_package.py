"""The package as a whole: what it carries, what it needs and how it is started."""

import ast
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sinter
import sinter.extras
from sinter import _library

PYTHON = Path(__file__).resolve().parent.parent


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(PYTHON), **environment},
        capture_output=True,
        text=True,
    )


def test_python_m_sinter_is_the_program():
    if _library.find("sinter", "bin") is None:
        pytest.skip("the program is not built")
    assert sinter.version() in run("-m", "sinter", "--version").stdout
    assert run("-m", "sinter", "fly").returncode == sinter.Code.USAGE
    assert run("-m", "sinter", "inspect", "no/such/model").returncode == sinter.Code.BAD_INPUT


# No extra names them: torch brings two along, and without ml_dtypes NumPy's results of bf16 are uint16, with a warning.
OTHERS = {"functorch", "sympy", "ml_dtypes"}


def packages_of(path):
    """The packages that a file imports, by a statement or by `needed`, beside Python's own and this one."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "needed":
            names.add(ast.literal_eval(node.args[0]))
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"sinter"}


def test_the_extras_bring_what_the_modules_import():
    text = (PYTHON / "pyproject.toml").read_text().split("[project.optional-dependencies]\n")[1].split("\n\n")[0]
    extras = {
        name: {re.match(r"\w+", one).group() for one in ast.literal_eval(wanted)}
        for name, wanted in (line.split(" = ", 1) for line in text.splitlines())
    }
    files = set((PYTHON / "sinter").rglob("*.py"))
    of_torch = {path for path in files if "pytorch" in path.parts}
    imported = set().union(*map(packages_of, files - of_torch)) - OTHERS - {"torch"}
    assert imported == {"numpy", "jinja2", "onnx"} <= extras["numpy"] | extras["chat"] | extras["onnx"]
    assert set().union(*map(packages_of, of_torch)) - OTHERS == extras["torch"]
    wanted = {one for line in text.splitlines() for one in ast.literal_eval(line.split(" = ", 1)[1])}
    assert set(sinter.extras.REQUIREMENTS.values()) == wanted


def test_a_package_that_is_missing_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(sinter.SinterError, match=r"^encode: numpy is not installed; pip install 'numpy'$"):
        sinter.extras.needed("numpy", "encode")


def test_importing_loads_neither_the_library_nor_numpy_nor_torch():
    code = (
        "import sinter, sys; "
        "assert not {'numpy', 'torch', 'jinja2'} & set(sys.modules); "
        "assert 'libsinter' not in open('/proc/self/maps').read()"
    )
    done = run("-c", code)
    assert done.returncode == 0, done.stderr


def test_a_library_that_is_not_there_is_named():
    done = run("-c", "import sinter; sinter.version()", SINTER_LIBRARY="/no/libsinter.so")
    assert "ImportError: SINTER_LIBRARY names /no/libsinter.so, which is not a file" in done.stderr


def test_a_library_that_is_older_says_so():
    done = run("-c", "import sinter; sinter.version()", SINTER_LIBRARY=_any_other_library())
    assert "has no sinter_allow_callbacks: it is older than this package" in done.stderr


def _any_other_library():
    with open("/proc/self/maps") as maps:
        return next(line.split()[-1] for line in maps if "/libc.so" in line or "/libc-" in line)


def test_errors_are_pickled_whole():
    error = sinter.SinterError(sinter.Code.BAD_INPUT, "what", "where", "hint")
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, again.what, again.where, again.hint) == (4, "what", "where", "hint")
    assert str(again) == "where: what; hint"


def test_types_are_marked():
    assert (PYTHON / "sinter" / "py.typed").is_file()
