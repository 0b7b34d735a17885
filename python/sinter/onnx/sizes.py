"""Sizes that only a call knows: polynomials of the model's dynamic dims, as shape arithmetic makes them."""

from __future__ import annotations

import functools
import math
import operator
import re
from collections import Counter
from typing import Any, Callable, Iterator, Mapping

from ..importing.extents import Extents, Product, Symbol
from ..importing.names import Names
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

    @property
    def symbols(self) -> set[str]:
        return {one for term in self.terms for one in term}

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The size for values of its symbols."""
        return sum(
            factor * math.prod(values[one] for one in term) for term, factor in self.terms.items()
        )

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
    """size / divisor, where it is a sum of known sizes; else Unsupported."""
    if not isinstance(size, Size) and not isinstance(divisor, Size):
        return int(size) // int(divisor) if divisor else 0
    below, number = max(terms_of(divisor), key=order)
    result: int | Size = 0
    rest = size
    while rest != 0:
        term, factor = max(terms_of(rest), key=order)
        left = Counter(term)
        left.subtract(below)
        if number == 0 or factor % number or min(left.values(), default=0) < 0:
            raise Unsupported(f"({size}) / ({divisor}), which is no whole number of known sizes")
        part = size_of({tuple(sorted(left.elements())): factor // number})
        result, rest = result + part, rest - part * divisor
    return result


def order(term: tuple[Term, int]) -> tuple[int, Term]:
    """An order of products that multiplication keeps, so that a division ends."""
    return len(term[0]), term[0]


class OnnxExtents(Extents):
    """The symbols of one model. sums: symbols that are sums of others, such as all tokens of a past and new ones, whose
    value a call computes. used: those of them that the entry has, which is being made. declared: called for each symbol."""

    def __init__(self, declared: Callable[[Symbol], None]) -> None:
        super().__init__()
        self.sums: dict[str, Size] = {}
        self.used: set[str] = set()
        self._declared, self._names = declared, Names()

    def declare(self, title: str, low: int, high: int) -> str:
        """The name of a new symbol."""
        name = re.sub(r"\W", "_", title, flags=re.ASCII)
        name = self._names.unique(name if re.match(r"[A-Za-z_]", name) else f"s{name}")
        self.symbols[name] = Symbol(name, low, high)
        self._declared(self.symbols[name])
        return name

    def product(self, size: Any) -> Product:
        if not isinstance(size, Size):
            return super().product(size)
        if len(size.terms) > 1:
            return self._product_with_sum(size)
        if next(iter(size.terms.values())) < 0:
            raise Unsupported(f"the size {size}, which is no product of known sizes")
        return self.terms(size)[0]

    def _product_with_sum(self, size: Size) -> Product:
        """A factor that all terms have, times a symbol for the sum of what is left."""
        common = math.gcd(*size.terms.values())
        counts = {term: Counter(term) for term in size.terms}
        shared = functools.reduce(operator.and_, counts.values())
        factors = tuple(shared.elements())
        left = {term: tuple(sorted((counts[term] - shared).elements())) for term in counts}
        rest = Size({left[term]: factor // common for term, factor in size.terms.items()})
        name = next((one for one, total in self.sums.items() if total == rest), None)
        if name is None:
            low, high = self.bounds(rest)
            if low < 1 or high >= 2**31:
                text = f"the size {size}, which is {low} .. {high} by the sizes of its dims"
                raise Unsupported(text)
            name = self.declare(re.sub(r"\W+", "_", str(rest).replace("+", "plus")), low, high)
            self.sums[name] = rest
        self.used.add(name)
        return Product(common, self._in_order((*factors, name)))

    def size_of(self, product: Product) -> int | Size:
        """The size of an axis of a tensor, in symbols that are no sums."""
        size: int | Size = product.number
        for symbol in product.symbols:
            size = self.sums.get(symbol, Size({(symbol,): 1})) * size
        return size

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
            symbols = [self.symbols[one] for one in term]
            least, most = math.prod(s.low for s in symbols), math.prod(s.high for s in symbols)
            low += factor * (least if factor > 0 else most)
            high += factor * (most if factor > 0 else least)
        return low, high

    def sign(self, size: Any) -> int | None:
        """-1, 0 or 1 for all values of the symbols; None: it depends on them."""
        low, high = self.bounds(size)
        return 0 if low == high == 0 else 1 if low > 0 else -1 if high < 0 else None
