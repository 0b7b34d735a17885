"""Ops that the backend adds to torch: attention and its gradient, row numbers, and slices of
concatenations, as Sinter takes them.

torch has an op for each of its implementations of attention, and their gradients need a sum that the
forward pass has to keep. In the backend's graphs all of them are these two ops (`attention_call.py`),
whose gradient keeps nothing but q, k and v. Where Sinter does not take one, it runs in eager by the
functions below. Tokens of packed sequences see ranges of keys (`packed_attention.py`).
"""

from __future__ import annotations

import math
from typing import Sequence

import torch
from torch.library import custom_op

from ...facts import limit
from ...importing.types import MAX_I32

MAX_U32 = 2**32 - 1


@custom_op("sinter::attention", mutates_args=())
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None,
              causal: bool, scale: float, softcap: float = 0.0, dropout: float = 0.0,
              seed: torch.Tensor | None = None) -> torch.Tensor:
    """softmax(scale q k' + mask) v. q [B, H, S, D], k [B, G, T, D], v [B, G, T, E] where G divides
    H; the mask is None or broadcasts to [B, H, S, T]: bool, True where a key is seen, or numbers of q's
    type or float32. Result [B, S, H, E], dense. A token that sees no key gets zeros. `causal`: token s
    sees the keys 0 .. s, also where S and T differ. softcap > 0: tanh(score / softcap) * softcap stands in
    the place of each score before the mask. dropout > 0: `dropout_factors` of the seed, int32 [], multiply the
    probabilities."""
    k, v = repeated(k, q), repeated(v, q)
    p = probabilities(q, k, mask, causal, scale, softcap)
    p = dropped(p, dropout, seed)
    return torch.einsum("bhst,bhte->bshe", p.to(q.dtype), v).contiguous()


def repeated(x: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Keys or values [B, G, T, D] for each query head."""
    heads, groups = q.shape[1], x.shape[1]
    return x if groups == heads else x.repeat_interleave(heads // groups, 1)


def grouped_sum(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The gradient of keys or values from the gradient of `repeated`."""
    groups = x.shape[1]
    return grad if grad.shape[1] == groups else grad.unflatten(1, (groups, -1)).sum(2)


def dropped(x: torch.Tensor, dropout: float, seed: torch.Tensor | None) -> torch.Tensor:
    return x if seed is None else x * dropout_factors(x.shape, dropout, seed)


def dropout_factors(sizes: Sequence[int], dropout: float, seed: torch.Tensor) -> torch.Tensor:
    """float32 [B, H, S, T]: 0 where the dropout of an attention leaves a weight out, by the function of the seed and
    the weight's place that its kernels compute (ir/attention_dropout.h); else one over the probability to stay."""
    batch, heads, tokens, keys = (torch.arange(size, device=seed.device) for size in sizes)
    head = batch[:, None, None, None] * sizes[1] + heads[:, None, None]
    row = mixed(mixed(seed.long() & MAX_U32, head), tokens[:, None])
    bits = mixed(row, keys // 16 * 8 + keys % 8) >> (keys // 8 % 2 * 16) & 0xffff
    threshold = min(max(int(dropout * 65536 + 0.5), 1), 65535)
    return (bits >= threshold) * (65536 / (65536 - threshold))


def mixed(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """int64 numbers of 32 bits: the function `dropout_mix` of these."""
    x = a ^ b * 0x9e3779b1 & MAX_U32
    x = (x ^ x >> 16) * 0x7feb352d & MAX_U32
    x = (x ^ x >> 15) * 0x846ca68b & MAX_U32
    return x ^ x >> 16


@attention.register_fake
def _(q, k, v, mask, causal, scale, softcap=0.0, dropout=0.0, seed=None):
    return q.new_empty((q.shape[0], q.shape[2], q.shape[1], v.shape[3]))


@custom_op("sinter::attention_backward", mutates_args=())
def attention_backward(
        grad: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
        mask: torch.Tensor | None, causal: bool, scale: float, softcap: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of q, k and v, in their shapes, dense; grad [B, H, S, E]."""
    return tuple(x.contiguous() for x in gradients(grad, q, k, v, mask, causal, scale, softcap))


def gradients(grad, q, k, v, mask, causal, scale, softcap=0.0, dropout=0.0,
              seed=None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Computes the gradients of `attention` by torch's ops, which have gradients of their own."""
    keys, values = k, v
    k, v = repeated(k, q), repeated(v, q)
    p = probabilities(q, k, mask, causal, scale, softcap)
    dv = torch.einsum("bhst,bhse->bhte", dropped(p, dropout, seed), grad.float())
    dp = dropped(torch.einsum("bhse,bhte->bhst", grad.float(), v.float()), dropout, seed)
    ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * scale
    if softcap:
        ds = ds * (1 - torch.tanh(scaled_dots(q, k, scale) / softcap) ** 2)
    dq = torch.einsum("bhst,bhtd->bhsd", ds, k.float())
    dk = grouped_sum(torch.einsum("bhst,bhsd->bhtd", ds, q.float()), keys)
    dv = grouped_sum(dv, values)
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)


@attention_backward.register_fake
def _(grad, q, k, v, mask, causal, scale, softcap=0.0):
    return tuple(x.new_empty(x.shape) for x in (q, k, v))


def has_gradient_kernel(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                        mask: torch.Tensor | None) -> bool:
    """Whether kernels compute the gradient from the log-sums of the scores: they do not compute a mask's."""
    return ((mask is None or not mask.requires_grad) and q.dtype in (torch.float16, torch.bfloat16)
            and all(isinstance(x.shape[-1], int) and 1 <= x.shape[-1] <= limit("gradient_width") for x in (q, v)))


@custom_op("sinter::attention_with_log_sum", mutates_args=())
def attention_with_log_sum(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, causal: bool, scale: float,
        softcap: float = 0.0, dropout: float = 0.0, seed: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`attention`, and log2 of the sum of exp(score) over the keys that a token sees, float32 [B, H, S];
    -inf where it sees none. One op, so that a graph's forward part computes both."""
    log_sum = torch.logsumexp(scores(q, k, mask, causal, scale, softcap), -1) / math.log(2)
    return attention(q, k, v, mask, causal, scale, softcap, dropout, seed), log_sum


@attention_with_log_sum.register_fake
def _(q, k, v, mask, causal, scale, softcap=0.0, dropout=0.0, seed=None):
    return (q.new_empty((q.shape[0], q.shape[2], q.shape[1], v.shape[3])),
            q.new_empty(q.shape[:3], dtype=torch.float32))


@custom_op("sinter::attention_gradients", mutates_args=())
def attention_gradients(
        grad: torch.Tensor, result: torch.Tensor, log_sum: torch.Tensor, q: torch.Tensor,
        k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, causal: bool, scale: float,
        softcap: float = 0.0, dropout: float = 0.0, seed: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of q, k and v, in their shapes; axis 2 is the second slowest in memory. grad
    [B, H, S, E]; the result and the log-sums of the attention."""
    return tuple(x.transpose(1, 2).contiguous().transpose(1, 2)
                 for x in gradients(grad, q, k, v, mask, causal, scale, softcap, dropout, seed))


@attention_gradients.register_fake
def _(grad, result, log_sum, q, k, v, mask, causal, scale, softcap=0.0, dropout=0.0, seed=None):
    return tuple(x.new_empty((x.shape[0], x.shape[2], x.shape[1], x.shape[3])).transpose(1, 2)
                 for x in (q, k, v))


@attention.register_vmap
def _(info, axes, q, k, v, mask, causal, scale, softcap=0.0, dropout=0.0, seed=None):
    """The axis of vmap joins the axis of the batch."""
    count = info.batch_size
    q, k, v = (first_axis(x, axis, count) for x, axis in zip((q, k, v), axes))
    batch = q.shape[1]
    if mask is not None and (axes[3] is not None or mask.dim() == 4):
        mask = first_axis(mask, axes[3], count)
        mask = mask.reshape(count, *[1] * (5 - mask.dim()), *mask.shape[1:])
        mask = mask.expand(count, batch, *mask.shape[2:]).flatten(0, 1)
    result = attention(*(x.flatten(0, 1) for x in (q, k, v)), mask, causal, scale, softcap, dropout, seed)
    return result.unflatten(0, (count, batch)), 0


def first_axis(x: torch.Tensor, axis: int | None, count: int) -> torch.Tensor:
    """x with the axis of vmap as its first one."""
    return x.unsqueeze(0).expand(count, *x.shape) if axis is None else x.movedim(axis, 0)


@custom_op("sinter::ranged_attention", mutates_args=())
def ranged_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, first: torch.Tensor,
                     last: torch.Tensor, scale: float) -> torch.Tensor:
    """Token t sees the keys first[t] .. last[t], both included, that exist; if none, its result is zeros.
    q [T, H, D], k [R, G, D], v [R, G, E], first and last int32 [T]. Result [T, H, E], dense."""
    mask = mask_of_ranges(first, last, k.shape[0])
    return attention(*(with_batch(x) for x in (q, k, v)), mask, False, scale).squeeze(0)


@ranged_attention.register_fake
def _(q, k, v, first, last, scale):
    return q.new_empty((*q.shape[:2], v.shape[2]))


@custom_op("sinter::ranged_attention_backward", mutates_args=())
def ranged_attention_backward(
        grad: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, first: torch.Tensor,
        last: torch.Tensor, scale: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of q, k and v, in their shapes, dense; grad [T, H, E]."""
    mask = mask_of_ranges(first, last, k.shape[0])
    grads = gradients(*(with_batch(x) for x in (grad, q, k, v)), mask, False, scale)
    return tuple(x.squeeze(0).transpose(0, 1).contiguous() for x in grads)


@ranged_attention_backward.register_fake
def _(grad, q, k, v, first, last, scale):
    return tuple(x.new_empty(x.shape) for x in (q, k, v))


def with_batch(x: torch.Tensor) -> torch.Tensor:
    """[1, H, T, D] of [T, H, D]."""
    return x.transpose(0, 1).unsqueeze(0)


def mask_of_ranges(first: torch.Tensor, last: torch.Tensor, keys) -> torch.Tensor:
    """bool [1, 1, T, keys]: which keys each token sees."""
    row = torch.arange(keys, dtype=torch.int32, device=first.device)
    return ((first[:, None] <= row) & (row <= last[:, None]))[None, None]


@custom_op("sinter::row_numbers", mutates_args=())
def row_numbers(index: torch.Tensor, size: int) -> torch.Tensor:
    """An index along an axis of `size` as int32, to be compared; on the CPU an IndexError where it is
    none of 0 .. size - 1."""
    if index.device.type == "cpu" and index.numel():
        low, high = (int(bound) for bound in index.aminmax())
        if low < 0 or high >= size:
            raise IndexError(f"index {low if low < 0 else high} is out of bounds for an axis of "
                             f"size {size}")
    return index.clamp(-1, MAX_I32).to(torch.int32)


@row_numbers.register_fake
def _(index, size):
    return index.new_empty(index.shape, dtype=torch.int32)


@custom_op("sinter::in_range", mutates_args=())
def in_range(x: torch.Tensor, low: int, high: int, name: str) -> torch.Tensor:
    """x; on the CPU a RuntimeError where an element is not in low .. high. name: of x, for the error."""
    if x.device.type == "cpu" and not ((x >= low) & (x <= high)).all():
        raise RuntimeError(range_error(low, high, name))
    return x.clone()


@in_range.register_fake
def _(x, low, high, name):
    return torch.empty_like(x)


def range_error(low: int, high: int, name: str) -> str:
    return f"all elements of {name} should be between {low} and {high}"


def scaled_dots(q, k, scale):
    """float32 [B, H, S, T]"""
    return q.float() @ repeated(k, q).float().transpose(-1, -2) * scale


def scores(q, k, mask, causal, scale, softcap=0.0):
    """float32 [B, H, S, T]; -inf where a token does not see a key."""
    s = scaled_dots(q, k, scale)
    if softcap:
        s = torch.tanh(s / softcap) * softcap
    if mask is not None:
        s = s.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else s + mask
    if causal:
        seen = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).tril()
        s = s.masked_fill(~seen, -math.inf)
    return s


def probabilities(q, k, mask, causal, scale, softcap=0.0):
    """float32 [B, H, S, T]"""
    s = scores(q, k, mask, causal, scale, softcap)
    return torch.nan_to_num(torch.softmax(s, -1)) if mask is not None else torch.softmax(s, -1)


@custom_op("sinter::slice_of_joined", mutates_args=())
def slice_of_joined(tensors: Sequence[torch.Tensor], axis: int, begin: int, end: int) -> torch.Tensor:
    """Elements begin .. end - 1 of a concatenation along an axis, as a slice reads these numbers."""
    joined = torch.cat(list(tensors), axis)
    return torch.ops.aten.slice.Tensor(joined, axis, begin, end).contiguous()


@slice_of_joined.register_fake
def _(tensors, axis, begin, end):
    joined = torch.cat(list(tensors), axis)
    return torch.empty_like(torch.ops.aten.slice.Tensor(joined, axis, begin, end),
                            memory_format=torch.contiguous_format)


@custom_op("sinter::joined_slices", mutates_args=())
def joined_slices(tensors: Sequence[torch.Tensor], axis: int, begins: Sequence[int],
                  ends: Sequence[int]) -> torch.Tensor:
    """A concatenation of a slice of each tensor."""
    return torch.cat([torch.ops.aten.slice.Tensor(x, axis, begin, end)
                      for x, begin, end in zip(tensors, begins, ends)], axis)


@joined_slices.register_fake
def _(tensors, axis, begins, ends):
    return torch.cat([torch.ops.aten.slice.Tensor(x, axis, begin, end)
                      for x, begin, end in zip(tensors, begins, ends)], axis)


@custom_op("sinter::part_of_rows", mutates_args=())
def part_of_rows(x: torch.Tensor, begin: int, end: int) -> torch.Tensor:
    """Columns begin .. end - 1 of a matrix, in memory of their own: kernels that read parts of one matrix
    have texts of their own, and one for all where each part is dense."""
    return x[:, begin:end].clone(memory_format=torch.contiguous_format)


@part_of_rows.register_fake
def _(x, begin, end):
    return x.new_empty((x.shape[0], end - begin))


@custom_op("sinter::mm_in_float32", mutates_args=())
def mm_in_float32(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """mm of 16-bit matrices with its float32 sums as they are: float32 [N, M]."""
    return torch.mm(a.float(), b.float())


@mm_in_float32.register_fake
def _(a, b):
    return a.new_empty((a.shape[0], b.shape[1]), dtype=torch.float32)
