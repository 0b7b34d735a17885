"""How the axes of a value make those of torch's tensor: regrouping, and tensors that meet.

`way` is how a tensor writes one axis: as one extent, or as several whose product it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from .extents import Extent, Product, product_of
from .unsupported import Unsupported

if TYPE_CHECKING:
    from .tensor import Tensor

# A value has at most 8 axes; above this many a merged axis of numbers becomes one axis of it.
MOST_AXES = 6


def regroup(dims: Sequence[Extent], wanted: Sequence[Product]) -> list[tuple[Extent, ...]]:
    """Axes for each wanted size, in the order of `dims` where they can be kept.

    Numbers that a first axis joins stay apart, as symbols do: `x.flatten(0, 1)` of [B, S, D] goes
    on with the rows of x, so that all ops between two such views have the same rows, and can fuse."""
    factors: list[Extent] = [dim for dim in dims if dim != 1]
    groups = []
    for product in wanted:
        number, symbols = product.number, list(product.symbols)
        group: list[Extent] = []
        while factors and (number not in (0, 1) or symbols):
            factor = factors[0]
            if isinstance(factor, str):
                if factor not in symbols:
                    break
                symbols.remove(factor)
                group.append(factors.pop(0))
                continue
            if factor != 0 and number % factor == 0:
                taken = factors.pop(0)
            elif factor % number == 0:
                taken = number
                factors[0] = factor // number
            else:
                break
            number //= taken
            group.append(taken)
        if number != 1 or symbols:  # the order is lost; any factors in row-major order are right
            group = [*product.symbols] + ([product.number] if product.number != 1 else [])
            factors = []
        groups.append(group)
    for position, group in enumerate(groups):
        if position > 0 or sum(map(len, groups)) > MOST_AXES:
            groups[position] = joined(group)
    return [tuple(group) or (1,) for group in groups]


def joined(axes: Sequence[Extent]) -> list[Extent]:
    """Neighbouring numbers as their product."""
    result: list[Extent] = []
    for axis in axes:
        if result and isinstance(axis, int) and isinstance(result[-1], int):
            result[-1] *= axis
        else:
            result.append(axis)
    return result


def common_axes(tensors: Sequence[Tensor], axes: Sequence[int]) -> tuple[Extent, ...]:
    """How tensors that meet in an element share one axis (`axes`: which it is in each): the finest
    of their ways to write it, or one number where they differ."""
    ways = [tensor.axes(axis) for tensor, axis in zip(tensors, axes) if not tensor.is_one(axis)]
    if not ways:
        return (1,)
    finest = max(ways, key=len)
    if all(way == finest or len(way) == 1 for way in ways):
        return finest
    product = product_of(finest)
    if not product.is_number:
        raise Unsupported("an axis that two tensors split in different ways")
    return (product.number,)


def conformed(tensor: Tensor, wanted: Sequence[tuple[Extent, ...]]) -> Tensor:
    """The tensor with each axis written as the product `wanted` says; an axis of size 1 becomes as
    many axes of size 1."""
    groups = []
    for axis, way in enumerate(wanted):
        if tensor.is_one(axis):
            groups.append((1,) * len(way))
        elif product_of(tensor.axes(axis)) == product_of(way):
            groups.append(way)
        elif len(tensor.axes(axis)) == len(way):
            groups.append(tensor.axes(axis))
        else:
            raise Unsupported("an axis that two tensors split in different ways")
    return tensor._reshaped(groups)


def align(tensors: Sequence[Tensor]) -> tuple[list[Tensor], tuple[int, ...]]:
    """Gives tensors that broadcast the same groups."""
    rank = max(tensor.rank for tensor in tensors)
    ways = []
    for axis in range(rank):
        here = [tensor for tensor in tensors if axis >= rank - tensor.rank]
        ways.append(common_axes(here, [axis - (rank - tensor.rank) for tensor in here]))
    return ([conformed(tensor, ways[rank - tensor.rank:]) for tensor in tensors],
            tuple(len(way) for way in ways))


def align_all_but(tensors: Sequence[Tensor], axis: int) -> list[Tensor]:
    """Gives tensors that are alike in all axes but one the same groups."""
    tensors = [tensor.merged(axis) for tensor in tensors]
    ways = [common_axes(tensors, [i] * len(tensors)) for i in range(tensors[0].rank)]
    return [conformed(tensor, [tensor.axes(axis) if i == axis else way
                               for i, way in enumerate(ways)]) for tensor in tensors]
