"""Element types, by their names in Sinter's text form."""

from __future__ import annotations

import functools
import math
import struct

REAL = ("f32", "f16", "bf16")
MAX_I32 = 2**31 - 1  # the last row number and the last place of an axis


def is_real(dtype: str) -> bool:
    return dtype in REAL


def is_integer(dtype: str) -> bool:
    return dtype in ("i32", "i64")


def wrapped(number: int, dtype: str) -> int:
    """A number modulo 2^32 or 2^64, in the range of an integer type."""
    half = 2**31 if dtype == "i32" else 2**63
    return (number + half) % (2 * half) - half


def clamped(number: int, dtype: str) -> int:
    """The nearest number that an integer type has."""
    half = 2**31 if dtype == "i32" else 2**63
    return min(max(number, -half), half - 1)


@functools.cache
def holds(dtype: str, number: float) -> bool:
    """Whether a float type has exactly this number."""
    if not math.isfinite(number):
        return True
    try:
        packed = struct.pack("<e" if dtype == "f16" else "<f", number)
    except OverflowError:
        return False
    if struct.unpack("<e" if dtype == "f16" else "<f", packed)[0] != number:
        return False
    return dtype != "bf16" or packed[:2] == b"\0\0"  # a bf16 is a float32 whose low 16 bits are 0
