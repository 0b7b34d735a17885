"""Errors of the library as exceptions, and interrupts (Ctrl-C) of calls that take long."""

from __future__ import annotations

import re
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Callable

from sinter._bindings import Code, lib, sinter_error

# Control characters, marks of a text's direction, separators of lines, halves of a pair: those that
# messages of the library escape.
_OBEYED_OR_HIDDEN = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)


def printable(text: str, limit: int = 1000) -> str:
    """A text of others for a line of a message: at most `limit` characters, line ends and tabs as
    spaces, and escaped what a terminal would obey or hide."""
    line = "".join(
        " " if character in "\n\t" else _escaped(character) for character in text[:limit]
    )
    return line if len(text) <= limit else line + "..."


def _escaped(character: str) -> str:
    if not _OBEYED_OR_HIDDEN.match(character):
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


class SinterError(Exception):
    """An input that the library refuses, or work that failed.

    code: a `sinter.Code`; the numbers are the exit codes of the program `sinter`.
    what: what is wrong, with both values of a mismatch.
    where: the file, argument, entry or value; may be "".
    hint: what to do next; may be "".
    """

    def __init__(self, code: Code, what: str, where: str = "", hint: str = "") -> None:
        self.code, self.what, self.where, self.hint = code, what, where, hint
        message = f"{where}: {what}" if where else what
        super().__init__(f"{message}; {hint}" if hint else message)

    def __reduce__(self) -> Any:
        return SinterError, (self.code, self.what, self.where, self.hint)


def usage(what: str, where: str = "", hint: str = "") -> SinterError:
    """An argument that does not fit."""
    return SinterError(Code.USAGE, what, where, hint)


def bad_input(what: str, where: str = "", hint: str = "") -> SinterError:
    """A tensor or a file that does not fit."""
    return SinterError(Code.BAD_INPUT, what, where, hint)


def _code(number: int) -> Code:
    """A newer library may know more kinds of errors."""
    return Code(number) if number in list(Code) else Code.INTERNAL_ERROR


def check(error: sinter_error) -> None:
    """Raises what a function of the library returned, and frees it. Null is success."""
    if not error:
        return
    try:
        raise SinterError(
            _code(lib.sinter_error_code(error)),
            lib.sinter_error_what(error).decode(),
            lib.sinter_error_where(error).decode(),
            lib.sinter_error_hint(error).decode(),
        )
    finally:
        lib.sinter_error_free(error)


class Interrupts:
    """Makes a long call end when a callback raises or when Ctrl-C is pressed.

        with Interrupts() as interrupts:
            error = lib.sinter_compile(...)   # its callbacks go through interrupts.guard
            interrupts.check(error)

    Python runs a signal's handler between two instructions, which inside a call of the library is
    the first instruction of a callback, before any `try` in it. ctypes would print and drop what it
    raises there. So while the call runs, the handler only keeps the exception; the callback sees
    it, asks the library to stop, and `check` raises it.
    """

    def __init__(self) -> None:
        self.raised: BaseException | None = None
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):
                signal.signal(signal.SIGINT, self._handle)
                self._before = before
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        try:
            self._before(number, frame)
        except BaseException as error:
            self.raised = error

    def guard(self, function: Any, *arguments: Any) -> int:
        """Calls `function`, which returns whether to stop. Returns 1 to stop, else 0."""
        if self.raised is None:
            try:
                if function(*arguments):
                    return 1
            except BaseException as error:
                self.raised = error
        return 0 if self.raised is None else 1

    def check(self, error: sinter_error, undo: Callable[[], None] = lambda: None) -> None:
        """Raises what a callback or Ctrl-C raised, else what the library says. `undo` frees what
        the call made nevertheless."""
        if self.raised is not None:
            lib.sinter_error_free(error)
            undo()
            raise self.raised
        check(error)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self.raised is not None and error is None:
            raise self.raised
