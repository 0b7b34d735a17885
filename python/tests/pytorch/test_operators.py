"""torch's own operator tests: a third of the entries of operators.txt, in all float types.

`python operators.py $(cat operators.txt)` runs all of them."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
import torch._dynamo
from operators import close, is_tensor, name_of, run_entry, skip_reason
from sinter.pytorch import compile_graph
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten

NAMES = (Path(__file__).parent / "operators.txt").read_text().split()
ENTRIES = {name_of(op): op for op in op_db}
MOST = {torch.float32: 20, torch.float16: 5, torch.bfloat16: 5}  # samples of an entry
EACH = 3  # an entry is run in one of so many runs


@pytest.mark.parametrize("name", NAMES[::EACH])
def test_entry(name: str) -> None:
    warnings.simplefilter("ignore")
    op = ENTRIES[name]
    passed = 0
    for dtype, most in MOST.items():
        if dtype not in op.dtypes:
            continue
        outcome = run_entry(op, dtype, most)
        assert not outcome.wrong, f"{dtype}: {outcome.wrong[0]}"
        assert not outcome.refused, f"{dtype}: {outcome.refused.most_common(1)[0]}"
        passed += outcome.passed
    assert passed > 0, "no sample was run"


@pytest.mark.parametrize("name", NAMES[::EACH])
def test_one_sample_through_compile(name: str) -> None:
    warnings.simplefilter("ignore")
    op = ENTRIES[name]
    for sample in op.sample_inputs("cpu", torch.float32):
        call = lambda first, args, kwargs: op.op(first, *args, **kwargs)
        arguments = (sample.input, tuple(sample.args), sample.kwargs)
        expected = tree_flatten(call(*arguments))[0]
        tensors = [x for x in tree_flatten(arguments)[0] if is_tensor(x)]
        if skip_reason(tensors, expected):
            continue
        torch._dynamo.reset()
        with torch.no_grad():
            results = tree_flatten(torch.compile(call, backend=compile_graph)(*arguments))[0]
        for ours, eager in zip(results, expected, strict=True):
            if is_tensor(eager):
                assert close(ours, eager, eager.double()) is None
        return
    raise AssertionError("no sample was run")


def test_at_least_a_hundred_entries_are_named() -> None:
    assert len(NAMES) >= 100
    assert len(set(NAMES)) == len(NAMES)
    assert set(NAMES) <= set(ENTRIES)
