"""Rows of tokens in the order of their experts, as the experts implementation "grouped_mm" of transformers has them.

The experts [N, k] that topk chose for N tokens are sorted, all S = N k of them in one row:

    numbers, order = sort(view(experts, [S]))
    x = tokens[order // k];  y = _grouped_mm(x, w, cumsum(histc(numbers)));  z = y[inverse of order]

Where nothing but products by experts and ops that keep rows apart lies between, as without gradients, the order shows
in no result: each row multiplies its expert's matrix by `expert_linear`, and the library sorts rows where it pays.
Else the experts are less than a known number, so that a counting sort makes the order, its inverse and the ends of the
runs. Rows and positions keep both axes, since Sinter has no extent N k. The gradient of the rows that an order takes
is the rows that its inverse takes, instead of sums by index.
"""

from __future__ import annotations

import math
import operator

import torch
from torch import fx

from ..graphs.dtypes import CASTS
from ..graphs.layout import RESHAPES
from ..graphs.nodes import call
from ..graphs.ranges import counted_axis, sizes_of
from .expert_products import FALLBACKS, Choice, multiply_in_place, replace_fallback, times_experts

aten, ops = torch.ops.aten, torch.ops.sinter

SORTS = (aten.sort.default, aten.sort.stable)
QUOTIENTS = (aten.div.Tensor_mode, aten.floor_divide.default)
GROUPED = (aten._grouped_mm.default, ops.grouped_mm.default)
# Ops that keep all axes but one apart, with the position of the argument that names it.
NAMED_AXES = {aten.split_with_sizes.default: 2, aten.split.Tensor: 2, aten.slice.Tensor: 1, aten.unsqueeze.default: 1}


def join_experts(graph: fx.Graph) -> None:
    """Rewrites a graph in place; a joint graph too, before it is cut."""
    for node in list(graph.nodes):
        if node.target is aten.bmm.default:
            multiply_in_place(graph, node)
        elif str(node.target) in FALLBACKS:
            replace_fallback(graph, node)
    for node in [node for node in graph.nodes if node.target in SORTS and is_ascending(node)]:
        choice = Choice.of(node.args[0]) if node.meta["val"][0].dim() == 1 else None
        if choice is not None and any(user.args[1] == 1 for user in node.users):
            rows = SortedRows(graph, node, choice)
            if not rows.leave_order():
                rows.sort_by_counting()
    graph.eliminate_dead_code()


def is_ascending(sort: fx.Node) -> bool:
    return not any(sort.args[2:]) and not sort.kwargs.get("descending", False)


class SortedRows:
    """The rows of a choice in the order of their experts. order: a node, int64 [S]. of_tokens: nodes, this divided by
    k. inverses: nodes, its inverse. ends: nodes, how many numbers are at most 0, 1, 2, ..."""

    def __init__(self, graph: fx.Graph, sort: fx.Node, choice: Choice) -> None:
        self.graph, self.sort, self.choice = graph, sort, choice
        self.tokens, self.k = choice.axes
        self.rows = sizes_of(sort.args[0])[0]
        parts = {user.args[1]: user for user in sort.users}
        self.numbers, self.order = parts.get(0), parts[1]
        self.of_tokens = [node for node in self.order.users if node.target in QUOTIENTS and node.args[1] == self.k
                          and node.kwargs.get("rounding_mode", "floor") == "floor"]
        self.sorts = [node for node in self.order.users if node.target in SORTS and is_ascending(node)]
        self.inverses = [node for node in self.order.users if self.is_inverse(node)] \
            + [part for node in self.sorts for part in node.users if part.args[1] == 1]
        casts = [self.numbers, *(user for user in self.numbers.users if user.target in CASTS)] if self.numbers else []
        self.ends = [ends for cast in casts for counts in cast.users for ends in counts.users
                     if counts.target is aten.histc.default and counts.args[1:] == (choice.count, 0, choice.count - 1)
                     and ends.target is aten.cumsum.default and ends.meta["val"].dtype == torch.int32]

    def is_inverse(self, node: fx.Node) -> bool:
        """Whether a node is `inverse`, where inverse[order] = arange(S)."""
        return node.target is aten.index_put.default and list(node.args[1]) == [self.order] and not any(node.args[3:]) \
            and node.meta["val"].dtype == torch.int64 \
            and sizes_of(node) == sizes_of(node.args[2]) == [self.rows] and counted_axis(node.args[2]) == -1

    def is_taken(self, x: fx.Node, of_tokens: bool) -> bool:
        """Whether x has the rows that an order numbers: the tokens, or all S."""
        size, *behind = sizes_of(x)
        return size == (self.tokens if of_tokens else self.rows) \
            and all(isinstance(size, int) and size > 0 for size in behind)

    # ---- the order shows nowhere

    def leave_order(self) -> bool:
        """Computes all rows where they are. False: the order shows."""
        indices = {self.order, *self.of_tokens, *self.sorts, *self.inverses}
        takes = [(user, index) for index in (self.order, *self.of_tokens) for user in index.users
                 if user not in indices]
        returns = [(user, index) for index in self.inverses for user in index.users]
        if not all(is_take(node, index) and self.is_taken(node.args[0], index in self.of_tokens)
                   for node, index in takes + returns):
            return False
        takes, returns = [node for node, _ in takes], [node for node, _ in returns]
        inside, pending = dict.fromkeys(takes), list(takes)
        while pending:
            source = pending.pop()
            for user in source.users:
                if user in returns:
                    continue
                if not (self.is_product(user) and user.args[0] is source or keeps_rows(user, source)):
                    return False
                if user not in inside:
                    inside[user] = None
                    pending.append(user)
        products = [node for node in inside if self.is_product(node)]
        others = {operand for node in inside if node not in takes and node not in products
                  for operand in node.all_input_nodes if operand not in inside and has_rows(operand, node)}
        if others or any(node.args[0] not in inside for node in returns):
            return False
        for node in takes:
            node.replace_all_uses_with(self.repeated(node) if node.args[1][0] in self.of_tokens else node.args[0])
        for node in returns:
            node.replace_all_uses_with(node.args[0])
        for node in products:
            with self.graph.inserting_before(node):
                w = call(self.graph, node, aten.permute.default, node.args[1], [0, 2, 1])
                result = times_experts(self.graph, node, node.args[0], w, self.choice)
                result = call(self.graph, node, aten.reshape.default, result, [-1, w.meta["val"].shape[1]])
            node.replace_all_uses_with(result)
        return True

    def is_product(self, node: fx.Node) -> bool:
        return node.target in GROUPED and len(node.args) == 3 and not node.kwargs and node.args[2] in self.ends \
            and node.args[1].meta["val"].dim() == 3 and sizes_of(node.args[1])[0] == self.choice.count

    def repeated(self, take: fx.Node) -> fx.Node:
        """tokens[arange(S) // k], for tokens[order // k]"""
        behind = sizes_of(take)[1:]
        with self.graph.inserting_before(take):
            rows = call(self.graph, take, aten.unsqueeze.default, take.args[0], 1)
            rows = call(self.graph, take, aten.expand.default, rows, [-1, self.k, *behind])
            return call(self.graph, take, aten.reshape.default, rows, [-1, *behind])

    # ---- a counting sort

    def sort_by_counting(self) -> None:
        emit = lambda target, *operands, **options: call(self.graph, self.sort, target, *operands, **options)
        with self.graph.inserting_before(self.sort):
            positions, places, ends = [emit(op.default, self.choice.node, self.choice.count)
                                       for op in (ops.sorted_positions, ops.sorted_places, ops.run_ends)]
            order, inverse = [emit(aten._to_copy.default, emit(aten.reshape.default, numbers, [-1]), dtype=torch.int64)
                              for numbers in (positions, places)]
            numbers = emit(aten.index.Tensor, self.sort.args[0], [order])
        for node in self.of_tokens:
            self.replace_rows(node, positions, places, of_tokens=True)
        for node in self.inverses:
            self.replace_rows(node, places, positions)
        self.replace_rows(self.order, positions, places)
        for nodes, result in ((self.ends, ends), (self.inverses, inverse), ([self.order], order),
                              ([self.numbers] if self.numbers else [], numbers)):
            for node in nodes:
                node.replace_all_uses_with(result)

    def replace_rows(self, index: fx.Node, positions: fx.Node, inverse: fx.Node, of_tokens: bool = False) -> None:
        """Replaces x[index] and its gradient. The index [S] has the elements of `positions`; of_tokens: these divided
        by k."""
        for user in list(index.users):
            is_gradient = is_sum_by_index(user)
            if not (is_gradient and user.args[1][0] is index or is_take(user, index)) \
                    or not self.is_taken(user.args[0], of_tokens) or not user.meta["val"].is_floating_point():
                continue
            emit, behind = (lambda target, *operands: call(self.graph, user, target, *operands)), sizes_of(user)[1:]
            with self.graph.inserting_before(user):
                axes = [-1, self.k] if is_gradient or not of_tokens else [-1]
                rows = emit(aten.reshape.default, user.args[2 if is_gradient else 0], [*axes, math.prod(behind)])
                rows = emit(ops.rows_at.default, rows, inverse if is_gradient else positions)
                if is_gradient and of_tokens:
                    rows = emit(aten.sum.dim_IntList, rows, [1])
                rows = emit(aten.reshape.default, rows, [-1, *behind])
            user.replace_all_uses_with(rows)


def is_take(node: fx.Node, index: fx.Node) -> bool:
    """Whether a node is x[index], along the first axis."""
    return node.target is aten.index.Tensor and list(node.args[1]) == [index]


def is_sum_by_index(node: fx.Node) -> bool:
    """Whether a node adds rows to zeros, as the gradient of x[index] does."""
    return node.target is aten.index_put.default and len(node.args[1]) == 1 and node.args[3:] == (True,) \
        and node.args[0].target is aten.full.default and node.args[0].args[1] == 0


def keeps_rows(node: fx.Node, source: fx.Node) -> bool:
    """Whether an op computes the rows, which are axis 0, from an operand's rows at the same places."""
    if node.target is operator.getitem:
        return True
    if node.target in NAMED_AXES:
        axis, rank = [*node.args, 0][NAMED_AXES[node.target]], source.meta["val"].dim()
        return axis > 0 or axis == -1 and (rank > 1 or node.target is aten.unsqueeze.default)
    if node.target in RESHAPES:
        return sizes_of(node)[:1] == sizes_of(source)[:1]
    is_elementwise = torch.Tag.pointwise in getattr(node.target, "tags", ())
    return (is_elementwise or node.target in (*CASTS, aten.clone.default)) and has_rows(source, node)


def has_rows(operand: fx.Node, node: fx.Node) -> bool:
    """Whether axis 0 of the result of an op element by element is axis 0 of an operand."""
    x, result = operand.meta["val"], node.meta["val"]
    return isinstance(x, torch.Tensor) and x.dim() == result.dim() and sizes_of(operand)[:1] == sizes_of(node)[:1]
