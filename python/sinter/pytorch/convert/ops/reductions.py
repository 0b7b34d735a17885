"""Sums, maxima, counts and positions along axes."""

from __future__ import annotations

import functools
import math
import operator

import torch

from ....importing.row_ops import cumulative_sum, gather, sums_of_i64
from ....importing.tensor import Tensor
from ....importing.types import is_real
from ....importing.unsupported import Unsupported
from ...graphs.dtypes import CASTS
from .choice import truth
from .movement import along
from .registry import Conversion, aten, converts

# float32 counts exactly below this.
EXACT = 2**24
MAX_FACTORS = 2**16  # of a running product, which is made in steps


@converts(aten("sum.dim_IntList"))
def sum_(c: Conversion, x: Tensor, axes=None, keepdim=False, dtype=None) -> Tensor:
    if is_real(c.dtype):
        return x.f32().sum(axes, keepdim).to(c.dtype) if x.dtype != c.dtype \
            else x.sum(axes, keepdim)
    if c.dtype == "i64" and not counts_truths(c.node.args[0]):
        return sums_of_i64(x.to("i64"), x.chosen(axes), lambda digits: digits.sum(axes, keepdim))
    numbers = x.to("i32") if c.dtype == "i32" else x.nearest("i32")
    return numbers.sum(axes, keepdim).to(c.dtype)


@converts(aten("mean.default"), aten("mean.dim"))
def mean(c: Conversion, x: Tensor, axes=None, keepdim=False, dtype=None) -> Tensor:
    return x.f32().mean(axes, keepdim).to(c.dtype)


def extreme(c: Conversion, x: Tensor, axes, keepdim: bool, largest: bool) -> Tensor:
    if x.dtype == "i1":
        x = x.to("i32")
        return (x.max(axes, keepdim) if largest else x.min(axes, keepdim)).equals(1)
    if x.dtype == "i64":
        raise Unsupported("maxima of i64")
    if x.dtype == "i32" and not largest:
        raise Unsupported("minima of i32")  # of the least number there is no negative
    return x.max(axes, keepdim) if largest else x.min(axes, keepdim)


@converts(aten("amax.default"), aten("max.default"))
def amax(c: Conversion, x: Tensor, axes=None, keepdim=False) -> Tensor:
    return extreme(c, x, axes, keepdim, True)


@converts(aten("amin.default"), aten("min.default"))
def amin(c: Conversion, x: Tensor, axes=None, keepdim=False) -> Tensor:
    return extreme(c, x, axes, keepdim, False)


def position(c: Conversion, x: Tensor, axis: int, keepdim: bool, largest: bool) -> Tensor:
    """The first place of the largest (smallest) element along an axis; of a NaN if there is one."""
    if not is_real(x.dtype) and x.dtype != "i1":
        raise Unsupported("positions among integers")
    x = x.f32() if largest else -x.f32()
    size = x.g.extents.most(x.product(axis))
    if not 0 < size < EXACT:
        raise Unsupported(f"a position among {size} elements")
    best = x.max([axis], True)
    found = x.equals(best) | x.is_nan()
    index = x.places(axis).f32()
    return (-c.g.where(found, -index, -math.inf).max([axis], keepdim)).to("i32")


@converts(aten("argmax.default"))
def argmax(c: Conversion, x: Tensor, axis=None, keepdim=False) -> Tensor:
    return flat_position(c, x, axis, keepdim, True)


@converts(aten("argmin.default"))
def argmin(c: Conversion, x: Tensor, axis=None, keepdim=False) -> Tensor:
    return flat_position(c, x, axis, keepdim, False)


def flat_position(c: Conversion, x: Tensor, axis, keepdim: bool, largest: bool) -> Tensor:
    if x.rank == 0:
        x, axis = x.reshape([1]), 0
    elif axis is None:
        x, axis = x.reshape([math.prod(x.sizes)]), 0
    return position(c, x, axis, keepdim, largest).to(c.dtype).reshape(c.shape)


def _with_position(largest: bool):
    def convert(c: Conversion, x: Tensor, axis, keepdim=False) -> tuple:
        shape = list(c.meta[0].shape)
        flat = x.reshape([1]) if x.rank == 0 else x
        value = extreme(c, flat, [axis], keepdim, largest).reshape(shape) if c.uses(0) else None
        index = position(c, flat, axis, keepdim, largest).to("i64").reshape(shape) \
            if c.uses(1) else None
        return value, index
    return convert


converts(aten("max.dim"))(_with_position(True))
converts(aten("min.dim"))(_with_position(False))


@converts(aten("any.default"), aten("any.dim"), aten("any.dims"))
def any_(c: Conversion, x: Tensor, axes=None, keepdim=False) -> Tensor:
    held = truth(x)
    if x.rank == 0 or axes == []:  # no axes are none here, not all
        return held
    return held.to("i32").max([axes] if isinstance(axes, int) else axes, keepdim).equals(1)


def variance(c: Conversion, x: Tensor, axes, correction, keepdim: bool) -> tuple[Tensor, Tensor]:
    x = x.f32()
    average = x.mean(axes, True)
    difference = x - average
    less = 1 if correction is None else correction
    chosen = [x.product(axis) for axis in x.chosen(axes)]
    if all(product.is_number for product in chosen) and not isinstance(less, Tensor):
        freedom = max(0.0, x.count(axes) - less)
    else:
        counts = [x.extent(axis).f32() for axis in x.chosen(axes)]
        count = functools.reduce(operator.mul, counts or [c.g.number(1, "f32")])
        freedom = (count - c.number(less, "f32")).maximum(0.0)
    total = (difference * difference).sum(axes, keepdim)
    result = total / freedom
    return result, average if keepdim else x.mean(axes, False)


@converts(aten("var.correction"))
def var(c: Conversion, x: Tensor, axes=None, *, correction=None, keepdim=False) -> Tensor:
    return variance(c, x, axes, correction, keepdim)[0].to(c.dtype)


@converts(aten("var_mean.correction"))
def var_mean(c: Conversion, x: Tensor, axes=None, *, correction=None, keepdim=False) -> tuple:
    spread, average = variance(c, x, axes, correction, keepdim)
    dtype = x.dtype
    return spread.to(dtype), average.to(dtype)


@converts(aten("logsumexp.default"))
def logsumexp(c: Conversion, x: Tensor, axes, keepdim=False) -> Tensor:
    x = x.f32()
    if x.rank and x.count(axes) == 0:
        return c.number(-math.inf, c.dtype).expand(c.shape)
    best = x.max(axes, True)
    shift = c.g.where(best.apply("abs").equals(math.inf), 0.0, best)
    total = (x - shift).apply("exp").sum(axes, True).apply("log") + shift
    return total.to(c.dtype).reshape(c.shape)


def product_factors(x: Tensor, dtype: str) -> Tensor:
    return x.f32() if is_real(dtype) else x.to(dtype)


def cumulative_product(x: Tensor, axis: int) -> Tensor:
    """Each element becomes the product of the last 2, 4, 8, ... elements up to its own."""
    most = x.g.extents.most(x.product(axis))
    if most > MAX_FACTORS:
        raise Unsupported(f"a product of {most} elements")
    place = along(x, x.places(axis).flatten(), axis)
    for level in range((most - 1).bit_length() if most else 0):
        before = gather(x, (place - 2**level).maximum(0), axis)
        x = x.g.where(place.less(2**level), x, x * before)
    return x


def product(x: Tensor, axis: int) -> Tensor:
    """The product along an axis, which goes, of neighbours, then of their products."""
    if not x.product(axis).is_number:
        last = (x.extent(axis) - 1).reshape([1] * x.rank)
        return gather(cumulative_product(x, axis), last, axis).squeeze([axis])
    count = x.size(axis)
    if count == 0:
        return x.filled(x.g.number(1, x.dtype), axis, 1).squeeze([axis])
    while count > 1:
        half = count // 2
        pairs = x.slice(axis, 0, half) * x.slice(axis, half, 2 * half)
        x = x.g.concat([pairs, x.slice(axis, 2 * half, count)], axis) if count % 2 else pairs
        count -= half
    return x.squeeze([axis])


@converts(aten("prod.default"), aten("prod.dim_int"))
def prod(c: Conversion, x: Tensor, axis=None, keepdim=False, *, dtype=None) -> Tensor:
    x = product_factors(x, c.dtype)
    for one in reversed(x.chosen(None if axis is None else [axis])):
        x = product(x, one)
    return x.to(c.dtype).reshape(c.shape)


@converts(aten("cumprod.default"))
def cumprod(c: Conversion, x: Tensor, axis, *, dtype=None) -> Tensor:
    x = product_factors(x, c.dtype)
    return (cumulative_product(x, axis % x.rank) if x.rank else x).to(c.dtype)


@converts(aten("cumsum.default"))
def cumsum(c: Conversion, x: Tensor, axis, *, dtype=None) -> Tensor:
    if x.rank == 0:
        return x.to(c.dtype)
    if is_real(c.dtype):
        source = x.to(c.dtype)
    elif counts_truths(c.node.args[0]):
        source = x.nearest("i32")
    else:
        return sums_of_i64(x.to("i64"), [axis], lambda digits: cumulative_sum(digits, axis)).to(c.dtype)
    return cumulative_sum(source, axis).to(c.dtype)


def counts_truths(node) -> bool:
    """Whether a node holds truth values, as they are or as integers: i32 holds their sums."""
    is_truth = lambda x: x.meta["val"].dtype == torch.bool
    return is_truth(node) or (node.target in CASTS and is_truth(node.args[0]))
