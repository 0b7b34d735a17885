"""How the axes of a value make the axes of torch's tensor: regrouping, and tensors that meet.

A `way` is how a tensor holds one axis of torch: as one extent, or as several whose product it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from .extents import Extent, Product, product_of
from .unsupported import Unsupported

if TYPE_CHECKING:
    from .tensor import Tensor

MAX_RANK = 8  # axes of a value of the IR
# Above this many axes, neighbouring numbers of a merged axis become one axis.
MAX_SPLIT_AXES = 6


def list_text(items: Sequence) -> str:
    return "[" + ", ".join(str(item) for item in items) + "]"


def regroup(dims: Sequence[Extent], wanted: Sequence[Product]) -> list[tuple[Extent, ...]]:
    """Axes for each wanted size, in the order of `dims` where they can be kept. A reshape of `dims` to
    them keeps the row-major order, whatever they are.

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
            elif number > 1 and factor % number == 0:
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
        if position > 0 or sum(map(len, groups)) > MAX_SPLIT_AXES:
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
    if len(result) > 1:  # a factor of 1 beside symbols
        result = [axis for axis in result if axis != 1]
    return result


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
