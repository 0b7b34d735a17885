"""Indices that count 0, 1, 2, ... along an axis: a tensor that is indexed by them is only moved.

    mask[torch.arange(B)[:, None, None, None], torch.arange(K)]  is  mask[:, None, None, :]
"""

from __future__ import annotations

import torch
from torch import fx

from .symbols import expression_of

aten, prims = torch.ops.aten, torch.ops.prims

# Ops whose result has the elements of their first operand at their places.
UNCHANGED = {aten._to_copy.default, aten.alias.default, aten.clone.default, aten.detach.default,
             aten.expand.default, aten.lift_fresh_copy.default,
             prims.convert_element_type.default}
INTEGERS = (torch.int32, torch.int64)
RESHAPES = {aten.view.default, aten.reshape.default, aten._unsafe_view.default,
            aten.unsqueeze.default, aten.squeeze.dims, aten.squeeze.dim}


def counted_axis(node) -> int | None:
    """The axis along which a tensor of integers is 0, 1, 2, ..., the same along all others: -1 is the
    last one, as in broadcasting. None: it is not known to be such a tensor."""
    if not isinstance(node, fx.Node) or node.op != "call_function":
        return None
    if not isinstance(node.meta["val"], torch.Tensor) or node.meta["val"].dtype not in INTEGERS:
        return None
    if starts_at_zero(node):
        return -1
    source = node.args[0] if node.args else None
    axis = counted_axis(source)
    if axis is None:
        return None
    if node.target in UNCHANGED or adds_nothing(node) or is_whole_slice(node, source):
        return axis if sizes_of(node)[axis] == sizes_of(source)[axis] else None
    if node.target in RESHAPES and varying_axes(source) == [axis] and len(varying_axes(node)) == 1:
        return varying_axes(node)[0]
    return None


def is_range(node) -> bool:
    """Whether a tensor of one axis is begin, begin + 1, begin + 2, ..., such as arange(n) + begin."""
    if not isinstance(node, fx.Node) or not isinstance(node.meta["val"], torch.Tensor) \
            or node.meta["val"].dim() != 1 or node.meta["val"].dtype not in INTEGERS:
        return False
    if counted_axis(node) is not None:
        return True
    if node.target in UNCHANGED:
        return is_range(node.args[0]) and sizes_of(node) == sizes_of(node.args[0])
    if node.target is not aten.add.Tensor or node.kwargs:
        return False
    counted = [is_range(operand) for operand in node.args]
    return sum(counted) == 1 and is_one_number(node.args[1 - counted.index(True)])


def is_one_number(operand) -> bool:
    value = operand.meta["val"] if isinstance(operand, fx.Node) else operand
    return all(expression_of(size) == 1 for size in value.shape) if isinstance(value, torch.Tensor) \
        else isinstance(value, (int, torch.SymInt))


def starts_at_zero(node: fx.Node) -> bool:
    """Whether a node is arange(n)."""
    if node.target is aten.arange.default:
        return True
    if node.target is prims.iota.default:
        return node.kwargs.get("start", 0) == 0 and node.kwargs.get("step", 1) == 1
    if node.target in (aten.arange.start, aten.arange.start_step):
        begin, step = node.args[0], node.args[2] if len(node.args) > 2 else 1
        return isinstance(begin, int) and begin == 0 and isinstance(step, int) and step == 1
    return False


def adds_nothing(node: fx.Node) -> bool:
    return node.target is aten.add.Tensor and isinstance(node.args[1], int) and node.args[1] == 0


def is_whole_slice(node: fx.Node, source: fx.Node) -> bool:
    return node.target is aten.slice.Tensor and sizes_of(node) == sizes_of(source)


def sizes_of(node: fx.Node) -> list:
    return [expression_of(size) for size in node.meta["val"].shape]


def varying_axes(node: fx.Node) -> list[int]:
    """The axes of more than one element, counted from the last one, which is -1."""
    sizes = sizes_of(node)
    return [axis - len(sizes) for axis, size in enumerate(sizes) if size != 1]
