"""Tensors of a graph under construction, with the axes of the graph that is imported.

Sinter has no extent such as B*S. A tensor whose axis has that size is a Sinter value with two axes, B and S. An axis
whose size is a number may be held as several factors, too. How the axes of the value make the tensor's axes stays
inside this folder: names that begin with an underscore. Conversions of an importer name the tensor's axes and nothing
else, because "the last axis" of a value may be a part of the tensor's last axis. Shapes and broadcasting follow
NumPy's rules.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, Sequence

from ..module import Value
from .axes import check_rank, joined, list_text, regroup
from .extents import Extent, Extents, Product, product_of
from .row_checks import RowCheck
from .types import is_real
from .unsupported import Unsupported

Number = int | float | bool

# At most FEW_SUMS reductions of at least MANY_TERMS terms are made of rows of at least LEAST_ROW terms.
MANY_TERMS, FEW_SUMS, LEAST_ROW = 2**15, 16, 256


class Builder(Protocol):
    """The methods of `Emitter` that a tensor calls."""

    extents: Extents
    is_checked: bool

    def map(self, op: str, *operands: Tensor | Number) -> Tensor: ...
    def number(self, number: Number, dtype: str) -> Tensor: ...
    def iota(self, size: Any, dtype: str = "i32") -> Tensor: ...
    def scalar(self, number: Any, dtype: str) -> Tensor: ...
    def where(self, condition: Tensor, a: Tensor | Number, b: Tensor | Number) -> Tensor: ...
    def _note_check(self, value: Value, check: RowCheck) -> None: ...
    def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor: ...
    def cast(self, value: Value, dtype: str) -> Value: ...
    def is_widened(self, x: Tensor) -> bool: ...
    def _add(self, op: str, operands: Sequence[Value], attributes: str | None = None) -> Value: ...
    def _positions(self, axes: Sequence[Extent]) -> Tensor: ...
    def _extent_of(self, axes: Sequence[Extent], dtype: str = "i32") -> Tensor: ...


class Tensor:
    """A tensor of the imported graph: a value of the graph whose axes, `_groups[i]` of them for axis i, are the factors of the
    tensor's axes. The value and the tensor have the same row-major order.

    transpose_of: the matrices, the last two axes, whose transposes this has; None: it has none, or none that are
    known."""

    def __init__(self, emitter: Builder, value: Value, groups: tuple[int, ...],
                 transpose_of: Tensor | None = None) -> None:
        assert sum(groups) == len(value.dims), (value.dims, groups)
        self.g = emitter
        self._value = value
        self._groups = groups
        self.transpose_of = transpose_of

    # ---- what it is

    @property
    def dtype(self) -> str:
        return self._value.dtype

    @property
    def name(self) -> str | None:
        """The name of the value in the graph."""
        return self._value.name

    @property
    def dims(self) -> tuple[Extent, ...]:
        """The extents of the value, in memory order; an axis of the tensor may have several."""
        return tuple(self._value.dims)

    @property
    def axis_counts(self) -> tuple[int, ...]:
        """How many axes of the value make each axis."""
        return self._groups

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def rank(self) -> int:
        return len(self._groups)

    def product(self, axis: int) -> Product:
        """The size of an axis."""
        return product_of(self._axes(axis))

    def size(self, axis: int) -> int:
        """The size of an axis whose size is a number."""
        product = self.product(axis)
        if not product.is_number:
            raise Unsupported("an axis of unknown size")
        return product.number

    @property
    def sizes(self) -> list[int]:
        """The sizes of a tensor whose sizes are numbers."""
        return [self.size(axis) for axis in range(self.rank)]

    @property
    def shape(self) -> tuple[Product, ...]:
        return tuple(self.product(axis) for axis in range(self.rank))

    @property
    def is_number(self) -> bool:
        """Whether all sizes are numbers."""
        return all(product.is_number for product in self.shape)

    def extent(self, axis: int) -> Tensor:
        """i32: the size of an axis as a number of the graph."""
        return self.g._extent_of(self._axes(axis))

    def is_one(self, axis: int) -> bool:
        return self.product(axis) == Product(1, ())

    def _start(self, axis: int) -> int:
        """The first axis of the value that belongs to an axis."""
        if self.rank == 0:
            raise Unsupported("an axis of a tensor that has none")
        return sum(self._groups[:axis % self.rank])

    def _axes(self, axis: int) -> tuple[Extent, ...]:
        """The extents of the value that make an axis."""
        begin = self._start(axis)
        return tuple(self._value.dims[begin:begin + self._groups[axis]])

    @property
    def _all_axes(self) -> list[tuple[Extent, ...]]:
        return [self._axes(axis) for axis in range(self.rank)]

    def _like(self, value: Value) -> Tensor:
        """A value with the same axes."""
        return Tensor(self.g, value, self._groups)

    # ---- element types

    def to(self, dtype: str) -> Tensor:
        """Converts to another type; i64 to i32 wraps around."""
        if dtype == self.dtype:
            return self
        if self.dtype == "i64" and dtype == "i32" and not self.g.is_widened(self):
            half = 2**31
            return (self.g.map("mod_floor", self + half, 2 * half) - half).nearest(dtype)
        return self.nearest(dtype)

    def nearest(self, dtype: str) -> Tensor:
        """Converts to the nearest number that an integer type has: an index outside of i32 is still
        outside of every axis."""
        if dtype == self.dtype:
            return self
        return self._like(self.g.cast(self._value, dtype))

    def f32(self) -> Tensor:
        return self.to("f32")

    # ---- element by element

    def __add__(self, other: Tensor | Number) -> Tensor: return self.g.map("add", self, other)
    def __radd__(self, other: Tensor | Number) -> Tensor: return self.g.map("add", other, self)
    def __sub__(self, other: Tensor | Number) -> Tensor: return self.g.map("sub", self, other)
    def __rsub__(self, other: Tensor | Number) -> Tensor: return self.g.map("sub", other, self)
    def __mul__(self, other: Tensor | Number) -> Tensor: return self.g.map("mul", self, other)
    def __rmul__(self, other: Tensor | Number) -> Tensor: return self.g.map("mul", other, self)
    def __truediv__(self, other: Tensor | Number) -> Tensor: return self.g.map("div", self, other)
    def __rtruediv__(self, other: Tensor | Number) -> Tensor: return self.g.map("div", other, self)
    def __neg__(self) -> Tensor: return self.g.map("neg", self)
    def __and__(self, other: Tensor | Number) -> Tensor: return self.g.map("logical_and", self, other)
    def __or__(self, other: Tensor | Number) -> Tensor: return self.g.map("logical_or", self, other)
    def __invert__(self) -> Tensor: return self.g.map("logical_not", self)

    def less(self, other: Tensor | Number) -> Tensor: return self.g.map("less", self, other)
    def less_equal(self, other: Tensor | Number) -> Tensor: return self.g.map("less_equal", self, other)
    def greater(self, other: Tensor | Number) -> Tensor: return self.g.map("less", other, self)
    def greater_equal(self, other: Tensor | Number) -> Tensor: return self.g.map("less_equal", other, self)
    def equals(self, other: Tensor | Number) -> Tensor: return self.g.map("equal", self, other)
    def maximum(self, other: Tensor | Number) -> Tensor: return self.g.map("maximum", self, other)
    def minimum(self, other: Tensor | Number) -> Tensor: return self.g.map("minimum", self, other)
    def is_nan(self) -> Tensor: return ~self.equals(self)

    def apply(self, op: str) -> Tensor:
        """An elementwise op of one operand: "exp", "tanh", ..."""
        return self.g.map(op, self)

    def copy(self) -> Tensor:
        return self._like(self.g._add("copy", [self._value]))

    # ---- shapes: the elements in row-major order stay

    def _arranged(self, ways: Sequence[Sequence[Extent]]) -> Tensor:
        """Each axis held as these extents, whose product is its size; an axis of size 1 may become
        as many axes of size 1. The tensor's axes stay, so that nothing moves between them."""
        assert len(ways) == self.rank, (self.shape, ways)
        own = []
        for axis, way in enumerate(ways):
            if product_of(way) == self.product(axis):
                own.append(way)
            elif self.is_one(axis):
                own.append((1,) * len(way))
            else:
                raise Unsupported(f"an axis of {self.product(axis)} elements where "
                                  f"{product_of(way)} are needed")
        return self._regrouped(own)

    def _regrouped(self, groups: Sequence[Sequence[Extent]]) -> Tensor:
        """The same elements, row-major, on other axes."""
        dims = [extent for group in groups for extent in group]
        counts = tuple(len(group) for group in groups)
        if list(self._value.dims) == dims:
            return self if counts == self._groups else Tensor(self.g, self._value, counts)
        check_rank(dims)
        value = self.g._add("reshape", [self._value], f"dims = {list_text(dims)}")
        return Tensor(self.g, value, counts)

    def reshape(self, sizes: Sequence[Any]) -> Tensor:
        """The same elements, row-major, in another shape."""
        wanted = [self.g.extents.product(size) for size in sizes]
        return self._regrouped(regroup(self._value.dims, wanted))

    def flatten(self, first: int = 0, last: int = -1) -> Tensor:
        """Axes first .. last as one."""
        if self.rank == 0:
            return self._regrouped([(1,)])
        first, last = first % self.rank, last % self.rank
        groups = self._all_axes
        together = [extent for group in groups[first:last + 1] for extent in group]
        return self._regrouped([*groups[:first], tuple(together if first == 0 else joined(together)),
                                *groups[last + 1:]])

    def unflatten(self, axis: int, sizes: Sequence[int]) -> Tensor:
        """An axis as several, whose product it is."""
        axis %= self.rank
        parts = regroup(self._axes(axis), [Product(size, ()) for size in sizes])
        groups = self._all_axes
        return self._regrouped([*groups[:axis], *[tuple(joined(part)) for part in parts],
                                *groups[axis + 1:]])

    def is_single(self, axis: int) -> bool:
        """Whether an axis can be held as one extent."""
        return len(joined(self._axes(axis))) == 1

    def merged(self, *axes: int) -> Tensor:
        """Each of these axes (none: of all) held as one extent."""
        chosen = {axis % self.rank for axis in axes} if axes else set(range(self.rank))
        groups = self._all_axes
        for axis in chosen:
            groups[axis] = tuple(joined(groups[axis]))
            if len(groups[axis]) > 1:
                raise Unsupported("an axis whose size is a product of several unknown sizes")
        return self._regrouped(groups)

    def unsqueeze(self, axis: int) -> Tensor:
        axis %= self.rank + 1
        groups = self._all_axes
        return self._regrouped(groups[:axis] + [(1,)] + groups[axis:])

    def squeeze(self, axes: Sequence[int]) -> Tensor:
        """Drops the given axes whose size is 1."""
        gone = {axis % max(self.rank, 1) for axis in axes}
        return self._regrouped([group for i, group in enumerate(self._all_axes)
                                if not (i in gone and self.is_one(i))])

    def _append_ones(self, count: int) -> Tensor:
        return self._regrouped(self._all_axes + [(1,)] * count)

    # ---- shapes: elements move or repeat

    def permute(self, order: Sequence[int]) -> Tensor:
        order = [axis % self.rank for axis in order]
        if order == list(range(self.rank)):
            return self
        axes = [self._start(axis) + i for axis in order for i in range(self._groups[axis])]
        swaps = order == [*range(self.rank - 2), self.rank - 1, self.rank - 2]
        if swaps and self.transpose_of is not None:
            return self.transpose_of
        groups = tuple(self._groups[axis] for axis in order)
        value = self.g._add("transpose", [self._value], f"axes = {list_text(axes)}")
        return Tensor(self.g, value, groups, self if swaps else None)

    def transpose(self, a: int = -2, b: int = -1) -> Tensor:
        order = list(range(self.rank))
        order[a], order[b] = order[b], order[a]
        return self.permute(order)

    def expand(self, sizes: Sequence[Any]) -> Tensor:
        """Repeats elements: axes of size 1, and new leading ones, take the size; -1 keeps it."""
        lead = len(sizes) - self.rank
        ways = []
        for i, size in enumerate(sizes):
            own = self._axes(i - lead) if i >= lead else (1,)
            is_kept = isinstance(size, int) and size == -1
            same = is_kept or product_of(own) == self.g.extents.product(size)
            ways.append(own if same else self.g.extents.axes(size))
        return self._broadcast(ways)

    def expand_axis(self, axis: int, size: int) -> Tensor:
        """Repeats the one element of an axis."""
        return self.expand([size if i == axis % self.rank else -1 for i in range(self.rank)])

    def _broadcast(self, ways: Sequence[Sequence[Extent]]) -> Tensor:
        lead = len(ways) - self.rank
        tensor = self._regrouped([(1,)] * lead + self._all_axes)._arranged(ways)
        dims = [extent for way in ways for extent in way]
        if list(tensor._value.dims) == dims:
            return tensor
        check_rank(dims)
        return tensor._like(self.g._add("broadcast", [tensor._value], f"dims = {list_text(dims)}"))

    def filled(self, number: Tensor, axis: int, size: int) -> Tensor:
        """A number in this tensor's shape but for one axis."""
        return number._broadcast([(size,) if i == axis % self.rank else group
                                  for i, group in enumerate(self._all_axes)])

    def slice(self, axis: int, begin: int, end: int, step: int = 1) -> Tensor:
        """Elements begin .. end - 1 of an axis, each `step`-th."""
        axis %= self.rank
        extent = self.size(axis)
        begin, end = max(0, begin), min(end, extent)
        count = max(0, -(-(end - begin) // step))
        if (begin, count) == (0, extent):
            return self
        if self._groups[axis] != 1:
            return self.merged(axis).slice(axis, begin, end, step)
        if step == 1 or count <= 1:
            return self._slice(axis, begin, count)
        # Rows of `step` elements, of which the first is taken.
        whole = self._slice(axis, begin, min(extent - begin, count * step))
        missing = count * step - whole.size(axis)
        if missing > 0:
            whole = self.g.concat([whole, whole.filled(self.g.number(0, self.dtype), axis, missing)],
                                  axis)
        return whole.unflatten(axis, [count, step])._slice(axis + 1, 0, 1).squeeze([axis + 1])

    def _slice(self, axis: int, begin: int, size: int) -> Tensor:
        return self._like(self.g._add("slice", [self._value],
                                      f"axis = {self._start(axis)}, begin = {begin}, size = {size}"))

    def select(self, axis: int, index: int) -> Tensor:
        axis %= self.rank
        if index < 0:
            index += self.size(axis)
        return self.slice(axis, index, index + 1).squeeze([axis])

    def places(self, axis: int) -> Tensor:
        """i32: 0, 1, 2, ... along an axis, with the axes of size 1 behind it that let it broadcast to
        the tensor."""
        axis %= self.rank
        place = self.g._positions(self._axes(axis))
        return place._append_ones(self.rank - 1 - axis)

    # ---- reductions

    def chosen(self, axes: Sequence[int] | None) -> list[int]:
        """The axes of a reduction, ascending: None and an empty list are all."""
        if not axes or self.rank == 0:
            return list(range(self.rank))
        return sorted({axis % self.rank for axis in axes})

    def _reduce(self, op: str, axes: Sequence[int] | None, keepdim: bool = False) -> Tensor:
        """"reduce_sum" or "reduce_max" over axes (None or empty: all)."""
        chosen = self.chosen(axes)
        if not chosen:
            return self
        inner = [self._start(axis) + i for axis in chosen for i in range(self._groups[axis])]
        value = self.g._add(op, [self._value], f"axes = {list_text(inner)}")
        groups = [(1,) if i in chosen else group for i, group in enumerate(self._all_axes)]
        if not keepdim:
            groups = [group for i, group in enumerate(groups) if i not in chosen]
        return self._like(value)._regrouped(groups)

    def _row_axes(self, axes: Sequence[int] | None) -> list[int]:
        """Last axes that a reduction takes first: a few results of many elements are made of rows' results,
        since one result is the work of one block. None of them: the reduction is one."""
        chosen = self.chosen(axes)
        most = [self.g.extents.most(self.product(axis)) for axis in range(self.rank)]
        results = math.prod(most[axis] for axis in range(self.rank) if axis not in chosen)
        first, length = [], 1
        while len(first) < len(chosen) and chosen[-1 - len(first)] == self.rank - 1 - len(first) \
                and length < LEAST_ROW:
            first.append(chosen[-1 - len(first)])
            length *= most[first[-1]]
        rows = math.prod(most[axis] for axis in chosen if axis not in first)
        return first if results <= FEW_SUMS and rows >= 2 and rows * length >= MANY_TERMS else []

    def sum(self, axes: Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        first = self._row_axes(axes) if is_real(self.dtype) else []
        if not first:
            return self._reduce("reduce_sum", axes, keepdim)
        sums = self.f32()._reduce("reduce_sum", first, True)._reduce("reduce_sum", axes, keepdim)
        return sums.to(self.dtype)

    def max(self, axes: Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        first = self._row_axes(axes)
        rows = self._reduce("reduce_max", first, True) if first else self
        return rows._reduce("reduce_max", axes, keepdim)

    def min(self, axes: Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        return -(-self).max(axes, keepdim)

    def count(self, axes: Sequence[int] | None) -> int:
        """The number of elements that a reduction over the axes takes."""
        return math.prod(self.size(axis) for axis in self.chosen(axes))

    def mean(self, axes: Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        total = self.sum(axes, keepdim)
        chosen = self.chosen(axes)
        if not chosen:
            return total
        if all(self.product(axis).is_number for axis in chosen):
            return total / float(self.count(axes))
        return total / self.g._extent_of([e for axis in chosen for e in self._axes(axis)], "f32")
