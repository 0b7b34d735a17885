"""Products of tokens' rows by the matrices of the experts that a topk chose for them.

The experts implementation "batched_mm" of transformers copies a matrix for each row: bmm(w[experts], x). The op
`expert_linear` reads the matrix where it is.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

import torch
from torch import fx

from ..graphs.dtypes import CASTS
from ..graphs.layout import RESHAPES
from ..graphs.nodes import call
from ..graphs.ranges import sizes_of

aten, ops = torch.ops.aten, torch.ops.sinter


@dataclass
class Choice:
    """The experts [N, k] that a topk chose of `count`."""

    node: fx.Node
    count: int

    @staticmethod
    def of(node) -> Choice | None:
        """The choice whose elements, in their order, a tensor of indices has."""
        while isinstance(node, fx.Node) and (node.target in RESHAPES or is_cast_to_integers(node)):
            node = node.args[0]
        if not isinstance(node, fx.Node) or node.target is not operator.getitem or node.args[1] != 1 \
                or node.args[0].target is not aten.topk.default:
            return None
        x, k, *rest = node.args[0].args
        if x.meta["val"].dim() != 2 or rest and rest[0] not in (-1, 1):
            return None
        tokens, count = sizes_of(x)
        # Sinter has no extent for a product of symbols.
        fits = (isinstance(tokens, int) or tokens.is_symbol) and isinstance(count, int) and isinstance(k, int)
        return Choice(node, count) if fits else None

    @property
    def axes(self) -> list:
        return sizes_of(self.node)


def is_cast_to_integers(node: fx.Node) -> bool:
    return node.target in CASTS and node.meta["val"].dtype in (torch.int32, torch.int64)


def multiply_in_place(graph: fx.Graph, product: fx.Node) -> None:
    """Replaces bmm(w[experts], x [S, K, 1])."""
    matrices, x = product.args
    if matrices.target is not aten.index.Tensor or len(matrices.args[1]) != 1:
        return
    w, choice = matrices.args[0], Choice.of(matrices.args[1][0])
    sizes = sizes_of(w)
    if choice is None or sizes_of(x)[2] != 1 or not all(isinstance(size, int) for size in sizes) \
            or sizes[0] < choice.count:
        return
    with graph.inserting_before(product):
        result = times_experts(graph, product, x, w, choice)
        result = call(graph, product, aten.reshape.default, result, [-1, sizes[1], 1])
    product.replace_all_uses_with(result)


def times_experts(graph: fx.Graph, origin: fx.Node, x: fx.Node, w: fx.Node, choice: Choice) -> fx.Node:
    """[N, k, M]: the S = N k rows of x by the transposes of the matrices of w [E, M, K] that were chosen for them."""
    rows = repeated_rows(x, choice)
    if rows is None:
        rows = call(graph, origin, aten.reshape.default, x, [-1, choice.axes[1], w.meta["val"].shape[2]])
    return call(graph, origin, ops.expert_linear.default, rows, w, choice.node)


def repeated_rows(x: fx.Node, choice: Choice) -> fx.Node | None:
    """The rows [N, K] each of which x has k times, one after another; None: x has others."""
    while x.target in (*RESHAPES, aten.unsqueeze.default, aten.clone.default):
        x = x.args[0]
    if x.target is not aten.expand.default or x.args[0].target is not aten.unsqueeze.default:
        return None
    rows, axis = x.args[0].args
    is_row_of_token = len(sizes_of(rows)) == 2 and axis == 1
    return rows if is_row_of_token and sizes_of(x) == [*choice.axes, sizes_of(rows)[1]] else None


# The ops that transformers has for a _grouped_mm of float16 and float32, and for its gradients.
FALLBACKS = ("transformers.grouped_mm_fallback.default", "transformers.grouped_mm_fallback_backward.default")


def replace_fallback(graph: fx.Graph, node: fx.Node) -> None:
    """Replaces one of these ops."""
    x, w, ends, *grad = node.args
    emit = lambda target, *arguments: call(graph, node, target, *arguments)
    with graph.inserting_before(node):
        if not grad:
            node.replace_all_uses_with(emit(ops.grouped_mm.default, x, w, ends))
        else:
            results = (emit(ops.grouped_mm.default, *grad, emit(aten.permute.default, w, [0, 2, 1]), ends),
                       emit(ops.grouped_mm.default, emit(aten.permute.default, x, [1, 0]), *grad, ends))
            for part in list(node.users):
                part.replace_all_uses_with(results[part.args[1]])
                graph.erase_node(part)
    graph.erase_node(node)
