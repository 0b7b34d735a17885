"""A graph of ONNX ops as the entry of a Sinter module."""

from __future__ import annotations

import re
from collections import ChainMap
from dataclasses import dataclass, field
from typing import Any, Mapping, MutableMapping, Sequence

import numpy as np

from ..errors import SinterError, bad_input, printable, usage
from ..extras import needed
from ..importing.emitter import Emitter
from ..importing.names import Names
from ..importing.row_checks import RowCheck
from ..importing.tensor import Tensor
from ..importing.unsupported import Unsupported
from ..module import ModuleBuilder
from . import ops  # noqa: F401  registers the conversions
from .codes import Coded
from .origins import Origins
from .reader import TensorReader
from .registry import DTYPES, ExpandBody, Known, Node, Value, conversion_of, fold_of, shape_of
from .sizes import OnnxExtents, Size
from .weights import MAX_LITERAL, Constants, Weights

MAX_SIZE = 4096  # of a dynamic dim, unless the caller says another
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

DimSize = int | tuple[int, int] | str
Scope = MutableMapping[str, "Value | None"]


@dataclass
class Imported:
    """An entry, and the names that its inputs and outputs have in the module by those in the file."""

    module: ModuleBuilder
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    axes: dict[str, tuple[int, ...]] = field(
        default_factory=dict
    )  # of the entry's output for each axis
    weights: Weights = field(init=False)
    notes: list[str] = field(default_factory=list)  # on what is computed in another way
    row_checks: dict[str, RowCheck] = field(default_factory=dict)


class Importer:
    """Converts the nodes of a model. sizes: what the caller says of dynamic dims by name: a size, the
    least and the largest one, or the name of a dim that is as large."""

    def __init__(
        self, model: Any, reader: TensorReader, name: str, sizes: Mapping[str, DimSize]
    ) -> None:
        self.onnx = needed("onnx", "from_onnx")
        self.model, self.reader, self.sizes = model, reader, dict(sizes)
        self.opsets = {plain_domain(one.domain): one.version for one in model.opset_import}
        self.functions = {(plain_domain(one.domain), one.name): one for one in model.functions}
        self.extents, self.names = OnnxExtents(), Names()
        self.imported = Imported(ModuleBuilder(name))
        self.imported.weights = Weights(self.imported.module, self.names)
        self.origins = Origins()
        self.known_dims: dict[str, Size | int] = {}
        self.dim_names = Names()
        self.converted = 0

    # ---- the graph

    def run(self) -> Imported:
        graph = self.model.graph
        scope: Scope = {"": None}
        self._need_conversions()
        for tensor in graph.initializer:
            self._define(scope, tensor.name, self._constant(tensor))
        given = [value for value in graph.input if value.name not in scope]
        shapes = [self._input_type(value) for value in given]
        self._need_dims()
        for symbol in self.extents.symbols.values():
            self.imported.module.symbol(symbol.name, symbol.low, symbol.high)
        self.emitter = Emitter(self.imported.module.entry("main"), self.extents)
        self.imported.row_checks = self.emitter.row_checks
        self.constants = Constants(self.imported.weights, self.emitter, self.origins)
        for value, (dtype, sizes) in zip(given, shapes):
            name = self.names.unique(value.name)
            try:
                self._define(scope, value.name, self.emitter.input(name, dtype, sizes))
            except Unsupported as error:
                raise usage(str(error), f'input "{printable(value.name)}"') from None
            self.imported.inputs[value.name] = name
        for node in graph.node:
            self._convert(node, scope, "", 0)
        for value in graph.output:
            self._output(value.name, scope)
        return self.imported

    def _need_dims(self) -> None:
        """Refuses sizes of dims that no input has."""
        for name in self.sizes:
            if name not in self.known_dims:
                raise usage(
                    f'no dim is called "{printable(name)}"',
                    "sizes",
                    f"the dims are {printable(', '.join(self.known_dims) or 'numbers')}",
                )

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

    def _input_type(self, value: Any) -> tuple[str, list[Any]]:
        where = f'input "{printable(value.name)}"'
        if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
            raise usage(
                "no tensor with a known number of axes", where, "export the model with shapes"
            )
        kind = value.type.tensor_type
        try:
            name = np.dtype(self.onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)).name
        except (KeyError, TypeError):
            name = f"type {kind.elem_type}"
        if name not in DTYPES:
            raise usage(f"elements of {name}", where, f"the types are {', '.join(DTYPES)}")
        dims = kind.shape.dim
        return DTYPES[name], [
            self._dim(dim, f"{value.name}_{i}", where) for i, dim in enumerate(dims)
        ]

    def _dim(self, dim: Any, default: str, where: str) -> Size | int:
        if dim.HasField("dim_value"):
            if not 0 <= dim.dim_value < 2**31:
                raise usage(f"the size {dim.dim_value}", where, "export the model anew")
            return int(dim.dim_value)
        return self._named_dim(dim.dim_param or default, 0)

    def _named_dim(self, title: str, depth: int) -> Size | int:
        """The size of a dynamic dim: a symbol, unless the caller gave a number or another dim."""
        if title in self.known_dims:
            return self.known_dims[title]
        given = self.sizes.get(title, (1, MAX_SIZE))
        if isinstance(given, str):
            if depth > len(self.sizes):
                raise usage(
                    "dims that are each as large as another", f'sizes of "{title}"', "name one size"
                )
            size = self._named_dim(given, depth + 1)
        elif isinstance(given, int):
            size = given
        else:
            name = re.sub(r"\W", "_", title, flags=re.ASCII)
            name = name if re.match(r"[A-Za-z_]", name) else f"s{name}"
            size = self.extents.declare(self.dim_names.unique(name), *given)
        self.known_dims[title] = size
        return size

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
            *self.imported.inputs.values(),
            *self.imported.outputs.values(),
            *self.imported.weights.arrays,
        }
        if tensor.name is None or tensor.name in taken:
            tensor = tensor.copy()
        self.emitter.end_node(name, [tensor], self.names)
        self.emitter.output(tensor)
        assert tensor.name is not None
        self.imported.outputs[name] = tensor.name
        self.imported.axes[name] = tensor.axis_counts

    # ---- nodes

    def _need_conversions(self) -> None:
        """Refuses a model with ops that have neither a conversion nor a body, all of them at once."""
        lacks: dict[str, str] = {}
        for node in self.model.graph.node:
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
            node.output,
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
            text = schema.get_context_dependent_function_with_opset_version(
                opset, node.SerializeToString(), types
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


def copied(message: Any) -> Any:
    result = type(message)()
    result.CopyFrom(message)
    return result


def plain_domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def node_name(node: Any) -> str:
    return str(node.name or next(iter(node.output), "") or node.op_type)
