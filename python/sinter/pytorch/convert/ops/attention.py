"""Attention: the op of the IR where it fits, else its parts."""

from __future__ import annotations

import math

import torch

from ....facts import limit
from ....importing import row_ops
from ....importing.row_ops import gather
from ....importing.tensor import Tensor
from ....importing.unsupported import Unsupported
from .movement import along
from .registry import Conversion, converts

# Elements of a block of scores in the gradient: 512 MB of float32. Its rows are a multiple of 64,
# which the library's fastest products ask for.
SCORES = 2**27


@converts(torch.ops.sinter.attention.default)
def attention(c: Conversion, q: Tensor, k: Tensor, v: Tensor, mask, causal: bool, scale: float,
              softcap: float = 0.0, dropout: float = 0.0, seed: Tensor | None = None) -> Tensor:
    """q [B, H, S, D], k [B, G, T, D], v [B, G, T, E] -> [B, S, H, E]."""
    if fits_op(q, k, v):
        return attention_op(q, k, v, mask, causal, scale, softcap, dropout, seed)
    refuse_dropout(seed)
    k, v = repeated(k, q), repeated(v, q)
    p = probabilities(scores(c, q, k, mask, causal, scale, softcap, 0), mask is not None).to(q.dtype)
    return c.g.einsum("bhst,bhte->bshe", p, v)


def refuse_dropout(seed: Tensor | None) -> None:
    if seed is not None:
        raise Unsupported("a dropout of attention without elements, or with a number of heads that the call decides")


def repeated(x: Tensor, q: Tensor) -> Tensor:
    """Keys or values [B, G, T, D] for each of the H query heads."""
    if x.product(1) == q.product(1):
        return x
    if not (x.product(1).is_number and q.product(1).is_number):
        return gather(x, along(x, group_of_head(q, x), 1), 1)
    times = q.size(1) // x.size(1)
    return x.unsqueeze(2).expand_axis(2, times).flatten(1, 2).merged(1)


def group_of_head(q: Tensor, k: Tensor) -> Tensor:
    """i32 [H]: which of the G heads of keys each query head reads, for numbers that only the call knows."""
    return q.g.map("div_floor", q.places(1).squeeze([1, 2]) * k.extent(1), q.extent(1))


def grouped_sum(grad: Tensor, x: Tensor) -> Tensor:
    """The gradient of keys or values x from the gradient of `repeated`."""
    if grad.product(1) == x.product(1):
        return grad
    if not (grad.product(1).is_number and x.product(1).is_number):
        is_read = group_of_head(grad, x).equals(x.places(1).squeeze([2]))  # [G, H]
        return x.g.where(is_read.unsqueeze(-1).unsqueeze(-1), grad.unsqueeze(1), 0.0).sum([2])
    return grad.unflatten(1, [x.size(1), grad.size(1) // x.size(1)]).sum([2])


def fits_op(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether heads and their widths are numbers, and no size is 0."""
    inner = [x.product(axis) for x in (q, k, v) for axis in (1, 3)]
    sizes = [x.product(axis) for x in (q, k) for axis in range(4)] + [v.product(3)]
    return (all(product.is_number for product in inner)
            and not any(product.is_number and product.number == 0 for product in sizes))


def has_gradient_ops(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether the gradients are ops of the IR."""
    return (fits_op(q, k, v) and q.dtype in ("f16", "bf16")
            and max(q.size(3), v.size(3)) <= limit("gradient_width"))


def of_rank_4(mask):
    """A mask of any rank, or none, with the axes [B, H, S, T]."""
    while mask is not None and mask.rank < 4:
        mask = mask.unsqueeze(0)
    return mask


def token_rows(x: Tensor) -> Tensor:
    """[B, S, H * D] of [B, H, S, D]."""
    return x.permute([0, 2, 1, 3]).flatten(2, 3)


def attention_op(q: Tensor, k: Tensor, v: Tensor, mask, causal: bool, scale: float, softcap: float,
                 dropout: float, seed: Tensor | None) -> Tensor:
    heads, groups, width = q.size(1), k.size(1), v.size(3)
    q, k, v = token_rows(q), token_rows(k), token_rows(v)
    result = row_ops.attention(q, k, v, *row_ops.key_rows(q, causal), of_rank_4(mask), scale, heads, groups,
                               softcap, dropout, seed)
    return result.unflatten(2, [heads, width])


@converts(torch.ops.sinter.ranged_attention.default)
def ranged_attention(c: Conversion, q: Tensor, k: Tensor, v: Tensor, first: Tensor, last: Tensor,
                     scale: float) -> Tensor:
    """q [T, H, D], k [R, G, D], v [R, G, E] -> [T, H, E]."""
    heads, groups, width = q.size(1), k.size(1), v.size(2)
    q, k, v = (x.flatten(1, 2) for x in (q, k, v))
    return row_ops.attention(q, k, v, first, last, None, scale, heads, groups).unflatten(1, [heads, width])


def tanh_of_scores(c: Conversion, q: Tensor, k: Tensor, scale: float, softcap: float) -> Tensor:
    """tanh(score / softcap), float32 [B, H, S, T]"""
    return (dots(c, q, k) * float(scale) / float(softcap)).apply("tanh")


def dots(c: Conversion, q: Tensor, k: Tensor) -> Tensor:
    return c.g.einsum("bhsd,bhtd->bhst", q, k, "f32" if q.dtype != "f32" else None)


def scores(c: Conversion, q: Tensor, k: Tensor, mask, causal: bool, scale: float, softcap: float,
           begin: int) -> Tensor:
    """float32 [B, H, S, T]; -inf where a token does not see a key. Query 0 is token `begin`."""
    s = tanh_of_scores(c, q, k, scale, softcap) * float(softcap) if softcap else dots(c, q, k) * float(scale)
    if mask is not None:
        s = c.g.where(mask, s, -math.inf) if mask.dtype == "i1" else s + mask.f32()
    if causal:
        rows, columns = s.places(2) + begin, s.places(3)
        s = c.g.where(columns.less_equal(rows), s, -math.inf)
    return s


def probabilities(s: Tensor, is_masked: bool) -> Tensor:
    """softmax of rows; zeros where a mask leaves nothing of a row."""
    p = row_ops.softmax(s, 3)
    if not is_masked:
        return p
    empty = s.max([3], True).equals(-math.inf)
    return s.g.where(empty, 0.0, p)


@converts(torch.ops.sinter.attention_backward.default)
def attention_backward(c: Conversion, grad: Tensor, q: Tensor, k: Tensor, v: Tensor, mask,
                       causal: bool, scale: float, softcap: float = 0.0) -> tuple:
    """Gradients of q, k and v. The scores are computed again, in blocks of queries whose memory is
    bounded: P = softmax(scores), dV = P' dO, dP = dO V', dS = P (dP - sum(P dP)), dQ = dS K,
    dK = dS' Q. Under a soft cap dS is multiplied by 1 - tanh(score / softcap)^2."""
    keys, values = k, v
    k, v = repeated(k, q), repeated(v, q)
    blocks = query_blocks(q, k)
    parts = [backward_block(c, grad, q, k, v, mask, causal, scale, softcap, begin, end)
             for begin, end in blocks]
    dq = c.g.concat([part[0] for part in parts], 2) if len(parts) > 1 else parts[0][0]
    dk, dv = parts[0][1:]
    for part in parts[1:]:
        dk, dv = dk + part[1], dv + part[2]
    dk, dv = grouped_sum(dk, keys), grouped_sum(dv, values)
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)


@converts(torch.ops.sinter.attention_with_log_sum.default)
def attention_with_log_sum(c: Conversion, q: Tensor, k: Tensor, v: Tensor, mask, causal: bool,
                           scale: float, softcap: float = 0.0, dropout: float = 0.0,
                           seed: Tensor | None = None) -> tuple:
    """[B, S, H, E], and float32 [B, H, S]"""
    result = attention(c, q, k, v, mask, causal, scale, softcap, dropout, seed)
    if has_gradient_ops(q, k, v):
        rows = [token_rows(x) for x in (q, k, v)]
        return result, row_ops.attention_log_sum(*rows, *row_ops.key_rows(rows[0], causal), of_rank_4(mask),
                                                 scale, q.size(1), k.size(1), softcap)
    s = scores(c, q, repeated(k, q), mask, causal, scale, softcap, 0)
    largest = s.max([3], True)
    largest = s.g.where(largest.equals(-math.inf), 0.0, largest)
    total = (s - largest).apply("exp").sum([3], True).apply("log") + largest
    return result, total.squeeze([3]) * (1 / math.log(2))


@converts(torch.ops.sinter.attention_gradients.default)
def attention_gradients(c: Conversion, grad: Tensor, result: Tensor, log_sum: Tensor, q: Tensor,
                        k: Tensor, v: Tensor, mask, causal: bool, scale: float, softcap: float = 0.0,
                        dropout: float = 0.0, seed: Tensor | None = None) -> tuple:
    """Gradients of q, k and v; grad [B, H, S, E], result [B, S, H, E]. The sum of P dP over a row, which the gradient
    of a softmax needs, equals the sum of grad times the result."""
    if not has_gradient_ops(q, k, v):
        refuse_dropout(seed)
        return attention_backward(c, grad, q, k, v, mask, causal, scale, softcap)
    delta = (grad.f32() * result.permute([0, 2, 1, 3]).f32()).sum([3])
    rows = [token_rows(x) for x in (q, k, v)]
    grads = row_ops.attention_gradients(*rows, *row_ops.key_rows(rows[0], causal), token_rows(grad),
                                        log_sum, delta, of_rank_4(mask), scale, q.size(1), k.size(1), softcap,
                                        dropout, seed)
    return tuple(x.unflatten(2, [of.size(1), of.size(3)]).permute([0, 2, 1, 3])
                 for x, of in zip(grads, (q, k, v)))


@converts(torch.ops.sinter.ranged_attention_backward.default)
def ranged_attention_backward(c: Conversion, grad: Tensor, q: Tensor, k: Tensor, v: Tensor, first: Tensor,
                              last: Tensor, scale: float) -> tuple:
    """Gradients of q [T, H, D], k [R, G, D] and v [R, G, E], with the ranges as a mask."""
    row = k.places(0).squeeze([1, 2])
    mask = first.unsqueeze(1).less_equal(row) & row.less_equal(last.unsqueeze(1))
    with_batch = [x.transpose(0, 1).unsqueeze(0) for x in (grad, q, k, v)]
    grads = attention_backward(c, *with_batch, mask.unsqueeze(0).unsqueeze(0), False, scale)
    return tuple(x.squeeze([0]).transpose(0, 1) for x in grads)


def query_blocks(q: Tensor, k: Tensor) -> list[tuple[int, int]]:
    if not q.is_number or not k.is_number:
        return [(0, -1)]
    batch, heads, tokens = (q.size(axis) for axis in range(3))
    rows = max(1, SCORES // max(1, batch * heads * k.size(2)))
    rows = rows // 64 * 64 or rows
    return [(begin, min(tokens, begin + rows)) for begin in range(0, tokens, rows)] or [(0, 0)]


def backward_block(c: Conversion, grad: Tensor, q: Tensor, k: Tensor, v: Tensor, mask, causal,
                   scale, softcap: float, begin: int, end: int) -> tuple[Tensor, Tensor, Tensor]:
    """dQ of the queries begin .. end - 1, and what they add to dK and dV, all in float32."""
    wide = lambda x: None if x.dtype == "f32" else "f32"
    keys = None
    if end >= 0:
        q, grad = q.slice(2, begin, end), grad.slice(2, begin, end)
        mask = mask if mask is None or mask.is_one(-2) else mask.slice(-2, begin, end)
        if causal and mask is None and end < k.size(2):
            keys = k.size(2)
            k, v = k.slice(2, 0, end), v.slice(2, 0, end)  # later keys are not seen
    p = probabilities(scores(c, q, k, mask, causal, scale, softcap, begin), mask is not None)
    low = p.to(q.dtype)
    dv = c.g.einsum("bhst,bhse->bhte", low, grad, wide(q))
    dp = c.g.einsum("bhse,bhte->bhst", grad, v, wide(q))
    ds = p * (dp - (p * dp).sum([3], True)) * float(scale)
    if softcap:
        tanh = tanh_of_scores(c, q, k, scale, softcap)
        ds = ds * (1.0 - tanh * tanh)
    ds = ds.to(q.dtype)
    dq = c.g.einsum("bhst,bhtd->bhsd", ds, k, wide(q))
    dk = c.g.einsum("bhst,bhsd->bhtd", ds, q, wide(q))
    if keys is not None:
        pad = lambda x: c.g.concat([x, x.filled(c.g.number(0, "f32"), 2, keys - end)], 2)
        dk, dv = pad(dk), pad(dv)
    return dq, dk, dv
