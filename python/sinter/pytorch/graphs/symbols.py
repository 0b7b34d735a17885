"""torch's symbolic sizes as extents of Sinter's types.

A size of torch may be an expression of symbols. A product of numbers and symbols becomes several axes; any other
expression becomes a symbol of its own where it is the size of an input, and is refused elsewhere.
"""

from __future__ import annotations

from typing import Iterable, Mapping

import sympy
import torch
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from ...importing.extents import Extents, Product, Symbol
from ...importing.unsupported import Unsupported

# A symbol's range ends at this multiple of the size that was seen, unless torch knows a smaller
# bound: Sinter plans memory for the largest sizes, and torch compiles again when one is exceeded.
GROWTH = 16
MIN_HIGH = 64
MOST = 2**31  # no size of Sinter is larger


def expression_of(size) -> sympy.Expr | int:
    """The expression behind a size of torch, or behind another number of Python's that changes."""
    if isinstance(size, (torch.SymInt, torch.SymFloat)):
        expression = size.node.expr
        return int(expression) if expression.is_Integer else expression
    return size if isinstance(size, sympy.Expr) else int(size)


def factors_of(size) -> set[sympy.Expr]:
    """The factors of a size, without numbers."""
    bases = {factor.as_base_exp()[0] for factor in sympy.Mul.make_args(sympy.sympify(expression_of(size)))}
    return {base for base in bases if not base.is_Integer}


def sizes_of(value) -> list:
    """A size, or the sizes of a tensor or of several."""
    if isinstance(value, (list, tuple)):
        return [size for one in value for size in sizes_of(one)]
    return [value] if isinstance(value, torch.SymInt) else list(getattr(value, "shape", ()))


class TorchExtents(Extents):
    """The symbols of one graph. names: of torch's symbols, where they have others. ranges: the values
    that torch's symbols may have, where the user said so; else they end at a multiple of the sizes
    that were seen."""

    def __init__(self, names: dict[str, str] | None = None,
                 ranges: Mapping[sympy.Symbol, ValueRanges] | None = None) -> None:
        super().__init__()
        self._given = names or {}
        self._ranges = ranges
        self._names: dict[sympy.Expr, str] = {}
        self._negated: dict[sympy.Expr, str] = {}  # the symbol is -1 times the expression
        self._opaque = 0

    def declare(self, sizes: Iterable) -> None:
        """Makes symbols for the sizes of all inputs.

        Symbols that are a size themselves come first; a product of them needs no other. Of a product
        with one more factor, this factor becomes a symbol."""
        sizes = [size for size in sizes if not isinstance(expression_of(size), int)]
        for size in sizes:
            expression = expression_of(size)
            if expression.is_symbol and self._factors(expression) is None:
                self._add(expression, self._name_of(expression), size)
        for size in sizes:
            expression = expression_of(size)
            if self._factors(expression) is not None:
                continue
            unknown = [symbol for symbol in expression.free_symbols if symbol not in self._names]
            if len(unknown) == 1 and expression.as_powers_dict().get(unknown[0]) == 1 \
                    and self._factors(expression / unknown[0]) is not None:
                self._add(unknown[0], self._name_of(unknown[0]), size)
            else:
                self._opaque += 1
                self._add(expression, f"size{self._opaque}", size)

    def _name_of(self, symbol: sympy.Symbol) -> str:
        return self._given.get(str(symbol), str(symbol))

    def _add(self, expression: sympy.Expr, name: str, size: torch.SymInt) -> None:
        """A symbol for an expression; `size` is it or a multiple of it. A number below zero has the symbol of its
        absolute value: v, where x[v:] has -v elements. None for what is too large now: ops that read it are
        refused."""
        environment = size.node.shape_env
        hint = int(size.node.hint) if size.node.has_hint() else MIN_HIGH
        if abs(hint) > MOST or (hint < 0 and expression != expression_of(size)):
            return
        if hint < 0:
            self._negated[expression] = name
            expression, hint = -expression, -hint
        bounds = environment.bound_sympy(expression) if self._ranges is None \
            else bound_sympy(expression, self._ranges)
        low = max(int(bounds.lower), 0) if isinstance(bounds.lower, sympy.Integer) else 0
        high = min(max(MIN_HIGH, GROWTH * hint), MOST)
        most = int(bounds.upper) if isinstance(bounds.upper, sympy.Integer) else MOST
        if self._ranges is not None:
            low, high = max(low, 1), most if most < MOST else high
        elif low <= most < MOST:  # the user's, by mark_dynamic, or an earlier guard's
            high = most
        else:  # a guard: torch compiles anew for a larger size
            environment.evaluate_expr(sympy.Le(expression, high))
        self._names[expression] = name
        self.symbols[name] = Symbol(name, low, high)

    def _factors(self, expression: sympy.Expr) -> Product | None:
        if expression in self._names:
            return Product(1, (self._names[expression],))
        if expression in self._negated:
            return Product(-1, (self._negated[expression],))
        if expression.is_Integer:
            return Product(int(expression), ())
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
        if product is None or product.number < 0:
            raise Unsupported(f"the size {expression} is no product of known sizes")
        return product

    def known_product(self, size) -> Product | None:
        """As `product`, but the number may be below zero; None: it is no such product."""
        return self._factors(sympy.sympify(expression_of(size)))

    def terms(self, size) -> list[Product] | None:
        """The products whose sum a size is: P and S of P + S. None: it is no sum of known sizes."""
        product = self.known_product(size)
        if product is not None:
            return [product]
        terms = [self._factors(term) for term in sympy.Add.make_args(expression_of(size))]
        return None if None in terms else terms

    def range_of(self, number: sympy.Expr) -> tuple[int, int] | None:
        """The values that an exported program takes for a number, where no guard of torch sees to them."""
        if self._ranges is None:
            return None
        bounds = bound_sympy(number, self._ranges)
        low, high = (int(end) if isinstance(end, sympy.Integer) else rest
                     for end, rest in ((bounds.lower, -2**63), (bounds.upper, 2**63 - 1)))
        return None if low <= 0 and high == 2**63 - 1 else (low, high)  # torch writes 0 without a guard too
