"""Extents of tensors, and sizes that are products of them.

An extent of a type is a number or the name of a symbol. A size that is a product of numbers and symbols becomes
several axes (see `tensor.py`). An importer derives its own `Extents` from this class, which knows what sizes are in
the graphs that it reads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Iterable, Sequence

Extent = int | str


@dataclass(frozen=True)
class Symbol:
    """A symbol of the module: its name, and the sizes that it may have."""

    name: str
    low: int
    high: int


@dataclass(frozen=True, eq=False)
class Product:
    """A size as a product: `number` times the symbols. They have the order of the axes which the size becomes; products
    are equal in any order."""

    number: int
    symbols: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Product) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, tuple[str, ...]]:
        return self.number, tuple(sorted(self.symbols))

    @property
    def is_number(self) -> bool:
        return not self.symbols

    def __str__(self) -> str:
        numbers = [str(self.number)] if self.number != 1 or not self.symbols else []
        return " * ".join([*numbers, *self.symbols])


class Extents:
    """The symbols of one graph. Sizes are numbers or products; a derived class takes others."""

    def __init__(self) -> None:
        self.symbols: dict[str, Symbol] = {}
        self._pairs: dict[int, tuple[int, int] | None] = {}  # by product; None: of several pairs

    def product(self, size: Any) -> Product:
        """A size as a product of numbers and symbols of the graph."""
        return size if isinstance(size, Product) else Product(int(size), ())

    def terms(self, size: Any) -> list[Product] | None:
        """The products whose sum a size is: P and S of P + S. None: it is no sum of known sizes."""
        return [self.product(size)]

    def axes(self, size: Any) -> tuple[Extent, ...]:
        """The axes of a Sinter tensor that make one axis of that size."""
        product = self.product(size)
        if product.is_number:
            return (product.number,)
        return product.symbols + ((product.number,) if product.number != 1 else ())

    def declare_rows(self, shapes: Iterable[Sequence[Any]]) -> None:
        """Notes the leading pairs of axes, such as (batch, tokens), of tensors of three axes or more."""
        for shape in shapes:
            if len(shape) >= 3 and all(isinstance(size, int) and size > 1 for size in shape[:2]):
                pair = tuple(shape[:2])
                known = self._pairs.setdefault(pair[0] * pair[1], pair)
                if known != pair:
                    self._pairs[pair[0] * pair[1]] = None

    def rows(self, size: Any) -> tuple[Extent, ...]:
        """The axes of a first axis: a pair whose product it is, so that a tensor [batch * tokens, ...] has the same
        rows as one [batch, tokens, ...], and can fuse with it."""
        pair = self._pairs.get(size) if isinstance(size, int) else None
        return pair or self.axes(size)

    def most(self, product: Product) -> int:
        """The largest value of a product."""
        return math.prod((product.number, *(self.symbols[name].high for name in product.symbols)))

    def evaluate(self, size: Any, values: dict[str, int]) -> int:
        """A size for values of the symbols."""
        product = self.product(size)
        return math.prod((product.number, *(values[symbol] for symbol in product.symbols)))


def product_of(extents: Sequence[Extent]) -> Product:
    """The number of elements of these axes."""
    numbers = math.prod(extent for extent in extents if isinstance(extent, int))
    return Product(numbers, tuple(extent for extent in extents if isinstance(extent, str)))
