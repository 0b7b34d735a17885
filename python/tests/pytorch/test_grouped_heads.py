"""Heads of keys and values that a model repeats before its attention are read, kept and summed as they are."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from beside_eager import compiled, reset
from sinter.pytorch.rewrites.grouped_heads import share_heads
from test_step_kernels import text_of
from torch.fx.experimental.proxy_tensor import make_fx


def repeated(x: torch.Tensor, count: int) -> torch.Tensor:
    batch, groups, tokens, width = x.shape
    return x[:, :, None].expand(batch, groups, count, tokens, width).reshape(batch, -1, tokens, width)


def results_of(function, tensors: list[torch.Tensor], grad: torch.Tensor) -> list[torch.Tensor]:
    leaves = [x.detach().requires_grad_() for x in tensors]
    result = function(*leaves)
    result.backward(grad)
    return [result.detach(), *[x.grad for x in leaves]]


def check(function, tensors: list[torch.Tensor], grad: torch.Tensor) -> None:
    """The error against float64 is at most eager's, or three roundings of 16 bits."""
    reset()
    ours = results_of(compiled(function), tensors, grad)
    eager = results_of(function, tensors, grad)
    exact = results_of(function, [x.double() for x in tensors], grad.double())
    for a, b, e in zip(ours, eager, exact, strict=True):
        error = lambda x: ((x.double() - e).abs().max() / e.abs().max()).item()
        assert error(a) <= max(error(b), 3 * torch.finfo(torch.bfloat16).eps)


def draw(*shape: int, dtype=torch.bfloat16) -> torch.Tensor:
    return torch.randn(shape).to(dtype)


@pytest.mark.parametrize("batch, groups, count, tokens, width", [(2, 2, 3, 24, 16), (4, 4, 4, 4, 4), (1, 1, 5, 9, 8)])
def test_a_group_has_one_head_of_keys(batch, groups, count, tokens, width) -> None:
    torch.manual_seed(5)
    check(lambda q, k, v: F.scaled_dot_product_attention(q, repeated(k, count), repeated(v, count), is_causal=True),
          [draw(batch, groups * count, tokens, width), *[draw(batch, groups, tokens, width) for _ in "kv"]],
          draw(batch, groups * count, tokens, width))
    for phase in ("forward", "backward"):
        assert f"heads = {groups * count}, kv_heads = {groups}" in text_of(phase)
    assert "attention_key_gradient" in text_of("backward") and "reduce_sum" not in text_of("backward").split(
        "attention_key_gradient")[1]


def test_keys_are_cast_behind_the_repetition() -> None:
    torch.manual_seed(6)

    def attend(q, k, v):
        k, v = (repeated(x, 2).to(q.dtype) for x in (k, v))
        return F.scaled_dot_product_attention(q, k, v)
    check(attend, [draw(2, 4, 12, 16), *[draw(2, 2, 12, 16, dtype=torch.float32) for _ in "kv"]], draw(2, 4, 12, 16))
    assert "kv_heads = 2" in text_of("backward")


def test_autocast_adds_gradients_of_a_group_in_float32() -> None:
    """The sum that autocast makes on CUDA: bf16 elements, float32 result."""
    def joint(grad, q, k, v):
        keys, values = repeated(k, 2).to(q.dtype), repeated(v, 2)
        result, log_sum = torch.ops.sinter.attention_with_log_sum(q, keys, values, None, False, 0.25)
        gradients = torch.ops.sinter.attention_gradients(grad, result, log_sum, q, keys, values, None, False, 0.25)
        group = lambda x: x.reshape(2, 2, 2, 12, 16).sum([2], keepdim=True, dtype=torch.float32).squeeze(2)
        return group(gradients[1].float()), group(gradients[2]).to(q.dtype)

    torch.manual_seed(9)
    arguments = [draw(2, 4, 12, 16), draw(2, 4, 12, 16), draw(2, 2, 12, 16, dtype=torch.float32), draw(2, 2, 12, 16)]
    module = make_fx(joint, tracing_mode="fake")(*arguments)
    before = module(*arguments)
    share_heads(module.graph)
    module.recompile()
    attention = [node for node in module.graph.nodes if node.target is torch.ops.sinter.attention_gradients.default]
    assert [node.args[4].meta["val"].shape[1] for node in attention] == [2]
    for a, b in zip(module(*arguments), before, strict=True):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a, b, rtol=3e-2, atol=3e-2)


def test_another_reader_of_the_repeated_keys_has_their_gradient() -> None:
    torch.manual_seed(7)

    def attend(q, k, v):
        keys = repeated(k, 2)
        return F.scaled_dot_product_attention(q, keys, repeated(v, 2)) + keys * q
    check(attend, [draw(2, 4, 12, 16), *[draw(2, 2, 12, 16) for _ in "kv"]], draw(2, 4, 12, 16))


def test_heads_of_unequal_repetition_stay_as_they_are() -> None:
    """Keys of two heads, values of four: the attention has as many of both."""
    torch.manual_seed(8)
    check(lambda q, k, v: F.scaled_dot_product_attention(q, repeated(k, 2), v),
          [draw(2, 4, 12, 16), draw(2, 2, 12, 16), draw(2, 4, 12, 16)], draw(2, 4, 12, 16))
    assert "kv_heads = 4" in text_of("backward") or "kv_heads" not in text_of("backward")
