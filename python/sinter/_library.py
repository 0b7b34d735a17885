"""Finds and loads libsinter.so.

In this order: the file that SINTER_LIBRARY names; the library that the package carries
(sinter/lib, put there by a wheel); build/release of the clone that the package lies in.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from pathlib import Path
from typing import Any, Callable

from sinter.integers import CHECKED

PACKAGE = Path(__file__).resolve().parent
NAME = "libsinter.so.0"


def clone() -> Path | None:
    """The clone of Sinter that the package lies in, or None."""
    root = PACKAGE.parent.parent
    return root if (root / "api" / "sinter_c.h").is_file() else None


def find(name: str, folder: str) -> Path | None:
    """A file that the package carries in sinter/`folder`, or that build/release of the clone
    has."""
    carried = PACKAGE / folder / name
    if carried.is_file():
        return carried
    root = clone()
    if root is not None:
        built = root / "build" / "release" / ("bin" if folder == "bin" else ".") / name
        if built.is_file():
            return built.resolve()
    return None


def library_path() -> Path:
    """The library that will be loaded. Raises ImportError that says what to do."""
    named = os.environ.get("SINTER_LIBRARY")
    if named:
        if not Path(named).is_file():
            raise ImportError(f"SINTER_LIBRARY names {named}, which is not a file")
        return Path(named)
    found = find(NAME, "lib")
    if found is None:
        root = clone()
        raise ImportError(
            f"no {NAME} in {PACKAGE / 'lib'}"
            + ("" if root is None else f" or {root / 'build' / 'release'}")
            + "; build it with ./dev build release sinter_library, or set SINTER_LIBRARY to a file"
        )
    return found


def too_old(name: str) -> ImportError:
    """The library has no function of this name."""
    return ImportError(
        f"{library_path()} has no {name}: it is older than this package; build it again"
    )


class _EndOfCallbacks:
    """Keeps the library's threads out of Python once the interpreter ends. PyGILState_Ensure, with
    which a callback of ctypes begins, ends a thread that comes during the interpreter's end and
    fails with SIGSEGV after it.

    The object lies in the dict of `sys`, which the interpreter clears after the functions of
    `atexit` and before it frees the states of threads. The dict of a module would not do: it stays
    while a daemon thread's frames use it."""

    def __init__(self, loaded: ctypes.CDLL) -> None:
        self._allow = loaded["sinter_allow_callbacks"]  # of its own, without checks in Python
        self._allow.restype, self._allow.argtypes = None, [ctypes.c_int]
        self._allow(1)

    def __del__(self) -> None:
        self._allow(0)


class Library:
    """The functions of the library as attributes, with their types. It is loaded when the first
    function is asked for. Calls release the GIL."""

    def __init__(self, functions: dict[str, tuple[Any, list[Any]]]) -> None:
        self._functions = functions
        self._lock = threading.Lock()
        self._loaded: ctypes.CDLL | None = None

    def load(self) -> ctypes.CDLL:
        with self._lock:
            if self._loaded is None:
                path = library_path()
                try:
                    loaded = ctypes.CDLL(str(path))
                except OSError as error:
                    raise ImportError(f"cannot load {path}: {error}") from error
                if not hasattr(loaded, "sinter_allow_callbacks"):
                    raise too_old("sinter_allow_callbacks")
                setattr(sys, "_sinter_end_of_callbacks", _EndOfCallbacks(loaded))
                self._loaded = loaded
            return self._loaded

    def __getattr__(self, name: str) -> Any:
        if name not in self._functions:
            raise AttributeError(f"the library has no function '{name}'")
        try:
            function = getattr(self.load(), name)
        except AttributeError:
            raise too_old(name) from None
        function.restype, function.argtypes = self._functions[name]
        if any(isinstance(one, CHECKED) for one in function.argtypes):
            function = _with_its_own_errors(function)
        setattr(self, name, function)  # so that the next use finds it at once
        return function


def _with_its_own_errors(function: Any) -> Callable[..., Any]:
    """Wraps a function so that an error of a parameter is raised as it is; ctypes gives its text in
    an ArgumentError."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except ctypes.ArgumentError:
            for parameter, argument in zip(function.argtypes, arguments):
                parameter.from_param(argument)
            raise
        finally:
            del arguments  # a traceback holds no handle (Handle)

    return call
