"""Helpers that the kinds of statements of random programs share, and the table of the kinds.

A kind is a function that draws operands and returns the text, or raises Reject."""

from __future__ import annotations

import torch
from program_generator import Draw, Generator, Reject
from programs import NAMES

KINDS: dict[str, tuple] = {}  # by name: the function, and how often it is drawn


def kind(weight: float = 1.0, name: str | None = None, kinds: dict[str, tuple] = KINDS):
    def register(function):
        kinds[name or function.__name__.strip("_")] = (function, weight)
        return function
    return register


def moved(expression: str, lines: list[str] | None = None) -> Draw:
    return Draw(expression, lines or [], moves=True)


def shape(name: str, axis: int) -> str:
    return f"{name}.shape[{axis}]"


def dtype_name(g: Generator, name: str) -> str:
    return NAMES[g.value(name).dtype]


def size_of_any(g: Generator) -> str:
    name = g.pick("any", 1)
    return shape(name, g.rng.randrange(g.rank(name)))


def types_of(g: Generator, name: str) -> str:
    dtype = g.value(name).dtype
    return "float" if dtype.is_floating_point else "bool" if dtype == torch.bool else "int"


def edge(g: Generator, dtype: str) -> str:
    base = g.rng.choice(("2**31", "2**53", "2**63", "2**24", "2**32", "2**62") if dtype == "i64"
                        else ("2**31", "2**24", "2**31", "2**40", "2**53"))
    text = f"{base} {g.rng.choice(('- 1', '- 2', '- 3', '+ 1', '+ 0', '+ 5'))}"
    if base == "2**63":
        text = f"{base} - {g.rng.randint(1, 4)}"
    return f"({text})" if g.rng.random() < 0.6 else f"-({text})"


def need_separated(g: Generator, x: str) -> None:
    """No two elements are nearly the same, unless they have no roundings."""
    if g.value(x).numel() > 1:
        g.need_margin(f"{x}.flatten().sort()[0].diff()", x)


def rows_of(g: Generator, dims: list, high, low: int = 0, dtype: str | None = None) -> str:
    if min(high) == 0:
        raise Reject
    return g.input("int", dims, high=high, low=low, dtype=dtype)
