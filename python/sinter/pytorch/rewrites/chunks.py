"""Running sums in chunks.

A scan that is written in torch's ops splits its tokens into chunks and sums in each of them:

    cumsum(f(x)) for x in x.split(32, 1)

The sums of all chunks do not depend on each other. The pass makes one running sum of them, with the
number of the chunk as an axis of its own, whose parts the chunks read. Sums that the caller of the graph
sees stay, because parts of one tensor have other strides.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from typing import NamedTuple

import torch
from torch import fx

from ..graphs.layout import is_seen
from ..graphs.nodes import call, is_elementwise

aten = torch.ops.aten

SPLITS = {aten.split.Tensor, aten.split_with_sizes.default}


class Formula(NamedTuple):
    """How a part of a split tensor, or what is computed of it, is made: the same for all parts. operands:
    formulas and numbers; of a split its node."""

    target: object
    operands: tuple
    axis: int  # which is split
    count: int  # of the parts


class Part(NamedTuple):
    formula: Formula
    index: int


def part_of_split(node: fx.Node) -> Part | None:
    split, index = node.args
    if split.target not in SPLITS:
        return None
    parts = split.meta["val"]
    axis = (split.args[2] if len(split.args) > 2 else 0) % parts[0].dim()
    are_numbers = all(isinstance(size, int) for part in parts for size in part.shape)
    if len(parts) < 2 or not are_numbers or len({part.shape[axis] for part in parts}) > 1:
        return None
    return Part(Formula(operator.getitem, (split,), axis, len(parts)), index)


def part_of_op(node: fx.Node, parts: dict[fx.Node, Part]) -> Part | None:
    """The result of an op on the parts with one index, and on numbers."""
    if not is_elementwise(node) and node.target is not aten.cumsum.default:
        return None
    operands = [parts.get(x) if isinstance(x, fx.Node) else x for x in node.args]
    given = [(x, part) for x, part in zip(node.args, operands) if isinstance(x, fx.Node)]
    if node.kwargs or not given or any(part is None for _, part in given):
        return None
    first = given[0][1]
    if any((part.index, *part.formula[2:]) != (first.index, *first.formula[2:])
           or x.meta["val"].shape != node.meta["val"].shape for x, part in given):
        return None
    is_sum = node.target is aten.cumsum.default
    if is_sum and node.args[1] % node.meta["val"].dim() != first.formula.axis:
        return None
    return Part(Formula(node.target, tuple(x.formula if isinstance(x, Part) else x for x in operands),
                        *first.formula[2:]), first.index)


def join_chunks(graph: fx.Graph) -> None:
    """Makes one running sum of the running sums of all chunks of a tensor, in place."""
    parts: dict[fx.Node, Part] = {}
    sums: dict[Formula, dict[int, fx.Node]] = defaultdict(dict)
    for node in graph.nodes:
        part = part_of_split(node) if node.target is operator.getitem else part_of_op(node, parts)
        if part is not None:
            parts[node] = part
            if node.target is aten.cumsum.default:
                sums[part.formula].setdefault(part.index, node)
    joined: dict[Formula, fx.Node] = {}
    for formula, nodes in sums.items():
        if len(nodes) == formula.count and not any(map(is_seen, nodes.values())):
            replace_sums(graph, formula, nodes, joined)
    if joined:
        graph.eliminate_dead_code()


def replace_sums(graph: fx.Graph, formula: Formula, nodes: dict[int, fx.Node],
                 joined: dict[Formula, fx.Node]) -> None:
    first = next(iter(nodes.values()))
    with graph.inserting_before(first):
        whole = of_whole(graph, formula, first, joined)
    size = first.meta["val"].shape[formula.axis]
    for index, node in nodes.items():
        with graph.inserting_before(node):
            part = call(graph, node, aten.slice.Tensor, whole, formula.axis, index * size, (index + 1) * size)
        node.replace_all_uses_with(part)
        graph.erase_node(node)


def of_whole(graph: fx.Graph, formula: Formula, origin: fx.Node, joined: dict[Formula, fx.Node]) -> fx.Node:
    """The results of a formula for tensors that were split. origin: a node that it makes of parts."""
    if formula.target is operator.getitem:
        return formula.operands[0].args[0]
    if formula not in joined:
        operands = [of_whole(graph, x, origin, joined) if isinstance(x, Formula) else x
                    for x in formula.operands]
        emit = lambda target, *arguments: call(graph, origin, target, *arguments)
        joined[formula] = summed(emit, formula, operands[0]) if formula.target is aten.cumsum.default \
            else emit(formula.target, *operands)
    return joined[formula]


def summed(emit, formula: Formula, x: fx.Node) -> fx.Node:
    """The running sums in all chunks."""
    sizes, axis = list(x.meta["val"].shape), formula.axis
    chunks = [*sizes[:axis], formula.count, sizes[axis] // formula.count, *sizes[axis + 1:]]
    sums = emit(aten.cumsum.default, emit(aten.reshape.default, x, chunks), axis + 1)
    return emit(aten.reshape.default, sums, sizes)
