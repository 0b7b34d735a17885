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
class ExportedRange:
    """The values of a number, an input of the module, for which it was exported: low .. high, which are int64.

    The row number of a value is 0 inside of the range, else its distance from the nearer end."""

    name: str
    low: int
    high: int

    def refusal(self, row: int, beyond: str) -> ValueError:
        """beyond: as of RowCheck.error."""
        value = (self.low if row < 0 else self.high) + row
        wanted = f"at least {self.low}" if self.high == 2**63 - 1 else f"at most {self.high}" if self.low == -2**63 \
            else f"in {self.low} .. {self.high}"
        return ValueError(f"{self.name} is {value}{beyond}; the module was exported for {self.name} {wanted}")


@dataclass(frozen=True)
class RowCheck:
    """Where an op's row numbers come from.

    refusal: the row numbers are -1 where an op refuses a value, and this is its error. exported: they are those of
    a number's range. from_end: an index
    below 0 counted from the end. location: the user's line, "" if it is not known."""

    refusal: Exception | None = None
    exported: ExportedRange | None = None
    from_end: bool = False
    location: str = ""

    def at(self, location: str) -> RowCheck:
        return replace(self, location=location)

    def error(self, number: int, rows: int, beyond: str) -> Exception:
        """The exception for a row number that is none of 0 .. rows - 1. beyond: " or more" or " or less"
        where i32 holds no number so far out."""
        if self.exported is not None:
            return self.exported.refusal(number, beyond)
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


def library_error(error: SinterError, checks: dict[str, RowCheck]) -> SinterError:
    """The library's error with the words of the user's one."""
    told = python_error(error, checks)
    if told is error:
        return error
    return SinterError(error.code, str(told), error.where.split(", %")[0], "check the inputs")
