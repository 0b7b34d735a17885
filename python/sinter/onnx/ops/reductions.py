"""Sums, maxima and positions along axes."""

from __future__ import annotations

import math
from typing import Callable

from ...importing.row_ops import cumulative_sum, gather, sums_of_i64
from ...importing.tensor import Tensor
from ...importing.types import is_real
from ...importing.unsupported import Unsupported
from ..registry import Node, converts, shape_of
from .movement import along, padded

MAX_PLACES = 2**24  # float32 counts exactly below this


def reduction(
    op: str, function: Callable[[Tensor, list[int], bool], Tensor], of_floats: bool = False
) -> None:
    """Registers what a reduction computes over axes, which are an attribute or an input. of_floats: alone."""

    def convert(c: Node) -> Tensor:
        x, keepdims = c[0], bool(c.integer("keepdims", 1))
        axes = c.axes(x.rank)
        if not axes and not c.integer("noop_with_empty_axes"):
            axes = list(range(x.rank))
        if of_floats:
            c.need_real(x)
        return function(x.f32() if is_real(x.dtype) else x, axes, keepdims).to(x.dtype)

    converts(op)(convert)


def total(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    if not axes:
        return x
    if x.dtype != "i64":
        return x.sum(axes, keepdims)
    return sums_of_i64(x, axes, lambda digits: digits.sum(axes, keepdims))


def mean(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    return x.mean(axes, keepdims) if axes else x


def maximum(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    if not axes:
        return x
    if x.dtype == "i1":
        return x.to("i32").max(axes, keepdims).equals(1)
    if x.dtype == "i64":
        return maximum_of_i64(x, axes, keepdims)
    return x.max(axes, keepdims)


def maximum_of_i64(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    """The largest upper half, and of the elements that have it the largest lower one."""
    upper = x.g.map("div_floor", x, 2**32).nearest("i32")
    lower = (x.g.map("mod_floor", x, 2**32) - 2**31).nearest("i32")
    most = upper.max(axes, True)
    rest = x.g.where(upper.equals(most), lower, -(2**31)).max(axes, True)
    result = most.to("i64") * 2**32 + (rest.to("i64") + 2**31)
    return result if keepdims else result.squeeze(axes)


def minimum(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    if x.dtype == "i1":
        return ~maximum(~x, axes, keepdims)
    if is_real(x.dtype):
        return -maximum(-x, axes, keepdims)
    return -maximum(-x - 1, axes, keepdims) - 1 if axes else x


def log_sum_exp(x: Tensor, axes: list[int], keepdims: bool) -> Tensor:
    best = maximum(x, axes, True)
    shift = x.g.where(best.apply("abs").equals(math.inf), 0.0, best)
    result = total((x - shift).apply("exp"), axes, True).apply("log") + shift
    return result if keepdims else result.squeeze(axes)


reduction("ReduceSum", total)
reduction("ReduceMax", maximum)
reduction("ReduceMin", minimum)
reduction("ReduceMean", mean, True)
reduction("ReduceLogSumExp", log_sum_exp, True)
reduction("ReduceSumSquare", lambda x, axes, keep: total(x * x, axes, keep), True)
reduction("ReduceL1", lambda x, axes, keep: total(x.apply("abs"), axes, keep), True)
reduction("ReduceL2", lambda x, axes, keep: total(x * x, axes, keep).apply("sqrt"), True)
reduction("ReduceLogSum", lambda x, axes, keep: total(x, axes, keep).apply("log"), True)


@converts("GlobalMaxPool", "GlobalAveragePool")
def pool_all(c: Node) -> Tensor:
    """Over all axes behind batch and channels."""
    c.need_real(c[0])
    over = maximum if c.op == "GlobalMaxPool" else mean
    return over(c[0].f32(), list(range(2, c[0].rank)), True).to(c[0].dtype)


@converts("ArgMax", "ArgMin")
def position(c: Node) -> Tensor:
    """The first place of the largest or smallest element along an axis, or the last one."""
    x = c[0].f32() if is_real(c[0].dtype) else c[0]
    axis, x = c.axis(x.rank), x if c.op == "ArgMax" else -x if is_real(x.dtype) else -x - 1
    size = x.g.extents.most(x.product(axis))
    if not 0 < size < MAX_PLACES:
        raise Unsupported(f"a position among {size} elements")
    found = x.equals(maximum(x, [axis], True))
    found = found | x.is_nan() if is_real(x.dtype) else found
    sign = 1.0 if c.integer("select_last_index") else -1.0
    place = c.g.where(found, x.places(axis).f32() * sign, -math.inf).max(
        [axis], bool(c.integer("keepdims", 1))
    )
    return (place * sign).to("i32").to("i64")


@converts("CumSum")
def cumsum(c: Node) -> Tensor:
    x, (axis,) = c[0], c.axes(c[0].rank, 1)
    if c.integer("reverse"):
        x = reversed_along(x, axis)
    if c.integer("exclusive"):
        x = padded(x.slice(axis, 0, x.size(axis) - 1), axis, 1, 0, c.g.number(0, x.dtype))
    if x.dtype == "i64":
        result = sums_of_i64(x, [axis], lambda digits: cumulative_sum(digits, axis))
    else:
        result = cumulative_sum(x, axis)
    return reversed_along(result, axis) if c.integer("reverse") else result


def reversed_along(x: Tensor, axis: int) -> Tensor:
    places = x.extent(axis) - 1 - x.g.iota(shape_of(x)[axis])
    return gather(x, along(x, places, axis), axis)
