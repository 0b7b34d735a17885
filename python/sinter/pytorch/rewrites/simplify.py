"""Rewrites of a graph that leave ops out whose results nobody needs, in place."""

from __future__ import annotations

import functools
import sys

import torch
from torch import fx

from ..graphs.dtypes import CASTS
from ..graphs.nodes import call, has_result
from ..graphs.symbols import expression_of
from .slices import cat_axis, join_parts

aten = torch.ops.aten


def skip_idle_casts(graph: fx.Graph) -> None:
    """Leaves out casts to the type that a tensor has, which torch makes of Python's numbers: a float that changes
    is a float64 number, of which no entry computes anything."""
    cast = torch.ops.prims.convert_element_type.default
    for node in graph.nodes:
        if node.target is cast and node.args[0].meta["val"].dtype == node.args[1]:
            node.replace_all_uses_with(node.args[0], lambda user: user.op != "output")
            if not node.users:
                graph.erase_node(node)


def keep_sums(graph: fx.Graph) -> None:
    """Lets float32 results that are casts of 16-bit products, as autocast makes the gradients of weights, be
    the products' float32 sums: no 16-bit copy is written and read again, and a rounding less is in them."""
    output = graph.output_node()
    for result in output.all_input_nodes:
        if result.target not in CASTS or result.meta["val"].dtype != torch.float32:
            continue
        product, transposed = result.args[0], []
        while product.target is aten.permute.default and len(product.users) == 1:
            transposed.append(product)
            product = product.args[0]
        if product.target is not aten.mm.default or len(product.users) > 1 or len(result.users) > 1 \
                or product.meta["val"].dtype not in (torch.float16, torch.bfloat16):
            continue
        with graph.inserting_before(result):
            sums = call(graph, product, torch.ops.sinter.mm_in_float32.default, *product.args)
            for step in reversed(transposed):
                sums = call(graph, step, step.target, sums, step.args[1])
        result.replace_all_uses_with(sums)
        for node in (result, *transposed, product):
            graph.erase_node(node)


def skip_assertions(graph: fx.Graph) -> None:
    """Leaves out what torch.export adds to check something, and what only it reads."""
    for node in reversed(graph.nodes):
        if is_assertion(node):
            graph.erase_node(node)
    graph.eliminate_dead_code()


def is_assertion(node: fx.Node) -> bool:
    """Whether a node checks something and computes nothing."""
    return not has_result(node) and not node.users


def skip_empty_operands(graph: fx.Graph) -> None:
    """Leaves out operands of concatenations that have no elements along the axis, as a cache that was empty
    has none, and what made them. One of a single axis may stand beside operands of several."""
    for node in [node for node in graph.nodes if node.target is aten.cat.default]:
        value = node.meta["val"]
        kept = [operand for operand in node.args[0] if not is_empty(operand, cat_axis(node))]
        kept = kept or [operand for operand in node.args[0] if operand.meta["val"].dim() == value.dim()][:1]
        if not 0 < len(kept) < len(node.args[0]):
            continue
        types = [operand.meta["val"].dtype for operand in kept]
        if functools.reduce(torch.promote_types, types) != value.dtype:  # an empty operand's
            with graph.inserting_before(node):
                kept[0] = call(graph, node, aten._to_copy.default, kept[0], dtype=value.dtype)
        node.args = (kept, *node.args[1:])
    graph.eliminate_dead_code()


def slice_operands(graph: fx.Graph) -> None:
    """Leaves out slices and concatenations whose size the IR lacks, where what reads them can read their
    operands."""
    skip_empty_operands(graph)
    join_parts(graph)
    slice_joined(graph)


def slice_joined(graph: fx.Graph) -> None:
    """Lets slices read the operands of a concatenation whose size is no number, where no one else reads
    it: the elements before each position are a slice of cat(first, all), which has one element more."""
    for node in [node for node in graph.nodes if node.target is aten.cat.default]:
        operands, axis = node.args[0], cat_axis(node)
        if isinstance(expression_of(node.meta["val"].shape[axis]), int) \
                or not all(is_part(user, axis) for user in node.users):
            continue
        for user in list(node.users):
            begin, end = [*user.args[2:], None, None][:2]
            with graph.inserting_before(user):
                part = call(graph, user, torch.ops.sinter.slice_of_joined.default, operands, axis,
                            0 if begin is None else begin, sys.maxsize if end is None else end)
            user.replace_all_uses_with(part)
            graph.erase_node(user)
        graph.erase_node(node)


def is_part(node: fx.Node, axis: int) -> bool:
    """Whether a node is a slice along an axis, without steps, that the caller of the graph does not see."""
    if node.target is not torch.ops.aten.slice.Tensor or len(node.args) > 4:
        return False
    own = node.args[1] if len(node.args) > 1 else 0
    return own % node.meta["val"].dim() == axis and all(user.op != "output" for user in node.users)


def is_empty(node: fx.Node, axis: int) -> bool:
    shape = node.meta["val"].shape
    return expression_of(shape[axis if axis < len(shape) else 0]) == 0
