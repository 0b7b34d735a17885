"""How tensors lie in memory, as torch's fake tensors say it: orders of axes, views and their roots. Ops that
may be computed again, and what they depend on."""

from __future__ import annotations

import operator
from collections import deque
from dataclasses import dataclass
from typing import Iterable

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

from .symbols import expression_of

# Ops whose result has the operand's elements in their order, in another shape.
RESHAPES = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default, torch.ops.aten.reshape.default)


@dataclass(frozen=True)
class Layout:
    """The axes of a dense tensor in the order of memory, the last one innermost."""

    order: tuple[int, ...]

    @staticmethod
    def plain(rank: int) -> Layout:
        return Layout(tuple(range(rank)))

    @staticmethod
    def of(tensor: torch.Tensor) -> Layout:
        """The layout of a fake tensor; row-major where it is not dense."""
        return Layout.of_dense(tensor) or Layout.plain(tensor.dim())

    @staticmethod
    def of_dense(tensor: torch.Tensor) -> Layout | None:
        """The layout of a fake tensor; None: it has gaps or repeats elements."""
        plain = Layout.plain(tensor.dim())
        if any(expression_of(size) == 0 for size in tensor.shape):
            return plain
        order = stride_order(tensor)
        # Axes of one element may stand anywhere.
        kept = [axis for axis in order if expression_of(tensor.shape[axis]) != 1]
        expected = 1
        for axis in reversed(kept):
            if not statically_known_true(tensor.stride(axis) == expected):
                return None
            expected = expected * tensor.shape[axis]
        return plain if kept == sorted(kept) else Layout(order)

    @property
    def inverse(self) -> tuple[int, ...]:
        return tuple(self.order.index(axis) for axis in range(len(self.order)))

    @property
    def is_plain(self) -> bool:
        return self.order == tuple(range(len(self.order)))

    def strides(self, sizes: list[int]) -> list[int]:
        """In elements, of a tensor with these sizes."""
        strides, step = [1] * len(sizes), 1
        for axis in reversed(self.order):
            strides[axis] = step
            step *= max(sizes[axis], 1)
        return strides


def hint_of(size) -> int | None:
    """The value of a size of torch in the example; None: it depends on data."""
    if isinstance(size, torch.SymInt):
        return size.node.hint if size.node.has_hint() else None
    return int(size)


def stride_order(tensor: torch.Tensor) -> tuple[int, ...]:
    """The axes from the largest stride to the smallest, also of a tensor with gaps: the layout that
    torch's empty_like gives a new tensor."""
    hints = [hint_of(stride) for stride in tensor.stride()]
    if any(hint is None for hint in hints):
        return tuple(range(tensor.dim()))
    return tuple(sorted(range(tensor.dim()), key=lambda axis: (-hints[axis], axis)))


def is_dense_from_start(tensor: torch.Tensor) -> bool:
    """Whether the tensor has its storage for itself: dense, from the first element on."""
    return Layout.of_dense(tensor) is not None and expression_of(tensor.storage_offset()) == 0


def is_view(node: fx.Node) -> bool:
    """Whether a node of a functional graph reads its first operand's memory and computes nothing."""
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return isinstance(node.args[0], fx.Node) and is_view(node.args[0])
    schema = getattr(node.target, "_schema", None)
    if schema is None or not node.args or not isinstance(node.args[0], fx.Node):
        return False
    aliases = [value.alias_info for value in schema.returns]
    writes = any(argument.alias_info is not None and argument.alias_info.is_write
                 for argument in schema.arguments)
    return any(alias is not None for alias in aliases) and not writes


def root_of(node: fx.Node) -> fx.Node:
    """The node whose memory a view reads; the node itself if it is no view."""
    while is_view(node):
        node = node.args[0]
    return node


def is_random_op(target) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(target, "tags", ())


def is_random(node: fx.Node) -> bool:
    return is_random_op(node.target)


def is_repeatable(node: fx.Node) -> bool:
    """Whether a node is an op that gives the same for the same operands, and changes nothing."""
    return isinstance(node.target, torch._ops.OpOverload) and not node.target._schema.is_mutable \
        and not is_random(node)


def with_sources(nodes: Iterable[fx.Node]) -> list[fx.Node]:
    """Nodes, then all that they depend on, each once: operands behind their first reader."""
    found = dict.fromkeys(nodes)
    waiting = deque(found)
    while waiting:
        for operand in waiting.popleft().all_input_nodes:
            if operand not in found:
                found[operand] = None
                waiting.append(operand)
    return list(found)


def is_seen(node: fx.Node) -> bool:
    """Whether the caller of the graph sees how a node lies in memory."""
    return any(user.op == "output" or (is_view(user) and is_seen(user)) for user in node.users)


def read_roots(module: fx.GraphModule) -> None:
    """Lets each as_strided read the tensor that owns the storage, in place: strides and offset count
    in the storage, which a view of it shares, and of which a computed view would be a part only."""
    changed = False
    for node in module.graph.nodes:
        if node.target is not torch.ops.aten.as_strided.default:
            continue
        source = node.args[0]
        root = root_of(source)
        offset = node.args[3] if len(node.args) > 3 else node.kwargs.get("storage_offset")
        if offset is None:
            offset = expression_of(source.meta["val"].storage_offset())
        if root is source or not isinstance(offset, (int, fx.Node)):
            continue
        node.args = (root, node.args[1], node.args[2], offset)
        node.kwargs = {}
        changed = True
    if changed:
        module.graph.lint()
        module.recompile()
