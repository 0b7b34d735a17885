"""Rows and elements by index."""

from __future__ import annotations

import math

import torch

from ..dtypes import is_real
from ..row_ops import checked_rows, gather as gather_elements, row_numbers, take_rows
from ..tensor import Tensor
from ..unsupported import Unsupported
from .registry import Conversion, aten, converts

MAX_ROWS = 2**31 - 1


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
    return take_rows(weight, row_numbers(index, weight.size(0), from_end=False), False)


@converts(aten("index_select.default"))
def index_select(c: Conversion, x: Tensor, axis, index: Tensor) -> Tensor:
    if x.rank == 0:
        return x
    axis %= x.rank
    if index.rank == 0:
        index = index.reshape([1])
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
    order = axes + [i for i in range(x.rank) if i not in axes]
    rows = x.permute(order)
    sizes, count = rows.sizes, len(axes)
    total = math.prod(sizes[:count])
    if total > MAX_ROWS:
        raise Unsupported(f"indices into {total} rows")
    row = joined_numbers([indices[axis] for axis in axes], sizes)
    table = rows.reshape([total, math.prod(sizes[count:])])
    taken = take_rows(table, row, from_end=True).unflatten(row.rank, sizes[count:])
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
    if one_of_each_row(x, axis, index) and is_real(x.dtype) and c.node.args[0].op != "placeholder":
        # A sum in which all other elements are zeros: it shares a kernel with what made the row.
        chosen = chosen_places(x, axis, index)
        return c.g.where(chosen, x, 0.0).f32().sum([axis], True).to(x.dtype).reshape(c.shape)
    for i in range(x.rank):
        if i != axis:
            x = x.slice(i, 0, index.size(i))
    return gather_elements(x, index, axis).reshape(c.shape)


@converts(torch.ops.sinter.row_numbers.default)
def compared_rows(c: Conversion, index: Tensor, size) -> Tensor:
    return checked_rows(index, size, from_end=False)


def one_of_each_row(x: Tensor, axis: int, index: Tensor) -> bool:
    """Whether an index names one element of each row along an axis."""
    return all(index.shape[i] == x.shape[i] or i == axis for i in range(x.rank)) \
        and index.is_one(axis)


def chosen_places(x: Tensor, axis: int, index: Tensor) -> Tensor:
    """i1 in x's shape: the elements that such an index names."""
    return x.places(axis).equals(checked_rows(index, x.size(axis), from_end=False))
