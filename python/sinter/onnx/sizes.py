"""Sizes that only a call knows: polynomials of the model's dynamic dims, as shape arithmetic makes them."""

from __future__ import annotations

import math
from typing import Any, Iterator, Mapping

from ..importing.extents import Extents, Product, Symbol
from ..importing.unsupported import Unsupported

MAX_TERMS, MAX_FACTORS = 64, 16  # of a size

Term = tuple[str, ...]  # the factors of a product, sorted


class Size:
    """A sum of products of symbols with whole factors; never a plain number (see `size_of`)."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Term, int]) -> None:
        self.terms = dict(terms)

    def __add__(self, other: Any) -> int | Size:
        total = dict(self.terms)
        for term, factor in terms_of(other):
            total[term] = total.get(term, 0) + factor
        return size_of(total)

    def __mul__(self, other: Any) -> int | Size:
        total: dict[Term, int] = {}
        for term, factor in terms_of(other):
            for own, times in self.terms.items():
                both = tuple(sorted(own + term))
                total[both] = total.get(both, 0) + times * factor
        if len(total) > MAX_TERMS or any(len(term) > MAX_FACTORS for term in total):
            raise Unsupported("a size that is a product of many sizes")
        return size_of(total)

    def __neg__(self) -> int | Size:
        return self * -1

    def __sub__(self, other: Any) -> int | Size:
        negated: int | Size = other * -1
        return self + negated

    def __rsub__(self, other: Any) -> int | Size:
        total: int | Size = self * -1 + other
        return total

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __str__(self) -> str:
        return " + ".join(str(Product(number, term)) for term, number in self.terms.items())


def terms_of(size: Any) -> Iterator[tuple[Term, int]]:
    if isinstance(size, Size):
        yield from size.terms.items()
    else:
        yield (), int(size)


def size_of(terms: Mapping[Term, int]) -> int | Size:
    kept = {term: factor for term, factor in terms.items() if factor}
    return kept.get((), 0) if set(kept) <= {()} else Size(kept)


def quotient(size: Any, divisor: Any) -> int | Size:
    """size / divisor, where the divisor is a product that divides each term; else Unsupported."""
    if not isinstance(size, Size) and not isinstance(divisor, Size):
        return int(size) // int(divisor) if divisor else 0
    result: dict[Term, int] = {}
    (below, number), *more = terms_of(divisor)
    for term, factor in terms_of(size):
        rest = list(term)
        if (
            more
            or number == 0
            or factor % number
            or any(below.count(s) > rest.count(s) for s in below)
        ):
            raise Unsupported(f"({size}) / ({divisor}), which is no whole number of known sizes")
        for symbol in below:
            rest.remove(symbol)
        result[tuple(rest)] = factor // number
    return size_of(result)


class OnnxExtents(Extents):
    """The symbols of one model. ranges: the sizes that the caller gave for dynamic dims."""

    def declare(self, name: str, low: int, high: int) -> Size:
        self.symbols[name] = Symbol(name, low, high)
        return Size({(name,): 1})

    def product(self, size: Any) -> Product:
        if not isinstance(size, Size):
            return super().product(size)
        if len(size.terms) > 1 or next(iter(size.terms.values())) < 0:
            raise Unsupported(f"the size {size}, which is no product of known sizes")
        return self.terms(size)[0]

    def terms(self, size: Any) -> list[Product]:
        if isinstance(size, Product):
            return [size]
        return [Product(factor, self._in_order(term)) for term, factor in terms_of(size)]

    def _in_order(self, term: Term) -> Term:
        return tuple(sorted(term, key=list(self.symbols).index))

    def bounds(self, size: Any) -> tuple[int, int]:
        """The least and the largest value of a size."""
        low = high = 0
        for term, factor in terms_of(size):
            ends = [
                factor * math.prod(self.symbols[s].low for s in term),
                factor * math.prod(self.symbols[s].high for s in term),
            ]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def sign(self, size: Any) -> int | None:
        """-1, 0 or 1 for all values of the symbols; None: it depends on them."""
        low, high = self.bounds(size)
        return 0 if low == high == 0 else 1 if low > 0 else -1 if high < 0 else None


def size_from(product: Product) -> int | Size:
    """The size of an axis of a tensor."""
    return size_of({tuple(sorted(product.symbols)): product.number})
