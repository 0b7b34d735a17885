"""How composite ops of torch become those that the importer takes."""

from __future__ import annotations

import functools
import math

import torch
from torch._decomp import core_aten_decompositions
from torch._prims_common import suggest_memory_format

from . import library  # registers the ops
from .foreach import foreach_decompositions
from .layout import Layout, stride_order

aten = torch.ops.aten

# Ops that the importer takes as they are, in one piece or with fewer roundings.
KEPT = (
    "silu", "silu_backward", "gelu", "gelu_backward",
    "embedding_dense_backward", "slice_scatter", "select_scatter", "log_sigmoid_forward",
    "mse_loss", "mse_loss_backward", "linalg_vector_norm", "baddbmm", "addmv", "leaky_relu",
    "elu", "hardtanh", "softplus", "_softmax_backward_data",
    "sigmoid_backward", "tanh_backward", "threshold_backward", "logsumexp", "native_group_norm",
    "_fused_rms_norm", "xlogy", "hypot", "logaddexp", "lerp", "addcmul", "addcdiv", "square",
    "trunc", "frac", "diagonal", "index_select", "masked_fill", "stack", "unbind", "roll",
    # torch decomposes these into index_put, which lets an index below zero count from the end.
    "index_add", "index_copy", "index_fill",
)


@functools.cache
def decompositions() -> dict:
    """The table for aot_autograd and torch.export."""
    table = {**core_aten_decompositions(), **foreach_decompositions()}
    for name in KEPT:
        packet = getattr(aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            table.pop(getattr(packet, overload), None)
    for name, function in {**ATTENTION, **ROWS}.items():
        packet = getattr(aten, name, None)
        if packet is not None:
            table[packet.default] = function
    return table


def default_scale(q: torch.Tensor, scale: float | None) -> float:
    if scale is not None:
        return scale
    return 1.0 / math.sqrt(q.shape[-1]) if q.shape[-1] else 1.0


def _attention(q, k, v, mask, causal, scale, like_query=True):
    """(result [B, H, S, E], logarithm of the softmax's denominator [B, H, S])

    like_query: whether torch's op lays its result out as q; else as [B, S, H, E]."""
    torch._check(k.shape[2] == v.shape[2])  # two symbols of torch, one length
    out = torch.ops.sinter.attention(q, k, v, mask, causal,
                                     default_scale(q, scale)).transpose(1, 2)
    if like_query:
        out = laid_out(out, stride_order(q))
    # The sum is dropped where no one reads it.
    return out, torch.logsumexp(library.scores(q, k, mask, causal, default_scale(q, scale)), -1)


def _backward(grad, q, k, v, mask, causal, scale, tokens_first=False):
    """The gradients are laid out as torch's op lays them out: [B, S, H, D] where `tokens_first`, else
    as q, k and v are."""
    torch._check(k.shape[2] == v.shape[2])
    grads = torch.ops.sinter.attention_backward(grad, q, k, v, mask, causal,
                                                default_scale(q, scale))
    orders = [(0, 2, 1, 3) if tokens_first else stride_order(x) for x in (q, k, v)]
    return tuple(laid_out(x, order) for x, order in zip(grads, orders))


def _bias_gradient(grad, q, k, v, bias, causal, scale):
    """The gradient of a learned bias [B, H, S, T], that of the scores: P (dP - sum(P dP))."""
    p = torch.softmax(library.scores(q, k, bias, causal, default_scale(q, scale)), -1)
    dp = grad.float() @ library.repeated(v, q).float().transpose(-1, -2)
    return (p * (dp - (p * dp).sum(-1, keepdim=True))).to(bias.dtype)


def laid_out(x, order):
    """x with its axes in this order of memory."""
    return x.permute(order).contiguous().permute(Layout(tuple(order)).inverse)


def flash_cpu(q, k, v, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    if dropout_p:
        return NotImplemented
    return _attention(q, k, v, attn_mask, is_causal, scale)


def flash_cpu_backward(grad, q, k, v, out, logsumexp, dropout_p, is_causal, *, attn_mask=None,
                       scale=None):
    if dropout_p:
        return NotImplemented
    return _backward(grad, q, k, v, attn_mask, is_causal, scale, tokens_first=True)


def _seeds(q):
    return [torch.empty((), dtype=torch.int64, device=q.device) for _ in range(2)]


def flash(q, k, v, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None):
    if dropout_p or return_debug_mask:
        return NotImplemented
    out, total = _attention(q, k, v, None, is_causal, scale)
    none = q.new_empty((0,))
    return (out, total, None, None, q.shape[2], k.shape[2], *_seeds(q), none)


def flash_backward(grad, q, k, v, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p,
                   is_causal, philox_seed, philox_offset, *, scale=None):
    if dropout_p:
        return NotImplemented
    return _backward(grad, q, k, v, None, is_causal, scale)


def efficient(q, k, v, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, *,
              scale=None):
    if dropout_p:
        return NotImplemented
    return (*_attention(q, k, v, attn_bias, is_causal, scale, False), *_seeds(q))


def efficient_backward(grad, q, k, v, attn_bias, out, logsumexp, philox_seed, philox_offset,
                       dropout_p, grad_input_mask, is_causal=False, *, scale=None):
    if dropout_p:
        return NotImplemented
    grads = _backward(grad, q, k, v, attn_bias, is_causal, scale, tokens_first=True)
    bias = _bias_gradient(grad, q, k, v, attn_bias, is_causal, scale) if grad_input_mask[3] else None
    return (*grads, bias)


def cudnn(q, k, v, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False,
          return_debug_mask=False, *, scale=None):
    if dropout_p or return_debug_mask:
        return NotImplemented
    out, total = _attention(q, k, v, attn_bias, is_causal, scale)
    return (out, total, None, None, q.shape[2], k.shape[2], *_seeds(q), q.new_empty((0,)))


def cudnn_backward(grad, q, k, v, out, logsumexp, philox_seed, philox_offset, attn_bias,
                   cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, *, scale=None):
    if dropout_p:
        return NotImplemented
    return _backward(grad, q, k, v, attn_bias, is_causal, scale)


ATTENTION = {
    "_scaled_dot_product_flash_attention_for_cpu": flash_cpu,
    "_scaled_dot_product_flash_attention_for_cpu_backward": flash_cpu_backward,
    "_scaled_dot_product_flash_attention": flash,
    "_scaled_dot_product_flash_attention_backward": flash_backward,
    "_scaled_dot_product_efficient_attention": efficient,
    "_scaled_dot_product_efficient_attention_backward": efficient_backward,
    "_scaled_dot_product_cudnn_attention": cudnn,
    "_scaled_dot_product_cudnn_attention_backward": cudnn_backward,
}


# The loss of labels in ops that torch's partitioner computes again in the backward pass: what the
# forward pass keeps of the logits is then two numbers a row, and no float32 tensor of their size.

def log_softmax(x, dim, half_to_float):
    y = x.float()
    if y.dim() == 0:
        y = y - y
    elif y.shape[dim] == 0:
        y = y.clone()
    else:
        y = y - y.amax(dim, keepdim=True)
        y = y - y.exp().sum(dim, keepdim=True).log()
    return (y if half_to_float else y.to(x.dtype)).contiguous()


def log_softmax_backward(grad, y, dim, input_dtype):
    g = grad.float()
    total = g.sum(dim, keepdim=True) if y.dim() else g
    return (g - y.float().exp() * total).to(input_dtype).contiguous()


NO_REDUCTION, MEAN = 0, 1


def _at_label(x, target, ignore):
    """bool [..., classes]: whether the column is the row's label; False where it is ignored."""
    kept = target != ignore
    columns = torch.arange(x.shape[-1], dtype=torch.int32, device=x.device)
    label = torch.ops.sinter.row_numbers(torch.where(kept, target, 0), x.shape[-1])
    return (columns == label.unsqueeze(-1)) & kept.unsqueeze(-1)


def _label_weights(at, target, weight, ignore):
    """float32: the weight of each row's class, 0 where the label is ignored."""
    kept = target != ignore
    if weight is None:
        return kept.float()
    return torch.where(at, weight.float(), 0.0).sum(-1)


def nll_loss(x, target, weight, reduction, ignore):
    """The element that a label names is a sum of its row in which all others are zeros: a reduction
    that shares a kernel with the softmax of the row."""
    at = _at_label(x, target, ignore)
    weights = _label_weights(at, target, weight, ignore)
    loss = -torch.where(at, x.float(), 0.0).sum(-1) * weights
    total = weights.sum()
    if reduction == NO_REDUCTION and x.dim() == 2:
        return loss.to(x.dtype), x.new_zeros(())
    loss = loss.sum()
    loss = loss / total if reduction == MEAN else loss
    return loss.to(x.dtype), total.to(x.dtype)


def nll_loss_backward(grad, x, target, weight, reduction, ignore, total_weight):
    at = _at_label(x, target, ignore)
    scale = grad.float()
    if reduction == MEAN:
        scale = scale / total_weight.float()
    factor = -(_label_weights(at, target, weight, ignore) * scale)
    return torch.where(at, factor.unsqueeze(-1), 0.0).to(x.dtype)


def roll(x, shifts, dims=()):
    """Keeps channels_last, as the op does in eager; torch's own fake kernel does not."""
    if not dims or suggest_memory_format(x) == torch.contiguous_format:
        return NotImplemented
    layout = Layout.of(x)
    if layout.is_plain:
        return NotImplemented
    axes = [layout.order.index(axis % x.dim()) for axis in dims]
    return x.permute(layout.order).roll(shifts, axes).permute(layout.inverse)


ROWS = {"roll": roll, "_log_softmax": log_softmax, "_log_softmax_backward_data": log_softmax_backward,
        "nll_loss_forward": nll_loss, "nll_loss_backward": nll_loss_backward}
