"""Sums of rows by index, in the ascending order of the rows: the same bits in every run."""

from __future__ import annotations

import math

from ....importing.row_ops import checked_rows, row_numbers, sum_rows
from ....importing.tensor import Tensor
from ....importing.types import MAX_I32, is_real
from ....importing.unsupported import Unsupported
from .indexing import chosen_places, counting_order, joined_numbers, one_of_each_row
from .overwriting import put, row_axis
from .registry import Conversion, aten, converts

# Sums of columns, each over all updates with zeros for other rows' updates: if few rows share all updates, a chain of
# additions for each row takes longer than these sums.
FEW_ROWS = 8


@converts(aten("embedding_dense_backward.default"))
def embedding_backward(c: Conversion, grad: Tensor, index: Tensor, rows, padding,
                       scale_by_frequency) -> Tensor:
    if scale_by_frequency:
        raise Unsupported("gradients divided by the number of uses")
    few = isinstance(rows, int) and rows <= FEW_ROWS
    numbers = (checked_rows if few else row_numbers)(index, rows, from_end=False).flatten().merged()
    updates = grad.flatten(0, -2) if grad.rank > 1 else grad.unsqueeze(0)
    if not isinstance(padding, int) or padding >= 0:
        kept = ~numbers.equals(c.number(padding, "i32"))
        updates = c.g.where(kept.unsqueeze(1), updates, 0.0)
    if few:
        own = lambda row: c.g.where(numbers.equals(row).unsqueeze(1), updates, 0.0)
        return c.g.concat([own(row).sum([0], True) for row in range(rows)], 0)
    return sum_rows(numbers, updates, rows)


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
    added = sum_rows(row_numbers(index, shape[0], from_end=False), updates, shape[0])
    added = added.reshape(shape).permute([order.index(i) for i in range(x.rank)])
    return (x.f32() + (added if alpha == 1 else added * c.number(alpha, "f32"))).to(c.dtype)


@converts(aten("scatter_add.default"))
def scatter_add(c: Conversion, x: Tensor, axis, index: Tensor, source: Tensor) -> Tensor:
    """x[i, index[i, j], k] += source[i, j, k]: sums of single elements by their place in x."""
    if not is_real(x.dtype):
        raise Unsupported("a scatter of integers")
    scalar = x.rank == 0
    x, index, source = row_axis(x), row_axis(index), row_axis(source)  # a scalar is a row of one element
    axis %= x.rank
    for i in range(x.rank):
        if source.shape[i] != index.shape[i]:
            source = source.slice(i, 0, index.size(i))
    if not scalar and one_of_each_row(x, axis, index):
        return c.g.where(chosen_places(c, x, axis, index), x.f32() + source.f32(),
                         x.f32()).to(c.dtype)
    sizes = x.sizes
    total, count = math.prod(sizes), math.prod(index.sizes)
    if total > MAX_I32:
        raise Unsupported(f"indices into {total} elements")
    if min(total, count) == 0:
        return x.reshape(c.shape)
    along = checked_rows(index, sizes[axis], from_end=False)
    inside = along.greater_equal(0) & along.less(sizes[axis])
    place, stride = None, 1
    for i in reversed(range(x.rank)):
        term = (along if i == axis else index.places(i)) * stride
        place = term if place is None else place + term
        stride *= sizes[i]
    place = c.g.where(inside, place, -1).reshape([count])
    added = sum_rows(place, source.f32().reshape([count, 1]), total).reshape(sizes)
    return (x.f32() + added).to(c.dtype).reshape(c.shape)


@converts(aten("index_put.default"))
def index_put(c: Conversion, x: Tensor, indices, values: Tensor, accumulate=False) -> Tensor:
    """Writes rows by indices, or adds them by indices along neighbouring axes."""
    if not accumulate:
        return put(c, x, indices, values)
    axes = [i for i, index in enumerate(indices) if index is not None]
    if any(indices[i].dtype == "i1" for i in axes):
        raise Unsupported("values are added where a mask is true")
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise Unsupported("indices along axes that are no neighbours")
    added = added_by_counting(c, x, axes, [indices[i] for i in axes], values)
    if added is not None:
        return added
    order = axes + [i for i in range(x.rank) if i not in axes]
    number = joined_numbers([indices[i] for i in axes], [x.size(i) for i in axes])
    lead, shape = axes[0], [x.size(i) for i in order]
    rows, width = math.prod(shape[:len(axes)]), math.prod(shape[len(axes):])
    count = math.prod(number.sizes)
    if min(rows, width, count) == 0 or rows > MAX_I32:
        raise Unsupported("indices of no rows, or of too many")
    behind = shape[len(axes):]
    updates = values.f32().expand(behind[:lead] + number.sizes + behind[lead:])
    places = list(range(updates.rank))
    own = places[lead:lead + number.rank]
    updates = updates.permute(own + [i for i in places if i not in own]).reshape([count, width])
    added = sum_rows(number.reshape([count]), updates, rows, from_end=True).reshape(shape)
    added = added.permute([order.index(i) for i in range(x.rank)])
    return (x.f32() + added).to(c.dtype)


def added_by_counting(c: Conversion, x: Tensor, axes: list[int], indices: list[Tensor],
                      values: Tensor) -> Tensor | None:
    """x with values added where all indices but one at most count 0, 1, 2, ... along axes of their own, so
    that they name no place twice, as in the gradient of x[arange(n), label]. None: the indices are others,
    or all sizes are numbers."""
    counting = counting_order(c, x, axes, indices)
    if counting is None or x.is_number or len(counting.places) < counting.rank:
        return None
    lead, behind = axes[0], list(range(axes[-1] + 1, x.rank))
    order = [*range(lead), *counting.axes, *counting.others, *behind]
    moved = x.f32().permute(order)
    axis = lead + len(counting.axes)  # of the index that does not count
    shape = c.node.args[0].meta["val"].shape
    values = values.f32().expand([shape[i] for i in (*range(lead), *counting.axes, *behind)])
    if counting.others:
        (other,) = counting.others
        rows = checked_rows(counting.index, shape[other], from_end=True)
        for _ in behind:
            rows = rows.unsqueeze(-1)
        place = c.g.iota(shape[other])
        for _ in behind:
            place = place.unsqueeze(-1)
        chosen = rows.unsqueeze(len(counting.axes)).equals(place)
        values = c.g.where(chosen, values.unsqueeze(axis), 0.0)
    return (moved + values).permute([order.index(i) for i in range(x.rank)]).to(c.dtype)
