"""Rows and elements by index. Indices are i64 in torch; a row number is i32 in Sinter, and a
number outside i32 becomes the nearest one, which names no row either."""

from __future__ import annotations

import math

from ..dtypes import is_real
from ..tensor import Tensor
from ..unsupported import Unsupported
from .registry import Conversion, aten, converts

MOST_ROWS = 2**31 - 1


def row_numbers(index: Tensor, size: int, wrap: bool) -> Tensor:
    """An index as i32; `wrap`: negative ones count from the end."""
    index = index.to("i32")
    return index.g.where(index.less(0), index + size, index) if wrap else index


def joined_numbers(indices: list[Tensor], sizes: list[int]) -> Tensor:
    """The row of a table of all axes joined that indices along them name; -1 where one of several
    is outside of its axis. Negative ones count from the end."""
    numbers = [row_numbers(index, size, wrap=True) for index, size in zip(indices, sizes)]
    if len(numbers) == 1:
        return numbers[0]
    row, inside = None, None
    for number, size in zip(numbers, sizes):
        here = number.greater_equal(0) & number.less(size)
        row = number if row is None else row * size + number
        inside = here if inside is None else inside & here
    return row.g.where(inside, row, -1)


def gather_rows(c: Conversion, table: Tensor, rows: Tensor) -> Tensor:
    """result[..., :] = table[rows[...], :] for a table of rank 2."""
    if rows.rank == 0:
        return gather_rows(c, table, rows.reshape([1])).reshape([table.size(1)])
    value = c.g.op("embedding", [table.merged().value, rows.value])
    return Tensor(c.g, value, rows.groups + (1,))


@converts(aten("embedding.default"))
def embedding(c: Conversion, weight: Tensor, index: Tensor, *ignored) -> Tensor:
    return gather_rows(c, weight, row_numbers(index, weight.size(0), wrap=False))


@converts(aten("index_select.default"))
def index_select(c: Conversion, x: Tensor, axis, index: Tensor) -> Tensor:
    if x.rank == 0:
        return x
    axis %= x.rank
    if index.rank == 0:
        index = index.reshape([1])
    order = [axis] + [i for i in range(x.rank) if i != axis]
    rows = x.permute(order)
    shape = [rows.size(i) for i in range(rows.rank)]
    table = rows.reshape([shape[0], math.prod(shape[1:])])
    taken = gather_rows(c, table, row_numbers(index, shape[0], wrap=False))
    taken = taken.reshape([index.size(0)] + shape[1:])
    return taken.permute([order.index(i) for i in range(x.rank)])


@converts(aten("index.Tensor"))
def index_tensor(c: Conversion, x: Tensor, indices) -> Tensor:
    """Advanced indexing with integers along neighbouring axes."""
    axes = [i for i, index in enumerate(indices) if index is not None]
    if any(indices[i].dtype == "i1" for i in axes):
        raise Unsupported("indexing by a mask, whose result has an unknown size")
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise Unsupported("indices along axes that are no neighbours")
    order = axes + [i for i in range(x.rank) if i not in axes]
    rows = x.permute(order)
    sizes = [rows.size(i) for i in range(rows.rank)]
    count = len(axes)
    total = math.prod(sizes[:count])
    if total > MOST_ROWS:
        raise Unsupported(f"indices into {total} rows")
    row = joined_numbers([indices[axis] for axis in axes], sizes)
    table = rows.reshape([total, math.prod(sizes[count:])])
    taken = gather_rows(c, table, row)
    taken = taken._reshaped([row.axes(i) for i in range(row.rank)]
                            + [(size,) for size in sizes[count:]])
    lead = axes[0]  # the result's index axes stand where those of x stood
    index_axes = list(range(row.rank))
    rest = list(range(row.rank, taken.rank))
    return taken.permute(rest[:lead] + index_axes + rest[lead:])


@converts(aten("gather.default"))
def gather(c: Conversion, x: Tensor, axis, index: Tensor, *, sparse_grad=False) -> Tensor:
    if x.rank == 0:
        return x.expand(c.shape) if index.rank == 0 else x.reshape([1]).expand(c.shape)
    if index.rank == 0:
        index = index.reshape([1])
    axis %= x.rank
    sizes = [x.size(i) for i in range(x.rank)]
    if one_of_each_row(x, axis, index) and is_real(x.dtype) and c.node.args[0].op != "placeholder":
        # A sum in which all other elements are zeros: it shares a kernel with what made the row.
        chosen = chosen_places(x, axis, index)
        return c.g.where(chosen, x, 0.0).f32().sum([axis], True).to(x.dtype)
    for i in range(x.rank):
        if i != axis:
            x = x.slice(i, 0, index.size(i))
    along = row_numbers(index, sizes[axis], wrap=False)
    x, along = x.merged(), along.merged()
    value = c.g.op("gather", [x.value, along.value], f"axis = {axis}")
    return Tensor(c.g, value, x.groups)


def one_of_each_row(x: Tensor, axis: int, index: Tensor) -> bool:
    """Whether an index names one element of each row along an axis."""
    return all(index.shape[i] == x.shape[i] or i == axis for i in range(x.rank)) \
        and index.is_one(axis)


def chosen_places(x: Tensor, axis: int, index: Tensor) -> Tensor:
    """i1 in x's shape: the elements that such an index names."""
    return x.places(axis).equals(row_numbers(index, x.size(axis), wrap=False))
