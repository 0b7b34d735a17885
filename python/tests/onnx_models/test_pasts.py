"""Decoders whose past has a dynamic length: a first call, calls of one token and of several, beside one whole call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import sinter  # noqa: E402

Array = np.ndarray
B, H, D = 2, 2, 8  # sequences, heads, width


def node(op: str, inputs: str, outputs: str, domain: str = "", **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(), outputs.split(), domain=domain, **attributes)


PROJECTED = [
    node("MatMul", "x wq", "q0"),
    node("MatMul", "x wk", "k0"),
    node("MatMul", "x wv", "v0"),
]
HEADS = [
    made
    for one in "qkv"
    for made in (
        node("Reshape", f"{one}0 heads", f"{one}1"),
        node("Transpose", f"{one}1", f"{one}2", perm=[0, 2, 1, 3]),
    )
]
# Positions of the new tokens follow from the sizes of the past.
PLACES = [
    node("Shape", "past_k", "p0", start=2, end=3),
    node("Shape", "x", "s0", start=1, end=2),
    node("Add", "p0 s0", "t0"),
    node("Squeeze", "p0", "p1"),
    node("Squeeze", "t0", "t1"),
    node("Range", "p1 t1 one", "own"),
    node("Range", "zero t1 one", "all"),
    node("Unsqueeze", "own minus", "column"),
    node("LessOrEqual", "all column", "seen"),
]
PRIMITIVES = [
    *PROJECTED,
    *HEADS,
    node("Concat", "past_k k2", "k", axis=2),
    node("Concat", "past_v v2", "v", axis=-2),
    *PLACES,
    node("Transpose", "k", "kt", perm=[0, 1, 3, 2]),
    node("MatMul", "q2 kt", "scores"),
    node("Where", "seen scores low", "hidden"),
    node("Add", "hidden bias", "masked"),
    node("Softmax", "masked", "weights", axis=-1),
    node("MatMul", "weights v", "y0"),
    node("Transpose", "y0", "y1", perm=[0, 2, 1, 3]),
    node("Reshape", "y1 flat", "y"),
]
STANDARD = [
    *PROJECTED,
    node(
        "Attention",
        "q0 k0 v0 bias past_k past_v",
        "y k v",
        is_causal=1,
        scale=1.0,
        q_num_heads=H,
        kv_num_heads=H,
    ),
]
RUNTIME = [
    *PROJECTED,
    node(
        "GroupQueryAttention",
        "q0 k0 v0 past_k past_v lengths total",
        "y k v",
        "com.microsoft",
        num_heads=H,
        kv_num_heads=H,
        scale=1.0,
    ),
]
FORMS = {"primitives": PRIMITIVES, "Attention": STANDARD, "GroupQueryAttention": RUNTIME}


def decoder(form: str, total: str = "past + tokens") -> Any:
    random = np.random.default_rng(0)
    weights = {
        f"w{one}": random.standard_normal((16, H * D), dtype=np.float32) / 8 for one in "qkv"
    }
    numbers = {"heads": [0, 0, H, D], "flat": [0, 0, H * D], "minus": [-1]}
    stored = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    stored += [numpy_helper.from_array(np.array(x, np.int64), name) for name, x in numbers.items()]
    stored += [numpy_helper.from_array(np.int64(i), one) for i, one in enumerate(("zero", "one"))]
    stored.append(numpy_helper.from_array(np.float32(-1e30), "low"))
    value = helper.make_tensor_value_info
    past = ["batch", H, "past", D]
    inputs = [
        value("x", 1, ["batch", "tokens", 16]),
        value("past_k", 1, past),
        value("past_v", 1, past),
    ]
    if form == "GroupQueryAttention":
        inputs += [
            value("lengths", TensorProto.INT32, ["batch", 1]),
            value("total", TensorProto.INT32, []),
        ]
    else:
        inputs.append(value("bias", 1, ["batch", 1, 1, total]))
    outputs = [value(name, 1, None) for name in ("y", "k", "v")]
    graph = helper.make_graph(FORMS[form], "decoder", inputs, outputs, stored)
    imports = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def call(model: Any, x: Array, bias: Array, past: list[Array], device: str = "cpu") -> list[Array]:
    total = past[0].shape[2] + x.shape[1]
    feeds = {"x": x, "past_k": past[0], "past_v": past[1]}
    if "bias" in model.inputs:
        feeds["bias"] = np.ascontiguousarray(bias[..., :total])
    else:
        feeds["lengths"] = np.full((B, 1), total - 1, np.int32)
        feeds["total"] = np.array(total, np.int32)
    return model.run(None, feeds, device=device)


@pytest.mark.parametrize("form", FORMS)
def test_steps_are_the_whole_sequence(form: str) -> None:
    model = sinter.from_onnx(decoder(form))
    assert model.inputs["past_k"] == f"f32[batch, {H}, past, {D}]"
    random = np.random.default_rng(1)
    x = random.standard_normal((B, 11, 16), dtype=np.float32)
    bias = random.standard_normal((B, 1, 1, 11), dtype=np.float32)
    bias[0, ..., 3:5] = -1e30  # as padding is hidden
    past = [np.zeros((B, H, 0, D), np.float32)] * 2
    whole, *kept = call(model, x, bias, past)
    begin = 0
    for count in (4, 1, 1, 3, 2):
        y, *past = call(model, x[:, begin : begin + count], bias, past)
        np.testing.assert_allclose(y, whole[:, begin : begin + count], rtol=1e-4, atol=1e-5)
        begin += count
        for ours, wanted in zip(past, kept):
            np.testing.assert_allclose(ours, wanted[:, :, :begin], rtol=1e-5, atol=1e-6)


def test_the_saved_module_has_both_entries(tmp_path: Any) -> None:
    model = sinter.from_onnx(decoder("primitives"), sizes={"past": (0, 64), "tokens": (1, 32)})
    compiled = sinter.compile(model.save(tmp_path / "saved"))
    assert list(compiled.entries) == ["main", "first"]
    assert compiled.verify(
        "cpu", symbols={"batch": 2, "tokens": 3, "past": 4, "past_plus_tokens": 7}
    )


def test_lengths_that_do_not_add_up() -> None:
    model = sinter.from_onnx(decoder("primitives"))
    past = [np.zeros((B, H, 2, D), np.float32)] * 2
    feeds = {"x": np.zeros((B, 3, 16), np.float32), "past_k": past[0], "past_v": past[1]}
    with pytest.raises(sinter.SinterError, match="a size of 6 where past [+] tokens is 5"):
        model.run(None, {**feeds, "bias": np.zeros((B, 1, 1, 6), np.float32)}, device="cpu")
    with pytest.raises(sinter.SinterError, match="not known to be the same"):
        sinter.from_onnx(decoder("primitives", "all"))
    model = sinter.from_onnx(decoder("primitives", "all"), sizes={"all": "past + tokens"})
    assert model.inputs["bias"] == "f32[batch, 1, 1, past_plus_tokens]"


def test_what_needs_a_past_names_its_size() -> None:
    made = decoder("primitives")
    made.graph.node.append(node("ArgMax", "past_k", "most", axis=2))
    made.graph.output.append(helper.make_tensor_value_info("most", TensorProto.INT64, None))
    with pytest.raises(
        sinter.SinterError, match="ArgMax.*0 is the size of past.*a least size of 1"
    ):
        sinter.from_onnx(made)
    assert list(sinter.from_onnx(made, sizes={"past": (1, 9)}).compile().entries) == ["main"]


def test_inputs_that_are_joined_are_no_past() -> None:
    value = helper.make_tensor_value_info
    inputs = [value("a", 1, ["n", 3]), value("b", 1, ["m", 3])]
    graph = helper.make_graph(
        [node("Concat", "a b", "y", axis=0)], "g", inputs, [value("y", 1, None)]
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    model = sinter.from_onnx(made)
    assert list(model.compile().entries) == ["main"] and model.outputs == {"y": "f32[n_plus_m, 3]"}
    a, b = np.ones((2, 3), np.float32), np.zeros((4, 3), np.float32)
    np.testing.assert_array_equal(
        model.run(None, {"a": a, "b": b}, device="cpu")[0], np.concatenate([a, b])
    )


def test_a_past_that_is_never_empty_has_one_entry() -> None:
    model = sinter.from_onnx(decoder("primitives"), sizes={"past": (1, 64)})
    assert list(model.compile().entries) == ["main"]
    fixed = sinter.from_onnx(decoder("primitives"), sizes={"past": 0})
    assert list(fixed.compile().entries) == ["main"] and "past" not in fixed.inputs["past_k"]
