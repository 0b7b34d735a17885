"""Handles of the library as Python objects, and texts that cross the border."""

from __future__ import annotations

import ctypes
import os
import weakref
from types import TracebackType
from typing import Any, Callable, TypeVar

from sinter._bindings import lib
from sinter.errors import check, usage

Self = TypeVar("Self", bound="Handle")


class Handle:
    """Owns a handle of the library: close(), the end of a `with` block or the garbage collector
    frees it, once. The end of the interpreter does not: a daemon thread may be using it. `pointer`
    is the handle; of a closed object it is an error."""

    def __init__(self, pointer: Any, free: Callable[[Any], None]) -> None:
        self._pointer = pointer
        self._finalizer = weakref.finalize(self, free, pointer)
        self._finalizer.atexit = False

    def check_open(self) -> None:
        """Raises if it was closed."""
        if not self._finalizer.alive:
            raise usage(f"this {type(self).__name__} is closed", hint="make another")

    @property
    def pointer(self) -> Any:
        self.check_open()
        return self._pointer

    def close(self) -> None:
        """Frees what the library keeps for this object. More calls do nothing."""
        self._finalizer()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def created(kind: type, function: Callable[..., Any], *arguments: Any) -> Any:
    """The handle of type `kind` that a function creates through its last parameter."""
    pointer = kind()
    check(function(*arguments, ctypes.byref(pointer)))
    return pointer


def text_of(text: bytes) -> str:
    """A text that a handle owns."""
    return text.decode()


def taken_text(function: Callable[..., Any], *arguments: Any) -> str:
    """The text that a function gives through its last parameter, a `char**`; frees it."""
    address = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(address)))
    try:
        return ctypes.string_at(address.value or 0).decode()
    finally:
        lib.sinter_free(address)


def encoded(text: str | os.PathLike[str]) -> bytes:
    """A text or path for a `const char*`. A zero character would end it early: an error."""
    data = os.fsencode(text) if isinstance(text, os.PathLike) else text.encode()
    if b"\0" in data:
        raise usage(f"a zero character in {text!r}")
    return data


def symbol_arrays(symbols: dict[str, int] | None) -> tuple[Any, Any, int]:
    """Names, values and count of symbols, as functions of the library take them."""
    given = symbols or {}
    count = len(given)
    names = (ctypes.c_char_p * count)(*(encoded(name) for name in given))
    values = (ctypes.c_int64 * count)(*given.values())
    return names, values, count


def dims_array(values: tuple[int, ...] | None) -> Any:
    """Extents or strides as functions of the library take them."""
    return None if values is None else (ctypes.c_int64 * len(values))(*values)
