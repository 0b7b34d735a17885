"""Gradients of what a tensor was taken apart into, one by one.

`q, k, v = x.unbind()` has a gradient for each of them: a tensor of zeros with the part's gradient in its
place. torch adds these tensors. Where they have all places of the axis, each once, their sum is a stack of
the parts' gradients, which reads and writes each element once.
"""

from __future__ import annotations

import torch
from torch import fx

from ..graphs.nodes import call

aten = torch.ops.aten


def join_selects(graph: fx.Graph) -> None:
    """Makes stacks of sums of parts in zeros, in place."""
    found = False
    for node in list(graph.nodes):
        if node.target is not aten.add.Tensor or any(user.target is aten.add.Tensor for user in node.users):
            continue  # a part of a larger sum
        parts = parts_of(node)
        if parts is None:
            continue
        axis = parts[0].args[2]
        sources = [part.args[1] for part in sorted(parts, key=lambda part: part.args[3])]
        with graph.inserting_before(node):
            node.replace_all_uses_with(call(graph, node, aten.stack.default, sources, axis))
        found = True
    if found:
        graph.eliminate_dead_code()


def parts_of(total: fx.Node) -> list[fx.Node] | None:
    """The parts that a sum adds, if they are the parts of one axis, each once."""
    parts, pending = [], [total]
    while pending:
        node = pending.pop()
        if not isinstance(node, fx.Node):
            return None
        if node.target is aten.add.Tensor and len(node.args) == 2 and not node.kwargs \
                and (node is total or len(node.users) == 1):
            pending += node.args
        elif is_part(node):
            parts.append(node)
        else:
            return None
    shape, axis = parts[0].meta["val"].shape, parts[0].args[2]
    alike = all(part.meta["val"].shape == shape and part.args[2] == axis
                and part.meta["val"].dtype == total.meta["val"].dtype for part in parts)
    places = sorted(part.args[3] for part in parts)
    return parts if alike and places == [*range(len(parts))] and len(parts) == shape[axis] else None


def is_part(node: fx.Node) -> bool:
    """Zeros with one place of an axis written."""
    if node.target is not aten.select_scatter.default or node.kwargs:
        return False
    zeros, _, axis, place = node.args
    return (isinstance(zeros, fx.Node) and zeros.target is aten.full.default and zeros.args[1] == 0
            and isinstance(axis, int) and axis >= 0 and isinstance(place, int) and place >= 0)
