"""How composite ops of torch become those that the importer takes."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch._decomp import (_core_aten_decompositions_post_autograd, core_aten_decompositions,
                           get_decompositions)
from torch._prims_common import reduction_dims, suggest_memory_format

from . import attention_call, library, packed_attention
from .foreach import foreach_decompositions
from .layout import Layout, stride_order

aten = torch.ops.aten

# Ops that the importer takes as they are, in one piece or with fewer roundings.
KEPT = (
    "silu", "gelu", "gelu_backward", "embedding_dense_backward", "slice_scatter", "select_scatter",
    "baddbmm", "addmv", "leaky_relu", "elu", "hardtanh", "_softmax_backward_data", "logsumexp",
    "native_group_norm", "_fused_rms_norm", "hypot", "logaddexp", "lerp", "addcmul", "addcdiv", "trunc", "diagonal",
    "index_select", "masked_fill", "stack", "unbind", "roll",
    # torch decomposes these into index_put, which lets an index below zero count from the end.
    "index_add", "index_copy", "index_fill",
    # Eager refuses a probability that is none and an element outside of its plane; torch's decompositions do not.
    "bernoulli", "max_unpool2d", "max_unpool3d",
)


# torch's table for aot_autograd lacks them.
UPSAMPLES = [getattr(aten, f"upsample_nearest{kind}").default for kind in ("1d", "2d", "3d")] \
    + [getattr(aten, f"_upsample_nearest_exact{kind}").default for kind in ("1d", "2d", "3d")]


@functools.cache
def decompositions() -> dict:
    """The table for aot_autograd, which traces below autograd: torch's dispatcher has taken composite ops
    apart there, and torch's table that has them takes half a second to make. It takes
    scaled_dot_product_attention in `one_attention`."""
    return with_own({**_core_aten_decompositions_post_autograd(), **get_decompositions(UPSAMPLES)})


def with_own(table: dict) -> dict:
    """A table of torch with the backend's own decompositions."""
    table = {**table, **foreach_decompositions()}
    # Says how many bits its codes have; a table has it if torchao was imported before (quantized/coded_weights.py).
    affine = getattr(torch.ops.torchao, "dequantize_affine", None)
    if affine is not None:
        table.pop(affine.default, None)
    for name in (*KEPT, *KERNELS):
        packet = getattr(aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            table.pop(getattr(packet, overload), None)
    own = {**defaults(OWN), aten._native_batch_norm_legit.no_stats: batch_norm_no_stats}
    return {**table, **own, **packed_attention.DECOMPOSITIONS}


@functools.cache
def export_decompositions() -> dict:
    """The table for programs of torch.export."""
    return {**with_own(core_aten_decompositions()), **defaults(KERNELS),
            attention_call.OP: attention_call.scaled_dot_product_attention}


def defaults(functions: dict) -> dict:
    """The functions by the default overloads of the ops that torch has."""
    return {getattr(aten, name).default: function for name, function in functions.items()
            if hasattr(aten, name)}


def encoder_layer(x, width, heads, qkv_weight, qkv_bias, out_weight, out_bias, use_gelu, norm_first,
                  eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, weight_1, bias_1,
                  weight_2, bias_2, mask=None, mask_type=None):
    """The op that nn.TransformerEncoderLayer calls where no gradient is wanted."""
    if x.is_nested:
        return NotImplemented
    norm1 = lambda y: F.layer_norm(y, (width,), norm_weight_1, norm_bias_1, eps)
    norm2 = lambda y: F.layer_norm(y, (width,), norm_weight_2, norm_bias_2, eps)
    mixed = lambda y: self_attention(y, heads, qkv_weight, qkv_bias, out_weight, out_bias,
                                     seen_keys(mask, mask_type))
    activation = F.gelu if use_gelu else F.relu
    wide = lambda y: F.linear(activation(F.linear(y, weight_1, bias_1)), weight_2, bias_2)
    if norm_first:
        x = x + mixed(norm1(x))
        return x + wide(norm2(x))
    x = norm1(x + mixed(x))
    return norm2(x + wide(x))


def self_attention(x, heads, qkv_weight, qkv_bias, out_weight, out_bias, mask):
    """x [B, S, width]"""
    qkv = F.linear(x, qkv_weight, qkv_bias).unflatten(-1, (3, heads, x.shape[-1] // heads))
    q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    result = torch.ops.sinter.attention(q, k, v, mask, False, attention_call.default_scale(q, None))
    return F.linear(result.flatten(-2), out_weight, out_bias)


OF_KEYS = 1  # the type of a mask [B, S] of encoder_layer; another one broadcasts to [B, heads, S, S]


def seen_keys(mask, mask_type):
    """The mask of attention for one of encoder_layer, which is true where a key is not seen, or a
    number to add. A token that sees no key gets zeros, as with gradients; torch's op makes NaN of it."""
    if mask is None:
        return None
    mask = mask.logical_not() if mask.dtype == torch.bool else mask
    return mask[:, None, None] if mask_type == OF_KEYS else mask


# The ops of torch's kernels of attention, which stand in programs that others exported and decomposed.
# A compiled function has them where the user calls them by name; they run in eager there, because their
# gradients read what they keep.

def flash_cpu(q, k, v, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    return _of_kernel(2, q, k, v, attn_mask, dropout_p, is_causal, scale)


def flash(q, k, v, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None):
    return _of_kernel(9, q, k, v, None, dropout_p, is_causal, scale)


def efficient(q, k, v, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, *,
              scale=None):
    return _of_kernel(4, q, k, v, attn_bias, dropout_p, is_causal, scale, (0, 2, 1, 3))


def cudnn(q, k, v, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False,
          return_debug_mask=False, *, scale=None):
    return _of_kernel(9, q, k, v, attn_bias, dropout_p, is_causal, scale)


def _of_kernel(count, q, k, v, mask, dropout_p, causal, scale, order=None):
    """(result [B, H, S, E], logarithm of the softmax's denominator [B, H, S], None ...): as many as the
    op has. The result is laid out as q unless an order is given."""
    if dropout_p:
        return NotImplemented
    scale = attention_call.default_scale(q, scale)
    out = torch.ops.sinter.attention(q, k, v, mask, causal, scale).transpose(1, 2)
    out = attention_call.laid_out(out, attention_call.Placing(order or stride_order(q)))
    total = torch.logsumexp(library.scores(q, k, mask, causal, scale), -1)
    return (out, total, *[None] * (count - 2))


KERNELS = {"_scaled_dot_product_flash_attention_for_cpu": flash_cpu,
           "_scaled_dot_product_flash_attention": flash,
           "_scaled_dot_product_efficient_attention": efficient,
           "_scaled_dot_product_cudnn_attention": cudnn}


# The loss of labels in ops that torch's partitioner computes again in the backward pass: what the
# forward pass keeps of the logits is then two numbers a row, and no float32 tensor of their size.

def exp_of_negative(x):
    """e^x of numbers that are at most 0: the importer takes less work for it."""
    return x.abs().neg().exp()


def log_softmax(x, dim, half_to_float):
    y = x.float()
    if y.dim() == 0:
        y = y - y
    elif y.shape[dim] == 0:
        y = y.clone()
    else:
        y = y - y.amax(dim, keepdim=True)
        y = y - exp_of_negative(y).sum(dim, keepdim=True).log()
    return (y if half_to_float else y.to(x.dtype)).contiguous()


def log_softmax_backward(grad, y, dim, input_dtype):
    g = grad.float()
    total = g.sum(dim, keepdim=True) if y.dim() else g
    return (g - exp_of_negative(y.float()) * total).to(input_dtype).contiguous()


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


def binary_cross_entropy(x, target, weight=None, reduction=MEAN):
    """torch's own, with the checks of eager that it leaves out."""
    x, target = (torch.ops.sinter.in_range(tensor, 0, 1, name) for tensor, name in ((x, "input"), (target, "target")))
    return torch._decomp.decompositions.binary_cross_entropy(x, target, weight, reduction)


def vector_norm(x, order=2, axes=None, keepdim=False, *, dtype=None):
    """torch's own, with axes that count from the front, each once, as eager has them."""
    axes = reduction_dims(x.shape, axes) if axes else axes
    return torch._refs.linalg.vector_norm(x, order, axes, keepdim, dtype=dtype)


def roll(x, shifts, dims=()):
    """Keeps channels_last, as the op does in eager; torch's own fake kernel does not."""
    if not dims or suggest_memory_format(x) == torch.contiguous_format:
        return NotImplemented
    layout = Layout.of(x)
    if layout.is_plain:
        return NotImplemented
    axes = [layout.order.index(axis % x.dim()) for axis in dims]
    return x.permute(layout.order).roll(shifts, axes).permute(layout.inverse)


def group_norm_backward(grad, x, mean, rstd, weight, n, channels, spatial, groups, wanted):
    """torch's own divides by a number of Python's that depends on the sizes."""
    shape = (n, groups, channels // groups, spatial)
    per_channel = (1, groups, channels // groups, 1)
    y = (x.float().reshape(shape) - mean.float()[..., None, None]) * rstd.float()[..., None, None]
    g = grad.float().reshape(shape)
    weighted = g if weight is None else g * weight.float().reshape(per_channel)
    dx = normalized_backward(weighted, y, rstd.float()[..., None, None], (2, 3))
    return (dx.reshape(x.shape).to(x.dtype) if wanted[0] else None,
            *_affine_gradients(g, y, (0, 3), weight if weight is not None else x, wanted[1:]))


def normalized_backward(grad, y, rstd, axes):
    """The gradient of x from y's gradient, y = (x - mean) * rstd over some axes; float32."""
    return rstd * (grad - grad.mean(axes, True) - y * (grad * y).mean(axes, True))


def _affine_gradients(grad, y, axes, like, wanted):
    """Gradients of the weight and the bias of a norm, sums over these axes, in the type of a tensor."""
    return ((grad * y).sum(axes).flatten().to(like.dtype) if wanted[0] else None,
            grad.sum(axes).flatten().to(like.dtype) if wanted[1] else None)


# Batch norm with the numbers of the batch.

def _batch_axes(x):
    return tuple(axis for axis in range(x.dim()) if axis != 1)


def _per_channel(number, x):
    return number.float().reshape(1, -1, *[1] * (x.dim() - 2))


def batch_norm(x, weight, bias, eps):
    """(y, the mean and 1 / standard deviation of each channel)"""
    axes, wide = _batch_axes(x), x.float()
    mean = wide.mean(axes, True)
    centered = wide - mean
    rstd = ((centered * centered).mean(axes, True) + eps).rsqrt()
    y = centered * rstd
    if weight is not None:
        y = y * _per_channel(weight, x)
    if bias is not None:
        y = y + _per_channel(bias, x)
    return y.to(x.dtype), mean.flatten(), rstd.flatten()


def batch_norm_no_stats(x, weight, bias, training, momentum, eps):
    return batch_norm(x, weight, bias, eps)


def batch_norm_functional(x, weight, bias, running_mean, running_var, training, momentum, eps):
    if not training:
        return NotImplemented
    y, mean, rstd = batch_norm(x, weight, bias, eps)
    spread = x.float().var(_batch_axes(x), correction=1)
    moved = lambda old, new: (old * (1 - momentum) + new * momentum).to(old.dtype)
    return y, mean, rstd, moved(running_mean, mean), moved(running_var, spread)


def batch_norm_backward(grad, x, weight, running_mean, running_var, mean, rstd, training, eps, wanted):
    if not training:
        return NotImplemented
    axes, scale = _batch_axes(x), _per_channel(rstd, x)
    y, g = (x.float() - _per_channel(mean, x)) * scale, grad.float()
    weighted = g if weight is None else g * _per_channel(weight, x)
    dx = normalized_backward(weighted, y, scale, axes)
    return (dx.to(x.dtype) if wanted[0] else None,
            *_affine_gradients(g, y, axes, weight if weight is not None else x, wanted[1:]))


def weight_norm_backward(grad, v, g, norm, axis):
    """Gradients of v and g of v * (g / norm), where norm is the norm of v over all axes but `axis`."""
    axes = [other for other in range(v.dim()) if other != axis]
    grad, wide, norm = grad.float(), v.float(), norm.float()
    along = (grad * wide).sum(axes, True) / norm if axes else grad * wide / norm
    return ((g.float() / norm * (grad - wide * (along / norm))).to(v.dtype), along.to(g.dtype))


OWN = {"roll": roll, "linalg_vector_norm": vector_norm, "_transformer_encoder_layer_fwd": encoder_layer, "_log_softmax": log_softmax,
       "_log_softmax_backward_data": log_softmax_backward, "nll_loss_forward": nll_loss,
       "nll_loss_backward": nll_loss_backward, "binary_cross_entropy": binary_cross_entropy, "native_group_norm_backward": group_norm_backward,
       "_native_batch_norm_legit_functional": batch_norm_functional,
       "native_batch_norm_backward": batch_norm_backward,
       "_weight_norm_interface_backward": weight_norm_backward}
