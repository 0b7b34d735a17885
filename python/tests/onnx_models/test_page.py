"""docs/onnx.md lists the ops that are converted. SINTER_BLESS=1 writes the lists."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx")

import sinter.onnx  # noqa: E402, F401
from sinter.onnx.registry import converted_ops  # noqa: E402

PAGE = Path(__file__).resolve().parents[3] / "docs" / "onnx.md"
# Functions of the standard whose bodies have loops, random numbers or ops that Sinter lacks.
OTHERS = {
    "Range",
    "SequenceMap",
    "LinearAttention",
    "Bernoulli",
    "AffineGrid",
    "FlexAttention",
    "NegativeLogLikelihoodLoss",
    "SoftmaxCrossEntropyLoss",
    "CenterCropPad",
    "BlackmanWindow",
    "HammingWindow",
    "HannWindow",
}


def lists() -> dict[str, str]:
    converted = converted_ops()
    names = [f"`{domain}.{op}`" if domain else f"`{op}`" for domain, op in converted]
    bodies = {
        schema.name
        for schema in onnx.defs.get_all_schemas()
        if (schema.has_function or schema.has_context_dependent_function) and not schema.domain
    }
    rest = sorted(bodies - {op for _, op in converted} - OTHERS)
    return {
        "conversions": ", ".join(names) + ".",
        "bodies": ", ".join(f"`{op}`" for op in rest) + ".",
    }


def test_the_page_lists_the_ops() -> None:
    text = wanted = PAGE.read_text(encoding="utf-8")
    for name, listed in lists().items():
        wanted = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda found: f"{found[1]}{listed}\n{found[2]}",
            wanted,
            flags=re.S,
        )
    if os.environ.get("SINTER_BLESS"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert text == wanted or os.environ.get("SINTER_BLESS"), (
        "SINTER_BLESS=1 writes the lists of docs/onnx.md"
    )
