"""Row checks of a call as errors of Python: an index out of range, an integer division by zero, a value that
an op refuses.

The library reports the value of the graph and the number that names no row. The importer remembers, for
each op that reads rows, how the user's index became that number, and the user's line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..errors import SinterError

# The library's words for a number that names no row (runtime/input_ranges.cpp), and for its op.
_WHAT = re.compile(r"^%.*\[\d+\] is (?P<number>-?\d+)(?P<beyond> or more| or less)?, outside the "
                   r"0 \.\. (?P<last>-?\d+) that it points into$", re.DOTALL)
_WHERE = re.compile(r"^entry .*, %(?P<op>.*)$", re.DOTALL)


class IntegerDivisionByZero(ZeroDivisionError, RuntimeError):
    """An integer division by zero, as eager reports it: a RuntimeError."""


@dataclass(frozen=True)
class RowCheck:
    """Where an op's row numbers come from.

    refusal: the row numbers are -1 where an op refuses a value, and this is its error. from_end: an index
    below 0 counted from the end. location: the user's line, "" if it is not known."""

    refusal: Exception | None = None
    from_end: bool = False
    location: str = ""

    def at(self, location: str) -> RowCheck:
        return replace(self, location=location)

    def error(self, number: int, rows: int, beyond: str) -> Exception:
        """The exception for a row number that is none of 0 .. rows - 1. beyond: " or more" or " or less"
        where i32 holds no number so far out."""
        place = f" ({self.location})" if self.location else ""
        if self.refusal is not None:
            return type(self.refusal)(f"{self.refusal}{place}")
        index = number - rows if self.from_end and number < 0 else number
        return IndexError(f"index {index}{beyond} is out of bounds for an axis of size {rows}{place}")


def python_error(error: SinterError, checks: dict[str, RowCheck]) -> Exception:
    """The user's error for one of the library's; the error itself if it is no row check's."""
    what, where = _WHAT.match(error.what), _WHERE.match(error.where)
    if what is None or where is None:
        return error
    check = checks.get(where["op"])
    return error if check is None else check.error(
        int(what["number"]), int(what["last"]) + 1, what["beyond"] or "")
