"""Adds the ops of one entry to a Sinter graph, under NumPy's broadcasting rules.

Operators compute element by element in the element type of their operands; a number of Python's takes
that type. `Tensor.f32()` comes first where the imported op computes in float32.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, Callable, Sequence

from ..facts import max_operands, op_class
from ..module import GraphBuilder, Value
from .axes import check_rank, list_text
from .broadcasting import align, align_all_but, common_axes
from .extents import Extent, Extents
from .names import Names
from .row_checks import RowCheck
from .tensor import Number, Tensor
from .types import is_integer, is_real, wrapped
from .unsupported import Unsupported

VIEWS = ("reshape", "transpose")  # ops of the IR that keep all elements of their operand
UNWRITTEN = ("view", "generator", "append")  # classes of ops whose results have no memory of their own


def text_of(number: Number, dtype: str) -> str:
    """A number as the text form writes it; an integer outside of its type wraps around."""
    if not is_real(dtype):
        return str(wrapped(int(number), dtype) if is_integer(dtype) else int(bool(number)))
    number = float(number)
    if number != number:
        return "nan"
    return number.hex() if math.isfinite(number) else ("inf" if number > 0 else "-inf")


class Emitter:
    """Builds the graph of one entry.

    is_checked: values that an op refuses, and indices that are only compared, are checked too. The entry's
    row checks find them after a call. computed_number: the value of a number of the importer's that is no sum of
    known sizes, as a tensor without axes."""

    def __init__(self, graph: GraphBuilder, extents: Extents, is_checked: bool = False,
                 computed_number: Callable[[Any], Tensor] | None = None) -> None:
        self.graph = graph
        self.extents = extents
        self._computed_number = computed_number
        self.is_checked = is_checked
        self.row_checks: dict[str, RowCheck] = {}  # by the name of the op that reads the rows
        self._numbers: dict[tuple[str, str], Value] = {}
        self._added: list[tuple[Value, str]] = []  # by the node that is being added, with their ops
        self._owners: dict[int, str] = {}  # paths of the modules that made values
        self._sources: dict[int, Value] = {}  # of views: what they read
        self._written: set[int] = set()  # values that a kernel can write
        self._reshapes: set[int] = set()
        self._narrow: dict[int, Value] = {}  # of i64 values that are casts of i32: these
        self._states: dict[int, tuple[int, ...]] = {}  # with the axes that their rows join
        self._shared: set[int] = set()  # numbers that several nodes read
        self._checks: list[tuple[Value, RowCheck]] = []  # of the node that is being added

    # ---- adding ops

    def _add(self, op: str, operands: Sequence[Value], attributes: str | None = None) -> Value:
        """One op of the IR. Its attributes name axes of the IR: no conversion calls this."""
        value = self.graph.op(op, operands, attributes)
        check_rank(value.dims)
        self._added.append((value, op))
        if op in VIEWS:
            self._sources[value.number] = operands[0]
        if op_class(op) not in UNWRITTEN:
            self._written.add(value.number)
        if op == "reshape":
            self._reshapes.add(value.number)
        return value

    def cast(self, value: Value, dtype: str) -> Value:
        """A value in another type, an integer as the nearest one that this has."""
        if dtype == "i32" and value.number in self._narrow:
            return self._narrow[value.number]
        result = self._add("cast", [value], f"dtype = {dtype}")
        if (value.dtype, dtype) == ("i32", "i64"):
            self._narrow[result.number] = value
        return result

    def is_widened(self, x: Tensor) -> bool:
        """Whether an i64 tensor is a cast of an i32 tensor."""
        return x._value.number in self._narrow

    def _note_check(self, value: Value, check: RowCheck) -> None:
        """Remembers what an op's row numbers are, for the error of a call."""
        self._checks.append((value, check))

    def begin_node(self) -> None:
        self._added, self._checks = [], []

    def end_node(self, name: str, results: Sequence[Tensor | None], names: Names,
                 location: str = "", module: str = "") -> list[str]:
        """Names what a node became: its first result like the node, its other ops with the op
        appended. Returns the names. location: the user's line, for errors of row checks. module: the
        path of the module that made the node."""
        ends = [tensor._value.number for tensor in results if tensor is not None]
        given: list[str] = []
        added = {value.number: value for value, _ in self._added}
        first = next((number for number in ends if number in added), None)
        is_named = name == module and bool(results) and results[0] is not None \
            and self._return(results[0]._value, module, names, given)
        if not is_named and first is not None and added[first].name is None:
            self._rename(added[first], names.unique(name), given)
        self._owners.update((number, module) for number in added if number not in self._shared)
        for value, op in self._added:
            if value.name is None and value.number not in self._shared:
                self._rename(value, names.unique(f"{name}.{op}"), given)
        for value, check in self._checks:
            self.row_checks[value.name] = check.at(location)
        return given

    def _return(self, value: Value, module: str, names: Names, given: list[str]) -> bool:
        """Names a value like the module that returns it, perhaps as a view, if earlier nodes of this
        module made it. Returns whether it did."""
        while value.number in self._sources:
            value = self._sources[value.number]
        before = value.name
        if self._owners.get(value.number) != module or before is None or before == module:
            return False
        names.free(before)
        self._rename(value, names.unique(module), given)
        if before in self.row_checks:
            self.row_checks[value.name] = self.row_checks.pop(before)
        return True

    def _rename(self, value: Value, name: str, given: list[str]) -> None:
        self.graph.rename(value, name)
        given.append(name)

    # ---- leaves and generators

    def input(self, name: str, dtype: str, sizes: Sequence) -> Tensor:
        axes = [self.extents.axes(size) if i else self.extents.rows(size)
                for i, size in enumerate(sizes)]
        dims = [axis for group in axes for axis in group]
        check_rank(dims)
        return Tensor(self, self.graph.input(name, f"{dtype}{list_text(dims)}"),
                      tuple(len(group) for group in axes))

    def weight(self, name: str) -> Tensor:
        """A weight of the module, which was declared."""
        value = self.graph.use(name)
        return Tensor(self, value, (1,) * len(value.dims))

    def state(self, name: str, sizes: Sequence[int], axis: int) -> Tensor:
        """A state of the module, which was declared [rows, width], as a tensor of these sizes. The rows are
        the axes up to `axis`, joined."""
        value = self.graph.use(name)
        self._states[value.number] = tuple(sizes[:axis + 1])
        return Tensor(self, value, (1, 1)).reshape(sizes)

    def _viewed(self, x: Tensor) -> Value:
        """The value of which a tensor is a view."""
        value = x._value
        while value.number in self._sources:
            value = self._sources[value.number]
        return value

    def is_state(self, x: Tensor) -> bool:
        return self._viewed(x).number in self._states

    def append(self, x: Tensor, rows: Tensor, source: Tensor) -> Tensor:
        """x, a state, with the rows of a source, one for each row number, written in place along the last axis
        that its rows join. Other axes of the source have the sizes of x. Row numbers outside write nothing."""
        value = self._viewed(x)
        *outer, size = self._states[value.number]
        sizes, rows = x.sizes, rows.flatten()
        count, blocks = rows.size(0), math.prod(outer)
        row = rows.unsqueeze(0).expand([blocks, count])  # all in one shape, to be one kernel
        inside = row.greater_equal(0) & row.less(size)
        place = self.iota(blocks).unsqueeze(1) * size + row
        slot = self.where(inside, place, -1).reshape([blocks * count])
        width = math.prod(sizes[len(outer) + 1:])
        updates = source.expand([*outer, count, *sizes[len(outer) + 1:]]).reshape([blocks * count, width])
        operands = [value, updates.merged()._value, slot.merged()._value]
        written = self._add("kv_append", operands)
        self._note_check(written, RowCheck())
        return Tensor(self, written, (1, 1)).reshape(sizes)

    def as_written(self, x: Tensor) -> Tensor:
        """The computed value of which a tensor is a reshape, with other axes in the same memory; else x."""
        value = x._value
        while value.number in self._reshapes:
            value = self._sources[value.number]
        return Tensor(self, value, (1,) * len(value.dims)) if value.number in self._written else x

    def output(self, tensor: Tensor) -> None:
        self.graph.output(tensor._value)

    def number(self, number: Number, dtype: str) -> Tensor:
        text = text_of(number, dtype)
        if (text, dtype) not in self._numbers:
            value = self._add("constant", [], f"value = {text}, dims = [], dtype = {dtype}")
            self._shared.add(value.number)
            self._numbers[text, dtype] = value
        return Tensor(self, self._numbers[text, dtype], ())

    def literal(self, numbers: Sequence[Number], dtype: str) -> Tensor:
        """Numbers along one axis, which are written in the module."""
        values = ", ".join(text_of(number, dtype) for number in numbers)
        text = f"values = [{values}], dims = [{len(numbers)}], dtype = {dtype}"
        return Tensor(self, self._add("literal", [], text), (1,))

    def full(self, sizes: Sequence, number: Number, dtype: str) -> Tensor:
        return self.number(number, dtype).expand(sizes)

    def iota(self, size, dtype: str = "i32") -> Tensor:
        """0, 1, 2, ... along one axis."""
        return self._positions(self.extents.axes(size)).to(dtype)

    def _positions(self, axes: Sequence[Extent]) -> Tensor:
        """i32: 0, 1, 2, ... along one axis that is held as these axes of the IR."""
        place: Tensor | None = None
        for i, extent in enumerate(axes):
            value = self._add("iota", [], f"axis = 0, dims = [{extent}]")
            here = Tensor(self, value, (1,))._append_ones(len(axes) - 1 - i)
            if place is None:
                place = here
            else:
                times = extent if isinstance(extent, int) else self._extent_of([extent])
                place = place * times + here
        return place.flatten(0, -1)

    def scalar(self, number, dtype: str) -> Tensor:
        """A number, such as a size, that only the call knows; the nearest one that an integer type has."""
        terms = self.extents.terms(number)
        if terms is None:
            if self._computed_number is None:
                raise Unsupported("a number that is known only when the graph runs")
            return self._computed_number(number).nearest(dtype)
        exact = dtype if is_integer(dtype) else "i64"
        return functools.reduce(operator.add, [
            self._extent_of((product.number, *product.symbols), exact) for product in terms]).to(dtype)

    def _extent_of(self, axes: Sequence[Extent], dtype: str = "i32") -> Tensor:
        """The number of elements of axes of the IR. A symbol's value is a sum of ones."""
        exact = dtype if is_integer(dtype) else "i64"
        result = self.number(math.prod(axis for axis in axes if isinstance(axis, int)), exact)
        for axis in axes:
            if isinstance(axis, str):
                ones = self._add("broadcast", [self.number(1, "i32")._value], f"dims = [{axis}]")
                result = result * Tensor(self, ones, (1,)).sum().to(exact)
        return result.to(dtype)

    # ---- ops of several operands

    def tensor(self, operand: Tensor | Number, dtype: str) -> Tensor:
        return operand if isinstance(operand, Tensor) else self.number(operand, dtype)

    def map(self, op: str, *operands: Tensor | Number) -> Tensor:
        """An elementwise op. Operands broadcast; numbers have the type of the tensors."""
        dtype = next(operand.dtype for operand in operands if isinstance(operand, Tensor))
        tensors = [self.tensor(operand, dtype) for operand in operands]
        tensors, groups = align(tensors)
        return Tensor(self, self._add(op, [tensor._value for tensor in tensors]), groups)

    def where(self, condition: Tensor, a: Tensor | Number, b: Tensor | Number) -> Tensor:
        dtype = next((x.dtype for x in (a, b) if isinstance(x, Tensor)), "f32")
        tensors, groups = align([condition, self.tensor(a, dtype), self.tensor(b, dtype)])
        return Tensor(self, self._add("where", [t._value for t in tensors]), groups)

    def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        axis %= tensors[0].rank
        if len(tensors) == 1:
            return tensors[0]
        tensors = align_all_but(tensors, axis)
        first = tensors[0]
        if any(not tensor.product(axis).is_number for tensor in tensors):
            raise Unsupported("a concatenation along an axis of unknown size")
        most = max_operands("concat")
        while len(tensors) > most:
            chunks = [tensors[i:i + most] for i in range(0, len(tensors), most)]
            tensors = [self.concat(chunk, axis) for chunk in chunks]
        value = self._add("concat", [tensor._value for tensor in tensors],
                         f"axis = {first._start(axis)}")
        return Tensor(self, value, first._groups)

    def einsum(self, spec: str, a: Tensor, b: Tensor, dtype: str | None = None) -> Tensor:
        """A letter for each axis of the tensors; an axis that is held as several takes several letters."""
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
        operands = [tensor._arranged([ways[letter] for letter in letters])
                    for letters, tensor in zip(names, (a, b))]
        spell = lambda letters: "".join(split[letter] for letter in letters)
        text = f'spec = "{spell(names[0])},{spell(names[1])}->{spell(result)}"'
        if dtype is not None:
            text += f", dtype = {dtype}"
        value = self._add("einsum", [tensor._value for tensor in operands], text)
        return Tensor(self, value, tuple(len(split[letter]) for letter in result))
