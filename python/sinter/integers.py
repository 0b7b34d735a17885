"""Whole numbers that enter the library. ctypes cuts a number to the bits of its C type without a
word; here it is an error that names the argument, the value and the range.

`Integer`, `Integers` and `Address` are the types of parameters in the table of functions
(_bindings.py), so that no call passes them by.
"""

from __future__ import annotations

import ctypes
import functools
import operator
from typing import Any, Iterable


def _refused(value: Any, wanted: str, where: str) -> Exception:
    from sinter.errors import printable, usage  # which need the table of functions

    return usage(f"{printable(repr(value), 60)} is given, {wanted}", where)


@functools.lru_cache(maxsize=None)
def limits(kind: Any) -> tuple[int, int]:
    """The least and the largest value of a C type."""
    count = 1 << 8 * ctypes.sizeof(kind)
    low = -count // 2 if kind(-1).value < 0 else 0
    return low, low + count - 1


def index_of(value: Any) -> int | None:
    """The number that an int, an integer of NumPy, or an array or tensor without axes holds. None:
    the value is a bool or no whole number."""
    if isinstance(value, bool) or getattr(value, "ndim", 0) != 0:
        return None
    if str(getattr(value, "dtype", "")).endswith("bool"):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def integer(value: Any, where: str, low: int, high: int) -> int:
    """The number as an int. Errors name `where`."""
    number = value if type(value) is int else index_of(value)
    if number is None:
        raise _refused(value, "a whole number is wanted", where)
    if not low <= number <= high:
        raise _refused(number, f"{low} to {high} are valid", where)
    return number


def integers(values: Any, where: str, kind: Any) -> list[int]:
    """A sequence of numbers that fit a C type. Errors name `where` and the place, from 0."""
    low, high = limits(kind)
    try:
        given = enumerate(values)
    except TypeError:
        raise _refused(values, "a sequence of whole numbers is wanted", where) from None
    return [
        value
        if type(value) is int and low <= value <= high
        else integer(value, f"{where}[{place}]", low, high)
        for place, value in given
    ]


def array_of(values: Any, where: str, kind: Any) -> Any:
    """The numbers as an array of a C type."""
    checked = integers(values, where, kind)
    return (kind * len(checked))(*checked)


class Integer:
    """The type of a parameter: a number of the C type `kind`."""

    def __init__(self, kind: Any, name: str) -> None:
        self.kind, self.name = kind, name
        self._low, self._high = limits(kind)

    def from_param(self, value: Any) -> Any:
        return self.kind(integer(value, self.name, self._low, self._high))


class Integers:
    """The type of a parameter: numbers of the C type `kind` that the function reads; None is null."""

    def __init__(self, kind: Any, name: str) -> None:
        self.kind, self.name = kind, name

    def from_param(self, values: Iterable[Any] | None) -> Any:
        return None if values is None else array_of(values, self.name, self.kind)


class Address:
    """The type of a parameter: an address as a number, or what ctypes takes for a `void*`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def from_param(self, value: Any) -> Any:
        if isinstance(value, int) or (value is not None and index_of(value) is not None):
            return ctypes.c_void_p(integer(value, self.name, *limits(ctypes.c_size_t)))
        return ctypes.c_void_p.from_param(value)


CHECKED = Integer, Integers, Address
