"""Products with aligned extents.

The library's fast products of 16-bit matrices want extents that are multiples of 8: a vocabulary of
50,257 costs more than twice the time of 50,264. The pass pads such operands with zeros and slices the
result, before torch cuts the graph into forward and backward, so that both use one padded tensor and
the forward pass keeps it as it stands.

    mm(a, b)  becomes  slice(mm(pad(a), pad(b)))

A padded term is 0 * 0, which changes no sum.
"""

from __future__ import annotations

import torch
from torch import fx
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten

ALIGNED = 8  # elements
LEAST = 512  # a smaller extent is not worth a copy


def pad_products(module: fx.GraphModule) -> None:
    """Pads the products of a graph, in place. Extents that are symbols stay."""
    graph = module.graph
    padded: dict[tuple[fx.Node, tuple[int, int]], fx.Node] = {}
    for node in list(graph.nodes):
        if node.target is not aten.mm.default or not is_short(node):
            continue
        a, b = node.args
        (rows, terms), columns = a.meta["val"].shape, b.meta["val"].shape[1]
        with graph.inserting_before(node):
            a = padded_operand(graph, padded, a, (missing(rows), missing(terms)))
            b = padded_operand(graph, padded, b, (missing(terms), missing(columns)))
            result = call(graph, node, aten.mm.default, a, b)
            for axis, size in enumerate((rows, columns)):
                if missing(size):
                    result = call(graph, node, aten.slice.Tensor, result, axis, 0, size)
            result.meta["val"] = node.meta["val"]  # dense: padding is nobody else's concern
        node.replace_all_uses_with(result)
        graph.erase_node(node)
    if padded:
        module.recompile()


def missing(size) -> int:
    """Elements that an extent lacks."""
    return -size % ALIGNED if isinstance(size, int) and size >= LEAST else 0


def is_short(node: fx.Node) -> bool:
    a, b = (operand.meta["val"] for operand in node.args)
    return a.dtype in (torch.float16, torch.bfloat16) \
        and any(missing(size) for size in (*a.shape, *b.shape))


def call(graph: fx.Graph, origin: fx.Node, target, *arguments, **options) -> fx.Node:
    """A node with the place and the module of another, and its own fake tensor."""
    node = graph.call_function(target, arguments, options)
    node.meta.update({key: value for key, value in origin.meta.items()
                      if key in ("stack_trace", "nn_module_stack", "partitioner_tag",
                                 "autograd_backward", "seq_nr")})
    fakes = fx.map_arg(arguments, lambda operand: operand.meta["val"])
    mode = next(fake.fake_mode for fake in tree_leaves(fakes) if hasattr(fake, "fake_mode"))
    with mode:
        node.meta["val"] = target(*fakes, **options)
    return node


def padded_operand(graph: fx.Graph, padded: dict, operand: fx.Node,
                   lacks: tuple[int, int]) -> fx.Node:
    """The operand with rows and columns of zeros behind it. Of a transpose, the matrix is padded, so
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
                               [0, lacks[1], 0, lacks[0]], 0.0)
    return padded[key]
