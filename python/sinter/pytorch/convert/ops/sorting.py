"""Sorting along a short axis, and the largest elements of rows.

Ties have the order of their indices, and NaN is the largest number, as in torch's stable sort. The op
`top_k` chooses the largest floats; else the place of an element is the number of elements before it.
"""

from __future__ import annotations

from ....importing import row_ops
from ....importing.tensor import Tensor
from ....importing.types import is_real
from ....importing.unsupported import Unsupported
from .registry import Conversion, aten, converts

MAX_SIZE = 256  # of the axis, each two of whose elements are compared


def order(x: Tensor, axis: int, count: int | None, descending: bool) -> Tensor:
    """i32: the indices of the first `count` elements (None: of all) of x along an axis when it is sorted."""
    if not x.product(axis).is_number or not 0 < x.size(axis) <= MAX_SIZE:
        raise Unsupported(f"sorting an axis of {x.product(axis)} elements")
    if x.dtype == "i1":
        raise Unsupported("sorting truth values")
    a, b = x.unsqueeze(axis + 1), x.unsqueeze(axis)  # two elements: axes `axis` and axis + 1
    precedes, is_tie = b.greater(a) if descending else b.less(a), a.equals(b)
    if is_real(x.dtype):
        nan_a, nan_b = a.is_nan(), b.is_nan()
        precedes = precedes | (nan_b & ~nan_a if descending else nan_a & ~nan_b)
        is_tie = is_tie | (nan_a & nan_b)
    index = x.places(axis)
    before = precedes | (is_tie & index.less(index.unsqueeze(1)))
    rank = before.to("i32").sum([axis + 1])
    place = x.slice(axis, 0, x.size(axis) if count is None else count).places(axis)
    return x.g.where(rank.unsqueeze(axis).equals(place.unsqueeze(1)), index, 0).sum([axis + 1])


def sorted_along(c: Conversion, x: Tensor, axis: int, index: Tensor) -> tuple:
    """(x at an index along an axis, if it is used, and the index as int64)"""
    return row_ops.gather(x, index, axis) if c.uses(0) else None, index.to("i64")


@converts(aten("sort.stable"))
def sort_stable(c: Conversion, x: Tensor, *, stable, dim=-1, descending=False) -> tuple:
    return sort(c, x, dim, descending)


@converts(aten("sort.default"))
def sort(c: Conversion, x: Tensor, dim=-1, descending=False) -> tuple:
    if x.rank == 0:
        raise Unsupported("sorting one element")
    dim %= x.rank
    return sorted_along(c, x, dim, order(x, dim, None, descending))


@converts(aten("topk.default"))
def topk(c: Conversion, x: Tensor, k, dim=-1, largest=True, sorted=True) -> tuple:
    if x.rank == 0 or not isinstance(k, int) or k == 0:
        raise Unsupported("an unknown number of elements, or none")
    dim %= x.rank
    index = row_ops.top_k(x, dim, k) if largest else None
    return sorted_along(c, x, dim, order(x, dim, k, largest) if index is None else index)
