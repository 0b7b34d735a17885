"""Attention of sequences of different lengths that are packed into one axis of tokens.

torch has an op for `torch.nn.attention.varlen.varlen_attn` and one for the kernel behind it, both with
the sequences as cumulative lengths. Here they become `sinter::ranged_attention`, in which each token sees
a range of keys, and their gradients `sinter::ranged_attention_backward`.
"""

from __future__ import annotations

import torch
from torch.nn.attention import varlen  # registers torch's ops

from .attention_call import Placing, default_scale, laid_out
from .layout import stride_order
from .library import mask_of_ranges, scores, with_batch

NONE_FOLLOWS = 2**31 - 1  # instead of the end of a sequence that has none


def key_ranges(tokens, cu_seq_q: torch.Tensor, cu_seq_k: torch.Tensor, causal: bool, left: int,
               right: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The first and the last key that each token sees. Sequence b has the tokens cu_seq_q[b] ..
    cu_seq_q[b + 1] - 1, its keys likewise. The last token of a sequence is at its last key: a token sees
    `left` keys before its own and `right` keys behind it, all of them if the number is negative."""
    token = torch.arange(tokens, dtype=torch.int32, device=cu_seq_q.device)
    begins = cu_seq_q <= token[:, None]  # [T, B + 1]
    begin = torch.where(begins, cu_seq_k, 0).amax(1)
    end_q, end_k = next_bound(begins, cu_seq_q), next_bound(begins, cu_seq_k)
    first, last = begin, torch.where(end_k == NONE_FOLLOWS, 0, end_k) - 1
    own = token + (end_k - end_q)
    right = 0 if causal else right
    if left >= 0:
        first = torch.maximum(first, own - left)
    if right >= 0:
        last = torch.minimum(last, own + right)
    return first, last


def next_bound(begins: torch.Tensor, bounds: torch.Tensor) -> torch.Tensor:
    """The smallest of the bounds, which ascend, whose sequence begins behind a token."""
    return -torch.where(begins, -NONE_FOLLOWS, -bounds).amax(1)


def forward(q, k, v, cu_seq_q, cu_seq_k, causal, scale, left, right):
    """(result [T, H, E] laid out as q, logarithm of the softmax's denominator [H, T], state of no random
    numbers)"""
    torch._check(k.shape[0] == v.shape[0])  # two symbols of torch, one length
    first, last = key_ranges(q.shape[0], cu_seq_q, cu_seq_k, causal, left, right)
    scale = default_scale(q, scale)
    result = torch.ops.sinter.ranged_attention(q, k, v, first, last, scale)
    mask = mask_of_ranges(first, last, k.shape[0])
    total = torch.logsumexp(scores(with_batch(q), with_batch(k), mask, False, scale)[0], -1)
    state = torch.empty(2, dtype=torch.uint64, device=q.device)
    return laid_out(result, Placing(stride_order(q))), total, state


def backward(grad, q, k, v, cu_seq_q, cu_seq_k, causal, scale, left, right):
    first, last = key_ranges(q.shape[0], cu_seq_q, cu_seq_k, causal, left, right)
    return torch.ops.sinter.ranged_attention_backward(grad, q, k, v, first, last, default_scale(q, scale))


# The signatures of torch's ops.

def varlen_attn(q, k, v, cu_seq_q, cu_seq_k, max_q, max_k, is_causal=False, scale=None,
                window_size=None, enable_gqa=False, seqused_k=None, block_table=None, *ignored, **others):
    if cu_seq_k is None or seqused_k is not None or block_table is not None:
        return NotImplemented
    return forward(q, k, v, cu_seq_q, cu_seq_k, is_causal, scale, *(window_size or (-1, -1)))


def varlen_attn_backward(grad, q, k, v, out, lse, cu_seq_q, cu_seq_k, max_q, max_k, is_causal, state,
                         scale=None, window_size=None, *ignored, **others):
    return backward(grad, q, k, v, cu_seq_q, cu_seq_k, is_causal, scale, *(window_size or (-1, -1)))


def flash(q, k, v, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, return_debug_mask, *,
          scale=None, window_size_left=None, window_size_right=None, **others):
    is_packed = cum_seq_q is not None and cum_seq_k is not None
    others.pop("num_splits", None)
    if not is_packed or dropout_p or return_debug_mask or any(x is not None for x in others.values()):
        return NotImplemented
    result, total, state = forward(q, k, v, cum_seq_q, cum_seq_k, is_causal, scale,
                                   *window(window_size_left, window_size_right))
    return result, total, state, state.new_empty(()), q.new_empty(0)


def flash_backward(grad, q, k, v, out, lse, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, state,
                   unused, *, scale=None, window_size_left=None, window_size_right=None):
    if cum_seq_q is None or dropout_p:
        return NotImplemented
    return backward(grad, q, k, v, cum_seq_q, cum_seq_k, is_causal, scale,
                    *window(window_size_left, window_size_right))


def window(left: int | None, right: int | None) -> tuple[int, int]:
    return (-1 if left is None else left), (-1 if right is None else right)


DECOMPOSITIONS = {
    torch.ops.torch_attn._varlen_attn.default: varlen_attn,
    torch.ops.torch_attn._varlen_attn_backward.default: varlen_attn_backward,
    torch.ops.aten._flash_attention_forward.default: flash,
    torch.ops.aten._flash_attention_backward.default: flash_backward,
}
