"""Records the ops of a function as a graph like make_fx's, from one run on real tensors.

It is many times faster, because no fake tensors compute shapes: the `val` of each node is the tensor
that the run had there."""

from __future__ import annotations

import operator
from typing import Callable

import torch
from torch import fx
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
DATA = {aten._local_scalar_dense.default, aten.item.default, aten.is_nonzero.default}


class InPlace:
    """Whether an op changes its first operand and returns it."""

    def __contains__(self, op) -> bool:
        name = op.overloadpacket.__name__
        return name.endswith("_") and not name.startswith("_")


IN_PLACE = InPlace()


def without_changes(graph: fx.Graph) -> None:
    """Ops in place become those with a new result. torch.func.functionalize leaves those inside of
    composite ops; a tensor that they change has no views, as aot_autograd would give it."""
    for node in graph.nodes:
        if node.op == "call_function" and hasattr(node.target, "overloadpacket") \
                and node.target in IN_PLACE:
            packet = getattr(aten, node.target.overloadpacket.__name__[:-1], None)
            overload = getattr(packet, node.target._overloadname, None)
            if overload is not None:
                node.target = overload


class DependsOnData(RuntimeError):
    """The function reads an element of a tensor."""


class Recorder(TorchDispatchMode):
    def __init__(self, table: dict) -> None:
        super().__init__()
        self.table = table
        self.root = torch.nn.Module()
        self.graph = fx.Graph()
        self.nodes: dict[int, fx.Node] = {}
        self.kept: list = []  # so that no two tensors have one address in Python

    def bind(self, tensor: torch.Tensor, node: fx.Node) -> None:
        node.meta["val"] = tensor
        self.nodes[id(tensor)] = node
        self.kept.append(tensor)

    def placeholder(self, tensor: torch.Tensor, name: str) -> None:
        self.bind(tensor, self.graph.placeholder(name))

    def node_of(self, value):
        if isinstance(value, torch.Tensor):
            node = self.nodes.get(id(value))
            if node is None:  # a constant
                name = f"_tensor_constant{len(self.kept)}"
                setattr(self.root, name, value)
                node = self.graph.get_attr(name)
                self.bind(value, node)
            return node
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.node_of, value))
        return value

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        function = self.table.get(op)
        if function is not None:
            with self:
                result = function(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if op in DATA:
            raise DependsOnData(str(op))
        with self:
            result = op.decompose(*args, **kwargs)
        if result is not NotImplemented:
            return result
        if op is aten.lift_fresh.default:
            op = aten.lift_fresh_copy.default
        node = self.graph.call_function(op, self.node_of(args),
                                        {key: self.node_of(value) for key, value in kwargs.items()})
        if op in IN_PLACE:  # the tensor is another value from here on, perhaps of another shape
            self.nodes[id(args[0])].meta["val"] = aten.alias.default(args[0])
        result = op(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            self.bind(result, node)
        elif isinstance(result, (list, tuple)):
            node.meta["val"] = result
            for i, part in enumerate(result):
                if isinstance(part, torch.Tensor):
                    self.bind(part, self.graph.call_function(operator.getitem, (node, i)))
        return result


def record(function: Callable, table: dict, tensors: list) -> fx.GraphModule:
    """The graph of a functional function that returns a list of tensors."""
    recorder = Recorder(table)
    given = [tensor.view(tensor.shape) for tensor in tensors]  # each a tensor of its own
    for i, tensor in enumerate(given):
        recorder.placeholder(tensor, f"arg{i}")
    with recorder:
        results = function(*given)
    recorder.graph.output([recorder.node_of(result) for result in results])
    return fx.GraphModule(recorder.root, recorder.graph)
