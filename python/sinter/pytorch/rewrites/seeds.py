"""The seeds of a graph's dropouts of attention: numbers that torch's generator draws, one for each attention.

    seed = randint(low, high, [])     i32, of each attention
    =>
    seeds = randint(low, high, [n]);  select(seeds, 0, i)

One op in eager draws all of them.
"""

from __future__ import annotations

import torch
from torch import fx

from ..graphs.attention_call import SEED_RANGE
from ..graphs.nodes import call

aten, ops = torch.ops.aten, torch.ops.sinter

READERS = {ops.attention.default, ops.attention_with_log_sum.default, ops.attention_gradients.default}


def join_seeds(graph: fx.Graph) -> None:
    seeds = [node for node in graph.nodes if is_seed(node)]
    if len(seeds) < 2:
        return
    first = seeds[0]
    with graph.inserting_before(first):
        joined = call(graph, first, first.target, *SEED_RANGE, [len(seeds)], **first.kwargs)
        for i, seed in enumerate(seeds):
            seed.replace_all_uses_with(call(graph, first, aten.select.int, joined, 0, i))
            graph.erase_node(seed)


def is_seed(node: fx.Node) -> bool:
    """Whether a node is a number that attentions alone read."""
    return (node.target is aten.randint.low and node.args == (*SEED_RANGE, [])
            and all(user.target in READERS for user in node.users))
