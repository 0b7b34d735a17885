"""Arguments of which a graph writes some rows, such as a cache that gets new tokens.

    keys_1 = index_copy(keys, 2, positions, k);  copy_(keys, keys_1)      at the end of the graph

The entry has the argument as a state and writes the rows where it lies. It is a state with two axes: the rows
are those of the axis that is indexed and of the axes before it, all joined.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import torch
from torch import fx

from .layout import Layout
from .ranges import INTEGERS, is_range

aten = torch.ops.aten

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MAX_ROWS = 2**31 - 1


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


def take_writings(module: fx.GraphModule, targets: list[int]) -> list[Writing]:
    """The ops whose results are copied to an argument behind the call, and which can write it in place: nothing
    else reads the argument, and no row is written twice. targets: positions of the arguments to which the
    graph's last results are copied."""
    if not targets:
        return []
    arguments = [node for node in module.graph.nodes if node.op == "placeholder"]
    output = next(node for node in module.graph.nodes if node.op == "output")
    uses = Counter(value for value in output.args[0] if isinstance(value, fx.Node))
    writings = []
    for value, target in zip(output.args[0][-len(targets):], targets):
        argument = arguments[target]
        if set(argument.users) == {value} and uses[value] == 1 and uses[argument] == 0:
            axis = written_axis(value, argument)
            if axis is not None:
                writings.append(Writing(value, argument, axis))
    return writings


def written_axis(writer: fx.Node, argument: fx.Node) -> int | None:
    """The axis along which an op writes an argument's rows by an index that names none twice; None: it does
    something else."""
    given = written_by_index(writer)
    fake = argument.meta["val"]
    if given is None or writer.args[0] is not argument or argument in given[1:]:
        return None
    axis, index, source = given
    layout = Layout.of_dense(fake)
    numbers = [*fake.shape, *source.meta["val"].shape, *index.meta["val"].shape]
    if layout is None or not layout.is_plain or not all(isinstance(size, int) and size for size in numbers):
        return None
    is_once = index.meta["val"].numel() == 1 or is_range(index)
    is_taken = (index.meta["val"].dim() <= 1 and index.meta["val"].dtype in INTEGERS and fake.dtype in DTYPES
                and source.meta["val"].dim() <= fake.dim()
                and math.prod(fake.shape[:axis + 1]) <= MAX_ROWS)
    return axis if is_once and is_taken else None


def written_by_index(writer: fx.Node) -> tuple[int, fx.Node, fx.Node] | None:
    """The axis, the index and the source of an op that writes by one index."""
    if writer.target is aten.index_copy.default:
        _, axis, index, source = writer.args
        rank = writer.meta["val"].dim()
        return (axis % rank, index, source) if rank else None
    if writer.target in (aten.index_put.default, aten._unsafe_index_put.default):
        _, indices, source, *accumulate = writer.args
        axes = [axis for axis, index in enumerate(indices) if index is not None]
        if len(axes) == 1 and not any(accumulate) and not writer.kwargs:
            return axes[0], indices[axes[0]], source
    return None
