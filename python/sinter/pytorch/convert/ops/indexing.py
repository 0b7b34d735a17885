"""Rows and elements by index."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from ....importing.row_ops import checked_rows, gather as gather_elements, row_numbers, take_rows
from ....importing.tensor import Tensor
from ....importing.types import MAX_I32, is_real
from ....importing.unsupported import Unsupported
from ...graphs.ranges import counted_axis
from .registry import Conversion, aten, converts


def joined_numbers(indices: list[Tensor], sizes: list[int]) -> Tensor:
    """The row of a table of all axes joined that indices along them name; -1 where one of several
    is outside of its axis. Negative ones count from the end."""
    if len(indices) == 1:
        return row_numbers(indices[0], sizes[0], from_end=True)
    numbers = [checked_rows(index, size, from_end=True) for index, size in zip(indices, sizes)]
    row, inside = None, None
    for number, size in zip(numbers, sizes):
        here = number.greater_equal(0) & number.less(size)
        row = number if row is None else row * size + number
        inside = here if inside is None else inside & here
    return row.g.where(inside, row, -1)


@converts(aten("embedding.default"))
def embedding(c: Conversion, weight: Tensor, index: Tensor, *ignored) -> Tensor:
    return take_rows(weight, row_numbers(index, c.node.args[0].meta["val"].shape[0], from_end=False),
                     False)


@converts(aten("index_select.default"))
def index_select(c: Conversion, x: Tensor, axis, index: Tensor) -> Tensor:
    if x.rank == 0:
        return x
    axis %= x.rank
    if index.rank == 0:
        index = index.reshape([1])
    if not x.is_number:
        return elements_at(c, x, axis, index, from_end=False)
    order = [axis] + [i for i in range(x.rank) if i != axis]
    rows = x.permute(order)
    shape = rows.sizes
    table = rows.reshape([shape[0], math.prod(shape[1:])])
    taken = take_rows(table, row_numbers(index, shape[0], from_end=False), False)
    return taken.unflatten(1, shape[1:]).permute([order.index(i) for i in range(x.rank)])


@converts(aten("index.Tensor"))
def index_tensor(c: Conversion, x: Tensor, indices) -> Tensor:
    """Advanced indexing with integers along neighbouring axes."""
    axes = [i for i, index in enumerate(indices) if index is not None]
    if any(indices[i].dtype == "i1" for i in axes):
        raise Unsupported("indexing by a mask, whose result has an unknown size")
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise Unsupported("indices along axes that are no neighbours")
    moved = indexed_by_counting(c, x, axes, [indices[axis] for axis in axes])
    if moved is not None:
        return moved
    if len(axes) == 1 and not x.is_number:
        return elements_at(c, x, axes[0], indices[axes[0]], from_end=True)
    taken = taken_by_axis(c, x, axes, [indices[axis] for axis in axes])
    if taken is not None:
        return taken
    order = axes + [i for i in range(x.rank) if i not in axes]
    rows = x.permute(order)
    sizes, count = rows.sizes, len(axes)
    total = math.prod(sizes[:count])
    if total > MAX_I32:
        raise Unsupported(f"indices into {total} rows")
    if any(isinstance(size, int) and size == 0 for size in c.shape):  # eager checks no index
        return c.g.full(c.shape, 0, x.dtype)
    row = joined_numbers([indices[axis] for axis in axes], sizes)
    table = rows.reshape([total, math.prod(sizes[count:])])
    taken = take_rows(table, row, from_end=True).unflatten(row.rank, sizes[count:])
    lead = axes[0]  # the result's index axes replace the indexed axes of x
    index_axes = list(range(row.rank))
    rest = list(range(row.rank, taken.rank))
    return taken.permute(rest[:lead] + index_axes + rest[lead:])


def elements_at(c: Conversion, x: Tensor, axis: int, index: Tensor, from_end: bool) -> Tensor:
    """The elements of x, the node's first operand, at an index along an axis; the index's axes replace it."""
    return elements_along(c, x, axis, index.flatten(), from_end).reshape(c.shape)


def elements_along(c: Conversion, x: Tensor, axis: int, index: Tensor, from_end: bool) -> Tensor:
    """The elements of x, the node's first operand, at an index of one axis, which takes the place of x's axis."""
    rows = row_numbers(index, c.node.args[0].meta["val"].shape[axis], from_end)
    for i in range(x.rank):
        if i != axis:
            rows = rows.unsqueeze(i)
    return gather_elements(x, rows, axis, from_end)


def indexed_by_counting(c: Conversion, x: Tensor, axes: list[int],
                        indices: list[Tensor]) -> Tensor | None:
    """x at indices of a `counting_order`: the axes of x move to the places of those that count, and the
    other index takes an element. None: the indices are others, or rows of a table are cheaper."""
    counting = counting_order(c, x, axes, indices)
    if counting is None or counting.others and x.is_number:
        return None
    before, behind = list(range(axes[0])), list(range(axes[-1] + 1, x.rank))
    order = before + counting.axes + counting.others + behind
    moved = x.permute(order)
    if counting.others:
        moved = element_along(c, moved, order, len(before) + len(counting.axes), counting.index)
    for missing in sorted(set(range(counting.rank)) - set(counting.places)):
        moved = moved.unsqueeze(len(before) + missing)
    return moved.expand(c.shape)


def taken_by_axis(c: Conversion, x: Tensor, axes: list[int], indices: list[Tensor]) -> Tensor | None:
    """x[i[:, None], j], each index of which varies along one axis of its own: taken along one axis of x after another,
    but for an index that counts. It is for sizes that are no numbers: a mask[batch, token] whose batch torch does not
    know to equal the tokens' batch. None: the indices are others, or rows of a table are cheaper."""
    if all(x.product(axis).is_number for axis in axes):
        return None
    rank = max(index.rank for index in indices)
    places = []
    for index in indices:
        varying = [rank - index.rank + i for i in range(index.rank) if not index.is_one(i)]
        if len(varying) != 1 or varying[0] in places:
            return None
        places += varying
    for axis, index in zip(axes, indices):
        if place_of(c.node.args[1][axis], x, axis, rank) is None:
            x = elements_along(c, x, axis, index.flatten(), from_end=True)
    before, behind = list(range(axes[0])), list(range(axes[-1] + 1, x.rank))
    moved = x.permute(before + [axes[i] for i in sorted(range(len(axes)), key=places.__getitem__)] + behind)
    for missing in sorted(set(range(rank)) - set(places)):
        moved = moved.unsqueeze(len(before) + missing)
    return moved.expand(c.shape)


class Counting(NamedTuple):
    """Indices along axes of a tensor that count 0, 1, 2, ... along axes of their own, but for one at most.

    axes: the tensor's axes whose index counts, in the order of `places`, along which they do. others: the axis whose
    index does not count, if there is one. index: its index, over the axes `places` alone. rank: of the broadcast
    indices."""

    axes: list[int]
    others: list[int]
    places: list[int]
    index: Tensor | None
    rank: int


def counting_order(c: Conversion, x: Tensor, axes: list[int], indices: list[Tensor]) -> Counting | None:
    """How the indices of the node count along the axes of x. None: they do not, or the other index varies
    along further axes."""
    rank = max(index.rank for index in indices)
    place = {axis: place_of(c.node.args[1][axis], x, axis, rank) for axis in axes}
    counted = sorted((axis for axis in axes if place[axis] is not None), key=place.get)
    others = [axis for axis in axes if place[axis] is None]
    places = [place[axis] for axis in counted]
    if len(others) > 1 or not counted or len(set(places)) < len(places):
        return None
    index = without_axes(indices[axes.index(others[0])], rank, places) if others else None
    return None if others and index is None else Counting(counted, others, places, index, rank)


def without_axes(index: Tensor, rank: int, kept: list[int]) -> Tensor | None:
    """An index that is broadcast to `rank` axes, with the axes `kept` alone; None: it varies along
    others."""
    for _ in range(rank - index.rank):
        index = index.unsqueeze(0)
    gone = [axis for axis in range(rank) if axis not in kept]
    return index.squeeze(gone) if all(index.is_one(axis) for axis in gone) else None


def element_along(c: Conversion, x: Tensor, order: list[int], axis: int, index: Tensor) -> Tensor:
    """The elements of x along an axis, which goes, at an index over the axes just before it. x is the
    node's first operand with its axes in another order."""
    size = c.node.args[0].meta["val"].shape[order[axis]]
    rows = row_numbers(index, size, from_end=True)
    for _ in range(x.rank - axis):
        rows = rows.unsqueeze(-1)
    for _ in range(x.rank - rows.rank):
        rows = rows.unsqueeze(0)
    return gather_elements(x, rows, axis, from_end=True).squeeze([axis])


def place_of(node, x: Tensor, axis: int, rank: int) -> int | None:
    """The axis of the broadcast indices along which an index counts all places of an axis of x."""
    counted = counted_axis(node)
    if counted is None:
        return None
    size = x.g.extents.product(node.meta["val"].shape[counted])
    return rank + counted if size == x.product(axis) else None


@converts(aten("gather.default"))
def gather(c: Conversion, x: Tensor, axis, index: Tensor, *, sparse_grad=False) -> Tensor:
    if x.rank == 0:
        return x.expand(c.shape) if index.rank == 0 else x.reshape([1]).expand(c.shape)
    if index.rank == 0:
        index = index.reshape([1])
    axis %= x.rank
    if one_of_each_row(x, axis, index) and is_real(x.dtype) and c.node.args[0].op != "placeholder":
        # A sum in which all other elements are zeros: it shares a kernel with what made the row.
        chosen = chosen_places(c, x, axis, index)
        return c.g.where(chosen, x, 0.0).f32().sum([axis], True).to(x.dtype).reshape(c.shape)
    for i in range(x.rank):
        if i != axis and x.shape[i] != index.shape[i]:
            x = x.slice(i, 0, index.size(i))
    return gather_elements(x, index, axis).reshape(c.shape)


@converts(torch.ops.sinter.row_numbers.default)
def compared_rows(c: Conversion, index: Tensor, size) -> Tensor:
    return checked_rows(index, size, from_end=False)


def one_of_each_row(x: Tensor, axis: int, index: Tensor) -> bool:
    """Whether an index names one element of each row along an axis."""
    return all(index.shape[i] == x.shape[i] or i == axis for i in range(x.rank)) \
        and index.is_one(axis)


def chosen_places(c: Conversion, x: Tensor, axis: int, index: Tensor) -> Tensor:
    """i1 in the shape of x, the node's first operand: the elements that such an index names."""
    size = c.node.args[0].meta["val"].shape[axis]
    return x.places(axis).equals(checked_rows(index, size, from_end=False))
