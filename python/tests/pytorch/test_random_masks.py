"""A few of the random masks of random_masks.py, and a planted fault that they find."""

from __future__ import annotations

import pytest
import torch
from program_faults import ORIGINAL, replaced
from random_masks import case_of, fault_of

aten = torch.ops.aten
LESS = {aten.le.Tensor: ORIGINAL[aten.lt.Tensor], aten.le.Scalar: ORIGINAL[aten.lt.Scalar]}


@pytest.mark.parametrize("seed", range(8))
def test_mask(seed: int) -> None:
    case = case_of(seed)
    fault = fault_of(case)
    assert fault is None, f"{fault}\n\n{case.script}"


def test_a_bound_that_is_off_by_one_is_found() -> None:
    """A window or a causal mask that compares by < and not by <=."""
    cases = [case for case in map(case_of, range(60)) if "seen = (column <= row" in case.script
             or "mask = (column <= row" in case.script]
    with replaced(LESS):
        assert any(fault_of(case) for case in cases[:3])


def test_a_seed_gives_one_script() -> None:
    assert case_of(7) == case_of(7) != case_of(8)
