"""A graph of ONNX ops as the entry of a Sinter module."""

from __future__ import annotations

import re
from collections import ChainMap
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping, MutableMapping, Sequence

import numpy as np

from ..errors import SinterError, bad_input, printable, usage
from ..extras import needed
from ..importing.emitter import Emitter
from ..importing.extents import Symbol
from ..importing.names import Names
from ..importing.row_checks import RowCheck
from ..importing.tensor import Tensor
from ..importing.unsupported import Unsupported
from ..module import ModuleBuilder
from . import ops  # noqa: F401  registers the conversions
from .codes import Coded
from .dims import Dims, DimSize
from .origins import Origins
from .reader import TensorReader
from .registry import (
    DTYPES,
    ExpandBody,
    Known,
    Node,
    Value,
    conversion_of,
    fold_of,
    plain_domain,
    shape_of,
)
from .sizes import OnnxExtents, Size
from .weights import MAX_LITERAL, Constants, Weights

MAX_DEPTH = 8  # of functions and branches inside one another
MAX_REFUSED = 20  # ops that an error names
MAX_NODES = 2**17  # with those of functions
VIEWS = {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"}  # fold at any size
# Exceptions of conversions for operands and attributes that do not fit the op, as broken files have them.
UNFIT = (
    ArithmeticError,
    AssertionError,
    MemoryError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
CONTROL = {"Loop", "Scan", "SequenceMap"}

Scope = MutableMapping[str, "Value | None"]


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
    """Converts the nodes of a model. sizes: what the caller says of dynamic dims by name."""

    def __init__(
        self, model: Any, reader: TensorReader, name: str, sizes: Mapping[str, DimSize]
    ) -> None:
        self.onnx = needed("onnx", "from_onnx")
        self.model, self.reader = model, reader
        self.opsets = {plain_domain(one.domain): one.version for one in model.opset_import}
        self.functions = {(plain_domain(one.domain), one.name): one for one in model.functions}
        module, self.names = ModuleBuilder(name), Names()
        self.imported = Imported(module, Weights(module, self.names))
        self.extents = OnnxExtents(lambda symbol: declare(module, symbol))
        self.dims = Dims(self.onnx, model.graph, sizes, self.extents)
        self.nodes, self.read = nodes_read(model.graph)
        self.converted = 0

    # ---- the graph

    def run(self) -> Imported:
        """The entry `main`, and `first` for calls in which dims are 0 that may be."""
        self._need_conversions()
        scope: Scope = {"": None}
        for tensor in self.model.graph.initializer:
            self._define(scope, tensor.name, self._constant(tensor))
        self._entry("main", dict(scope))
        if self.dims.may_be_zero:
            self._first_entry(dict(scope))
        self.imported.may_be_zero = [self.dims.symbol_of(one) for one in self.dims.may_be_zero]
        return self.imported

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
        graph = self.model.graph
        self.extents.used.clear()
        given = [value for value in graph.input if value.name not in scope]
        shapes = [self.dims.input_type(value) for value in given]
        self.dims.need_given()
        self.emitter = Emitter(self.imported.module.entry(name), self.extents)
        self.origins = Origins()
        self.constants = Constants(self.imported.weights, self.emitter, self.origins)
        self.signature = self.imported.entries[name] = Signature()
        for value, (dtype, sizes) in zip(given, shapes):
            own = self.names.unique(value.name)
            try:
                self._define(scope, value.name, self.emitter.input(own, dtype, sizes))
            except Unsupported as error:
                raise usage(str(error), f'input "{printable(value.name)}"') from None
            self.signature.inputs[value.name] = own
        for node in self.nodes:
            self._convert(node, scope, "", 0)
        for value in graph.output:
            self._output(value.name, scope)
        self.signature.sums = {one: self.extents.sums[one] for one in self.extents.used}
        self.imported.row_checks.update(self.emitter.row_checks)

    def _define(self, scope: Scope, name: str, value: Value | None) -> None:
        if not name:
            return
        if name in scope:
            raise bad_input(
                "a value that is defined twice", f'"{printable(name)}"', "export the model anew"
            )
        scope[name] = value

    def _constant(self, tensor: Any) -> Known:
        array = self.reader.array(tensor)
        return Known(array, array.dtype.name, tensor.name, True)

    def _output(self, name: str, scope: Scope) -> None:
        value = scope.get(name)
        if value is None:
            raise bad_input(
                "a value that nothing defines",
                f'output "{printable(name)}"',
                "export the model anew",
            )
        self.emitter.begin_node()
        try:
            tensor = as_written(self.constants.tensor_of(value))
        except Unsupported as error:
            raise usage(str(error), f'output "{printable(name)}"') from None
        taken = {
            *self.signature.inputs.values(),
            *self.signature.outputs.values(),
            *self.imported.weights.arrays,
        }
        if tensor.name is None or tensor.name in taken:
            tensor = tensor.copy()
        self.emitter.end_node(name, [tensor], self.names)
        self.emitter.output(tensor)
        assert tensor.name is not None
        self.signature.outputs[name] = tensor.name
        self.signature.axes[name] = tensor.axis_counts

    # ---- nodes

    def _need_conversions(self) -> None:
        """Refuses a model with ops that have neither a conversion nor a body, all of them at once."""
        lacks: dict[str, str] = {}
        for node in self.nodes:
            domain = plain_domain(node.domain)
            opset = self.opsets.get(domain, 0)
            if (
                conversion_of(domain, node.op_type, opset)
                or (domain, node.op_type) in self.functions
                or node.op_type in ("If", *CONTROL)
                or self._schema(node, opset) is not None
            ):
                continue
            title = f"{domain + '.' if domain else ''}{node.op_type}"
            lacks.setdefault(title, f'{title} (opset {opset}), node "{node_name(node)}"')
        if lacks:
            listed = [f"  {printable(text, 200)}" for text in list(lacks.values())[:MAX_REFUSED]]
            raise usage(
                "ops that have no conversion:\n" + "\n".join(listed),
                self.imported.module.name,
                "docs/onnx.md lists the ops; export the model with others",
            )

    def _schema(self, node: Any, opset: int) -> Any:
        """The schema of an op that is a function; else None."""
        domain = plain_domain(node.domain)
        try:
            schema = self.onnx.defs.get_schema(node.op_type, max(opset, 1), domain)
        except Exception:  # onnx.defs.SchemaError, which other versions have elsewhere
            return None
        is_function = schema.has_function or schema.has_context_dependent_function
        return (
            schema
            if is_function and node.op_type not in CONTROL and node.op_type != "Range"
            else None
        )

    def _convert(self, node: Any, scope: Scope, prefix: str, depth: int) -> None:
        domain = plain_domain(node.domain)
        opset = self.opsets.get(domain, 0)
        name = prefix + node_name(node)
        self.converted += 1
        try:
            results = self._results(node, domain, opset, scope, name, depth)
        except (Unsupported, SinterError, *UNFIT) as error:
            if isinstance(error, SinterError) and error.where.startswith("node "):
                raise
            reason = error.what if isinstance(error, SinterError) else str(error)
            if isinstance(error, UNFIT):
                reason = f"operands or attributes that do not fit the op ({error!r})"
            raise usage(
                printable(re.sub(r" \(C\d+\)", "", reason)),
                f'node "{printable(name, 200)}" ({printable(node.op_type, 80)}, opset {opset})',
                "export the model without it, or with constant operands and sizes",
            ) from None
        for output, result in zip(node.output, results):
            self._define(scope, output, result)

    def _results(
        self, node: Any, domain: str, opset: int, scope: Scope, name: str, depth: int
    ) -> Sequence[Value | None]:
        if self.converted > MAX_NODES:
            raise Unsupported(f"more than {MAX_NODES} nodes with those of functions")
        if depth > MAX_DEPTH:
            raise Unsupported(f"functions or branches inside one another, more than {MAX_DEPTH}")
        if node.op_type in CONTROL and not domain:
            raise Unsupported("a loop; export the model with the loop unrolled")
        inputs = [self._operand(one, scope) for one in node.input]
        if node.op_type == "If" and not domain:
            return self._branch(node, inputs[0], scope, name, depth)
        if (domain, node.op_type) in self.functions:
            return self._called(self.functions[domain, node.op_type], node, inputs, name, depth)
        context = Node(
            self.emitter,
            self.constants.tensor_of,
            node.op_type,
            opset,
            inputs,
            self._attributes(node),
            [one if depth or one in self.read else "" for one in node.output],
            self.origins,
            lambda text: self.imported.notes.append(f'node "{printable(name, 200)}": {text}'),
        )
        folded = self._folded(context, domain)
        if folded is not None:
            return [folded]
        conversion = conversion_of(domain, node.op_type, opset)
        if conversion is not None:
            self.emitter.begin_node()
            try:
                result = conversion(context)
            except ExpandBody:
                return self._expanded(node, opset, inputs, name, depth)
            results = list(result) if isinstance(result, Sequence) else [result]
            tensors = [one if isinstance(one, Tensor) else None for one in results]
            self.emitter.end_node(node.output[0] or name, tensors, self.names, name)
            if tensors[0] is not None and not domain:
                sources = [
                    self.constants.tensors.get(one)
                    if isinstance(one, (Known, Coded))
                    else one
                    if isinstance(one, Tensor)
                    else None
                    for one in inputs
                ]
                self.origins.note(node.op_type, sources, tensors[0], context.integer("axis", -1))
            return results
        return self._expanded(node, opset, inputs, name, depth)

    def _operand(self, name: str, scope: Scope) -> Value | None:
        if name not in scope:
            raise Unsupported(f'an input "{printable(name, 200)}" that nothing before it defines')
        return scope[name]

    def _folded(self, context: Node, domain: str) -> Known | None:
        """The result of an op of constants; None: it is computed by the module."""
        fold = fold_of(domain, context.op)
        values = [one for one in context.inputs if one is not None]
        if fold is None or not values or not all(isinstance(one, Known) for one in values):
            return None
        if context.op not in VIEWS and not all(
            isinstance(one, Known) and one.is_small for one in values
        ):
            return None
        try:
            result = fold(context)
        except Unsupported:
            return None
        return result if isinstance(result, Known) else None

    def _attributes(self, node: Any) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for one in node.attribute:
            if one.ref_attr_name:
                raise Unsupported("an attribute of a function inside of a branch")
            if one.name == "broadcast":
                raise Unsupported("broadcasting by attributes, as before opset 7")
            value = self.onnx.helper.get_attribute_value(one)
            if one.name in ("to", "dtype", "output_dtype") and isinstance(value, int):
                value = self._dtype_name(value) if value else None
            elif isinstance(value, bytes):
                value = value.decode("utf-8", "replace")
            elif isinstance(value, self.onnx.TensorProto):
                value = self._constant(value)
                value.is_weight = value.array.size > MAX_LITERAL
            result[one.name] = value
        return {name: value for name, value in result.items() if value is not None}

    def _dtype_name(self, number: int) -> str:
        try:
            return str(np.dtype(self.onnx.helper.tensor_dtype_to_np_dtype(number)).name)
        except (KeyError, TypeError):
            return f"type {number}"

    # ---- branches and functions

    def _branch(
        self, node: Any, condition: Value | None, scope: Scope, name: str, depth: int
    ) -> Sequence[Value | None]:
        if not isinstance(condition, Known) or condition.has_sizes or condition.array.size != 1:
            raise Unsupported(
                "a branch whose condition is known only when the model runs; export it without"
            )
        wanted = "then_branch" if bool(condition.array.reshape(())) else "else_branch"
        graph = next(one.g for one in node.attribute if one.name == wanted)
        inner: Scope = ChainMap({}, scope)
        for tensor in graph.initializer:
            inner[tensor.name] = self._constant(tensor)
        for one in graph.node:
            self._convert(one, inner, f"{name}.", depth + 1)
        return [self._operand(value.name, inner) for value in graph.output]

    def _expanded(
        self, node: Any, opset: int, inputs: Sequence[Value | None], name: str, depth: int
    ) -> Sequence[Value | None]:
        """The op as the ops of its body in the standard."""
        schema = self._schema(node, opset)
        if schema is None:
            raise Unsupported("the op has no conversion; docs/onnx.md lists those that have one")
        if schema.has_function:
            text = (
                schema.get_function_with_opset_version(opset)
                or schema.function_body.SerializeToString()
            )
        else:
            types = [self._type_of(value).SerializeToString() for value in inputs]
            versions = schema.context_dependent_function_opset_versions
            version = max((one for one in versions if one <= opset), default=opset)
            text = schema.get_context_dependent_function_with_opset_version(
                version, node.SerializeToString(), types
            )
        body = self.onnx.FunctionProto()
        body.ParseFromString(text)
        if not body.node:
            raise Unsupported("the op has no body for these operands")
        for one, attribute in schema.attributes.items():
            if attribute.default_value.name and one not in {given.name for given in node.attribute}:
                node = copied(node)
                node.attribute.append(attribute.default_value)
        return self._called(body, node, inputs, name, depth)

    def _called(
        self, function: Any, node: Any, inputs: Sequence[Value | None], name: str, depth: int
    ) -> Sequence[Value | None]:
        scope: Scope = {"": None}
        scope.update(zip(function.input, [*inputs, *[None] * len(function.input)]))
        given = {one.name: one for one in (*function.attribute_proto, *node.attribute)}
        opsets = self.opsets
        self.opsets = {
            **opsets,
            **{plain_domain(one.domain): one.version for one in function.opset_import},
        }
        try:
            for one in function.node:
                self._convert(with_attributes(one, given), scope, f"{name}.", depth + 1)
        finally:
            self.opsets = opsets
        return [self._operand(one, scope) if one in scope else None for one in function.output]

    def _type_of(self, value: Value | None) -> Any:
        if value is None:
            return self.onnx.TypeProto()
        dtype = (
            value.dtype
            if not isinstance(value, Tensor)
            else next(name for name, one in DTYPES.items() if one == value.dtype)
        )
        kind = getattr(
            self.onnx.TensorProto,
            {"float32": "FLOAT", "float16": "FLOAT16"}.get(dtype, dtype.upper()),
        )
        return self.onnx.helper.make_tensor_type_proto(
            kind, [size if isinstance(size, int) else str(size) for size in shape_of(value)]
        )


def as_written(x: Tensor) -> Tensor:
    """A result with an axis for each of its own, but where one is a product of several unknown sizes."""
    single = [axis for axis in range(x.rank) if x.is_single(axis)]
    return x.merged(*single) if single else x


def nodes_read(graph: Any) -> tuple[list[Any], set[str]]:
    """The nodes that the outputs need, since no tensor of a plan is made of other constants, and the names that are
    read."""
    wanted = {value.name for value in graph.output}
    nodes = []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            nodes.append(node)
            wanted.update(names_read(node))
    return nodes[::-1], wanted


def names_read(node: Any) -> Iterator[str]:
    """The names that a node and its branches read, from outside or from inside."""
    yield from node.input
    for one in node.attribute:
        for graph in (*([one.g] if one.HasField("g") else []), *one.graphs):
            yield from (value.name for value in graph.output)
            for inner in graph.node:
                yield from names_read(inner)


def with_attributes(node: Any, given: Mapping[str, Any]) -> Any:
    """A node of a function's body with the values of the attributes of the call that it refers to."""
    if not any(one.ref_attr_name for one in node.attribute):
        return node
    result = copied(node)
    del result.attribute[:]
    for one in node.attribute:
        source = given.get(one.ref_attr_name) if one.ref_attr_name else one
        if source is not None:
            added = copied(source)
            added.name = one.name
            result.attribute.append(added)
    return result


def declare(module: ModuleBuilder, symbol: Symbol) -> None:
    module.symbol(symbol.name, symbol.low, symbol.high)


def copied(message: Any) -> Any:
    result = type(message)()
    result.CopyFrom(message)
    return result


def node_name(node: Any) -> str:
    return str(node.name or next(iter(node.output), "") or node.op_type)
