"""Odd calls of every op that has a conversion, beside eager; `python odd_shapes.py` runs more."""

from __future__ import annotations

import warnings

import pytest
from odd_shapes import CONVERSIONS, ELEMENTWISE, TABLE, dynamic_makers, name_of, op_of_name, run_op, run_types, static_makers

EACH = 6  # an op is run in one of EACH tests; odd_shapes.py runs all
MOST = 3  # calls of an op in one kind of sizes
STATIC, DYNAMIC = list(static_makers()), list(dynamic_makers())


def kinds_of(number: int) -> set[str]:
    """The kinds of odd sizes for the op of this number: all of them come in turn."""
    return {*[STATIC[(2 * number + i) % len(STATIC)] for i in range(2)],
            DYNAMIC[number % len(DYNAMIC)]}


def test_every_conversion_has_odd_calls() -> None:
    assert sorted({*map(name_of, CONVERSIONS)} - set(TABLE)) == [], "conversions without calls in odd_shapes.TABLE"


NAMES = [name for name in TABLE if name in op_of_name]  # torch of another version may lack some


@pytest.mark.parametrize("number", range(0, len(NAMES), EACH), ids=NAMES[::EACH])
def test_odd_sizes(number: int) -> None:
    warnings.simplefilter("ignore")
    outcome = run_op(NAMES[number], kinds_of(number // EACH), MOST)
    assert not outcome.wrong, "\n".join(map(str, outcome.wrong[:5]))


@pytest.mark.parametrize("name", [name for name in ELEMENTWISE if name in op_of_name][::5 * EACH])
def test_element_types(name: str) -> None:
    warnings.simplefilter("ignore")
    outcome = run_types(name)
    assert not outcome.wrong, "\n".join(map(str, outcome.wrong[:5]))
