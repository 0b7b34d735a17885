"""Extents of tensors: torch's symbolic sizes as extents of Sinter's types.

An extent of a Sinter type is a number or the name of a symbol. A size of torch may be an expression
of symbols. A product of numbers and symbols becomes several axes (see `tensor.py`); any other
expression becomes a symbol of its own where it is the size of an input, and is refused elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Iterable, Sequence

import sympy
import torch

from .unsupported import Unsupported

Extent = int | str

# A symbol's range ends at this multiple of the size that was seen, unless torch knows a smaller
# bound: Sinter plans memory for the largest sizes, and torch compiles again when one is exceeded.
GROWTH = 16
LEAST_HIGH = 64


@dataclass(frozen=True)
class Symbol:
    """A symbol of the module: its name, and the sizes that it may have."""

    name: str
    low: int
    high: int


@dataclass(frozen=True)
class Product:
    """A size as a product: `number` times the symbols, in this order."""

    number: int
    symbols: tuple[str, ...]

    @property
    def is_number(self) -> bool:
        return not self.symbols


def expression_of(size) -> sympy.Expr | int:
    """The expression behind a size of torch."""
    if isinstance(size, torch.SymInt):
        expression = size.node.expr
        return int(expression) if expression.is_number else expression
    return int(size)


class Extents:
    """The symbols of one graph."""

    def __init__(self) -> None:
        self.symbols: dict[str, Symbol] = {}
        self._names: dict[sympy.Expr, str] = {}
        self._opaque = 0

    def declare(self, sizes: Iterable) -> None:
        """Makes symbols for the sizes of an input."""
        for size in sizes:
            expression = expression_of(size)
            if isinstance(expression, int) or expression in self._names:
                continue
            if expression.is_symbol:
                self._add(expression, str(expression), size)
                continue
            if self._factors(expression) is None:
                self._opaque += 1
                self._add(expression, f"size{self._opaque}", size)

    def _add(self, expression: sympy.Expr, name: str, size: torch.SymInt) -> None:
        hint = size.node.hint if size.node.has_hint() else LEAST_HIGH
        bounds = size.node.shape_env.bound_sympy(expression)
        low = max(int(bounds.lower) if bounds.lower.is_finite else 0, 0)
        high = max(LEAST_HIGH, GROWTH * int(hint))
        if bounds.upper.is_finite and int(bounds.upper) <= high:
            high = int(bounds.upper)
        elif not bool(size <= high):  # adds a guard
            raise Unsupported(f"size {expression} is larger than {high}")
        self._names[expression] = name
        self.symbols[name] = Symbol(name, low, high)

    def name(self, expression: sympy.Expr) -> str | None:
        return self._names.get(expression)

    def _factors(self, expression: sympy.Expr) -> Product | None:
        if expression in self._names:
            return Product(1, (self._names[expression],))
        if not expression.is_Mul and not expression.is_Pow:
            return None
        number, symbols = 1, []
        for factor in sympy.Mul.make_args(expression):
            base, power = factor.as_base_exp()
            if factor.is_Integer:
                number *= int(factor)
            elif base in self._names and power.is_Integer and power > 0:
                symbols += [self._names[base]] * int(power)
            else:
                return None
        order = list(self.symbols)
        return Product(number, tuple(sorted(symbols, key=order.index)))

    def product(self, size) -> Product:
        """A size as a product of numbers and symbols of the graph."""
        expression = expression_of(size)
        if isinstance(expression, int):
            return Product(expression, ())
        product = self._factors(expression)
        if product is None:
            raise Unsupported(f"the size {expression} is no product of known sizes")
        return product

    def axes(self, size) -> tuple[Extent, ...]:
        """The axes of a Sinter tensor that make one axis of that size."""
        product = self.product(size)
        if product.is_number:
            return (product.number,)
        return product.symbols + ((product.number,) if product.number != 1 else ())

    def evaluate(self, extents: Sequence[Extent], values: dict[str, int]) -> list[int]:
        return [values[extent] if isinstance(extent, str) else extent for extent in extents]


def product_of(extents: Sequence[Extent]) -> Product:
    """The number of elements of these axes."""
    numbers = math.prod(extent for extent in extents if isinstance(extent, int))
    return Product(numbers, tuple(extent for extent in extents if isinstance(extent, str)))
