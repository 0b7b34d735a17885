"""Rewrites of a graph that leave ops out which compute nothing, in place."""

from __future__ import annotations

import torch
from torch import fx

from .extents import expression_of


def skip_idle_casts(graph: fx.Graph) -> None:
    """Leaves out casts to the type that a tensor has, which torch makes of Python's numbers."""
    cast = torch.ops.prims.convert_element_type.default
    for node in graph.nodes:
        if node.target is cast and node.args[0].meta["val"].dtype == node.args[1]:
            node.replace_all_uses_with(node.args[0], lambda user: user.op != "output")
            if not node.users:
                graph.erase_node(node)


def skip_assertions(graph: fx.Graph) -> None:
    """Leaves out what torch.export adds to check something, and what only it reads."""
    for node in reversed(graph.nodes):
        if is_assertion(node):
            graph.erase_node(node)
    graph.eliminate_dead_code()


def is_assertion(node: fx.Node) -> bool:
    """Whether a node checks something and computes nothing."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and not schema.returns and not node.users


def skip_empty_operands(graph: fx.Graph) -> None:
    """Leaves out operands of concatenations that have no elements, as a cache that was empty has none,
    and what made them."""
    for node in graph.nodes:
        if node.target is not torch.ops.aten.cat.default:
            continue
        kept = [operand for operand in node.args[0] if not is_empty(operand)]
        if 0 < len(kept) < len(node.args[0]):
            node.args = (kept, *node.args[1:])
    graph.eliminate_dead_code()


def is_empty(node: fx.Node) -> bool:
    return any(expression_of(size) == 0 for size in node.meta["val"].shape)
