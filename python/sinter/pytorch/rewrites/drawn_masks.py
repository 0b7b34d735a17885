"""Masks of dropouts, which torch's generator draws, before everything else.

    y, mask = native_dropout(x, p, True)
    =>
    _, mask = native_dropout(ones, p, True)      where no random op stands before it, at the graph's beginning
    y = x * mask * (1 / (1 - p))

The numbers are eager's: they depend on the size of x and on the random ops before alone. The ops in eager do not wait
for the graph, so that it is one part, and the products are in its kernels.
"""

from __future__ import annotations

import operator

import torch
from torch import fx

from ..graphs.layout import is_random
from ..graphs.nodes import call

aten = torch.ops.aten

NAMESPACES = {"aten", "prims", "sinter"}  # whose random ops have torch's tag
ALIGNMENT = 16  # bytes
DTYPES = (torch.float16, torch.bfloat16, torch.float32)


def draw_masks(graph: fx.Graph) -> None:
    """Rewrites a graph in place, unless it has nodes that may draw numbers untold: a mask has no place among them."""
    arguments = [node for node in graph.nodes if node.op == "placeholder"]
    if not arguments or any(may_draw_untold(node) for node in graph.nodes):
        return
    before = arguments[-1]  # the next mask is drawn behind it
    ones: dict[tuple, fx.Node] = {}
    for node in list(graph.nodes):
        if is_dropout(node):
            before = drawn_behind(graph, before, node, ones)
            take(graph, node, before)
        elif is_random(node):
            before = node


def may_draw_untold(node: fx.Node) -> bool:
    """Whether a node runs a subgraph, or an op that a user has registered: they may draw random numbers without torch's
    tag."""
    if node.op != "call_function":
        return node.op == "call_module"
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target.namespace not in NAMESPACES
    return isinstance(node.target, torch._ops.HigherOrderOperator)


def is_dropout(node: fx.Node) -> bool:
    """Whether a node is a dropout of a tensor whose elements lie in the order of its axes, of sizes that are
    numbers."""
    if node.target is not aten.native_dropout.default or node.args[2] is not True or not 0 < node.args[1] < 1:
        return False
    x = node.args[0].meta["val"]
    # CUDA's kernel draws several numbers at a time where the elements are aligned, as those of a new tensor are.
    are_numbers = all(isinstance(size, int) for size in (*x.shape, x.storage_offset()))
    return (x.dtype in DTYPES and are_numbers and x.is_contiguous() and x.numel() > 0
            and x.storage_offset() * x.element_size() % ALIGNMENT == 0)


def drawn_behind(graph: fx.Graph, before: fx.Node, node: fx.Node, ones: dict[tuple, fx.Node]) -> fx.Node:
    """A dropout of a tensor of ones, right behind a node; its mask is that of the dropout `node`."""
    x = node.args[0].meta["val"]
    key = (tuple(x.shape), x.dtype, x.device)
    with graph.inserting_after(before):
        if key not in ones:
            ones[key] = before = call(graph, node, aten.full.default, list(x.shape), 1, dtype=x.dtype, device=x.device)
    with graph.inserting_after(before):
        return call(graph, node, aten.native_dropout.default, ones[key], *node.args[1:])


def take(graph: fx.Graph, node: fx.Node, drawn: fx.Node) -> None:
    """Replaces a dropout by a product with the mask that was drawn."""
    x, p, _ = node.args
    with graph.inserting_before(node):
        mask = call(graph, node, operator.getitem, drawn, 1)
        dtype = x.meta["val"].dtype
        wide = x if dtype == torch.float32 else call(graph, node, aten._to_copy.default, x, dtype=torch.float32)
        product = call(graph, node, aten.mul.Tensor, wide, mask)
        scaled = call(graph, node, aten.mul.Tensor, product, scale_of(p, x.meta["val"].device))
        result = scaled if dtype == torch.float32 else call(graph, node, aten._to_copy.default, scaled, dtype=dtype)
    for item in list(node.users):
        item.replace_all_uses_with((result, mask)[item.args[1]])
        graph.erase_node(item)
    graph.erase_node(node)


def scale_of(p: float, device: torch.device) -> float:
    """The factor by which torch's kernels multiply: CUDA's divides in float32, the CPU's in float64."""
    return (1 / torch.tensor(1 - p, dtype=torch.float32)).item() if device.type == "cuda" else 1 / (1 - p)
