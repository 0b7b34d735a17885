"""The seeds of a graph's dropouts of attention: numbers that torch's generator draws, one for each attention.

    seed = randint(low, high, [])     i32, of each attention
    =>
    seeds = randint(low, high, [n]);  select(seeds, 0, i)

One op in eager draws all of them.
"""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import fx

from ..graphs.attention_call import SEED_RANGE
from ..graphs.nodes import call

aten, ops = torch.ops.aten, torch.ops.sinter

PASSES = ("partitioner_tag", "autograd_backward")  # keys of metadata that say which pass a node is of
READERS = {ops.attention.default, ops.attention_with_log_sum.default, ops.attention_gradients.default}


def join_seeds(graph: fx.Graph) -> None:
    alike = defaultdict(list)  # a seed of the backward pass is drawn there, and one of a device on it
    for node in graph.nodes:
        if is_seed(node):
            alike[node.kwargs.get("device"), *map(node.meta.get, PASSES)].append(node)
    for seeds in alike.values():
        if len(seeds) > 1:
            join(graph, seeds)


def join(graph: fx.Graph, seeds: list[fx.Node]) -> None:
    first = seeds[0]
    with graph.inserting_before(first):
        joined = call(graph, first, first.target, *SEED_RANGE, [len(seeds)], **first.kwargs)
        parts = [call(graph, first, aten.select.int, joined, 0, i) for i in range(len(seeds))]
    for seed, part in zip(seeds, parts):
        seed.replace_all_uses_with(part)
        graph.erase_node(seed)


def is_seed(node: fx.Node) -> bool:
    """Whether a node is a number that attentions alone read."""
    return (node.target is aten.randint.low and node.args == (*SEED_RANGE, [])
            and all(user.target in READERS for user in node.users))
