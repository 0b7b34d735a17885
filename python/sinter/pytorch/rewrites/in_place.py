"""Arguments of which a graph writes some rows, such as a cache that gets new tokens.

    keys_1 = index_copy(keys, 2, positions, k);        copy_(keys, keys_1)      at the end of the graph
    keys_1 = slice_scatter(keys, k, 2, begin, end);    copy_(keys, keys_1)

The entry has the argument as a state and writes the rows where it lies. It is a state with two axes: its rows join the
axis that is indexed and the axes before it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import fx

from ...importing.types import MAX_I32
from ..graphs.layout import Layout
from ..graphs.ranges import INTEGERS, is_range
from .slices import is_same_kind, strides_of

aten = torch.ops.aten

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
SCATTERS = {aten.slice_scatter.default, aten.select_scatter.default}


@dataclass(frozen=True)
class Writing:
    """An op that writes rows of an argument. axis: of the argument, which the index counts."""

    writer: fx.Node
    argument: fx.Node
    axis: int

    @property
    def sizes(self) -> list[int]:
        return [int(size) for size in self.argument.meta["val"].shape]

    @property
    def shape(self) -> tuple[int, int]:
        """The extents of the state."""
        rows = self.axis + 1
        return math.prod(self.sizes[:rows]), math.prod(self.sizes[rows:])


def take_copies(module: fx.GraphModule) -> list[int]:
    """Takes the copies into arguments out of the graph; their values become results behind the
    others. Returns the positions of the arguments."""
    graph = module.graph
    position = {node: i for i, node in enumerate(
        node for node in graph.nodes if node.op == "placeholder")}
    output = graph.output_node()
    if not isinstance(output.args[0], (tuple, list)):
        return []
    copies = [node for node in graph.nodes
              if node.target is aten.copy_.default and node.args[0] in position
              and set(node.users) <= {output} and isinstance(node.args[1], fx.Node)]
    for node in copies:
        node.replace_all_uses_with(node.args[0])
    output.args = ((*output.args[0], *[node.args[1] for node in copies]),)
    targets = [position[node.args[0]] for node in copies]
    for node in copies:
        graph.erase_node(node)
    return targets


def take_writings(module: fx.GraphModule, targets: list[int]) -> list[Writing]:
    """The ops whose results are copied to an argument behind the call, and which can write it in place: nothing
    else reads the argument, and no row is written twice. targets: positions of the arguments to which the
    graph's last results are copied."""
    if not targets:
        return []
    skip_copies(module.graph, len(targets))
    arguments = [node for node in module.graph.nodes if node.op == "placeholder"]
    output = module.graph.output_node()
    uses = Counter(value for value in output.args[0] if isinstance(value, fx.Node))
    writings = []
    for value, target in zip(output.args[0][-len(targets):], targets):
        argument = arguments[target]
        if set(argument.users) == {value} and uses[value] == 1 and uses[argument] == 0:
            axis = written_axis(value, argument)
            if axis is not None:
                writings.append(Writing(value, argument, axis))
    return writings


class RowWrite(NamedTuple):
    """A write of an op to rows of its first operand. axis: an axis of that operand. operands: the values that it
    reads besides sizes. source: the rows. is_once: it writes no row twice."""

    axis: int
    operands: tuple[fx.Node, ...]
    source: fx.Node
    is_once: bool


def written_axis(writer: fx.Node, argument: fx.Node) -> int | None:
    """The axis along which an op writes an argument's rows, none of them twice; None: it does something
    else."""
    write = row_write(writer)
    fake = argument.meta["val"]
    if write is None or not write.is_once or writer.args[0] is not argument or argument in write.operands:
        return None
    layout = Layout.of_dense(fake)
    numbers = [size for value in (fake, *[one.meta["val"] for one in write.operands]) for size in value.shape]
    if layout is None or not layout.is_plain or not all(isinstance(size, int) and size for size in numbers):
        return None
    is_taken = (fake.dtype in DTYPES and write.source.meta["val"].dim() <= fake.dim()
                and math.prod(fake.shape[:write.axis + 1]) <= MAX_I32)
    return write.axis if is_taken else None


def row_write(writer: fx.Node) -> RowWrite | None:
    if writer.target in SCATTERS:
        return written_slice(writer)
    given = written_by_index(writer)
    if given is None:
        return None
    axis, index, source = given
    fake = index.meta["val"]
    is_once = fake.dtype in INTEGERS and fake.dim() <= 1 and (fake.numel() == 1 or is_range(index))
    return RowWrite(axis, (index, source), source, is_once)


def written_slice(writer: fx.Node) -> RowWrite | None:
    """x[:, begin:end] = source, x[:, p] = source"""
    x, source, axis = [*writer.args, 0][:3]
    if not isinstance(source, fx.Node) or not x.meta["val"].dim() or writer.kwargs:
        return None
    return RowWrite(axis % x.meta["val"].dim(), (source,), source, True)


def written_by_index(writer: fx.Node) -> tuple[int, fx.Node, fx.Node] | None:
    """The axis, the index and the source of an op that writes by one index."""
    if writer.target is aten.index_copy.default:
        _, axis, index, source = writer.args
        rank = writer.meta["val"].dim()
        return (axis % rank, index, source) if rank else None
    if writer.target is aten.index_put.default:
        _, indices, source, *accumulate = writer.args
        axes = [axis for axis, index in enumerate(indices) if index is not None]
        if len(axes) == 1 and not any(accumulate) and not writer.kwargs:
            return axes[0], indices[axes[0]], source
    return None


def skip_copies(graph: fx.Graph, targets: int) -> None:
    """Lets an op read the source of a copy, and the whole of a slice that has all elements: x[:, p] = v is a copy to a
    view of x, which is written back through each enclosing view. targets: how many of the last results are copied to
    arguments."""
    output = graph.output_node()
    for node in list(graph.nodes):
        source = unchanged(node)
        if source is None:
            continue
        same_place = strides_of(node) == strides_of(source)
        node.replace_all_uses_with(source, lambda user: user is not output and (
            same_place or user.target in SCATTERS))
        if source.op == "call_function":
            values = output.args[0]
            last = [source if value is node else value for value in values[-targets:]]
            output.args = ((*values[:-targets], *last),)
    graph.eliminate_dead_code()


def unchanged(node: fx.Node) -> fx.Node | None:
    """The operand that has all elements of the result in their places."""
    place = {aten.copy.default: 1, aten.slice_scatter.default: 1, aten.slice.Tensor: 0}.get(node.target)
    source = node.args[place] if place is not None else None
    return source if isinstance(source, fx.Node) and is_same_kind(node, source) else None
