"""Models that torch.onnx writes, beside eager and, where it is installed, ONNX Runtime; `python exported_onnx.py` runs
all."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

CASES = (("llama", 20, "cache"), ("bert", 24, "forward"))
MAX_APART = 1e-5  # of ONNX Runtime's results, whose sums have other orders; a model's two layers have up to 3e-6


@pytest.mark.parametrize("name, opset, kind", CASES, ids=str)
def test_an_exported_model_computes_what_eager_does(name: str, opset: int, kind: str) -> None:
    for package in ("onnx", "onnxscript", "transformers"):
        pytest.importorskip(package)
    from exported_onnx import compare
    outcome, launches, runtime = compare(name, opset, kind, with_runtime=find_spec("onnxruntime") is not None)
    assert not outcome.wrong, "\n".join(outcome.wrong)
    assert 0 < outcome.launches <= launches + 2
    assert runtime is None or (runtime.refused, runtime.farthest < MAX_APART) == ("", True), str(runtime)
