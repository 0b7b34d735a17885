"""Heads of keys and values that a model repeats, one for each query head of a group, before an attention
that keeps its log-sums for the gradient:

    keys = view(expand(unsqueeze(k, 2)))      k [B, G, T, D], keys [B, G R, T, D]
    attention_with_log_sum(q, keys, values);  sum(view(gradient of keys), 2)

The attention and its gradient take k as it is: the kernels read a head for its group, and add the gradients
of a group in float32, which are rounded once. So nothing is repeated, in memory or among what is kept.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

import torch
from torch import fx

from ..graphs.dtypes import CASTS
from ..graphs.layout import RESHAPES
from ..graphs.nodes import call
from ..graphs.symbols import expression_of

aten, ops = torch.ops.aten, torch.ops.sinter

GROUP = 2  # the axis of the heads of a group in [B, G, R, T, D]


@dataclass
class Repeated:
    """Heads [B, G, T, D] of which each is repeated for the query heads of its group, and then cast.
    shape: [B, G, R, T, D]"""

    heads: fx.Node
    shape: list
    casts: list[fx.Node]


@dataclass
class GroupSum:
    """The sum over a group of a gradient [B, G R, T, D], and the casts before it."""

    node: fx.Node
    casts: list[fx.Node]


def share_heads(graph: fx.Graph) -> None:
    """Rewrites a joint graph in place."""
    for backward in [node for node in graph.nodes if node.target is ops.attention_gradients.default]:
        grad, result, log_sum, q, keys, values, *rest = backward.args
        forward, repeated = log_sum.args[0], [repeated_heads(x) for x in (keys, values)]
        if forward.args != (q, keys, values, *rest) or None in repeated:
            continue
        parts = {item.args[1]: item for item in backward.users}
        sums = {i: group_sum(parts[i], x) for i, x in enumerate(repeated, 1) if i in parts}
        if None in sums.values():
            continue
        with graph.inserting_before(forward):
            heads = [with_casts(graph, x.heads, x.casts) for x in repeated]
            forward.replace_all_uses_with(call(graph, forward, forward.target, q, *heads, *rest))
        with graph.inserting_before(backward):
            log_sum = backward.args[2]
            gradients = call(graph, backward, backward.target, grad, result, log_sum, q, *heads, *rest)
        for i, one in sums.items():
            with graph.inserting_before(one.node):
                gradient = call(graph, one.node, operator.getitem, gradients, i)
                gradient = with_casts(graph, gradient, one.casts)
                if (dtype := one.node.meta["val"].dtype) != gradient.meta["val"].dtype:
                    gradient = call(graph, one.node, aten._to_copy.default, gradient, dtype=dtype)
                if one.node.meta["val"].dim() == len(repeated[0].shape):
                    gradient = call(graph, one.node, aten.unsqueeze.default, gradient, GROUP)
            one.node.replace_all_uses_with(gradient)
        backward.replace_all_uses_with(gradients)
    graph.eliminate_dead_code()


def repeated_heads(node: fx.Node) -> Repeated | None:
    casts = []
    while node.target in CASTS:
        casts.append(node)
        node = node.args[0]
    if node.target not in RESHAPES:
        return None
    whole = node.args[0]
    if whole.target is aten.clone.default:
        whole = whole.args[0]
    if whole.target is not aten.expand.default or whole.args[0].target is not aten.unsqueeze.default:
        return None
    heads, axis = whole.args[0].args
    shape = sizes_of(whole)
    if axis != GROUP or len(shape) != 5 or not all(isinstance(size, int) for size in shape[1:3]):
        return None
    batch, groups, count, *row = shape
    is_repeat = sizes_of(heads) == [batch, groups, *row] and sizes_of(node) == [batch, groups * count, *row]
    return Repeated(heads, shape, casts[::-1]) if is_repeat else None


def sizes_of(node: fx.Node) -> list:
    return [expression_of(size) for size in node.meta["val"].shape]


def group_sum(node: fx.Node, repeated: Repeated) -> GroupSum | None:
    """The sum of a gradient over each group, which the backward pass of the repetition has; None: something
    else reads the gradient."""
    casts = []
    while len(node.users) == 1:
        (user,) = node.users
        if user.target in RESHAPES:
            (total, *others) = user.users
            # Autocast on CUDA has the sum in float32, by the argument dtype.
            is_sum = not others and sizes_of(user) == repeated.shape \
                and total.target is aten.sum.dim_IntList and list(total.args[1]) == [GROUP]
            return GroupSum(total, casts) if is_sum else None
        if user.target not in CASTS:
            return None
        casts.append(user)
        node = user
    return None


def with_casts(graph: fx.Graph, node: fx.Node, casts: list[fx.Node]) -> fx.Node:
    for cast in casts:
        node = call(graph, cast, cast.target, node, *cast.args[1:], **cast.kwargs)
    return node
