"""Sums of rows by index, in the ascending order of the rows: the same bits in every run."""

from __future__ import annotations

import math

from ..dtypes import is_real
from ..extents import product_of
from ..tensor import Tensor
from ..unsupported import Unsupported
from .indexing import MOST_ROWS, chosen_places, joined_numbers, one_of_each_row, row_numbers
from .registry import Conversion, aten, converts


def sum_rows(c: Conversion, index: Tensor, updates: Tensor, rows: int) -> Tensor:
    """float [rows, D]: row v is the sum of the updates [N, D] whose index [N] is v."""
    if not is_real(updates.dtype):
        raise Unsupported("sums of integers")
    index, updates = index.merged(), updates.merged()
    value = c.g.op("scatter_add", [index.value, updates.value], f"rows = {rows}")
    return Tensor(c.g, value, (1, 1))


def flat(x: Tensor) -> Tensor:
    """All elements along one axis."""
    return x.reshape_to([product_of(x.value.dims)]).merged()


@converts(aten("embedding_dense_backward.default"))
def embedding_backward(c: Conversion, grad: Tensor, index: Tensor, rows, padding,
                       scale_by_frequency) -> Tensor:
    if scale_by_frequency:
        raise Unsupported("gradients divided by the number of uses")
    numbers = flat(row_numbers(index, rows, wrap=False))
    width = grad.size(-1)
    updates = grad.reshape_to([product_of(index.value.dims), product_of((width,))])
    if padding >= 0:
        kept = ~numbers.equals(padding)
        updates = c.g.where(kept.unsqueeze(1), updates, 0.0)
    return sum_rows(c, numbers, updates, rows)


@converts(aten("index_add.default"))
def index_add(c: Conversion, x: Tensor, axis, index: Tensor, source: Tensor, *,
              alpha=1) -> Tensor:
    if x.rank == 0 or index.rank == 0:
        raise Unsupported("an index of no axes")
    axis %= x.rank
    order = [axis] + [i for i in range(x.rank) if i != axis]
    shape = [x.size(i) for i in order]
    width = math.prod(shape[1:])
    if min(width, shape[0], index.size(0)) == 0:
        return x
    updates = source.f32().permute(order).reshape([index.size(0), width])
    added = sum_rows(c, row_numbers(index, shape[0], wrap=False), updates, shape[0])
    added = added.reshape(shape).permute([order.index(i) for i in range(x.rank)])
    return (x.f32() + (added if alpha == 1 else added * float(alpha))).to(c.dtype)


@converts(aten("scatter_add.default"))
def scatter_add(c: Conversion, x: Tensor, axis, index: Tensor, source: Tensor) -> Tensor:
    """x[i, index[i, j], k] += source[i, j, k]: sums of single elements by their place in x."""
    if x.rank == 0 or not is_real(x.dtype):
        raise Unsupported("a scatter of no axes, or of integers")
    axis %= x.rank
    sizes = [x.size(i) for i in range(x.rank)]
    total, count = math.prod(sizes), math.prod(index.size(i) for i in range(index.rank))
    if total > MOST_ROWS:
        raise Unsupported(f"indices into {total} elements")
    if min(total, count) == 0:
        return x
    for i in range(x.rank):
        source = source.slice(i, 0, index.size(i))
    if one_of_each_row(x, axis, index):
        return c.g.where(chosen_places(x, axis, index), x.f32() + source.f32(),
                         x.f32()).to(c.dtype)
    along = row_numbers(index, sizes[axis], wrap=False)
    inside = along.greater_equal(0) & along.less(sizes[axis])
    place, stride = None, 1
    for i in reversed(range(x.rank)):
        term = (along if i == axis else index.places(i)) * stride
        place = term if place is None else place + term
        stride *= sizes[i]
    place = c.g.where(inside, place, -1).reshape([count])
    added = sum_rows(c, place, source.f32().reshape([count, 1]), total).reshape(sizes)
    return (x.f32() + added).to(c.dtype)


@converts(aten("index_put.default"), aten("_unsafe_index_put.default"))
def index_put(c: Conversion, x: Tensor, indices, values: Tensor, accumulate=False) -> Tensor:
    """Adds rows by indices along the leading axes."""
    if not accumulate:
        raise Unsupported("rows are overwritten, and several may be written to one place")
    axes = [i for i, index in enumerate(indices) if index is not None]
    if axes != list(range(len(axes))) or any(indices[i].dtype == "i1" for i in axes):
        raise Unsupported("indices that are not along the leading axes")
    sizes = [x.size(i) for i in range(x.rank)]
    rows, width = math.prod(sizes[:len(axes)]), math.prod(sizes[len(axes):])
    number = joined_numbers([indices[i] for i in axes], sizes)
    count = math.prod(number.size(i) for i in range(number.rank))
    if min(rows, width, count) == 0 or rows > MOST_ROWS:
        raise Unsupported("indices of no rows, or of too many")
    shape = [number.size(i) for i in range(number.rank)] + sizes[len(axes):]
    updates = values.f32().expand(shape).reshape([count, width])
    added = sum_rows(c, number.reshape([count]), updates, rows).reshape(sizes)
    return (x.f32() + added).to(c.dtype)
