"""Rows and elements by index, and elements by index that take other values."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

from ...importing.row_ops import checked_rows, gather, index_of, row_numbers, take_rows
from ...importing.tensor import Tensor
from ...importing.types import MAX_I32
from ...importing.unsupported import Unsupported
from ..codes import Coded
from ..registry import DTYPES, Known, Node, Results, converts, count_of, shape_of
from ..sizes import Size
from .movement import along

# A place's writer is found by comparing the place with the whole index.
MAX_COMPARED = 2**28


def rows_of(c: Node, index: int, size: Any) -> Tensor:
    """Row numbers of an axis of `size` elements. Negative indices count from the end; a constant without
    any needs no comparison."""
    value = c.value(index)
    if isinstance(value, Known) and not value.has_sizes and not (value.array < 0).any():
        return index_of(c[index])
    return row_numbers(c[index], c.extents.product(size), from_end=True)


@converts("Gather")
def gather_(c: Node) -> Tensor:
    """Rows of a matrix of codes are rounded when they are taken."""
    x = c.value(0)
    if isinstance(x, Coded):
        return gathered(c, c.tensor_of(replace(x, dtype="float32"))).to(DTYPES[x.dtype])
    return gathered(c, c[0])


def gathered(c: Node, x: Tensor) -> Tensor:
    sizes, places = shape_of(x), shape_of(c.value(1))
    axis = c.axis(x.rank)
    number = c.number(1)
    if number is not None and isinstance(sizes[axis], int):
        if not -sizes[axis] <= number < sizes[axis]:
            raise Unsupported(f"index {number} of an axis of {sizes[axis]} elements")
        return x.select(axis, number).reshape([*sizes[:axis], *places, *sizes[axis + 1 :]])
    rows = rows_of(c, 1, sizes[axis])
    if axis == 0 and all(isinstance(size, int) for size in sizes[1:]):
        width = math.prod(sizes[1:])
        taken = take_rows(x.reshape([sizes[0], width]) if x.rank > 2 else x, rows, True)
        return taken.unflatten(rows.rank, sizes[1:]) if x.rank > 2 else taken
    taken = gather(x, along(x, rows.flatten(), axis), axis, True)
    return taken.reshape([*sizes[:axis], *places, *sizes[axis + 1 :]])


@converts("GatherElements")
def gather_elements(c: Node) -> Tensor:
    x = c[0]
    axis = c.axis(x.rank)
    index = rows_of(c, 1, shape_of(x)[axis])
    for i in range(x.rank):
        if i != axis and x.shape[i] != index.shape[i]:
            x = x.slice(i, 0, index.size(i))
    return gather(x, index, axis, True)


def joined_rows(c: Node, parts: list[Tensor], sizes: list[Any]) -> Tensor:
    """The row of a table of all axes joined that indices along them name; -1 where one is outside."""
    rows = count_of([c.extents.bounds(size)[1] for size in sizes])
    if rows > MAX_I32:
        raise Unsupported(f"indices into {rows} rows")
    if len(parts) == 1:
        return row_numbers(parts[0], c.extents.product(sizes[0]), from_end=True)
    extents = [c.g.scalar(size, "i32") if isinstance(size, Size) else size for size in sizes]
    numbers = [checked_rows(x, c.extents.product(n), from_end=True) for x, n in zip(parts, sizes)]
    inside = [x.greater_equal(0) & x.less(extent) for x, extent in zip(numbers, extents)]
    row = numbers[0]
    for number, extent in zip(numbers[1:], extents[1:]):
        row = row * extent + number
    return c.g.where(functools.reduce(Tensor.__and__, inside), row, -1)


def index_parts(index: Tensor) -> list[Tensor]:
    """The indices along each axis, which stand along the last axis of an index."""
    return [index.select(-1, i) for i in range(index.size(index.rank - 1))]


@converts("GatherND")
def gather_nd(c: Node) -> Tensor:
    x, index, batch = c[0], c[1], c.integer("batch_dims")
    moved = c.origins.picked(x, index) if batch == 0 else None
    if moved is not None:
        return moved
    parts = index_parts(index)
    parts = [parts[0].places(i) for i in range(batch)] + parts
    count, sizes = len(parts), shape_of(x)
    rest = sizes[count:]
    table = x.reshape([count_of(sizes[:count]), count_of(rest)])
    taken = take_rows(table, joined_rows(c, parts, sizes[:count]), True)
    return taken.reshape([*shape_of(index)[:-1], *rest])


# ---- elements that take other values

REDUCTIONS = ("none", "add", "max", "min")


def scattered(c: Node, x: Tensor, axis: int, rows: Tensor, source: Tensor) -> Tensor:
    """x with source[i, m, k] at [i, rows[i, m, k], k], for axis 1; of several for one place the last one is
    written, or all are added or compared with it. All have the sizes of x, or 1, along other axes."""
    most, way = x.g.extents.most, c.text("reduction", "none")
    if way not in REDUCTIONS:
        raise Unsupported(f"the reduction {way} of a scatter")
    if most(rows.product(axis)) == 0:
        return x
    compared = most(x.product(axis)) * math.prod(most(size) for size in rows.shape)
    if compared > MAX_COMPARED:
        raise Unsupported(f"{compared} pairs of a place and an index")
    wide = rows.unsqueeze(axis)
    is_written = wide.equals(x.places(axis).unsqueeze(1))
    if way == "none":
        last = x.g.where(is_written, wide.places(axis + 1), -1).max([axis + 1])
        source = gather(source, last.maximum(0), axis) if not source.is_one(axis) else source
        return x.g.where(last.greater_equal(0), source, x)
    source = source.f32().unsqueeze(axis)
    if way == "add":
        total = x.g.where(is_written, source, 0.0).sum([axis + 1])
        return (x.f32() + total).to(x.dtype)
    source = source if way == "max" else -source
    best = x.g.where(is_written, source, -math.inf).max([axis + 1])
    return (x.f32().maximum(best) if way == "max" else x.f32().minimum(-best)).to(x.dtype)


def need_sums(c: Node, x: Tensor) -> None:
    if c.text("reduction", "none") != "none":
        c.need_real(x)


@converts("ScatterElements", "Scatter")
def scatter_elements(c: Node) -> Tensor:
    x, source = c[0], c[2]
    need_sums(c, x)
    axis = c.axis(x.rank)
    rows = checked_rows(c[1], c.extents.product(shape_of(x)[axis]), from_end=True)
    for i in range(x.rank):
        if i != axis and rows.shape[i] != x.shape[i]:  # rows behind the index name no place
            rows, source = with_more(rows, i, x.size(i), -1), with_more(source, i, x.size(i), 0)
    return scattered(c, x, axis, rows, source)


def with_more(x: Tensor, axis: int, size: int, number: int) -> Tensor:
    """x with elements of a number behind its own, up to a size."""
    lacks = size - x.size(axis)
    return x.g.concat([x, x.filled(x.g.number(number, x.dtype), axis, lacks)], axis)


@converts("ScatterND")
def scatter_nd(c: Node) -> Tensor:
    x, parts = c[0], index_parts(c[1])
    need_sums(c, x)
    count, sizes = len(parts), shape_of(c[0])
    if count > 1 and any(isinstance(size, Size) for size in sizes[:count]):
        raise Unsupported("indices along several axes of sizes that only a call knows")
    if count > 1:
        rows = joined_rows(c, parts, sizes[:count])
    else:
        rows = checked_rows(parts[0], c.extents.product(sizes[0]), from_end=True)
    table = x.flatten(0, count - 1) if count > 1 else x
    updates = c[2].flatten(0, rows.rank - 1) if rows.rank > 1 else c[2]
    written = scattered(c, table, 0, along(table, rows.flatten(), 0), updates)
    return written.reshape(sizes)


@converts("TensorScatter")
def tensor_scatter(c: Node) -> Tensor:
    """A cache with an update from a place of each batch on."""
    x, update = c[0], c[1]
    axis = c.axis(x.rank, -2)
    place = x.places(axis)
    if c.has(2):
        begin = index_of(c[2]).reshape([shape_of(c[2])[0], *[1] * (x.rank - 1)])
        place = place - begin
    if c.text("mode", "linear") == "circular":
        place = c.g.map("mod_floor", place, x.extent(axis))
    is_written = place.greater_equal(0) & place.less(update.extent(axis))
    inside = place.maximum(0).minimum(update.extent(axis) - 1)
    return c.g.where(is_written, gather(update, inside, axis), x)


@converts("OneHot")
def one_hot(c: Node) -> Results:
    index, depth, values = c[0], int(c.array(1).reshape(-1)[0]), c[2]
    rank = index.rank + 1
    axis = c.axis(rank, -1)
    whole = index.to("i32") if index.dtype in ("f32", "f16") else index
    rows = row_numbers(whole, depth, True).unsqueeze(axis)
    place = c.g.iota(depth).reshape([depth if i == axis else 1 for i in range(rank)])
    return c.g.where(rows.equals(place), values.select(0, 1), values.select(0, 0))
