"""The package as a whole: what it carries and how it is started."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import sinter
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
