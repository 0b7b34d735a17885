"""Attention of packed sequences: `torch.nn.attention.varlen.varlen_attn`, and the op of torch's kernel.

torch computes them on GPUs alone, so that the reference is a loop over the sequences."""

from __future__ import annotations

import math
from typing import Any, Callable

import pytest
import sinter.pytorch
import torch
from beside_eager import compiled, eager_ops, reset
from sinter.pytorch.tools import report
from test_attention import DEVICE, count_of, recorded_nodes
from test_layer_gradients import compare
from torch.nn.attention.varlen import AuxRequest, varlen_attn

FORWARD = torch.ops.sinter.ranged_attention.default
BACKWARD = torch.ops.sinter.ranged_attention_backward.default
HALF = torch.bfloat16

# Lengths of the sequences' queries and keys; one of 0 is an empty sequence.
SAME = ((3, 1, 6, 4), (3, 1, 6, 4))
OTHERS = ((3, 5, 1, 4), (7, 5, 3, 9))
EMPTY = ((0, 3, 0, 2, 4, 0), (2, 3, 0, 0, 6, 0))
ONE = ((9,), (9,))
CASES = {  # lengths, window, type
    "same": (SAME, (-1, -1), torch.float32),
    "same, causal, bfloat16": (SAME, (-1, 0), HALF),
    "others, bfloat16": (OTHERS, (-1, -1), HALF),
    "others, causal": (OTHERS, (-1, 0), torch.float32),
    "others, keys before": (OTHERS, (2, 0), torch.float32),
    "others, keys behind": (OTHERS, (0, -1), torch.float32),
    "empty": (EMPTY, (-1, -1), torch.float32),
    "empty, causal": (EMPTY, (-1, 0), torch.float32),
    "empty, window": (EMPTY, (1, 2), torch.float32),
    "one": (ONE, (-1, 0), torch.float32),
}


def bounds(lengths: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor([0, *lengths], dtype=torch.int32, device=DEVICE).cumsum(0, dtype=torch.int32)


def operands(lengths: tuple, heads: int, groups: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """q, k, v and the bounds of the sequences' queries and keys."""
    torch.manual_seed(1)
    tokens, keys = map(sum, lengths)
    q, k, v = torch.randn(tokens, heads, 8), torch.randn(keys, groups, 8), torch.randn(keys, groups, 6)
    return [*(x.to(DEVICE, dtype) for x in (q, k, v)), *map(bounds, lengths)]


def attend(window: tuple[int, int] = (-1, -1), scale: float | None = None) -> Callable:
    def function(q, k, v, cu_q, cu_k):
        return varlen_attn(q, k, v, cu_q, cu_k, 16, 16, window_size=window, scale=scale, enable_gqa=True)
    return function


def one_sequence(q, k, v, window: tuple[int, int], scale: float) -> torch.Tensor:
    """q [S, H, D], k and v [T, G, D]; token S - 1 is at key T - 1."""
    times = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
    s = torch.einsum("shd,thd->hst", q, k) * scale
    own = torch.arange(q.shape[0], device=q.device)[:, None] + k.shape[0] - q.shape[0]
    distance = torch.arange(k.shape[0], device=q.device) - own
    hidden = torch.zeros_like(distance, dtype=torch.bool)
    if window[0] >= 0:
        hidden |= distance < -window[0]
    if window[1] >= 0:
        hidden |= distance > window[1]
    p = torch.softmax(s.masked_fill(hidden, -math.inf), -1)
    p = p.masked_fill(hidden, 0.0)  # also where a token sees no key
    return torch.einsum("hst,the->she", p, v)


def reference(window: tuple[int, int] = (-1, -1), scale: float | None = None) -> Callable:
    def function(q, k, v, cu_q, cu_k):
        parts = []
        for b in range(len(cu_q) - 1):
            rows, keys = slice(cu_q[b], cu_q[b + 1]), slice(cu_k[b], cu_k[b + 1])
            parts.append(one_sequence(q[rows], k[keys], v[keys], window, scale or q.shape[-1] ** -0.5))
        return torch.cat(parts)
    return function


def trained(function: Callable, q, k, v, *others: Any) -> tuple[list, list, list]:
    """(results, gradients of q, k and v, none of parameters)"""
    leaves = [x.detach().clone().requires_grad_() for x in (q, k, v)]
    result = function(*leaves, *others)
    torch.manual_seed(2)
    result.backward(torch.randn(result.shape).to(result))
    return [result.detach()], [x.grad for x in leaves], []


def doubles(given: list[torch.Tensor]) -> list[torch.Tensor]:
    return [x.double() if x.is_floating_point() else x for x in given]


@pytest.mark.parametrize("case", CASES)
def test_sequences(case: str) -> None:
    lengths, window, dtype = CASES[case]
    reset()
    given = operands(lengths, 4, 2, dtype)
    with recorded_nodes() as nodes:
        ours = trained(compiled(attend(window)), *given)
    eager, exact = (trained(reference(window), *x) for x in (given, doubles(given)))
    compare(ours, eager, exact, list("qkv"), dtype)
    assert (count_of(nodes, FORWARD), count_of(nodes, BACKWARD)) == (1, 1) and not eager_ops()


def test_a_scale_and_heads_of_their_own() -> None:
    reset()
    given = operands(OTHERS, 4, 4, torch.float32)
    ours = compiled(attend((-1, 0), 0.5))(*given)
    torch.testing.assert_close(ours.double(), reference((-1, 0), 0.5)(*doubles(given)), rtol=1e-5, atol=1e-5)


def test_tokens_behind_all_sequences_get_zeros() -> None:
    """A buffer of tokens may be longer than the sequences in it."""
    reset()
    q, k, v, cu_q, cu_k = operands(SAME, 2, 2, torch.float32)
    ours = compiled(attend())(q, k, v, cu_q[:3], cu_k[:3])
    end = int(cu_q[2])
    wanted = reference()(q, k, v, cu_q[:3], cu_k[:3])
    torch.testing.assert_close(ours[:end], wanted, rtol=1e-5, atol=1e-5)
    assert ours[end:].count_nonzero() == 0


def test_numbers_of_tokens_and_of_sequences_that_change() -> None:
    reset()
    function = compiled(attend((-1, 0)))
    for lengths in (OTHERS, ((2, 9, 1, 1, 3), (2, 9, 4, 1, 3)), ((4, 3, 8), (5, 6, 9))):
        given = operands(lengths, 4, 2, torch.float32)
        for x in given:
            torch._dynamo.mark_dynamic(x, 0)
        wanted = reference((-1, 0))(*doubles(given))
        torch.testing.assert_close(function(*given).double(), wanted, rtol=1e-5, atol=1e-5)
    assert len(report.REPORTS) == 1 and not eager_ops()


def test_layers_share_the_ranges() -> None:
    reset()
    q, k, v, cu_q, cu_k = operands(SAME, 2, 2, torch.float32)

    def layers(q, k, v, cu_q, cu_k):
        once = attend((-1, 0))(q, k, v, cu_q, cu_k)
        return attend((-1, 0))(torch.nn.functional.pad(once, (0, 2)), k, v, cu_q, cu_k)

    compiled(layers)(q, k, v, cu_q, cu_k)
    entry, = report.REPORTS[0].entries
    assert entry.compiled.entry().costs().launches == 3  # the ranges, and an attention for each layer


def test_the_logarithm_of_the_sums() -> None:
    reset()
    given = operands(OTHERS, 2, 2, torch.float32)
    function = lambda *x: varlen_attn(*x, 16, 16, return_aux=AuxRequest(lse=True))
    _, total = compiled(function)(*given)
    q, k, v, cu_q, cu_k = doubles(given)
    for b in range(len(cu_q) - 1):
        rows, keys = slice(cu_q[b], cu_q[b + 1]), slice(cu_k[b], cu_k[b + 1])
        wanted = torch.logsumexp(torch.einsum("shd,thd->hst", q[rows], k[keys]) * q.shape[-1] ** -0.5, -1)
        torch.testing.assert_close(total[:, rows].double(), wanted, rtol=1e-5, atol=1e-5)


def test_the_op_of_the_kernel() -> None:
    reset()
    given = operands(SAME, 4, 2, torch.float32)

    def function(q, k, v, cu_q, cu_k):
        return torch.ops.aten._flash_attention_forward(q, k, v, cu_q, cu_k, 16, 16, 0.0, True, False,
                                                       window_size_left=2)[0]

    with recorded_nodes() as nodes:
        ours = trained(compiled(function), *given)
    eager, exact = (trained(reference((2, 0)), *x) for x in (given, doubles(given)))
    compare(ours, eager, exact, list("qkv"), torch.float32)
    assert (count_of(nodes, FORWARD), count_of(nodes, BACKWARD)) == (1, 1)


def test_pages_of_keys_are_left_to_torch() -> None:
    reset()
    q, k, v, cu_q, cu_k = operands(SAME, 2, 2, torch.float32)
    used = torch.tensor(SAME[1], dtype=torch.int32, device=DEVICE)
    function = lambda *x: varlen_attn(*x, 16, 16, seqused_k=used)
    with torch.no_grad(), pytest.raises(Exception, match="torch_attn._varlen_attn"):
        compiled(function, options={"require_full": True})(q, k, v, cu_q, cu_k)


def test_exported_module() -> None:
    class Attend(torch.nn.Module):
        def forward(self, q, k, v, cu_q, cu_k):
            return attend((-1, 0))(q, k, v, cu_q, cu_k)

    given = operands(OTHERS, 4, 2, torch.float32)
    with torch.no_grad():
        imported = sinter.pytorch.from_torch(Attend(), tuple(given))
    assert imported.text.count(" = attention ") == 1
    ours = imported.compile().run(**dict(zip(("q", "k", "v", "cu_q", "cu_k"), given)))
    wanted = reference((-1, 0))(*doubles(given))
    torch.testing.assert_close(ours.double(), wanted, rtol=1e-5, atol=1e-5)
