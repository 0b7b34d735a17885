"""Products with aligned extents.

The library's fast products of 16-bit matrices want extents that are multiples of 8: a vocabulary of
50,257 costs more than twice the time of 50,264. The pass pads such operands with zeros and slices the
result, before torch cuts the graph into forward and backward, so that both use one padded tensor and
the forward pass keeps it as it stands.

    mm(a, b)  becomes  slice(mm(pad(a), pad(b)))

A padded term is 0 * 0, which changes no sum. A bias is padded with its product, and sums over the rows of a padded
operand read the padded tensor, so that no kernel writes the operand twice.
"""

from __future__ import annotations

import torch
from torch import fx

from ..graphs.nodes import call

aten = torch.ops.aten

ALIGNED = 8  # elements
MIN_EXTENT = 512  # a smaller extent is not worth a copy


def pad_products(module: fx.GraphModule) -> None:
    """Pads the products of a graph, in place. Extents that are symbols stay."""
    graph = module.graph
    padded: dict[tuple[fx.Node, tuple[int, ...]], fx.Node] = {}
    for node in list(graph.nodes):
        if not is_product(node) or not is_short(node):
            continue
        *bias, a, b = node.args
        (rows, terms), columns = a.meta["val"].shape, b.meta["val"].shape[1]
        with graph.inserting_before(node):
            a = padded_operand(graph, padded, a, (missing(rows), missing(terms)))
            b = padded_operand(graph, padded, b, (missing(terms), missing(columns)))
            bias = [padded_operand(graph, padded, x, (missing(columns),)) for x in bias]
            result = call(graph, node, node.target, *bias, a, b)
            for axis, size in enumerate((rows, columns)):
                if missing(size):
                    result = call(graph, node, aten.slice.Tensor, result, axis, 0, size)
            result.meta["val"] = node.meta["val"]  # dense: padding is nobody else's concern
        node.replace_all_uses_with(result)
        graph.erase_node(node)
    for (operand, lacks), whole in padded.items():
        if len(lacks) == 2 and not lacks[0]:
            read_padded_sums(graph, operand, whole)
    if padded:
        module.recompile()


def read_padded_sums(graph: fx.Graph, operand: fx.Node, whole: fx.Node) -> None:
    """Lets sums over the rows of an operand read its padded tensor."""
    for node in list(operand.users):
        if node.target is not aten.sum.dim_IntList or list(node.args[1]) != [0]:
            continue
        with graph.inserting_before(node):
            sums = call(graph, node, aten.sum.dim_IntList, whole, *node.args[1:], **node.kwargs)
            axis = sums.meta["val"].dim() - 1
            result = call(graph, node, aten.slice.Tensor, sums, axis, 0, node.meta["val"].shape[axis])
        result.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(result)
        graph.erase_node(node)


def missing(size) -> int:
    """Elements that an extent lacks."""
    return -size % ALIGNED if isinstance(size, int) and size >= MIN_EXTENT else 0


def is_product(node: fx.Node) -> bool:
    """A product, or one with a bias of its columns."""
    if node.kwargs:
        return False
    return node.target is aten.mm.default \
        or node.target is aten.addmm.default and node.args[0].meta["val"].dim() == 1


def is_short(node: fx.Node) -> bool:
    a, b = (operand.meta["val"] for operand in node.args[-2:])
    return a.dtype in (torch.float16, torch.bfloat16) \
        and any(missing(size) for size in (*a.shape, *b.shape))


def padded_operand(graph: fx.Graph, padded: dict, operand: fx.Node, lacks: tuple[int, ...]) -> fx.Node:
    """The operand with as many zeros behind each axis. Of a transpose, the matrix is padded, so
    that products with it and with its transpose read one tensor."""
    if not any(lacks):
        return operand
    if operand.target is aten.permute.default and list(operand.args[1]) == [1, 0]:
        base = padded_operand(graph, padded, operand.args[0], (lacks[1], lacks[0]))
        return call(graph, operand, aten.permute.default, base, [1, 0])
    key = (operand, lacks)
    if key not in padded:
        with graph.inserting_after(operand):
            padded[key] = call(graph, operand, aten.constant_pad_nd.default, operand,
                               [number for lack in reversed(lacks) for number in (0, lack)], 0.0)
    return padded[key]
