"""A graph of torch's ops as an entry of a Sinter module.

The graph is functional, `ops` converts its ops, and each node's `meta["val"]` has its fake tensor, as aot_autograd and
torch.export make them.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, field
from typing import Iterable, Mapping, Sequence

import sympy
import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ...errors import SinterError
from ...importing.emitter import Emitter
from ...importing.extents import Extent
from ...importing.names import Names
from ...importing.row_checks import RowCheck
from ...importing.row_ops import in_exported_range
from ...importing.tensor import Tensor
from ...importing.unsupported import Unsupported
from ...module import ModuleBuilder
from ..graphs.dtypes import in_memory, is_double_number, sinter_dtype
from ..graphs.layout import Layout
from ..graphs.names import location_of, module_path, name_of
from ..graphs.symbols import TorchExtents, expression_of, sizes_of
from ..rewrites.in_place import Writing
from .ops import CONVERSIONS, Conversion
from .ops.choice import COMPARISONS
from .scalars import is_factor_of_sizes, operands_of, scalar_of, without_guards


aten = torch.ops.aten

# Comparisons of two tensors, in the type to which torch promotes them.
COMPARISONS_OF_TENSORS = {getattr(aten, name).Tensor for name in COMPARISONS}
# Comparisons of a tensor and a number, in the type of the tensor, or in float32 for integers.
COMPARISONS_WITH_NUMBERS = {getattr(aten, name).Scalar for name in COMPARISONS}

# Whether an exception out of a conversion leaves the importer, as tests want it. Otherwise the op runs
# in eager, and `explain` tells.
RAISES_FAULTS = False


@dataclass
class Operand:
    """An input or output of the entry, and the tensor of torch, or the number of Python's, that it is."""

    node: fx.Node
    name: str
    dtype: torch.dtype
    layout: Layout
    dims: tuple[Extent, ...]  # of the entry's type, in the order of memory
    sizes: tuple  # of torch's tensor: numbers and expressions
    strides: tuple  # of torch's tensor


@dataclass
class ImportedGraph:
    """An entry under construction, and how to call it."""

    module: ModuleBuilder
    extents: TorchExtents
    inputs: list[Operand] = field(default_factory=list)
    outputs: list[Operand] = field(default_factory=list)
    states: list[Operand] = field(default_factory=list)  # arguments that are written in place
    locations: dict[str, str] = field(default_factory=dict)  # of named values in the user's source
    row_checks: dict[str, RowCheck] = field(default_factory=dict)  # by the name of the op


class Refused(Exception):
    """Nodes that cannot be taken, with the reasons."""

    def __init__(self, reasons: dict[fx.Node, str]) -> None:
        super().__init__("; ".join(f"{node}: {reason}" for node, reason in reasons.items()))
        self.reasons = reasons


class Importer:
    """Converts nodes into the graph of one entry.

    as_in_memory: inputs and outputs have their axes in the order of torch's memory, so that none is
    copied; else in torch's order. symbol_names: of torch's symbols, where they have others.
    ranges: as of TorchExtents. is_checked: as of Emitter."""

    def __init__(self, name: str = "graph", entry: str = "main", names: Names | None = None,
                 as_in_memory: bool = True, symbol_names: dict[str, str] | None = None,
                 ranges: Mapping | None = None, is_checked: bool = False) -> None:
        self.imported = ImportedGraph(ModuleBuilder(name), TorchExtents(symbol_names, ranges))
        self.as_in_memory = as_in_memory
        self.names = names or Names()
        self.entry = entry
        self.is_checked = is_checked
        self.values: dict[fx.Node, object] = {}
        self.reasons: dict[fx.Node, str] = {}
        self._emitter: Emitter | None = None
        self._numbers: dict[sympy.Expr, fx.Node] = {}  # leaves that are numbers of Python's
        self._given_numbers: dict[fx.Node, Tensor] = {}  # those that are inputs
        self._environment: ShapeEnv | None = None  # of torch's symbols

    def _layout(self, fake: torch.Tensor) -> Layout:
        return Layout.of(fake) if self.as_in_memory else Layout.plain(fake.dim())

    # ---- inputs

    def begin(self, leaves: Sequence[fx.Node], nodes: Iterable[fx.Node]) -> None:
        """Declares symbols for the sizes of all inputs, and opens the entry. nodes: which will be converted."""
        extents = self.imported.extents
        if self.as_in_memory:
            extents.declare_rows(getattr(node.meta["val"], "shape", ()) for node in leaves)
        numbers = [node for node in leaves if isinstance(node.meta["val"], (torch.SymInt, torch.SymFloat))]
        self._numbers = {expression_of(node.meta["val"]): node for node in numbers}
        inside = set(nodes) if numbers else set()
        no_sizes = [node for node in numbers if not is_factor_of_sizes(node, inside)]
        sizes = [size for node in leaves if node not in no_sizes for size in sizes_of(node.meta["val"])]
        extents.declare(sizes)
        for symbol in extents.symbols.values():
            self.imported.module.symbol(symbol.name, symbol.low, symbol.high)
        symbolic = [*sizes, *(node.meta["val"] for node in numbers)]
        self._environment = next((size.node.shape_env for size in symbolic if not isinstance(size, int)), None)

    @property
    def emitter(self) -> Emitter:
        if self._emitter is None:
            self._emitter = Emitter(self.imported.module.entry(self.entry), self.imported.extents,
                                    self.is_checked, self._computed_number)
            self.imported.row_checks = self._emitter.row_checks
        return self._emitter

    def add_input(self, node: fx.Node, name: str | None = None) -> None:
        """A tensor of the caller's. Sizes and other numbers are not values of the entry."""
        fake = node.meta["val"]
        if not isinstance(fake, torch.Tensor):
            return
        fake = in_memory(fake)
        layout = self._layout(fake)
        sizes = [fake.shape[axis] for axis in layout.order]
        name = self.names.unique(name or name_of(node))
        dtype = torch.float32 if is_double_number(fake) else fake.dtype
        tensor = self.emitter.input(name, sinter_dtype(dtype), sizes)
        self.imported.inputs.append(self._operand(node, fake, name, dtype, layout, tensor))
        self.values[node] = tensor.permute(layout.inverse)

    def _operand(self, node: fx.Node, fake: torch.Tensor, name: str, dtype: torch.dtype,
                 layout: Layout, tensor: Tensor) -> Operand:
        return Operand(node, name, dtype, layout, tensor.dims, tuple(fake.shape),
                       tuple(fake.stride()))

    def _computed_number(self, number) -> Tensor:
        return scalar_of(self.emitter, expression_of(number), self._given_number)

    def _given_number(self, number: sympy.Expr) -> Tensor | None:
        """A number that a leaf is, as an input without axes."""
        node = self._numbers.get(number)
        if node is not None and node not in self._given_numbers:
            name = self.names.unique(name_of(node))
            dtype = torch.int64 if isinstance(node.meta["val"], torch.SymInt) else torch.float32
            tensor = self.emitter.input(name, sinter_dtype(dtype), ())
            ends = self.imported.extents.range_of(number) if dtype == torch.int64 else None
            if ends is not None:
                tensor = in_exported_range(tensor, name, *ends)
            self._given_numbers[node] = tensor
            self.imported.inputs.append(Operand(node, name, dtype, Layout.plain(0), (), (), ()))
        return self._given_numbers.get(node)

    def add_state(self, writing: Writing) -> None:
        """An argument of which an op writes rows in place."""
        node = writing.argument
        fake = node.meta["val"]
        name = self.names.unique(name_of(node))
        self.imported.module.state(name, f"{sinter_dtype(fake.dtype)}{list(writing.shape)}")
        tensor = self.emitter.state(name, writing.sizes, writing.axis)
        self.imported.states.append(Operand(node, name, fake.dtype, Layout.plain(fake.dim()), writing.shape,
                                            tuple(fake.shape), tuple(fake.stride())))
        self.values[node] = tensor

    def try_input(self, node: fx.Node, writing: Writing | None = None) -> bool:
        """Adds an input, or a state that an op writes. False: it is no tensor for Sinter, and `reasons` says
        why of its readers."""
        try:
            self.add_input(node) if writing is None else self.add_state(writing)
            return True
        except (Unsupported, SinterError) as error:
            self.reasons.update((user, reason_of(error)) for user in node.users)
        return False

    def add_weight(self, node: fx.Node, name: str) -> None:
        """A weight of the module, which was declared."""
        self.values[node] = self.emitter.weight(name)

    # ---- nodes

    def convert(self, node: fx.Node) -> bool:
        """Adds a node's ops. False: it cannot be taken, and `reasons` says why."""
        try:
            self.values[node] = self._converted(node)
            return True
        except (Unsupported, SinterError) as error:  # or a constraint of the IR
            self.reasons[node] = reason_of(error)
        except Exception as error:
            if RAISES_FAULTS:
                raise
            self.reasons[node] = f"a fault in Sinter's conversion, please report it: {error!r}"
        return False

    def _converted(self, node: fx.Node):
        if node.target is operator.getitem:
            source = self.values.get(node.args[0])
            result = source[node.args[1]] if source is not None else None
            if result is None:
                raise Unsupported("part of an op that is computed elsewhere")
            return result
        conversion = CONVERSIONS.get(node.target)
        if conversion is None:
            raise Unsupported("no conversion")
        need_operands_in_float32(node)
        self.emitter.begin_node()
        operands = operands_of(node.target)
        argument = lambda arg, key: self._operand_of(arg) if key in operands else self._argument(arg)
        with without_guards(self._environment):
            result = conversion(Conversion(self.emitter, node),
                                *[argument(arg, i) for i, arg in enumerate(node.args)],
                                **{key: argument(arg, key) for key, arg in node.kwargs.items()})
        self._check(node, result)
        results = result if isinstance(result, (list, tuple)) else [result]
        place = location_of(node)
        names = self.emitter.end_node(name_of(node), results, self.names, place,
                                      module_path(node))
        if place:
            self.imported.locations.update((name, place) for name in names)
        return result

    def _argument(self, argument):
        if isinstance(argument, fx.Node):
            if argument in self.values:
                return self.values[argument]
            value = argument.meta.get("val")
            if isinstance(value, (torch.SymInt, torch.SymFloat)):
                number = value.node.maybe_as_int() if isinstance(value, torch.SymInt) else value.node.maybe_as_float()
                return value if number is None else number
            if isinstance(value, (int, float)):
                return value
            raise Unsupported(f"an operand that is {describe(value)}")
        if isinstance(argument, (list, tuple)):
            return [self._argument(item) for item in argument]
        return argument

    def _operand_of(self, argument):
        """An argument that is an operand: a number that changes from call to call is a tensor."""
        value = self._argument(argument)
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            return self.emitter.scalar(value, "i64" if isinstance(value, torch.SymInt) else "f32")
        return value

    def _check(self, node: fx.Node, result) -> None:
        """The result has the type that torch inferred."""
        meta = node.meta["val"]
        pairs = zip(meta, result) if isinstance(meta, (list, tuple)) else [(meta, result)]
        for fake, tensor in pairs:
            if tensor is None or not isinstance(fake, torch.Tensor):
                continue
            sizes = tuple(self.imported.extents.product(size) for size in fake.shape)
            if tensor.dtype != sinter_dtype(fake.dtype) or tensor.shape != sizes:
                raise AssertionError(
                    f"{node.target}: converted to {tensor}, torch has "
                    f"{fake.dtype} {tuple(fake.shape)}")

    # ---- outputs

    def add_output(self, node: fx.Node, is_visible: bool = True) -> None:
        """is_visible: the user sees the result, which has torch's axes in the module, too. Of another one the
        memory is what counts, and the value is the output that a kernel writes there."""
        fake = node.meta["val"]
        tensor = self.values[node]
        layout = self._layout(fake)
        self.emitter.begin_node()
        tensor = tensor.permute(layout.order)
        if not is_visible:
            tensor = self.emitter.as_written(tensor)
        taken = {operand.name for operand in self.imported.outputs}
        if tensor.name is None or tensor.name in taken \
                or any(tensor.name == operand.name for operand in self.imported.inputs):
            tensor = tensor.copy()
        self.emitter.end_node(name_of(node), [tensor], self.names)
        self.emitter.output(tensor)
        self.imported.outputs.append(
            self._operand(node, fake, tensor.name, fake.dtype, layout, tensor))


def reason_of(error: Exception) -> str:
    """Why a node is not taken. A refusal of the graph's builder loses the constraint's number."""
    if not isinstance(error, SinterError):
        return str(error)
    return "its form in Sinter is refused: " + re.sub(r" \(C\d+\)", "", error.what)


def need_operands_in_float32(node: fx.Node) -> None:
    """Refuses an op that reads what the entry does not have of an operand. A complex operand is in the entry as
    its real and imaginary parts, a float64 of no axis and a float of Python's as float32."""
    for operand in node.all_input_nodes:
        fake = operand.meta.get("val")
        if isinstance(fake, torch.SymFloat) \
                and not (reads_float32(node) or node.target in COMPARISONS_WITH_NUMBERS):
            raise Unsupported("a float of Python's that becomes an integer or a truth")
        if not isinstance(fake, torch.Tensor):
            continue
        is_refused = node.target is not aten.view_as_real.default if fake.dtype.is_complex \
            else is_double_number(fake) and not reads_float32(node)
        if is_refused:
            raise Unsupported(f"elements of {str(fake.dtype).removeprefix('torch.')}")


def reads_float32(node: fx.Node) -> bool:
    """Whether an op rounds a float64 of no axis: to the type of its result, or of what it compares it with."""
    fake = node.meta["val"]
    return node.target in COMPARISONS_OF_TENSORS or isinstance(fake, torch.Tensor) and fake.dtype.is_floating_point


def describe(value) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return f"a {type(value).__name__}"


def import_graph(graph: fx.Graph, name: str = "graph", names: Names | None = None,
                 weight_names: dict[fx.Node, str] | None = None,
                 input_names: dict[fx.Node, str] | None = None,
                 symbol_names: dict[str, str] | None = None, ranges: Mapping | None = None,
                 is_checked: bool = False) -> ImportedGraph:
    """A whole graph: its placeholders are inputs, or weights where `weight_names` says so.

    Raises Refused with all nodes that cannot be taken."""
    importer = Importer(name, names=names, as_in_memory=False, symbol_names=symbol_names,
                        ranges=ranges, is_checked=is_checked)
    weights, given = weight_names or {}, input_names or {}
    leaves = [node for node in graph.nodes if node.op == "placeholder"
              and (input_names is None or node in given or node in weights)]
    importer.begin(leaves, graph.nodes)
    for node, weight in weights.items():
        fake = in_memory(node.meta["val"])
        dims = ", ".join(str(int(size)) for size in fake.shape)
        importer.imported.module.weight(weight, f"{sinter_dtype(fake.dtype)}[{dims}]")
        importer.names.take(weight)
    for node in leaves:
        if node in weights:
            importer.add_weight(node, weights[node])
        else:
            importer.add_input(node, given.get(node))
    for node in graph.nodes:
        if node.op != "call_function" or is_size(node):
            continue
        if not importer.convert(node):
            substitute(importer, node)
    if importer.reasons:
        raise Refused(importer.reasons)
    output = graph.output_node()
    for node in flat_nodes(output.args[0]):
        importer.add_output(node)
    return importer.imported


def substitute(importer: Importer, node: fx.Node) -> None:
    """Goes on behind a refused node, so that all that is refused is found at once."""
    fakes = node.meta["val"]
    try:
        make = lambda fake: (importer.emitter.full(fake.shape, 0, sinter_dtype(fake.dtype))
                             if isinstance(fake, torch.Tensor) else None)
        importer.values[node] = (tuple(make(fake) for fake in fakes)
                                 if isinstance(fakes, (list, tuple)) else make(fakes))
    except Unsupported:
        pass  # its readers are refused too


def is_size(node: fx.Node) -> bool:
    """Whether a node computes a size, a number of Python's."""
    return isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool, int,
                                             float, bool))


def flat_nodes(value) -> list[fx.Node]:
    if isinstance(value, fx.Node):
        return [value] if isinstance(value.meta.get("val"), torch.Tensor) else []
    if isinstance(value, (list, tuple)):
        return [node for item in value for node in flat_nodes(item)]
    if isinstance(value, dict):
        return [node for item in value.values() for node in flat_nodes(item)]
    return []
