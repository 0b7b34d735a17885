"""Comparisons, truth values, and choices by them."""

from __future__ import annotations

import math

from ....importing.tensor import Tensor
from ....importing.types import is_real
from ....importing.unsupported import Unsupported
from .registry import Conversion, aten, converts


def truth(x: Tensor) -> Tensor:
    return x if x.dtype == "i1" else x.to("i1")


def differ(a: Tensor, b: Tensor) -> Tensor:
    """Exclusive or."""
    return (a | b) & ~(a & b)


# Comparisons by the names of torch's ops.
COMPARISONS = {"lt": Tensor.less, "le": Tensor.less_equal, "gt": Tensor.greater, "ge": Tensor.greater_equal,
               "eq": Tensor.equals, "ne": lambda a, b: ~a.equals(b)}


def _comparison(compare):
    return lambda c, a, b: compare(*comparable(c, a, b))


def comparable(c: Conversion, a, b) -> list[Tensor]:
    dtype = c.common_dtype()
    return c.operands(a, b, dtype="i32" if dtype == "i1" else dtype)


for _name, _compare in COMPARISONS.items():
    converts(aten(f"{_name}.Tensor"), aten(f"{_name}.Scalar"))(_comparison(_compare))


def _logical(name: str, function):
    @converts(aten(f"logical_{name}.default"))
    def logical(c: Conversion, a, b) -> Tensor:
        return function(truth(a), truth(b))

    @converts(aten(f"bitwise_{name}.Tensor"), aten(f"bitwise_{name}.Scalar"))
    def bitwise(c: Conversion, a, b) -> Tensor:
        if c.dtype != "i1":
            return c.g.map(f"bit_{name}", *c.operands(a, b))
        return function(truth(a), truth(c.g.tensor(b, "i1")))


_logical("and", lambda a, b: a & b)
_logical("or", lambda a, b: a | b)
_logical("xor", differ)


@converts(aten("logical_not.default"), aten("bitwise_not.default"))
def logical_not(c: Conversion, x: Tensor) -> Tensor:
    if x.dtype != "i1" and c.dtype != "i1":
        return -x - 1  # two's complement
    return ~truth(x)


@converts(aten("isnan.default"))
def isnan(c: Conversion, x: Tensor) -> Tensor:
    return x.is_nan()


@converts(aten("isinf.default"))
def isinf(c: Conversion, x: Tensor) -> Tensor:
    return x.equals(math.inf) | x.equals(-math.inf) if is_real(x.dtype) else x.less(x)


@converts(aten("signbit.default"))
def signbit(c: Conversion, x: Tensor) -> Tensor:
    if not is_real(x.dtype):
        return x.less(0)
    raise Unsupported("the sign of zero and of NaN")


@converts(aten("where.self"))
def where(c: Conversion, condition, a, b) -> Tensor:
    a, b = [x.to(c.dtype) if isinstance(x, Tensor) else c.number(x, c.dtype) for x in (a, b)]
    return c.g.where(truth(condition), a, b)


@converts(aten("masked_fill.Scalar"), aten("masked_fill.Tensor"))
def masked_fill(c: Conversion, x, mask, value) -> Tensor:
    return where(c, mask, value, x)
