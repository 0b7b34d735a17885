"""Axes of a value: how they make the axes of a tensor when the tensor gets another shape."""

from __future__ import annotations

from typing import Sequence

from ..facts import limit
from .extents import Extent, Product
from .unsupported import Unsupported

# Above this many axes, neighbouring numbers of a merged axis become one axis.
MAX_SPLIT_AXES = 6


def check_rank(dims: Sequence[Extent]) -> None:
    if len(dims) > limit("axes"):
        raise Unsupported(f"a value of {len(dims)} axes; Sinter has {limit('axes')}")


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
