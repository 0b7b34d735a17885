"""Rewrites of a graph that leave ops out which compute nothing, in place."""

from __future__ import annotations

import sys

import torch
from torch import fx

from .extents import expression_of
from .padding import call

aten = torch.ops.aten

LAST = 2**31 - 1  # an end of a slice from here on is the end of the axis


def skip_idle_casts(graph: fx.Graph) -> None:
    """Leaves out casts to the type that a tensor has, which torch makes of Python's numbers."""
    cast = torch.ops.prims.convert_element_type.default
    for node in graph.nodes:
        if node.target is cast and node.args[0].meta["val"].dtype == node.args[1]:
            node.replace_all_uses_with(node.args[0], lambda user: user.op != "output")
            if not node.users:
                graph.erase_node(node)


def skip_assertions(graph: fx.Graph) -> None:
    """Leaves out what torch.export adds to check something, and what only it reads."""
    for node in reversed(graph.nodes):
        if is_assertion(node):
            graph.erase_node(node)
    graph.eliminate_dead_code()


def is_assertion(node: fx.Node) -> bool:
    """Whether a node checks something and computes nothing."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and not schema.returns and not node.users


def skip_empty_operands(graph: fx.Graph) -> None:
    """Leaves out operands of concatenations that have no elements, as a cache that was empty has none,
    and what made them."""
    for node in graph.nodes:
        if node.target is not torch.ops.aten.cat.default:
            continue
        kept = [operand for operand in node.args[0] if not is_empty(operand)]
        if 0 < len(kept) < len(node.args[0]):
            node.args = (kept, *node.args[1:])
    graph.eliminate_dead_code()


def slice_operands(graph: fx.Graph) -> None:
    """Leaves out slices and concatenations whose size the IR lacks, where what reads them can read their
    operands."""
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


def join_parts(graph: fx.Graph) -> None:
    """Lets concatenations, and slices that are written, read the tensors of which they take slices, and
    makes concatenations of padding, where a size between them is a sum, such as s - 1 in
    cat(first, x[:, :-1])."""
    for node in list(graph.nodes):
        if node.target is aten.constant_pad_nd.default:
            join_padding(graph, node)
    for node in list(graph.nodes):
        if node.target is aten.cat.default:
            join_slices(graph, node, cat_axis(node), [whole_or_slice(x, cat_axis(node)) for x in node.args[0]])
        if node.target is aten.slice_scatter.default and len(node.args) < 6:
            join_written(graph, node)
    graph.eliminate_dead_code()


def join_padding(graph: fx.Graph, node: fx.Node) -> None:
    x, padding, *value = node.args
    axes = [i for i, size in enumerate(padding) if not isinstance(size, int) or size != 0]
    axis = node.meta["val"].dim() - 1 - axes[0] // 2 if axes else 0
    if not axes or any(i // 2 != axes[0] // 2 for i in axes) \
            or any(not isinstance(size, int) or size < 0 for size in padding) \
            or not (is_sum(x, axis) or is_sum(node, axis)):
        return
    before, after = padding[axes[0] // 2 * 2:][:2]
    source = slice_read(x, axis)[0] if slice_read(x, axis) else x
    with graph.inserting_before(node):
        one = call(graph, node, aten.slice.Tensor, source, axis, 0, 1)
        fill = lambda size: call(graph, node, aten.full_like.default, call(
            graph, node, aten.expand.default, one,
            [size if i == axis else -1 for i in range(node.meta["val"].dim())]), *(value or [0]))
        parts = ([fill(before)] if before else []) + [x] + ([fill(after)] if after else [])
        joined = call(graph, node, aten.cat.default, parts, axis)
    node.replace_all_uses_with(joined)
    graph.erase_node(node)


def join_written(graph: fx.Graph, node: fx.Node) -> None:
    """x[:, begin:end] = part"""
    x, part, axis, begin, end = [*node.args, 0, None, None][:5] if len(node.args) < 3 \
        else [*node.args, None, None][:5]
    axis %= node.meta["val"].dim()
    read = slice_read(part, axis)
    if read is None:
        return
    parts = [(x, 0, begin)] if begin not in (None, 0) else []
    parts.append(read)
    if end is not None and not (isinstance(end, int) and end >= LAST):
        parts.append((x, end, sys.maxsize))
    join_slices(graph, node, axis, parts)


def join_slices(graph: fx.Graph, node: fx.Node, axis: int, parts: list[tuple]) -> None:
    """parts: tensors with the ends of their slices, which make the node."""
    if is_sum(node, axis) or all(part[1:] == (0, sys.maxsize) for part in parts):
        return
    with graph.inserting_before(node):
        joined = call(graph, node, torch.ops.sinter.joined_slices.default, [part[0] for part in parts],
                      axis, [part[1] for part in parts], [part[2] for part in parts])
    node.replace_all_uses_with(joined)
    graph.erase_node(node)


def cat_axis(node: fx.Node) -> int:
    return (node.args[1] if len(node.args) > 1 else 0) % node.meta["val"].dim()


def whole_or_slice(node: fx.Node, axis: int) -> tuple:
    return slice_read(node, axis) or (node, 0, sys.maxsize)


def slice_read(node: fx.Node, axis: int) -> tuple | None:
    """The tensor, the begin and the end of a slice along an axis, without steps, whose size is a sum."""
    if node.target is not aten.slice.Tensor or len(node.args) > 4 or not is_sum(node, axis):
        return None
    source, own, begin, end = [*node.args, None, None][:4] if len(node.args) > 1 \
        else [node.args[0], 0, None, None]
    if own % node.meta["val"].dim() != axis or is_sum(source, axis):
        return None
    return source, 0 if begin is None else begin, sys.maxsize if end is None else end


def is_sum(node: fx.Node, axis: int) -> bool:
    """Whether the size of an axis is a sum of sizes: an extent that the IR lacks."""
    expression = expression_of(node.meta["val"].shape[axis])
    return not isinstance(expression, int) and expression.is_Add


def is_part(node: fx.Node, axis: int) -> bool:
    """Whether a node is a slice along an axis, without steps, that the caller of the graph does not see."""
    if node.target is not torch.ops.aten.slice.Tensor or len(node.args) > 4:
        return False
    own = node.args[1] if len(node.args) > 1 else 0
    return own % node.meta["val"].dim() == axis and all(user.op != "output" for user in node.users)


def is_empty(node: fx.Node) -> bool:
    return any(expression_of(size) == 0 for size in node.meta["val"].shape)
