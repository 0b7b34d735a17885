"""A few random graphs; `python random_graphs.py` runs thousands."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

import random_graphs
from sinter.onnx import registry

SEEDS = range(60)


def test_random_graphs_are_right() -> None:
    outcomes = [random_graphs.outcome_of(*random_graphs.graph_of(seed)) for seed in SEEDS]
    assert [reason for status, reason in outcomes if status in ("wrong", "crashed")] == []
    assert sum(status == "right" for status, _ in outcomes) > len(SEEDS) // 2


def test_a_wrong_conversion_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._CONVERSIONS[("", "Sub")], 1, lambda c: c[1] - c[0])
    outcomes = [random_graphs.outcome_of(*random_graphs.graph_of(seed)) for seed in SEEDS]
    assert "wrong" in [status for status, _ in outcomes]
