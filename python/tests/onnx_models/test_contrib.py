"""Contrib ops of ONNX Runtime, beside the formulas that its documentation gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402

import sinter  # noqa: E402

B, S, H, G, D = 2, 5, 4, 2, 8  # batch, tokens, heads, heads of keys, width
Array = np.ndarray


def random(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def results(
    op: str, inputs: list[Array | None], outputs: list[str], **attributes: Any
) -> list[Array]:
    """Inputs of one axis are initializers."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    given = {name: x for name, x in zip(names, inputs) if x is not None}
    node = helper.make_node(op, names, outputs, domain="com.microsoft", **attributes)
    kind = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(n, kind(x.dtype), x.shape)
            for n, x in given.items()
            if x.ndim != 1
        ],
        [helper.make_tensor_value_info(name, 1, None) for name in outputs if name],
        [numpy_helper.from_array(x, n) for n, x in given.items() if x.ndim == 1],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = sinter.from_onnx(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    return model.run(None, {n: x for n, x in given.items() if n in model.inputs}, device="cpu")


def attended(q: Array, k: Array, v: Array, seen: Array) -> Array:
    """[B, S, H * D] of [B, S, H * D] and [B, T, G * D], of the keys that `seen` [B or 1, S, T] shows."""
    q, k, v = (
        x.reshape(*x.shape[:2], -1, D).transpose(0, 2, 1, 3).astype(np.float64) for x in (q, k, v)
    )
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = np.where(seen[:, None], q @ k.transpose(0, 1, 3, 2) / np.sqrt(D), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = weights / weights.sum(-1, keepdims=True) @ v
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)


def near(ours: Array, wanted: Array) -> None:
    np.testing.assert_allclose(ours, wanted, rtol=2e-5, atol=2e-6)


def test_norms_behind_a_sum() -> None:
    x, skip, weight, shift, bias = (
        random(B, S, 16),
        random(B, S, 16),
        random(16),
        random(16) + 1,
        random(16) + 2,
    )
    y, total = results(
        "SkipSimplifiedLayerNormalization",
        [x, skip, weight, bias],
        ["y", "", "", "sum"],
        epsilon=1e-5,
    )
    wanted = (x + skip + bias).astype(np.float64)
    near(total, wanted)
    near(y, wanted / np.sqrt((wanted**2).mean(-1, keepdims=True) + 1e-5) * weight)
    y, total = results(
        "SkipLayerNormalization", [x, skip, weight, shift], ["y", "", "", "sum"], epsilon=1e-5
    )
    wanted = (x + skip).astype(np.float64)
    near(total, wanted)
    spread = np.sqrt(wanted.var(-1, keepdims=True) + 1e-5)
    near(y, (wanted - wanted.mean(-1, keepdims=True)) / spread * weight + shift)


def test_activations() -> None:
    x, bias = random(B, S, 16), random(16)
    y = x + bias
    (ours,) = results("FastGelu", [x, bias], ["y"])
    near(ours, 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3))))
    (ours,) = results("QuickGelu", [x], ["y"])
    near(ours, x / (1 + np.exp(-1.702 * x)))


def turned(x: Array, cos: Array, sin: Array) -> Array:
    """x [B, S, n, D] by angles [.., S, D / 2]; the pairs are halves."""
    a, b = x[..., : D // 2], x[..., D // 2 :]
    cos, sin = cos[..., None, :], sin[..., None, :]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def test_rotary_positions() -> None:
    x, cos, sin = random(B, S, H * D), random(32, D // 2), random(D // 2, 32).T.copy()
    places = np.arange(B * S, dtype=np.int64).reshape(B, S)
    (ours,) = results("RotaryEmbedding", [x, places, cos, sin], ["y"])
    near(ours, turned(x.reshape(B, S, H, D), cos[places], sin[places]).reshape(x.shape))
    (ours,) = results("RotaryEmbedding", [x, np.array([3]), cos, sin], ["y"])
    near(ours, turned(x.reshape(B, S, H, D), cos[3 : 3 + S], sin[3 : 3 + S]).reshape(x.shape))


def test_multi_head_attention() -> None:
    q, k, v, bias = (
        random(B, S, H * D),
        random(B, 7, H * D),
        random(7, B, H * D).swapaxes(0, 1).copy(),
        random(3 * H * D),
    )
    mask = np.ones((B, 7), np.int32)
    mask[0, 5:] = 0
    (ours,) = results("MultiHeadAttention", [q, k, v, bias, mask], ["y"], num_heads=H)
    near(
        ours,
        attended(
            *(x + part for x, part in zip((q, k, v), np.split(bias, 3))), mask[:, None].astype(bool)
        ),
    )


def test_grouped_attention_with_a_past() -> None:
    """New keys stand behind the valid ones of each sequence; without a past a prompt begins at 0."""
    cos, sin = random(32, D // 2), random(D // 2, 32).T.copy()
    for past, tokens, valid in ((0, 5, [5, 5]), (6, 1, [5, 7])):
        q, k, v = random(B, tokens, H * D), random(B, tokens, G * D), random(B, tokens, G * D) + 1
        old = [random(B, G, past, D), random(B, G, past, D) + 1]
        lengths, total = np.array(valid, np.int32) - 1, np.array(max(valid), np.int32)
        y, keys, values = results(
            "GroupQueryAttention",
            [q, k, v, *old, lengths.reshape(B, 1), total, cos, sin],
            ["y", "keys", "values"],
            num_heads=H,
            kv_num_heads=G,
            do_rotary=1,
        )
        for one in range(B):
            begin = valid[one] - tokens
            angles = cos[begin : begin + tokens], sin[begin : begin + tokens]
            rotated = [turned(x[one].reshape(tokens, -1, D), *angles) for x in (q, k)]
            rows = [x[one, :, :begin].transpose(1, 0, 2) for x in old]
            whole = [
                np.concatenate([rows[0], rotated[1]]),
                np.concatenate([rows[1], v[one].reshape(tokens, G, D)]),
            ]
            for ours, wanted in zip((keys, values), whole):
                near(ours[one].transpose(1, 0, 2)[: valid[one]], wanted)
            seen = np.arange(valid[one]) <= begin + np.arange(tokens)[:, None]
            near(
                y[one],
                attended(*(x.reshape(1, len(x), -1) for x in (rotated[0], *whole)), seen[None])[0],
            )


def test_grouped_attention_of_packed_operands() -> None:
    """Rotated at positions of their own."""
    cos, sin = random(32, D // 2), random(D // 2, 32).T.copy()
    q, k, v = random(B, S, H * D), random(B, S, G * D), random(B, S, G * D) + 1
    places = np.arange(B * S, dtype=np.int64).reshape(B, S)
    lengths, total = np.full((B, 1), S - 1, np.int32), np.array(S, np.int32)
    packed = np.concatenate([q, k, v], -1)
    (y,) = results(
        "GroupQueryAttention",
        [packed, None, None, None, None, lengths, total, cos, sin, places],
        ["y"],
        num_heads=H,
        kv_num_heads=G,
        do_rotary=1,
    )
    angles = cos[places], sin[places]
    q, k = (turned(x.reshape(B, S, -1, D), *angles).reshape(B, S, -1) for x in (q, k))
    near(y, attended(q, k, v, np.tril(np.ones((1, S, S), bool))))


def test_attention_of_encoders() -> None:
    """Rows of three tables, a norm, and attention to as many keys as the mask shows."""
    width = H * D
    words, places, segments = random(20, width), random(S, width) + 1, random(2, width) + 2
    weight, shift = random(width), random(width) + 1
    ids, kinds = (np.arange(B * S, dtype=np.int32).reshape(B, S) % n for n in (20, 2))
    mask = np.ones((B, S), np.int32)
    mask[0, 3:] = 0
    ours, shown, total = results(
        "EmbedLayerNormalization",
        [ids, kinds, words, places, segments, weight, shift, mask],
        ["y", "shown", "sum"],
        epsilon=1e-5,
    )
    wanted = (words[ids] + places[None] + segments[kinds]).astype(np.float64)
    near(total, wanted)
    spread = np.sqrt(wanted.var(-1, keepdims=True) + 1e-5)
    near(ours, (wanted - wanted.mean(-1, keepdims=True)) / spread * weight + shift)
    assert shown.tolist() == [3, S]
    matrix, bias = random(width, 3 * width) / 8, random(3 * width)
    q, k, v = np.split(ours @ matrix + bias, 3, -1)
    seen = np.broadcast_to(mask[:, None].astype(bool), (B, S, S))
    for given, is_causal in (
        (shown, 0),
        (mask, 0),
        (np.ascontiguousarray(seen).astype(np.int32), 1),
    ):
        (y,) = results(
            "Attention", [ours, matrix, bias, given], ["y"], num_heads=H, unidirectional=is_causal
        )
        visible = np.tril(seen) if is_causal else seen
        near(y, attended(q, k, v, visible))


def test_what_is_not_converted_is_refused() -> None:
    whole = [random(B, S, H * D), random(B, S, G * D), random(B, S, G * D), None, None]
    lengths = [np.array([[4], [4]], np.int32), np.array(5, np.int32)]
    sinks = random(H)
    with pytest.raises(sinter.SinterError, match="GroupQueryAttention, opset 1.*sinks"):
        results(
            "GroupQueryAttention",
            [*whole, *lengths, None, None, None, None, sinks],
            ["y"],
            num_heads=H,
            kv_num_heads=G,
        )
