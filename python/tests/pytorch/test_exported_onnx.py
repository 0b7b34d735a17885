"""Models that torch.onnx writes, beside eager; `python exported_onnx.py` runs all."""

from __future__ import annotations

import pytest

CASES = (("llama", 23, "cache"), ("bert", 18, "forward"))


@pytest.mark.parametrize("name, opset, kind", CASES, ids=str)
def test_an_exported_model_computes_what_eager_does(name: str, opset: int, kind: str) -> None:
    for package in ("onnx", "onnxscript", "transformers"):
        pytest.importorskip(package)
    from exported_onnx import compare
    outcome, launches, _ = compare(name, opset, kind)
    assert not outcome.wrong, "\n".join(outcome.wrong)
    assert 0 < outcome.launches <= launches + 2
