"""Tensors of a graph under construction, with torch's shapes.

Sinter has no extent such as B*S. A tensor of torch whose axis has that size is a Sinter value with
two axes, B and S, and `groups` says how many axes of the value make each axis of the tensor. Where
all sizes are numbers or plain symbols, every group has one axis.

Operators compute element by element in the element type of their operands; numbers take that type.
`f32()` comes first where torch computes in float32.
"""

from __future__ import annotations

import math
from typing import Sequence

from ..module import GraphBuilder, Value
from .axes import align, align_all_but, common_axes, conformed, joined, regroup
from .dtypes import is_real
from .extents import Extent, Extents, Product, product_of
from .names import Names
from .unsupported import Unsupported

Number = int | float | bool


def text_of(number: Number, dtype: str) -> str:
    """A number as the text form writes it."""
    if not is_real(dtype):
        return str(int(number))
    number = float(number)
    if number != number:
        return "nan"
    return number.hex() if math.isfinite(number) else ("inf" if number > 0 else "-inf")


def list_text(items: Sequence) -> str:
    return "[" + ", ".join(str(item) for item in items) + "]"


class Emitter:
    """Adds ops to a graph."""

    def __init__(self, graph: GraphBuilder, extents: Extents) -> None:
        self.graph = graph
        self.extents = extents
        self._numbers: dict[tuple[str, str], Value] = {}
        self._added: list[Value] = []
        self._shared: set[int] = set()  # numbers that several nodes read

    # ---- adding ops

    def op(self, op: str, operands: Sequence[Value], attributes: str | None = None) -> Value:
        value = self.graph.op(op, operands, attributes)
        self._added.append(value)
        return value

    def begin_node(self) -> None:
        self._added = []

    def end_node(self, name: str, results: Sequence["Tensor | None"], names: Names) -> list[str]:
        """Names what a node became: its results like the node, the ops on the way with a number
        behind. Returns the names."""
        ends = [tensor.value.number for tensor in results if tensor is not None]
        given = []
        added = {value.number: value for value in self._added}
        last = next((number for number in reversed(ends) if number in added), None)
        if last is not None and added[last].name is None:
            self._rename(added[last], names.unique(name), given)
        for value in added.values():
            if value.name is None and value.number not in self._shared:
                self._rename(value, names.unique(f"{name}.0"), given)
        return given

    def _rename(self, value: Value, name: str, given: list[str]) -> None:
        self.graph.rename(value, name)
        given.append(name)

    # ---- leaves and generators

    def input(self, name: str, dtype: str, sizes: Sequence) -> "Tensor":
        axes = [self.extents.axes(size) if i else self.extents.rows(size)
                for i, size in enumerate(sizes)]
        dims = [axis for group in axes for axis in group]
        return Tensor(self, self.graph.input(name, f"{dtype}{list_text(dims)}"),
                      tuple(len(group) for group in axes))

    def number(self, number: Number, dtype: str) -> "Tensor":
        text = text_of(number, dtype)
        if (text, dtype) not in self._numbers:
            value = self.op("constant", [], f"value = {text}, dims = [], dtype = {dtype}")
            self._shared.add(value.number)
            self._numbers[text, dtype] = value
        return Tensor(self, self._numbers[text, dtype], ())

    def full(self, sizes: Sequence, number: Number, dtype: str) -> "Tensor":
        return self.number(number, dtype).expand(sizes)

    def iota(self, size, dtype: str = "i32") -> "Tensor":
        """0, 1, 2, ... along one axis."""
        axes = self.extents.axes(size)
        if len(axes) != 1:
            raise Unsupported("an index along an axis of several symbols")
        value = self.op("iota", [], f"axis = 0, dims = {list_text(axes)}")
        return Tensor(self, value, (1,)).to(dtype)

    def extent(self, size) -> "Tensor":
        """A size that only the call knows, as a float32 number."""
        return self.extent_of(self.extents.axes(size))

    def extent_of(self, axes: Sequence[Extent]) -> "Tensor":
        """The number of elements of axes as a float32 number: a sum of ones."""
        result = self.number(1.0, "f32")
        for axis in axes:
            if isinstance(axis, int):
                factor = self.number(float(axis), "f32")
            else:
                ones = self.op("broadcast", [self.number(1.0, "f32").value], f"dims = [{axis}]")
                factor = Tensor(self, self.op("reduce_sum", [ones], "axes = [0]"), (1,))
                factor = factor._reshaped([])
            result = result * factor
        return result

    # ---- ops of several operands

    def tensor(self, operand: "Tensor | Number", dtype: str) -> "Tensor":
        return operand if isinstance(operand, Tensor) else self.number(operand, dtype)

    def map(self, op: str, *operands: "Tensor | Number") -> "Tensor":
        """An elementwise op. Operands broadcast; numbers have the type of the tensors."""
        dtype = next(operand.dtype for operand in operands if isinstance(operand, Tensor))
        tensors = [self.tensor(operand, dtype) for operand in operands]
        tensors, groups = align(tensors)
        return Tensor(self, self.op(op, [tensor.value for tensor in tensors]), groups)

    def where(self, condition: "Tensor", a: "Tensor | Number", b: "Tensor | Number") -> "Tensor":
        dtype = next((x.dtype for x in (a, b) if isinstance(x, Tensor)), "f32")
        tensors, groups = align([condition, self.tensor(a, dtype), self.tensor(b, dtype)])
        return Tensor(self, self.op("where", [t.value for t in tensors]), groups)

    def concat(self, tensors: Sequence["Tensor"], axis: int) -> "Tensor":
        axis %= tensors[0].rank
        if len(tensors) == 1:
            return tensors[0]
        tensors = align_all_but(tensors, axis)
        first = tensors[0]
        if any(isinstance(t.axes(axis)[0], str) for t in tensors):
            raise Unsupported("a concatenation along an axis of unknown size")
        at = first.start(axis)
        while len(tensors) > 64:  # what the op takes
            chunks = [tensors[i:i + 64] for i in range(0, len(tensors), 64)]
            tensors = [self.concat(chunk, axis) for chunk in chunks]
        value = self.op("concat", [tensor.value for tensor in tensors], f"axis = {at}")
        return Tensor(self, value, first.groups)

    def einsum(self, spec: str, a: "Tensor", b: "Tensor", dtype: str | None = None) -> "Tensor":
        """A letter for each axis of a tensor; an axis of several symbols takes several letters."""
        left, result = spec.split("->")
        names = left.split(",")
        spare = iter(c for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                     if c not in spec)
        ways: dict[str, tuple[Extent, ...]] = {}
        for letter in dict.fromkeys(names[0] + names[1]):
            here = [(tensor, letters.index(letter)) for letters, tensor in zip(names, (a, b))
                    if letter in letters]
            ways[letter] = common_axes([tensor for tensor, _ in here], [axis for _, axis in here])
        split = {letter: letter + "".join(next(spare) for _ in way[1:])
                 for letter, way in ways.items()}
        operands = [conformed(tensor, [ways[letter] for letter in letters])
                    for letters, tensor in zip(names, (a, b))]
        spell = lambda letters: "".join(split[letter] for letter in letters)
        text = f'spec = "{spell(names[0])},{spell(names[1])}->{spell(result)}"'
        if dtype is not None:
            text += f", dtype = {dtype}"
        value = self.op("einsum", [tensor.value for tensor in operands], text)
        return Tensor(self, value, tuple(len(split[letter]) for letter in result))


class Tensor:
    """A value of the graph, and how its axes make those of torch's tensor."""

    def __init__(self, emitter: Emitter, value: Value, groups: tuple[int, ...],
                 transposed_of: Value | None = None) -> None:
        assert sum(groups) == len(value.dims), (value.dims, groups)
        self.g = emitter
        self.value = value
        self.groups = groups
        self.transposed_of = transposed_of  # the matrix whose transpose this is

    # ---- what it is

    @property
    def dtype(self) -> str:
        return self.value.dtype

    @property
    def rank(self) -> int:
        return len(self.groups)

    def start(self, axis: int) -> int:
        """The first axis of the value that belongs to an axis."""
        return sum(self.groups[:axis])

    def axes(self, axis: int) -> tuple[Extent, ...]:
        begin = self.start(axis)
        return tuple(self.value.dims[begin:begin + self.groups[axis]])

    def product(self, axis: int) -> Product:
        return product_of(self.axes(axis))

    def size(self, axis: int) -> int:
        """The size of an axis whose size is a number."""
        product = self.product(axis)
        if not product.is_number:
            raise Unsupported("an axis of unknown size")
        return product.number

    @property
    def shape(self) -> tuple[Product, ...]:
        return tuple(self.product(axis) for axis in range(self.rank))

    @property
    def is_number(self) -> bool:
        return all(product.is_number for product in self.shape)

    def is_one(self, axis: int) -> bool:
        return self.product(axis) == Product(1, ())

    # ---- element types

    def to(self, dtype: str) -> "Tensor":
        if dtype == self.dtype:
            return self
        return Tensor(self.g, self.g.op("cast", [self.value], f"dtype = {dtype}"),
                      self.groups)

    def f32(self) -> "Tensor":
        return self.to("f32")

    # ---- element by element

    def __add__(self, other): return self.g.map("add", self, other)
    def __radd__(self, other): return self.g.map("add", other, self)
    def __sub__(self, other): return self.g.map("sub", self, other)
    def __rsub__(self, other): return self.g.map("sub", other, self)
    def __mul__(self, other): return self.g.map("mul", self, other)
    def __rmul__(self, other): return self.g.map("mul", other, self)
    def __truediv__(self, other): return self.g.map("div", self, other)
    def __rtruediv__(self, other): return self.g.map("div", other, self)
    def __neg__(self): return self.g.map("neg", self)
    def __and__(self, other): return self.g.map("logical_and", self, other)
    def __or__(self, other): return self.g.map("logical_or", self, other)
    def __invert__(self): return self.g.map("logical_not", self)

    def less(self, other): return self.g.map("less", self, other)
    def less_equal(self, other): return self.g.map("less_equal", self, other)
    def greater(self, other): return self.g.map("less", other, self)
    def greater_equal(self, other): return self.g.map("less_equal", other, self)
    def equals(self, other): return self.g.map("equal", self, other)
    def maximum(self, other): return self.g.map("maximum", self, other)
    def minimum(self, other): return self.g.map("minimum", self, other)
    def is_nan(self): return ~self.equals(self)

    def apply(self, op: str) -> "Tensor":
        """An elementwise op of one operand: "exp", "tanh", ..."""
        return self.g.map(op, self)

    # ---- shapes

    def reshape(self, sizes: Sequence) -> "Tensor":
        """torch's view: the same elements, row-major, in another shape."""
        wanted = [self.g.extents.product(size) for size in sizes]
        return self.reshape_to(wanted)

    def reshape_to(self, wanted: Sequence[Product]) -> "Tensor":
        groups = regroup(self.value.dims, wanted)
        return self._reshaped(groups)

    def _reshaped(self, groups: Sequence[Sequence[Extent]]) -> "Tensor":
        dims = [axis for group in groups for axis in group]
        counts = tuple(len(group) for group in groups)
        if list(self.value.dims) == dims:
            return self if counts == self.groups else Tensor(self.g, self.value, counts)
        value = self.g.op("reshape", [self.value], f"dims = {list_text(dims)}")
        return Tensor(self.g, value, counts)

    def permute(self, order: Sequence[int]) -> "Tensor":
        order = [axis % self.rank for axis in order]
        if order == list(range(self.rank)):
            return self
        axes = [self.start(axis) + i for axis in order for i in range(self.groups[axis])]
        groups = tuple(self.groups[axis] for axis in order)
        if axes == [1, 0] and groups == (1, 1) and self.transposed_of is not None:
            return Tensor(self.g, self.transposed_of, groups)
        if axes == list(range(len(axes))):
            return Tensor(self.g, self.value, groups)
        value = self.g.op("transpose", [self.value], f"axes = {list_text(axes)}")
        return Tensor(self.g, value, groups, self.value if groups == (1, 1) else None)

    def transpose(self, a: int = -2, b: int = -1) -> "Tensor":
        order = list(range(self.rank))
        order[a], order[b] = order[b], order[a]
        return self.permute(order)

    def unsqueeze(self, axis: int) -> "Tensor":
        axis %= self.rank + 1
        groups = [self.axes(i) for i in range(self.rank)]
        return self._reshaped(groups[:axis] + [(1,)] + groups[axis:])

    def squeeze(self, axes: Sequence[int]) -> "Tensor":
        """Drops those of the axes whose size is 1."""
        gone = {axis % max(self.rank, 1) for axis in axes}
        return self._reshaped([self.axes(i) for i in range(self.rank)
                               if not (i in gone and self.is_one(i))])

    def expand(self, sizes: Sequence) -> "Tensor":
        """torch's expand: axes of size 1, and new leading ones, take the size."""
        lead = len(sizes) - self.rank
        groups = []
        for i, size in enumerate(sizes):
            own = self.axes(i - lead) if i >= lead else (1,)
            if isinstance(size, int) and size == -1:
                groups.append(own)
                continue
            product = self.g.extents.product(size)
            same = product_of(own) == product
            groups.append(own if same else self.g.extents.axes(size))
        return self.broadcast_to(groups)

    def broadcast_to(self, groups: Sequence[Sequence[Extent]]) -> "Tensor":
        """Takes the axes; where they differ from the tensor's own, that axis has size 1."""
        lead = len(groups) - self.rank
        own = [(1,) * len(group) if i < lead or len(group) != self.groups[i - lead]
               else self.axes(i - lead) for i, group in enumerate(groups)]
        for i in range(lead, len(groups)):
            if len(groups[i]) != self.groups[i - lead] and not self.is_one(i - lead):
                raise Unsupported("an axis that two tensors split in different ways")
        tensor = self._reshaped(own)
        dims = [axis for group in groups for axis in group]
        if list(tensor.value.dims) == dims:
            return tensor
        value = self.g.op("broadcast", [tensor.value], f"dims = {list_text(dims)}")
        return Tensor(self.g, value, tensor.groups)

    def merged(self, *axes: int) -> "Tensor":
        """These axes (none: all), written as one axis each."""
        chosen = {axis % self.rank for axis in axes} if axes else set(range(self.rank))
        groups = [self.axes(i) for i in range(self.rank)]
        for axis in chosen:
            if len(groups[axis]) > 1:
                groups[axis] = tuple(joined(groups[axis]))
                if len(groups[axis]) > 1:
                    raise Unsupported("an axis of several symbols")
        return self._reshaped(groups)

    def slice(self, axis: int, begin: int, end: int, step: int = 1) -> "Tensor":
        """Elements begin .. end - 1 of an axis, each `step`-th."""
        axis %= self.rank
        if self.groups[axis] != 1:
            return self.merged(axis).slice(axis, begin, end, step)
        extent = self.axes(axis)[0]
        if isinstance(extent, str):
            raise Unsupported("a slice of an axis of unknown size")
        begin, end = max(0, begin), min(end, extent)
        count = max(0, -(-(end - begin) // step))
        if (begin, count) == (0, extent):
            return self
        if step == 1 or count <= 1:
            return self._slice(axis, begin, count)
        # Every step-th: rows of `step` elements, of which the first is taken.
        whole = self._slice(axis, begin, min(extent - begin, count * step))
        short = count * step - whole.size(axis)
        if short > 0:
            sizes = list(whole.value.dims)
            sizes[whole.start(axis)] = short
            padding = whole.g.number(0, self.dtype)
            value = self.g.op("broadcast", [padding.value], f"dims = {list_text(sizes)}")
            whole = self.g.concat([whole, Tensor(self.g, value, whole.groups)], axis)
        groups = [whole.axes(i) for i in range(self.rank)]
        rows = whole._reshaped(groups[:axis] + [(count,), (step,)] + groups[axis + 1:])
        return rows._slice(axis + 1, 0, 1).squeeze([axis + 1])

    def _slice(self, axis: int, begin: int, size: int) -> "Tensor":
        at = self.start(axis)
        value = self.g.op("slice", [self.value], f"axis = {at}, begin = {begin}, size = {size}")
        return Tensor(self.g, value, self.groups)

    def select(self, axis: int, index: int) -> "Tensor":
        axis %= self.rank
        if index < 0:
            index += self.size(axis)
        taken = self.slice(axis, index, index + 1)
        return taken.squeeze([axis])

    def places(self, axis: int, behind: int | None = None) -> "Tensor":
        """0, 1, 2, ... along an axis, with `behind` axes of size 1 behind it; by default as many as
        the tensor has, so that it broadcasts to the tensor."""
        axis %= self.rank
        extent, = self.merged(axis).axes(axis)
        value = self.g.op("iota", [], f"axis = 0, dims = [{extent}]")
        ones = self.rank - 1 - axis if behind is None else behind
        return Tensor(self.g, value, (1,))._reshaped([(extent,)] + [(1,)] * ones)

    def copy(self) -> "Tensor":
        return Tensor(self.g, self.g.op("copy", [self.value]), self.groups)

    # ---- reductions

    def chosen(self, axes: Sequence[int] | None) -> list[int]:
        """The axes that torch means, ascending: None and an empty list are all."""
        if not axes or self.rank == 0:
            return list(range(self.rank))
        return sorted({axis % self.rank for axis in axes})

    def reduce(self, op: str, axes: Sequence[int] | None, keepdim: bool = False) -> "Tensor":
        """"reduce_sum" or "reduce_max" over axes (None or empty: all)."""
        chosen = self.chosen(axes)
        if not chosen:
            return self
        inner = [self.start(axis) + i for axis in chosen for i in range(self.groups[axis])]
        value = self.g.op(op, [self.value], f"axes = {list_text(inner)}")
        groups = [(1,) if i in chosen else self.axes(i) for i in range(self.rank)]
        if not keepdim:
            groups = [group for i, group in enumerate(groups) if i not in chosen]
        return Tensor(self.g, value, self.groups)._reshaped(groups)

    def sum(self, axes=None, keepdim=False): return self.reduce("reduce_sum", axes, keepdim)
    def max(self, axes=None, keepdim=False): return self.reduce("reduce_max", axes, keepdim)
    def min(self, axes=None, keepdim=False): return -(-self).max(axes, keepdim)

    def count(self, axes: Sequence[int] | None) -> int:
        """The number of elements that a reduction over the axes takes."""
        return math.prod(self.size(axis) for axis in self.chosen(axes))

    def mean(self, axes=None, keepdim=False) -> "Tensor":
        total = self.sum(axes, keepdim)
        chosen = self.chosen(axes)
        if not chosen:
            return total
        if all(self.product(axis).is_number for axis in chosen):
            return total / float(self.count(axes))
        return total / self.g.extent_of([extent for axis in chosen for extent in self.axes(axis)])
