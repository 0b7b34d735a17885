"""How tensors were made, where a later op may take a shorter way.

A tensor that is indexed by 0, 1, 2, ... along an axis is only moved. A product of two operands that are both
multiplied by a number, as exporters write attention, is multiplied once behind it. A bias that is added to a product
with a weight is the bias of the `linear`.
"""

from __future__ import annotations

from typing import Sequence

from ..importing.tensor import Tensor

SHAPES = {"Unsqueeze", "Squeeze", "Reshape", "Expand"}  # ops that keep a count along a moved axis


class Origins:
    """axes: along which axis a tensor of integers counts. parts: the tensors that an index of several axes
    has along its last axis. factors: an operand and the number that it was multiplied by. linears: the rows
    and the matrix of a `linear` without a bias."""

    def __init__(self) -> None:
        self.axes: dict[Tensor, int] = {}
        self.parts: dict[Tensor, list[Tensor]] = {}
        self.linears: dict[Tensor, tuple[Tensor, Tensor]] = {}
        self.factors: dict[Tensor, tuple[Tensor, float]] = {}
        self._whole: dict[
            Tensor, Tensor
        ] = {}  # by a tensor with a last axis of size 1: that without it

    def note(
        self, op: str, sources: Sequence[Tensor | None], result: Tensor, axis: int = -1
    ) -> None:
        """Notes the result of an op of tensors. axis: of a concatenation."""
        if op == "Concat" and axis % result.rank == result.rank - 1:
            parts = [self._whole.get(one) if one is not None else None for one in sources]
            if all(part is not None for part in parts):
                self.parts[result] = [part for part in parts if part is not None]
        source = sources[0] if sources else None
        if source is None or result is source:
            return
        if (
            op in ("Unsqueeze", "Reshape")
            and result.rank == source.rank + 1
            and result.is_one(source.rank)
            and result.shape[:-1] == source.shape
        ):
            self._whole[result] = source
        if source in self.axes:
            place = self._moved(op, source, result, self.axes[source])
            if place is not None:
                self.axes[result] = place

    def _moved(self, op: str, source: Tensor, result: Tensor, axis: int) -> int | None:
        if op in ("Cast", "Identity"):
            return axis
        if op == "Expand":
            place = axis + result.rank - source.rank
            return place if result.shape[place] == source.shape[axis] else None
        if op not in SHAPES:
            return None
        own, others = (varying_axes(x) for x in (source, result))
        same = [source.shape[i] for i in own] == [result.shape[i] for i in others]
        return others[own.index(axis)] if same and axis in own else None

    def picked(self, x: Tensor, index: Tensor) -> Tensor | None:
        """x at an index whose parts count along different axes of it, each a whole axis of x; else None."""
        parts, sizes = self.parts.get(index, []), index.shape[:-1]
        if len(parts) != x.rank:
            return None
        kept = varying_axes(x)  # an axis of one element has no other index
        places = [self.axes.get(parts[i], -1) for i in kept]
        if len(set(places)) < len(places) or any(
            place < 0 or sizes[place] != x.shape[i] for i, place in zip(kept, places)
        ):
            return None
        moved = x.squeeze([i for i in range(x.rank) if i not in kept])
        moved = moved.permute(sorted(range(moved.rank), key=places.__getitem__))
        for missing in sorted(set(range(len(sizes))) - set(places)):
            moved = moved.unsqueeze(missing)
        return moved.expand(list(sizes))


def varying_axes(x: Tensor) -> list[int]:
    return [axis for axis in range(x.rank) if not x.is_one(axis)]
