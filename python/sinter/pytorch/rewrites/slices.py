"""Slices whose size the IR lacks, because it is a sum.

    cat(first, x[:, :-1])      where x has s tokens: the slice has s - 1, the result s

What reads such a slice reads the whole tensor instead. Padding, slices that are written, and ops element
by element on slices become concatenations of slices first.
"""

from __future__ import annotations

import sys
from typing import Callable, NamedTuple

import torch
from torch import fx

from ...importing.types import MAX_I32
from ..graphs.nodes import call, is_elementwise
from ..graphs.symbols import expression_of

aten = torch.ops.aten

Emit = Callable[..., fx.Node]

# Ops whose elements stay at their places, beside those that torch tags as pointwise.
SAME_PLACES = {aten.alias.default, aten.detach.default, aten.full_like.default, aten._to_copy.default}


class MayBeEmpty(Exception):
    """An axis of which an element is read may have none."""


class Window(NamedTuple):
    """A slice of a tensor along an axis that is known: a number or a size of the graph for each end."""

    source: fx.Node
    begin: object
    end: object


def join_parts(graph: fx.Graph) -> None:
    """Lets concatenations, and slices that are written, read the tensors of which they take slices, and
    makes concatenations of padding, where a size between them is a sum, such as s - 1 in
    cat(first, x[:, :-1])."""
    skip_whole_slices(graph)
    for node in list(graph.nodes):
        if node.target is aten.constant_pad_nd.default:
            replace(graph, node, joined_padding)
        if node.target is aten.slice_scatter.default and len(node.args) < 6:
            replace(graph, node, joined_writing)
    for node in list(graph.nodes):
        if node.target is aten.cat.default:
            replace(graph, node, joined_slices)
    graph.eliminate_dead_code()


def skip_whole_slices(graph: fx.Graph) -> None:
    """Leaves out slices of all elements, and those that are written, where a size is a sum."""
    operand = {aten.slice.Tensor: 0, aten.slice_scatter.default: 1}
    for node in list(graph.nodes):
        whole = node.args[operand[node.target]] if node.target in operand else None
        if whole is not None and is_same_kind(node, whole) \
                and any(is_sum(node, axis) for axis in range(node.meta["val"].dim())):
            node.replace_all_uses_with(whole, lambda user: user.op != "output")
            if not node.users:
                graph.erase_node(node)
    graph.eliminate_dead_code()


def replace(graph: fx.Graph, node: fx.Node, make: Callable[[Emit, fx.Node], fx.Node | None]) -> None:
    """Puts what a function makes of a node in its place, if it makes anything that lies in memory like it.
    A slice, which shares memory, is no result of the graph. The function adds nodes by calling `emit` with
    an op and its arguments."""
    with graph.inserting_before(node):
        try:
            made = make(lambda target, *arguments, **options: call(graph, node, target, *arguments, **options),
                        node)
        except MayBeEmpty:
            made = None
    if made is None:
        return
    is_slice = made.target is aten.slice.Tensor
    if is_slice or strides_of(made) == strides_of(node):
        node.replace_all_uses_with(made, lambda user: not is_slice or user.op != "output")
        if not node.users:
            graph.erase_node(node)


def strides_of(node: fx.Node) -> list:
    return [expression_of(stride) for stride in node.meta["val"].stride()]


def joined_padding(emit: Emit, node: fx.Node) -> fx.Node | None:
    """Padding along one axis as a concatenation; as a slice where it takes elements away."""
    x, padding, *value = node.args
    padded = [i // 2 for i, size in enumerate(padding) if not isinstance(size, int) or size != 0]
    if len(set(padded)) != 1:
        return None
    axis = node.meta["val"].dim() - 1 - padded[0]
    before, after = padding[2 * padded[0]:][:2]
    if not isinstance(before, int) or not isinstance(after, int) \
            or not (is_sum(x, axis) or is_sum(node, axis)):
        return None
    if max(before, after) <= 0:
        return emit(aten.slice.Tensor, x, axis, -before, after or sys.maxsize)
    if min(before, after) < 0:
        return None
    parts = [filled(emit, x, axis, before, *value), x, filled(emit, x, axis, after, *value)]
    return emit(aten.cat.default, [part for part in parts if part is not None], axis)


def filled(emit: Emit, x: fx.Node, axis: int, size: int, value=0) -> fx.Node | None:
    """A number in the shape of x but for one axis. It reads one element of this axis, because the others
    may be a sum. MayBeEmpty: there may be no element."""
    if size == 0:
        return None
    window = window_of(emit, x, axis)
    one = emit(aten.slice.Tensor, window.source if window else x, axis, 0, 1)
    if expression_of(one.meta["val"].shape[axis]) != 1:
        raise MayBeEmpty
    sizes = [size if i == axis else -1 for i in range(x.meta["val"].dim())]
    return emit(aten.full_like.default, emit(aten.expand.default, one, sizes), value)


def joined_writing(emit: Emit, node: fx.Node) -> fx.Node | None:
    """x[:, begin:end] = part  as a concatenation, if a size in it is a sum."""
    x, part, axis, begin, end = [*node.args, *[0, None, None][len(node.args) - 2:]]
    axis %= node.meta["val"].dim()
    begin, end = 0 if begin is None else begin, sys.maxsize if end is None else end
    if is_sum(node, axis):
        return part_of_constant(emit, x, part, axis, begin, end)
    if not is_sum(part, axis):
        return None
    parts = [part]
    if not isinstance(begin, int) or begin != 0:
        parts.insert(0, emit(aten.slice.Tensor, x, axis, 0, begin))
    if not isinstance(end, int) or end < MAX_I32:
        parts.append(emit(aten.slice.Tensor, x, axis, end, sys.maxsize))
    return emit(aten.cat.default, parts, axis)


def part_of_constant(emit: Emit, x: fx.Node, part: fx.Node, axis: int, begin, end) -> fx.Node | None:
    """A part that is written into a tensor of one number, which has few elements more."""
    if x.target is not aten.full.default or not isinstance(begin, int) or not isinstance(end, int) \
            or begin < 0 or 0 <= end < MAX_I32:
        return None
    parts = [filled(emit, part, axis, begin, x.args[1]), part,
             filled(emit, part, axis, -end if end < 0 else 0, x.args[1])]
    return emit(aten.cat.default, [part for part in parts if part is not None], axis)


def joined_slices(emit: Emit, node: fx.Node) -> fx.Node | None:
    """A concatenation that reads the tensors whose slices its operands are."""
    axis = cat_axis(node)
    if is_sum(node, axis) or not any(is_sum(operand, axis) for operand in node.args[0]):
        return None
    parts = [window_of(emit, operand, axis) or Window(operand, 0, sys.maxsize) for operand in node.args[0]]
    return emit(torch.ops.sinter.joined_slices.default, [part.source for part in parts], axis,
                [part.begin for part in parts], [part.end for part in parts])


def window_of(emit: Emit, node: fx.Node, axis: int) -> Window | None:
    """A tensor of which a node is a slice, if the size of the slice is a sum; of an element by element op
    on slices its result for all elements. None: it is none."""
    if not is_sum(node, axis):
        return None
    if node.target is aten.slice.Tensor and len(node.args) < 5:
        source, own, begin, end = [*node.args, *[0, None, None][len(node.args) - 1:]]
        if own % node.meta["val"].dim() != axis or is_sum(source, axis):
            return None
        return Window(source, 0 if begin is None else begin, end_of(source, axis, end))
    if node.target is aten.copy.default and is_same_kind(*node.args[:2]):
        return window_of(emit, node.args[1], axis)
    if node.target is aten.flip.default:
        return flipped_window(emit, node, axis)
    return window_of_elements(emit, node, axis) \
        if is_elementwise(node) or node.target in SAME_PLACES else None


def flipped_window(emit: Emit, node: fx.Node, axis: int) -> Window | None:
    """The window of a slice in another order: x[b:e].flip(0)  is a slice of x.flip(0) whose ends count from
    the other end."""
    x, axes = node.args
    window = window_of(emit, x, axis)
    if window is None:
        return None
    flipped = emit(aten.flip.default, window.source, axes)
    if axis not in [one % node.meta["val"].dim() for one in axes]:
        return window._replace(source=flipped)
    begin, end = window.begin, window.end
    if not isinstance(begin, int) or not isinstance(end, int) or begin < 0 or 0 <= end < MAX_I32:
        return None
    return Window(flipped, -end if end < 0 else 0, -begin or sys.maxsize)


def end_of(source: fx.Node, axis: int, end):
    """The end of a slice; as a number, counted from the end of the axis, where it can be."""
    if not isinstance(end, fx.Node):
        return sys.maxsize if end is None else end
    behind = expression_of(end.meta["val"]) - expression_of(source.meta["val"].shape[axis])
    if not behind.is_Integer or behind > 0:
        return end
    return int(behind) or sys.maxsize


def window_of_elements(emit: Emit, node: fx.Node, axis: int) -> Window | None:
    """The window of an element by element op, whose operands have it or are the same along the axis."""
    windows = {}
    for x in node.all_input_nodes:
        own = axis - (node.meta["val"].dim() - x.meta["val"].dim()) if is_tensor(x) else -1
        if own >= 0 and expression_of(x.meta["val"].shape[own]) != 1:
            windows[x] = window_of(emit, x, own)
    if None in windows.values() or len({(window.begin, window.end) for window in windows.values()}) != 1:
        return None
    arguments = fx.map_arg(node.args, lambda x: windows[x].source if x in windows else x)
    options = {key: value for key, value in node.kwargs.items() if key != "memory_format"}
    return next(iter(windows.values()))._replace(source=emit(node.target, *arguments, **options))


def is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta["val"], torch.Tensor)


def is_same_kind(a: fx.Node, b: fx.Node) -> bool:
    """Whether two tensors have one shape and one element type."""
    return a.meta["val"].dtype == b.meta["val"].dtype and [
        expression_of(size) for size in a.meta["val"].shape] == [
        expression_of(size) for size in b.meta["val"].shape]


def cat_axis(node: fx.Node) -> int:
    return (node.args[1] if len(node.args) > 1 else 0) % node.meta["val"].dim()


def is_sum(node: fx.Node, axis: int) -> bool:
    """Whether the size of an axis is a sum of sizes: an extent that the IR lacks."""
    expression = expression_of(node.meta["val"].shape[axis])
    return not isinstance(expression, int) and expression.is_Add
