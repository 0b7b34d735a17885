"""New nodes of a graph of torch's, with the fake tensors that they compute."""

from __future__ import annotations

import contextlib

import torch
from torch import fx
from torch.utils._pytree import tree_leaves


def call(graph: fx.Graph, origin: fx.Node, target, *arguments, **options) -> fx.Node:
    """A node with the place and the module of another, and its own fake tensor."""
    node = graph.call_function(target, arguments, options)
    node.meta.update({key: value for key, value in origin.meta.items()
                      if key in ("stack_trace", "nn_module_stack", "partitioner_tag",
                                 "autograd_backward", "seq_nr")})
    add_value(node)
    return node


def has_result(node: fx.Node) -> bool:
    """Whether a node has a value; an assertion has none."""
    schema = getattr(node.target, "_schema", None)
    return schema is None or bool(schema.returns)


def is_elementwise(node: fx.Node) -> bool:
    """Whether each element of a node's result is computed from its operands' elements at that place, and it draws no
    random numbers."""
    tags = getattr(node.target, "tags", ())
    return torch.Tag.pointwise in tags and torch.Tag.nondeterministic_seeded not in tags


def finish(*modules: fx.GraphModule) -> None:
    """Takes out nodes that nothing reads after a rewrite, and makes the code of the graphs anew."""
    for module in modules:
        module.graph.eliminate_dead_code()
        module.graph.lint()
        module.recompile()


def add_value(node: fx.Node) -> None:
    """Gives a node the fake tensor that its target computes from its operands' fake tensors."""
    arguments, options = fx.map_arg((node.args, node.kwargs), lambda operand: operand.meta["val"])
    mode = next((leaf.fake_mode for leaf in tree_leaves((arguments, options)) if hasattr(leaf, "fake_mode")), None)
    with mode or contextlib.nullcontext():
        node.meta["val"] = node.target(*arguments, **options)
