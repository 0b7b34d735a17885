"""Handles of the library as Python objects, and texts that cross the border."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from contextlib import nullcontext
from types import TracebackType
from typing import Any, Callable, ContextManager, TypeVar

from sinter._bindings import lib
from sinter.errors import check, usage
from sinter.integers import integer, limits

Self = TypeVar("Self", bound="Handle")


class Turn:
    """`with turn:` marks an object for one thread at a time as in use: a session with its calls, a
    batch, an encoder. It refuses a second thread, and a function that was called back, until the block
    ends."""

    def __init__(self, noun: str) -> None:
        self._noun, self._lock = noun, threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise usage(
                f"the {self._noun} is in use, by another thread or by the function that called back",
                hint=f"give each thread a {self._noun} of its own",
            )

    def __exit__(self, *error: object) -> None:
        self._lock.release()


class Handle:
    """Owns a handle of the library. close(), the end of a `with` block or the garbage collector lets
    go of it; then it is freed, once, when no call uses it any more. The end of the interpreter
    frees nothing: a daemon thread may be using it.

    `pointer` is the handle; of a closed object it is an error. The object of ctypes that it is owns
    the handle, and a call of the library refers to it until the result is read: the interpreter
    counts the running calls. A part of a handle, such as the graph of a module, may be used while a
    variable refers to the pointer of that handle.

    turn: given for an object that one thread uses at a time; close() takes it too.
    """

    def __init__(
        self, pointer: Any, free: Callable[[Any], None], turn: ContextManager[None] | None = None
    ) -> None:
        self._pointer = pointer
        self._turn: ContextManager[None] = turn or nullcontext()
        finalizer = weakref.finalize(pointer, free, type(pointer)(pointer.value))
        finalizer.atexit = False

    @property
    def is_closed(self) -> bool:
        return self._pointer is None

    def check_open(self) -> None:
        """Raises if it was closed."""
        if self.is_closed:
            raise usage(f"this {type(self).__name__} is closed", hint="make another")

    @property
    def pointer(self) -> Any:
        pointer = self._pointer
        if pointer is None:
            self.check_open()
        return pointer

    def close(self) -> None:
        """Frees what the library keeps for this object, when the calls that use it have returned.
        More calls do nothing."""
        with self._turn:
            self.let_go()

    def let_go(self) -> None:
        """Closes the object where the caller has the turn."""
        self._pointer = None

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
    error = function(*arguments, ctypes.byref(pointer))
    del arguments  # a traceback holds no handle
    check(error)
    return pointer


def text_of(text: bytes) -> str:
    """A text that a handle owns."""
    return text.decode()


def taken_text(function: Callable[..., Any], *arguments: Any, sized: bool = False) -> str:
    """The text that a function gives through its last parameter, a `char**`; frees it. sized: a
    `size_t*` follows, for a text that may have NULs."""
    address, size = ctypes.c_void_p(), ctypes.c_size_t()
    results = (ctypes.byref(address), ctypes.byref(size))[: 1 + sized]
    error = function(*arguments, *results)
    del arguments  # a traceback holds no handle
    check(error)
    try:
        return ctypes.string_at(address.value or 0, size.value if sized else -1).decode()
    finally:
        lib.sinter_free(address)


def encoded(text: str | os.PathLike[str]) -> bytes:
    """A text or path for a `const char*`. A zero character would end it early: an error."""
    data = os.fsencode(text) if isinstance(text, os.PathLike) else text.encode()
    if b"\0" in data:
        raise usage(f"a zero character in {text!r}")
    return data


def symbol_arrays(symbols: dict[str, int] | None) -> tuple[Any, list[int], int]:
    """Names, values and count of symbols, as functions of the library take them."""
    given = symbols or {}
    names = (ctypes.c_char_p * len(given))(*(encoded(name) for name in given))
    return names, [symbol_value(*one) for one in given.items()], len(given)


def symbol_value(name: str, value: Any) -> int:
    return integer(value, f"symbol {name}", *limits(ctypes.c_int64))
