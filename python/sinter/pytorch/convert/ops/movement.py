"""Ops that move elements: views, concatenations, padding."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass
from typing import Sequence

import torch

from ....importing.extents import Product
from ....importing.row_ops import gather
from ....importing.tensor import Tensor
from ....importing.types import MAX_I32, is_real
from ....importing.unsupported import Unsupported
from ...graphs.layout import Layout
from ...graphs.symbols import expression_of
from .registry import Conversion, aten, converts


@converts(aten("view.default"), aten("reshape.default"), aten("_reshape_copy.default"), aten("view_copy.default"),
          aten("squeeze.dims"), aten("unsqueeze.default"))
def view(c: Conversion, x: Tensor, *ignored) -> Tensor:
    return x.reshape(c.shape)


@converts(aten("clone.default"), aten("alias.default"), aten("detach.default"), aten("lift_fresh_copy.default"),
          aten("lift_fresh.default"), aten("view_as_real.default"))  # of an input of complex numbers, which enters as this view
def same(c: Conversion, x: Tensor, **options) -> Tensor:
    return x


@converts(aten("copy.default"))
def copy(c: Conversion, x: Tensor, source: Tensor, *ignored) -> Tensor:
    return source.to(c.dtype).expand(c.shape)


@converts(torch.ops.sinter.part_of_rows.default)
def part_of_rows(c: Conversion, x: Tensor, begin, end) -> Tensor:
    return x.slice(1, begin, end).copy()


@converts(aten("permute.default"), aten("permute_copy.default"))
def permute(c: Conversion, x: Tensor, order) -> Tensor:
    return x.permute(order)


@converts(aten("expand.default"))
def expand(c: Conversion, x: Tensor, *ignored, **options) -> Tensor:
    return x.expand(c.shape)


MAX_PARTS = 64  # of a tensor that is put together in another order


def bound(index, size: int) -> int:
    """An end of a slice as torch reads it: from the back if it is negative, and inside."""
    if index is None or not isinstance(index, int):
        raise Unsupported("a slice whose ends are known only when the graph runs")
    return min(max(index + size if index < 0 else index, 0), size)


@converts(aten("slice.Tensor"), aten("slice_copy.Tensor"))
def slice_tensor(c: Conversion, x: Tensor, axis=0, begin=None, end=None, step=1) -> Tensor:
    if x.shape == tuple(c.g.extents.product(size) for size in c.shape):
        return x
    begin = 0 if begin is None else begin
    if not x.product(axis).is_number or not all(isinstance(i, int) for i in (begin, c.shape[axis])):
        return slice_of_unknown(c, x, axis % x.rank, begin, step)
    size = x.size(axis)
    return x.slice(axis, bound(begin, size), bound(size if end is None else end, size), step)


def is_below_zero(number) -> bool | None:
    """Whether a number is below zero in all calls. None: only the call knows."""
    if not isinstance(number, torch.SymInt):
        return number < 0
    bounds = number.node.shape_env.bound_sympy(number.node.expr)
    return True if bounds.upper < 0 else False if bounds.lower >= 0 else None


def place_in(c: Conversion, index, extent: Tensor) -> Tensor:
    """i32: a place of an axis of `extent`. An index below zero counts from the end."""
    place, below = c.number(index, "i32"), is_below_zero(index)
    if below is None:
        return c.g.where(place.less(0), place + extent, place)
    return place + extent if below else place


def slice_of_unknown(c: Conversion, x: Tensor, axis: int, begin, step) -> Tensor:
    """A slice whose ends only the call knows. Its size is a size of the graph."""
    if step != 1:
        raise Unsupported("a slice with steps whose ends are known only when the graph runs")
    places = places_of_slice(c, c.shape[axis], begin, x.extent(axis))
    return gather(x, along(x, places, axis), axis)


def places_of_slice(c: Conversion, size, begin, extent: Tensor) -> Tensor:
    """i32: the places of the `size` elements from `begin` on in an axis of `extent`. A number below zero
    counts from the end, and stays inside."""
    places = c.g.iota(size)
    if is_below_zero(begin) is not False:
        return places + place_in(c, begin, extent).maximum(0)
    return places if isinstance(begin, int) and begin == 0 else places + c.number(begin, "i32")


def along(x: Tensor, rows: Tensor, axis: int) -> Tensor:
    """A tensor of one axis as one that broadcasts to x, whose axis `axis` it is."""
    for i in range(x.rank):
        if i != axis:
            rows = rows.unsqueeze(i)
    return rows


def joined_at(tensors: Sequence[Tensor], axis: int, place: Tensor) -> Tensor:
    """The elements of a concatenation at these places of its axis: each is one of an operand."""
    return parts_at([(x, 0, x.extent(axis)) for x in tensors], axis, place)


def parts_at(parts: Sequence[tuple[Tensor, Tensor | int, Tensor]], axis: int, place: Tensor) -> Tensor:
    """The same for a concatenation of parts: tensors, where the part of each begins, and its size."""
    result = None
    for x, begin, size in parts:  # place: of the element in the part
        taken = gather(x, along(x, inside_of(x, axis, place + begin), axis), axis)
        result = taken if result is None \
            else x.g.where(along(x, place.less(0), axis), result, taken)
        place = place - size
    return result


@converts(torch.ops.sinter.joined_slices.default)
def joined_slices(c: Conversion, tensors, axis, begins, ends) -> Tensor:
    parts = []
    for x, begin, end in zip(tensors, begins, ends):
        extent = x.extent(axis)
        first = end_of_slice(c, begin, extent)
        if x.product(axis) != Product(0, ()):
            parts.append((x.to(c.dtype), first, (end_of_slice(c, end, extent) - first).maximum(0)))
    if not parts:
        return c.g.full(c.shape, 0, c.dtype)
    return parts_at(parts, axis, c.g.iota(c.shape[axis]))


@converts(torch.ops.sinter.slice_of_joined.default)
def slice_of_joined(c: Conversion, tensors, axis, begin, end) -> Tensor:
    tensors, axis = [x.to(c.dtype) for x in tensors], axis % tensors[0].rank
    if all(x.product(axis).is_number for x in tensors):
        return slice_tensor(c, c.g.concat(tensors, axis), axis, begin, end)
    total = functools.reduce(operator.add, [x.extent(axis) for x in tensors])
    return joined_at(tensors, axis, places_of_slice(c, c.shape[axis], begin, total))


@converts(aten("select.int"), aten("select_copy.int"))
def select(c: Conversion, x: Tensor, axis, index) -> Tensor:
    if not isinstance(index, int) or not x.product(axis).is_number:
        return select_of_unknown(c, x, axis % x.rank, index)
    return x.select(axis, index)


def select_of_unknown(c: Conversion, x: Tensor, axis: int, index) -> Tensor:
    """An element of an axis of unknown size, or whose place only the call knows: a sum in which all others
    are zeros. Integers are read from their place."""
    if not is_real(x.dtype):
        place = place_in(c, index, x.extent(axis))
        return gather(x, place.reshape([1] * x.rank), axis).squeeze([axis])
    chosen = chosen_along(c, x, axis, index)
    return c.g.where(chosen, x.f32(), 0.0).sum([axis]).to(x.dtype)


def chosen_along(c: Conversion, x: Tensor, axis: int, index) -> Tensor:
    """i1, to be broadcast to x's shape: element `index` of an axis; a negative one counts from its
    end."""
    number = x.product(axis)
    if isinstance(index, int) and (index >= 0 or number.is_number):
        return x.places(axis).equals(index if index >= 0 else index + number.number)
    return x.places(axis).equals(place_in(c, index, x.extent(axis)))


@converts(aten("split.Tensor"), aten("split_with_sizes.default"), aten("split_copy.Tensor"))
def split(c: Conversion, x: Tensor, sizes, axis=0) -> tuple:
    parts, begin = [], 0
    for meta in c.meta:
        size = meta.shape[axis]
        if not isinstance(size, int):
            raise Unsupported("parts of unknown size")
        parts.append(x.slice(axis, begin, begin + size))
        begin += size
    return tuple(parts)


@converts(aten("unbind.int"), aten("unbind_copy.int"))
def unbind(c: Conversion, x: Tensor, axis=0) -> tuple:
    return tuple(x.select(axis, i) for i in range(x.size(axis)))


@converts(aten("cat.default"))
def cat(c: Conversion, tensors, axis=0) -> Tensor:
    # torch drops operands of shape [0].
    kept = [x.to(c.dtype) for x in tensors if not (x.rank == 1 and len(c.shape) != 1)]
    filled = [x for x in kept if not x.product(axis).is_number or x.size(axis)]
    if len(filled) > 1 and any(not x.product(axis).is_number for x in filled):
        return joined_at(filled, axis % filled[0].rank, c.g.iota(c.shape[axis]))
    return c.g.concat(filled or kept[:1], axis)


@converts(aten("stack.default"))
def stack(c: Conversion, tensors, axis=0) -> Tensor:
    return c.g.concat([x.to(c.dtype).unsqueeze(axis) for x in tensors], axis)


@converts(aten("repeat.default"))
def repeat(c: Conversion, x: Tensor, counts) -> Tensor:
    if not all(isinstance(count, int) for count in counts):
        raise Unsupported("a number of repetitions that is known only when the graph runs")
    lead = len(counts) - x.rank
    sizes = [1] * lead + [x.size(axis) for axis in range(x.rank)]
    x = x.reshape([part for size in sizes for part in (1, size)])
    x = x.expand([part for count, size in zip(counts, sizes) for part in (count, size)])
    return x.reshape(c.shape)


@converts(aten("flip.default"))
def flip(c: Conversion, x: Tensor, axes) -> Tensor:
    for axis in sorted({axis % x.rank for axis in axes} if x.rank else ()):
        number = x.product(axis)
        if number.is_number and number.number <= MAX_PARTS:
            parts = [x.slice(axis, i, i + 1) for i in reversed(range(number.number))]
            x = c.g.concat(parts, axis) if len(parts) > 1 else x
        else:
            places = x.extent(axis) - 1 - c.g.iota(c.shape[axis])
            x = gather(x, along(x, places, axis), axis)
    return x


@converts(aten("roll.default"))
def roll(c: Conversion, x: Tensor, shifts, axes=()) -> Tensor:
    shape = c.shape
    if not axes:
        x, axes = x.reshape([math.prod(x.size(axis) for axis in range(x.rank))]), [0]
    for shift, axis in zip(shifts, axes):
        if not isinstance(shift, int) or not x.product(axis).is_number:
            x = rolled_unknown(c, x, axis % x.rank, shift)
            continue
        size = x.size(axis)
        begin = (size - shift) % size if size else 0
        if begin:
            x = c.g.concat([x.slice(axis, begin, size), x.slice(axis, 0, begin)], axis)
    return x.reshape(shape)


def rolled_unknown(c: Conversion, x: Tensor, axis: int, shift) -> Tensor:
    """An axis of unknown size, or one that is rolled by a number that only the call knows."""
    place = x.places(axis).flatten().to("i64") - c.number(shift, "i64")
    place = c.g.map("mod_floor", place, x.extent(axis).to("i64")).nearest("i32")
    return gather(x, along(x, place, axis), axis)


@converts(aten("constant_pad_nd.default"))
def constant_pad(c: Conversion, x: Tensor, padding, value=0) -> Tensor:
    for i in range(len(padding) // 2):
        axis = x.rank - 1 - i
        before, after = padding[2 * i], padding[2 * i + 1]
        if all(isinstance(size, int) for size in (before, after)) and x.product(axis).is_number:
            x = padded(c, x, axis, before, after, value)
        else:
            x = padded_unknown(c, x, axis, before, value)
    return x


def padded(c: Conversion, x: Tensor, axis: int, before: int, after: int, value) -> Tensor:
    if before < 0 or after < 0:
        size = x.size(axis)
        x = x.slice(axis, max(0, -before), size - max(0, -after))
    parts = [x]
    if before > 0:
        parts.insert(0, x.filled(c.number(value, x.dtype), axis, before))
    if after > 0:
        parts.append(x.filled(c.number(value, x.dtype), axis, after))
    return c.g.concat(parts, axis) if len(parts) > 1 else x


def padded_unknown(c: Conversion, x: Tensor, axis: int, before, value) -> Tensor:
    """An axis with elements before and behind it, or without some, whose numbers only the call knows."""
    if isinstance(before, int) and before == 0 and x.product(axis) == c.g.extents.product(c.shape[axis]):
        return x
    places = c.g.iota(c.shape[axis]) - c.number(before, "i32")
    is_inside = places.greater_equal(0) & places.less(x.extent(axis))
    taken = at_places(c, x, axis, places)
    return c.g.where(along(x, is_inside, axis), taken, c.number(value, x.dtype))


def at_places(c: Conversion, x: Tensor, axis: int, places: Tensor) -> Tensor:
    """The elements of an axis at these places; at places outside, any of its elements."""
    product = x.product(axis)
    if product.number == 0 or any(c.g.extents.symbols[name].low == 0 for name in product.symbols):
        raise Unsupported("an axis that may have no elements, in a place of one that has")
    return gather(x, along(x, inside_of(x, axis, places), axis), axis)


def inside_of(x: Tensor, axis: int, places: Tensor) -> Tensor:
    """Places of an axis; those outside become the nearest inside."""
    return places.maximum(0).minimum(x.extent(axis) - 1)


@converts(aten("slice_scatter.default"))
def slice_scatter(c: Conversion, x: Tensor, source: Tensor, axis=0, begin=None, end=None,
                  step=1) -> Tensor:
    begin = 0 if begin is None else begin
    axis %= max(x.rank, 1)
    if c.g.is_state(x):
        places = c.g.iota(source.size(axis)) * step + end_of_slice(c, begin, x.extent(axis))
        return c.g.append(x, places, source.to(c.dtype))
    if source.shape == x.shape:
        return source.to(c.dtype)
    ends_are_known = all(isinstance(i, int) for i in (begin, 0 if end is None else end))
    if step != 1 or not ends_are_known or not x.product(axis).is_number:
        return scattered_at(c, x, source, axis, begin, end, step)
    size = x.size(axis)
    begin, end = bound(begin, size), bound(size if end is None else end, size)
    if begin >= end:
        return x
    parts = [x.slice(axis, 0, begin)] if begin else []
    parts.append(source.to(c.dtype))
    if end < size:
        parts.append(x.slice(axis, end, size))
    return c.g.concat(parts, axis) if len(parts) > 1 else parts[0]


def scattered_at(c: Conversion, x: Tensor, source: Tensor, axis: int, begin, end, step) -> Tensor:
    """A slice is written each element of which is found by its place in x."""
    if source.product(axis) == Product(0, ()):
        return x
    extent = x.extent(axis)
    places = x.g.iota(c.shape[axis])
    first = end_of_slice(c, begin, extent)
    is_written = places.greater_equal(first)
    if end is not None:
        is_written = is_written & places.less(end_of_slice(c, end, extent))
    places = places - first
    if step != 1:
        is_written = is_written & c.g.map("mod_floor", places, step).equals(0)
        places = c.g.map("div_floor", places, step)
    taken = at_places(c, source.to(c.dtype), axis, places)
    return c.g.where(along(x, is_written, axis), taken, x)


def end_of_slice(c: Conversion, index, extent: Tensor) -> Tensor:
    """i32: an end of a slice as torch reads it, in an axis of `extent`."""
    if isinstance(index, int) and index >= MAX_I32:
        return extent
    place, below = place_in(c, index, extent), is_below_zero(index)
    place = place if below is False else place.maximum(0)
    return place if below else place.minimum(extent)


@converts(aten("select_scatter.default"))
def select_scatter(c: Conversion, x: Tensor, source: Tensor, axis, index) -> Tensor:
    axis, source = axis % x.rank, source.to(c.dtype).unsqueeze(axis)
    if c.g.is_state(x):
        return c.g.append(x, place_in(c, index, x.extent(axis)), source)
    return c.g.where(chosen_along(c, x, axis, index), source, x)


@dataclass(frozen=True)
class Strided:
    """A view of all memory of a tensor that is dense. elements: the tensor's, in the order of memory. layout: the
    tensor's. begin: the place of the view's first element."""

    elements: Tensor
    layout: Layout
    sizes: list[int]
    strides: list[int]
    begin: int

    @staticmethod
    def of(c: Conversion, x: Tensor, sizes, strides, offset=None) -> Strided:
        """x is the node's first operand."""
        fake = c.node.args[0].meta["val"]
        layout, own = Layout.of_dense(fake), expression_of(fake.storage_offset())
        begin = own if offset is None else offset
        if layout is None:
            raise Unsupported("memory with gaps")
        if not x.is_number or not all(isinstance(number, int) for number in (own, begin, *sizes, *strides)):
            raise Unsupported("places in memory that are known only when the graph runs")
        count, begin = math.prod(x.sizes), begin - own
        last = begin + sum((size - 1) * stride for size, stride in zip(sizes, strides))
        if 0 not in sizes and (begin < 0 or last >= count):
            raise Unsupported("memory beyond that of the tensor")
        return Strided(x.permute(layout.order).reshape([count]), layout, sizes, strides, begin)

    @property
    def order(self) -> list[int] | None:
        """The axes of the view from the outermost to the innermost, if it has each element once."""
        order = sorted(range(len(self.sizes)), key=lambda axis: (self.sizes[axis] != 1, -self.strides[axis]))
        expected = 1
        for axis in reversed(order):
            if self.sizes[axis] != 1 and self.strides[axis] != expected:
                return None
            expected *= self.sizes[axis]
        return order if expected == self.elements.size(0) else None

    @property
    def places(self) -> Tensor:
        """The places of the view's elements in memory, of one axis."""
        count = self.elements.size(0)
        if count > MAX_I32:
            raise Unsupported(f"places among {count} elements")
        g = self.elements.g
        place = g.number(self.begin, "i32").reshape([1] * len(self.sizes))
        for axis, (size, stride) in enumerate(zip(self.sizes, self.strides)):
            place = place + along(place, g.iota(size) * stride, axis)
        return place.reshape([math.prod(self.sizes)])


@converts(aten("as_strided.default"), aten("as_strided_copy.default"))
def as_strided(c: Conversion, x: Tensor, sizes, strides, offset=None) -> Tensor:
    """Elements by their places in memory that x alone uses."""
    view = Strided.of(c, x, sizes, strides, offset)
    if 0 in sizes:
        return c.g.full(sizes, 0, c.dtype)
    if view.order is not None:
        inverse = [view.order.index(axis) for axis in range(len(sizes))]
        return view.elements.reshape([sizes[axis] for axis in view.order]).permute(inverse)
    return gather(view.elements, view.places, 0).reshape(sizes)


@converts(aten("diagonal.default"))
def diagonal(c: Conversion, x: Tensor, offset=0, first=0, second=1) -> Tensor:
    first, second = first % x.rank, second % x.rank
    rest = [axis for axis in range(x.rank) if axis not in (first, second)]
    x = x.permute(rest + [first, second])
    rows, columns = x.size(-2), x.size(-1)
    count = c.shape[-1]
    begin = offset if offset >= 0 else -offset * columns
    # Elements begin, begin + columns + 1, ... of each flattened matrix.
    flat = x.reshape(c.shape[:-1] + [rows * columns])
    return flat.slice(-1, begin, begin + count * (columns + 1) - columns if count else begin,
                      columns + 1)
