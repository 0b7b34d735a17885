"""Elements by index that take other values.

Where an index names one place several times, its last element is written, as one thread in eager writes
them; torch leaves the order open.
"""

from __future__ import annotations

import math

from ....importing.row_ops import checked_rows, gather
from ....importing.tensor import Tensor
from ....importing.types import MAX_I32
from ....importing.unsupported import Unsupported
from ...graphs.ranges import is_range
from .indexing import joined_numbers
from .movement import Strided, along
from .registry import Conversion, aten, converts

# The writer of a place is found by comparing the place with the whole index.
MAX_COMPARED = 2**28


def last_writers(x: Tensor, axis: int, rows: Tensor) -> Tensor:
    """i32: for each place of an axis of x the last element of the row numbers that names it, -1 if none
    does. Row numbers have as many axes as x."""
    most = x.g.extents.most
    compared = most(x.product(axis)) * math.prod(most(size) for size in rows.shape)
    if compared > MAX_COMPARED:
        raise Unsupported(f"{compared} pairs of a place and an index")
    wide = rows.unsqueeze(axis)
    is_written = wide.equals(x.places(axis).unsqueeze(1))
    return x.g.where(is_written, wide.places(axis + 1), -1).max([axis + 1])


def writers_of_range(x: Tensor, axis: int, rows: Tensor) -> Tensor:
    """The same for row numbers that are begin, begin + 1, ..., as the row numbers of new tokens in a cache are."""
    begin = gather(rows, x.g.number(0, "i32").reshape([1] * x.rank), axis)
    writer = x.places(axis) - begin
    is_written = writer.greater_equal(0) & writer.less(rows.extent(axis))
    return x.g.where(is_written, writer, -1)


def overwritten(x: Tensor, axis: int, rows: Tensor, source: Tensor, is_a_range: bool = False) -> Tensor:
    """x with source[i, m, k] at [i, rows[i, m, k], k], for axis 1. All have as many axes as x, of its size
    or 1, but for `axis`; there the source has the size of the row numbers, or one element for all.
    is_a_range: the row numbers are begin, begin + 1, ..."""
    source = source.to(x.dtype)
    if x.g.is_state(x):
        return x.g.append(x, rows, source)
    if x.g.extents.most(rows.product(axis)) == 0:
        return x
    if rows.is_one(axis):
        return x.g.where(rows.equals(x.places(axis)), source, x)
    last = writers_of_range(x, axis, rows) if is_a_range else last_writers(x, axis, rows)
    if not source.is_one(axis):
        source = gather(source, last.maximum(0), axis)
    return x.g.where(last.greater_equal(0), source, x)


def size_of(c: Conversion, axis: int):
    """The size of an axis of the node's first operand."""
    shape = c.node.args[0].meta["val"].shape
    return shape[axis] if shape else 1


def is_empty(x: Tensor) -> bool:
    """Whether a tensor has no elements; eager checks no index into it."""
    return any(size.number == 0 for size in x.shape)


def row_axis(index: Tensor) -> Tensor:
    """An index of one axis, or of none, as one of one axis."""
    return index if index.rank else index.unsqueeze(0)


@converts(aten("index_copy.default"))
def index_copy(c: Conversion, x: Tensor, axis, index: Tensor, source: Tensor) -> Tensor:
    if x.rank == 0:
        return index_copy(c, x.unsqueeze(0), 0, index, row_axis(source)).squeeze([0])
    axis %= x.rank
    if is_empty(x):
        return x
    rows = checked_rows(row_axis(index), size_of(c, axis), from_end=False)
    return overwritten(x, axis, along(x, rows, axis), source, is_range(c.node.args[2]))


@converts(aten("index_fill.int_Scalar"), aten("index_fill.int_Tensor"))
def index_fill(c: Conversion, x: Tensor, axis, index: Tensor, value) -> Tensor:
    value = value if isinstance(value, Tensor) else c.number(value, x.dtype)
    if x.rank == 0:
        return value.to(x.dtype)
    axis %= x.rank
    if is_empty(x):
        return x
    rows = checked_rows(row_axis(index), size_of(c, axis), from_end=True)
    return overwritten(x, axis, along(x, rows, axis), value.reshape([1] * x.rank))


@converts(aten("scatter.src"), aten("scatter.value"))
def scatter(c: Conversion, x: Tensor, axis, index: Tensor, source) -> Tensor:
    """x with source[i, j, k] at [i, index[i, j, k], k], for axis 1."""
    if c.node.target is aten("scatter.value"):
        source = c.number(source, x.dtype).reshape([1] * x.rank)
    if is_empty(x) or is_empty(index):
        return x
    if x.rank == 0:
        return source.to(x.dtype).reshape([])
    axis %= x.rank
    index, source = row_axis(index), row_axis(source)
    short = [i for i in range(x.rank) if i != axis and index.shape[i] != x.shape[i]]
    rows = checked_rows(index, size_of(c, axis), from_end=False)
    for i in range(x.rank):
        if source.shape[i] != index.shape[i] and not source.is_one(i):
            source = source.slice(i, 0, index.size(i))
    for i in short:  # rows behind the index name no place
        rows = with_more(rows, i, x.size(i), -1)
        source = source if source.is_one(i) else with_more(source, i, x.size(i), 0)
    return overwritten(x, axis, rows, source)


def with_more(x: Tensor, axis: int, size: int, number: int) -> Tensor:
    """x with elements of a number behind its own, up to a size."""
    lacks = size - x.size(axis)
    return x.g.concat([x, x.filled(x.g.number(number, x.dtype), axis, lacks)], axis) if lacks else x


@converts(aten("as_strided_scatter.default"))
def as_strided_scatter(c: Conversion, x: Tensor, source: Tensor, sizes, strides, offset=None) -> Tensor:
    """x with other elements at places in its memory, as the gradient of a view that changes in place has it."""
    view = Strided.of(c, x, sizes, strides, offset)
    if 0 in sizes:
        return x
    source = source.to(x.dtype)
    elements = overwritten(view.elements, 0, view.places, source.reshape([math.prod(sizes)])) \
        if view.order is None else source.permute(view.order).reshape([view.elements.size(0)])
    order = view.layout.order
    return elements.reshape([x.size(axis) for axis in order]).permute(view.layout.inverse)


def put_where(c: Conversion, x: Tensor, mask: Tensor, values: Tensor) -> Tensor:
    """x[mask] = values, the same for all elements of the mask."""
    behind = x.rank - mask.rank
    if values.rank > behind:
        if not values.is_one(0):
            raise Unsupported("as many values as a mask has elements that are true")
        values = values.squeeze([0])
    for _ in range(behind):
        mask = mask.unsqueeze(-1)
    return c.g.where(mask, values.to(x.dtype), x)


def put(c: Conversion, x: Tensor, indices, values: Tensor) -> Tensor:
    """x[indices] = values"""
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    given = [indices[axis] for axis in axes]
    if any(index.dtype == "i1" for index in given):
        if len(axes) > 1 or axes[0] > 0:
            raise Unsupported("a mask beside other indices")
        return put_where(c, x, given[0], values)
    order = axes + [axis for axis in range(x.rank) if axis not in axes]
    if axes == list(range(axes[0], axes[0] + len(axes))):
        order, lead = list(range(x.rank)), axes[0]
    else:  # torch puts the index's axes first
        lead = 0
    moved = x.permute(order)
    rows = checked_rows(given[0], size_of(c, axes[0]), from_end=True) if len(axes) == 1 \
        else joined_rows(given, [x.size(axis) for axis in axes])
    written = put_rows(moved, lead, len(axes), rows, values)
    return written.permute([order.index(axis) for axis in range(x.rank)])


def joined_rows(indices: list[Tensor], sizes: list[int]) -> Tensor:
    if math.prod(sizes) > MAX_I32:
        raise Unsupported(f"indices into {math.prod(sizes)} rows")
    return joined_numbers(indices, sizes)


def put_rows(x: Tensor, lead: int, count: int, rows: Tensor, values: Tensor) -> Tensor:
    """Values at rows of the axes lead .. lead + count - 1 of x, joined. The values broadcast to the axes before these,
    the axes of the rows, and the axes after these."""
    sizes = x.shape[lead:lead + count]
    table = x.flatten(lead, lead + count - 1) if count > 1 else x
    rank = table.rank - 1 + rows.rank
    for _ in range(rank - values.rank):
        values = values.unsqueeze(0)
    own = list(range(lead, lead + rows.rank))
    if rows.rank != 1:
        if not all(values.is_one(axis) for axis in own):
            wanted = [rows.size(axis - lead) if axis in own else -1 for axis in range(rank)]
            values = values.expand(wanted)
        values = values.flatten(lead, own[-1]) if own else values.unsqueeze(lead)
    written = overwritten(table, lead, along(table, rows.flatten(), lead), values)
    return written.unflatten(lead, [size.number for size in sizes]) if count > 1 else written
