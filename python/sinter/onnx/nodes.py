"""Nodes of an ONNX graph as ops of a module's entry."""

from __future__ import annotations

import re
from collections import ChainMap
from dataclasses import dataclass, replace
from typing import Any, Callable, MutableMapping, Sequence

from ..errors import SinterError, bad_input, printable, usage
from ..importing.emitter import Emitter
from ..importing.names import Names
from ..importing.tensor import Tensor
from ..importing.unsupported import Unsupported
from . import ops  # noqa: F401  registers the conversions
from .graph import CONTROL, ModelGraph, body_of, node_name, with_attributes
from .origins import Origins
from .reader import AGAIN, dtype_name
from .registry import ExpandBody, Known, Node, Value, conversion_of, fold_of, plain_domain
from .weights import MAX_LITERAL, Constants

MAX_DEPTH = 8  # of functions and branches inside one another
MAX_NODES = 2**17  # with those of functions
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

Scope = MutableMapping[str, "Value | None"]


@dataclass(frozen=True)
class Frame:
    """Where nodes stand. scope: the values that they read, by name. prefix: of their names. depth: how many functions
    and branches are around them."""

    scope: Scope
    prefix: str = ""
    depth: int = 0


class NodeConverter:
    """Converts the nodes of one entry. note: takes what is computed in another way than the file says."""

    def __init__(
        self,
        graph: ModelGraph,
        emitter: Emitter,
        constants: Constants,
        origins: Origins,
        names: Names,
        note: Callable[[str], None],
    ) -> None:
        self._graph, self._emitter, self._constants = graph, emitter, constants
        self._origins, self._names, self._note = origins, names, note
        self._opsets, self._count = graph.opsets, 0

    def convert(self, node: Any, frame: Frame) -> None:
        """Adds the results of a node to the values of its frame."""
        name = frame.prefix + node_name(node)
        opset = self._opsets.get(plain_domain(node.domain), 0)
        self._count += 1
        try:
            results = self._results(node, opset, name, frame)
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
            define(frame.scope, output, result)

    def _results(self, node: Any, opset: int, name: str, frame: Frame) -> Sequence[Value | None]:
        if self._count > MAX_NODES:
            raise Unsupported(f"more than {MAX_NODES} nodes with those of functions")
        if frame.depth > MAX_DEPTH:
            raise Unsupported(f"functions or branches inside one another, more than {MAX_DEPTH}")
        domain = plain_domain(node.domain)
        if node.op_type in CONTROL and not domain:
            raise Unsupported("a loop; export the model with the loop unrolled")
        inputs = [operand(one, frame.scope) for one in node.input]
        inner = Frame({"": None}, f"{name}.", frame.depth + 1)
        if node.op_type == "If" and not domain:
            return self._branch(node, inputs[0], replace(inner, scope=ChainMap({}, frame.scope)))
        function = self._graph.functions.get((domain, node.op_type))
        if function is None:
            context = self._context(node, opset, inputs, name, frame)
            try:
                return self._folded(context, domain) or self._emitted(context, domain, name)
            except ExpandBody:
                function, node = body_of(self._graph.onnx, node, opset, inputs)
        return self._called(function, node, inputs, inner)

    def _context(
        self, node: Any, opset: int, inputs: Sequence[Value | None], name: str, frame: Frame
    ) -> Node:
        outputs = [one if frame.depth or one in self._graph.read else "" for one in node.output]
        return Node(
            self._emitter,
            self._constants.tensor_of,
            node.op_type,
            opset,
            inputs,
            self._attributes(node),
            outputs,
            self._origins,
            lambda text: self._note(f'node "{printable(name, 200)}": {text}'),
        )

    def _emitted(self, c: Node, domain: str, name: str) -> Sequence[Value | None]:
        conversion = conversion_of(domain, c.op, c.opset)
        if conversion is None:
            raise ExpandBody
        self._emitter.begin_node()
        result = conversion(c)
        results = list(result) if isinstance(result, Sequence) else [result]
        tensors = [one if isinstance(one, Tensor) else None for one in results]
        self._emitter.end_node(c.outputs[0] or name, tensors, self._names, name)
        if tensors[0] is not None:
            sources = [self._constants.made(one) for one in c.inputs]
            self._origins.note(c.op, sources, tensors[0], c.integer("axis", -1))
        return results

    def _folded(self, context: Node, domain: str) -> list[Known]:
        """The result of an op of few constants; []: its conversion computes it."""
        fold = fold_of(domain, context.op)
        values = [one for one in context.inputs if one is not None]
        if fold is None or not all(isinstance(one, Known) and one.is_small for one in values):
            return []
        try:
            result = fold(context)
        except Unsupported:
            return []
        return [result] if isinstance(result, Known) else []

    def _attributes(self, node: Any) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for one in node.attribute:
            if one.ref_attr_name:
                raise Unsupported("an attribute of a function inside of a branch")
            if one.name == "broadcast":
                raise Unsupported("broadcasting by attributes, as before opset 7")
            value = self._graph.onnx.helper.get_attribute_value(one)
            if one.name in ("to", "dtype", "output_dtype") and isinstance(value, int):
                value = dtype_name(self._graph.onnx, value) if value else None
            elif isinstance(value, bytes):
                value = value.decode("utf-8", "replace")
            elif isinstance(value, self._graph.onnx.TensorProto):
                value = self._graph.constant(value)
                value.is_weight = value.array.size > MAX_LITERAL
            result[one.name] = value
        return {name: value for name, value in result.items() if value is not None}

    # ---- branches and functions

    def _branch(self, node: Any, condition: Value | None, frame: Frame) -> Sequence[Value | None]:
        if not isinstance(condition, Known) or condition.has_sizes or condition.array.size != 1:
            raise Unsupported("a branch whose condition is known only when the model runs")
        wanted = "then_branch" if condition.array.item() else "else_branch"
        graph = next(one.g for one in node.attribute if one.name == wanted)
        for tensor in graph.initializer:
            frame.scope[tensor.name] = self._graph.constant(tensor)
        for one in graph.node:
            self.convert(one, frame)
        return [operand(value.name, frame.scope) for value in graph.output]

    def _called(
        self, function: Any, node: Any, inputs: Sequence[Value | None], frame: Frame
    ) -> Sequence[Value | None]:
        scope, opsets = frame.scope, self._opsets
        scope.update(zip(function.input, [*inputs, *[None] * len(function.input)]))
        given = {one.name: one for one in (*function.attribute_proto, *node.attribute)}
        own = {plain_domain(one.domain): one.version for one in function.opset_import}
        self._opsets = {**opsets, **own}
        try:
            for one in function.node:
                self.convert(with_attributes(one, given), frame)
        finally:
            self._opsets = opsets
        return [operand(one, scope) if one in scope else None for one in function.output]


def define(scope: Scope, name: str, value: Value | None) -> None:
    if name in scope and name:
        raise bad_input("a value that is defined twice", f'"{printable(name)}"', AGAIN)
    if name:
        scope[name] = value


def operand(name: str, scope: Scope) -> Value | None:
    if name not in scope:
        raise Unsupported(f'an input "{printable(name, 200)}" that nothing before it defines')
    return scope[name]
