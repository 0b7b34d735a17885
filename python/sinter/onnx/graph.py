"""The graph of an ONNX file: its nodes, and the bodies of ops that are functions of others."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Sequence

from ..extras import needed
from ..importing.tensor import Tensor
from ..importing.unsupported import Unsupported
from .reader import TensorReader
from .registry import NAMES, Known, Value, plain_domain, shape_of

CONTROL = {"Loop", "Scan", "SequenceMap"}


class ModelGraph:
    """The graph of a model. nodes: those that the outputs need. read: the names that they and the caller read."""

    def __init__(self, model: Any, reader: TensorReader) -> None:
        self.onnx = needed("onnx", "from_onnx")
        self.proto, self._reader = model.graph, reader
        self.opsets = {plain_domain(one.domain): one.version for one in model.opset_import}
        self.functions = {(plain_domain(one.domain), one.name): one for one in model.functions}
        self.nodes, self.read = nodes_read(model.graph)

    def constant(self, tensor: Any) -> Known:
        array = self._reader.array(tensor)
        return Known(array, array.dtype.name, tensor.name, True)


def node_name(node: Any) -> str:
    return str(node.name or next(iter(node.output), "") or node.op_type)


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


def copied(message: Any) -> Any:
    result = type(message)()
    result.CopyFrom(message)
    return result


# ---- bodies in the standard


def schema_of(onnx: Any, node: Any, opset: int) -> Any:
    """The schema of an op that is a function; else None."""
    try:
        schema = onnx.defs.get_schema(node.op_type, max(opset, 1), plain_domain(node.domain))
    except Exception:  # onnx.defs.SchemaError, which other versions have elsewhere
        return None
    is_function = schema.has_function or schema.has_context_dependent_function
    return schema if is_function and node.op_type not in {*CONTROL, "Range"} else None


def body_of(onnx: Any, node: Any, opset: int, inputs: Sequence[Value | None]) -> tuple[Any, Any]:
    """The op's body in the standard for these operands, and the node with its defaults."""
    schema = schema_of(onnx, node, opset)
    if schema is None:
        raise Unsupported("the op has no conversion; docs/onnx.md lists those that have one")
    if schema.has_function:
        text = schema.get_function_with_opset_version(opset)
        text = text or schema.function_body.SerializeToString()
    else:
        types = [type_of(onnx, value).SerializeToString() for value in inputs]
        versions = schema.context_dependent_function_opset_versions
        version = max((one for one in versions if one <= opset), default=opset)
        text = schema.get_context_dependent_function_with_opset_version(
            version, node.SerializeToString(), types
        )
    body, full = onnx.FunctionProto(), copied(node)
    body.ParseFromString(text)
    if not body.node:
        raise Unsupported("the op has no body for these operands")
    given = {one.name for one in node.attribute}
    for name, attribute in schema.attributes.items():
        if attribute.default_value.name and name not in given:
            full.attribute.append(attribute.default_value)
    return body, full


def type_of(onnx: Any, value: Value | None) -> Any:
    if value is None:
        return onnx.TypeProto()
    name = NAMES[value.dtype] if isinstance(value, Tensor) else value.dtype
    kind = {"float32": "FLOAT", "float16": "FLOAT16"}.get(name, name.upper())
    sizes = [size if isinstance(size, int) else str(size) for size in shape_of(value)]
    return onnx.helper.make_tensor_type_proto(getattr(onnx.TensorProto, kind), sizes)
