"""The node cases of onnx.backend.test: none is wrong, and no fewer pass than before."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

import node_cases

MIN_PASSED = {"1.23": 1105}  # by the version of onnx, which has its own cases


@pytest.fixture(scope="module")
def outcome() -> node_cases.Outcome:
    return node_cases.run()


def test_no_case_is_wrong(outcome: node_cases.Outcome) -> None:
    assert outcome.wrong == []
    version = ".".join(node_cases.onnx.__version__.split(".")[:2])
    assert outcome.counts["passed"] >= MIN_PASSED.get(version, 600)


def test_refusals_name_the_node_and_its_opset(outcome: node_cases.Outcome) -> None:
    for name, reason in outcome.reasons.items():
        assert "opset" in reason and ('node "' in reason or "input" in reason), f"{name}: {reason}"
