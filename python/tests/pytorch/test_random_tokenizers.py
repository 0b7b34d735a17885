"""A few of the random folders of random_tokenizers.py."""

from __future__ import annotations

import pytest
import transformers
from random_tokenizers import case_of, fault_of


@pytest.fixture(autouse=True, scope="module")
def quiet() -> None:
    transformers.utils.logging.set_verbosity_error()


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_folders(first: int) -> None:
    faults = {seed: fault_of(case_of(seed)) for seed in range(first, first + 10)}
    assert not {seed: fault for seed, fault in faults.items() if fault is not None}


def test_a_seed_gives_one_folder() -> None:
    assert case_of(7) == case_of(7) != case_of(8)
