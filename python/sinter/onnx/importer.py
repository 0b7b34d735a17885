"""A graph of ONNX ops as the entries of a Sinter module."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

from ..errors import SinterError, bad_input, printable, usage
from ..importing.emitter import Emitter
from ..importing.extents import Symbol
from ..importing.names import Names
from ..importing.row_checks import RowCheck
from ..importing.tensor import Tensor
from ..importing.unsupported import Unsupported
from ..module import ModuleBuilder
from .dims import Dims, DimSize
from .graph import CONTROL, ModelGraph, node_name, schema_of
from .nodes import Frame, NodeConverter, Scope, define
from .origins import Origins
from .reader import AGAIN, TensorReader
from .registry import conversion_of, plain_domain
from .sizes import OnnxExtents, Size
from .weights import Constants, Weights

MAX_REFUSED = 20  # ops that an error names


@dataclass
class Signature:
    """The names that the inputs and outputs of an entry have in the module by those in the file. axes: how many axes of
    the entry's output make each axis. sums: its symbols that are sums of others."""

    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    axes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    sums: dict[str, Size] = field(default_factory=dict)


@dataclass
class Imported:
    """A module with its weights. notes: what is computed in another way than the file says. may_be_zero: symbols
    that the entry `first` has as 0."""

    module: ModuleBuilder
    weights: Weights
    entries: dict[str, Signature] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    row_checks: dict[str, RowCheck] = field(default_factory=dict)
    may_be_zero: list[str] = field(default_factory=list)


class Importer:
    """Imports a model. sizes: what the caller says of dynamic dims by name."""

    def __init__(
        self, model: Any, reader: TensorReader, name: str, sizes: Mapping[str, DimSize]
    ) -> None:
        module, self.names = ModuleBuilder(name), Names()
        self.graph = ModelGraph(model, reader)
        self.imported = Imported(module, Weights(module, self.names))
        self.extents = OnnxExtents(lambda symbol: declare(module, symbol))
        self.dims = Dims(self.graph.onnx, model.graph, sizes, self.extents)

    def run(self) -> Imported:
        """The entry `main`, and `first` for calls in which dims are 0 that may be."""
        self._need_conversions()
        scope: Scope = {"": None}
        for tensor in self.graph.proto.initializer:
            define(scope, tensor.name, self.graph.constant(tensor))
        self._entry("main", dict(scope))
        if self.dims.may_be_zero:
            self._first_entry(dict(scope))
        self.imported.may_be_zero = [self.dims.symbol_of(one) for one in self.dims.may_be_zero]
        return self.imported

    def _need_conversions(self) -> None:
        """Refuses a model with ops that have neither a conversion nor a body, all of them at once."""
        lacks: dict[str, str] = {}
        for node in self.graph.nodes:
            domain = plain_domain(node.domain)
            opset = self.graph.opsets.get(domain, 0)
            if (
                conversion_of(domain, node.op_type, opset)
                or (domain, node.op_type) in self.graph.functions
                or node.op_type in ("If", *CONTROL)
                or schema_of(self.graph.onnx, node, opset) is not None
            ):
                continue
            title = f"{domain + '.' if domain else ''}{node.op_type}"
            lacks.setdefault(title, f'{title} (opset {opset}), node "{node_name(node)}"')
        if lacks:
            listed = [f"  {printable(text, 200)}" for text in list(lacks.values())[:MAX_REFUSED]]
            raise usage(
                "ops that have no conversion:\n" + "\n".join(listed),
                hint="docs/onnx.md lists the ops; export the model with others",
            )

    # ---- entries

    def _first_entry(self, scope: Scope) -> None:
        self.dims.begin_empty()
        titles = printable(", ".join(self.dims.may_be_zero))
        try:
            self._entry("first", scope)
        except SinterError as error:
            reason = f"{error.what} (in calls where 0 is the size of {titles})"
            hint = f"give {titles} a least size of 1"
            raise SinterError(error.code, reason, error.where, hint) from None

    def _entry(self, name: str, scope: Scope) -> None:
        self.extents.used.clear()
        given = [value for value in self.graph.proto.input if value.name not in scope]
        shapes = [self.dims.input_type(value) for value in given]
        self.dims.need_given()
        emitter, origins = Emitter(self.imported.module.entry(name), self.extents), Origins()
        constants = Constants(self.imported.weights, emitter, origins)
        signature = self.imported.entries[name] = Signature()
        for value, (dtype, sizes) in zip(given, shapes):
            own = self.names.unique(value.name)
            try:
                define(scope, value.name, emitter.input(own, dtype, sizes))
            except Unsupported as error:
                raise usage(str(error), f'input "{printable(value.name)}"') from None
            signature.inputs[value.name] = own
        note = self.imported.notes.append
        nodes = NodeConverter(self.graph, emitter, constants, origins, self.names, note)
        for node in self.graph.nodes:
            nodes.convert(node, Frame(scope))
        for value in self.graph.proto.output:
            self._output(value.name, scope, emitter, constants, signature)
        signature.sums = {one: self.extents.sums[one] for one in self.extents.used}
        self.imported.row_checks.update(emitter.row_checks)

    def _output(
        self, name: str, scope: Scope, emitter: Emitter, constants: Constants, signature: Signature
    ) -> None:
        value, where = scope.get(name), f'output "{printable(name)}"'
        if value is None:
            raise bad_input("a value that nothing defines", where, AGAIN)
        emitter.begin_node()
        try:
            tensor = as_written(constants.tensor_of(value))
        except Unsupported as error:
            raise usage(str(error), where) from None
        taken = {*signature.inputs.values(), *signature.outputs.values()}
        if tensor.name is None or tensor.name in taken | set(self.imported.weights.arrays):
            tensor = tensor.copy()
        emitter.end_node(name, [tensor], self.names)
        emitter.output(tensor)
        assert tensor.name is not None
        signature.outputs[name] = tensor.name
        signature.axes[name] = tensor.axis_counts


def as_written(x: Tensor) -> Tensor:
    """A result with an axis for each of its own, but where one is a product of several unknown sizes."""
    single = [axis for axis in range(x.rank) if x.is_single(axis)]
    return x.merged(*single) if single else x


def declare(module: ModuleBuilder, symbol: Symbol) -> None:
    module.symbol(symbol.name, symbol.low, symbol.high)
