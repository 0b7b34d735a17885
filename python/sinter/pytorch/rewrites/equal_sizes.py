"""Sizes that torch knows to be equal only as products.

Where both axes of the labels and both of the tokens change, torch gives each its own symbol, and a loss of the
flattened tensors tells it that the products are equal. A product of the one is then no product of the other's axes. The
factors nearly always belong to one shape: they become equal, by guards of torch's.
"""

from __future__ import annotations

from collections import Counter
from typing import Iterable, Sequence

import sympy
import torch


def join_factors(example_inputs: Sequence) -> None:
    """Makes symbols equal whose products torch knows to be equal, where they have equal values now. torch compiles
    anew for a call in which they differ."""
    sizes = [size for value in example_inputs for size in sizes_of(value) if isinstance(size, torch.SymInt)]
    # In the order of the inputs' axes.
    values = {size.node.expr: size.node.hint for size in sizes if size.node.expr.is_symbol and size.node.has_hint()}
    for environment in {size.node.shape_env for size in sizes}:
        for guard in list(environment.guards):
            for left, right in equal_factors(environment.simplify(guard.expr), values):
                environment.evaluate_expr(sympy.Eq(left, right))


def sizes_of(value) -> Iterable:
    return value.shape if isinstance(value, torch.Tensor) else (value,)


def equal_factors(guard: sympy.Basic, values: dict[sympy.Symbol, int]) -> list[tuple[sympy.Symbol, sympy.Symbol]]:
    """The pairs of symbols of equal values that make both sides of an equation of products equal; none if the
    symbols do not pair off. Of symbols with one value, those are pairs that come in one order in `values`."""
    if not isinstance(guard, sympy.Eq):
        return []
    left, right = map(factors, guard.args)
    left, right = left - right, right - left
    if not set(left) | set(right) <= set(values):
        return []
    order = list(values)
    left, right = (sorted(side.elements(), key=lambda one: (values[one], order.index(one))) for side in (left, right))
    pairs = list(zip(left, right))
    return pairs if len(left) == len(right) and all(values[a] == values[b] for a, b in pairs) else []


def factors(product: sympy.Expr) -> Counter[sympy.Expr]:
    """How often each factor occurs. A factor with a power that is no number is one factor."""
    found: Counter[sympy.Expr] = Counter()
    for factor in sympy.Mul.make_args(product):
        base, power = factor.as_base_exp()
        whole = power.is_Integer and power > 0
        found[base if whole else factor] += int(power) if whole else 1
    return found
