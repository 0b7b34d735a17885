"""Tensors that meet in an op: each of their axes held in the same way.

A `way` is how a tensor holds one axis: as one extent, or as several whose product it is.
"""

from __future__ import annotations

from typing import Sequence

from .extents import Extent, product_of
from .tensor import Tensor
from .unsupported import Unsupported


def common_axes(tensors: Sequence[Tensor], axes: Sequence[int]) -> tuple[Extent, ...]:
    """How tensors that meet in an element share one axis (`axes`: which it is in each): the finest
    of their ways to hold it, or one number where they differ."""
    ways = [tensor._axes(axis) for tensor, axis in zip(tensors, axes) if not tensor.is_one(axis)]
    if not ways:
        return (1,)
    sizes = {product_of(way) for way in ways}
    if len(sizes) > 1:
        raise Unsupported("an axis whose sizes are not known to be the same: "
                          + " and ".join(str(size) for size in sorted(sizes, key=str)))
    finest = max(ways, key=len)
    if all(way == finest or len(way) == 1 for way in ways):
        return finest
    product = product_of(finest)
    return finest if not product.is_number else (product.number,)


def align(tensors: Sequence[Tensor]) -> tuple[list[Tensor], tuple[int, ...]]:
    """Tensors that broadcast, held in the same way."""
    rank = max(tensor.rank for tensor in tensors)
    ways = []
    for axis in range(rank):
        here = [tensor for tensor in tensors if axis >= rank - tensor.rank]
        ways.append(common_axes(here, [axis - (rank - tensor.rank) for tensor in here]))
    return ([tensor._arranged(ways[rank - tensor.rank:]) for tensor in tensors],
            tuple(len(way) for way in ways))


def align_all_but(tensors: Sequence[Tensor], axis: int) -> list[Tensor]:
    """Tensors that are alike in all axes but one, held in the same way; that one as one extent."""
    tensors = [tensor.merged(axis) for tensor in tensors]
    ways = [None if i == axis else common_axes(tensors, [i] * len(tensors))
            for i in range(tensors[0].rank)]
    return [tensor._arranged([tensor._axes(axis) if way is None else way for way in ways])
            for tensor in tensors]
