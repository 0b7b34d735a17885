"""Softmax and normalizations."""

from __future__ import annotations

import torch

from ....importing import row_ops
from ....importing.tensor import Tensor
from ....importing.unsupported import Unsupported
from ...graphs.dtypes import sinter_dtype
from .registry import Conversion, aten, converts


@converts(aten("_softmax.default"))
def softmax(c: Conversion, x: Tensor, axis, half_to_float=False) -> Tensor:
    return row_ops.softmax(x.to(c.dtype), axis)


@converts(aten("_softmax_backward_data.default"))
def softmax_backward(c: Conversion, grad: Tensor, y: Tensor, axis, input_dtype) -> Tensor:
    grad, y = grad.f32(), y.f32()
    product = grad * y
    return (product - y * (product.sum([axis], True) if y.rank else product)).to(c.dtype)


def normalized(x: Tensor, axes, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) * scale, the mean, and the scale, 1 over the root of variance + eps; float32."""
    average = x.mean(axes, True)
    centered = x - average
    scale = ((centered * centered).mean(axes, True) + float(eps)).apply("rsqrt")
    return centered * scale, average, scale


@converts(aten("native_layer_norm.default"))
def layer_norm(c: Conversion, x: Tensor, shape, weight, bias, eps) -> tuple:
    _, mean, rstd = c.meta
    if 0 in shape:
        raise Unsupported("a norm of rows without elements")
    axes = list(range(x.rank - len(shape), x.rank))
    if len(axes) == 1 and weight is not None and not c.uses(1) and not c.uses(2) \
            and weight.dtype == x.dtype and (bias is None or bias.dtype == x.dtype) \
            and x.count(axes) > 0:
        return row_ops.layer_norm(x, weight, bias, eps), None, None
    y, average, scale = normalized(x.f32(), axes, eps)
    if weight is not None:
        y = y * weight.f32()
    if bias is not None:
        y = y + bias.f32()
    return y.to(x.dtype), average.to(sinter_dtype(mean.dtype)), scale.to(sinter_dtype(rstd.dtype))


@converts(aten("_fused_rms_norm.default"))
def rms_norm(c: Conversion, x: Tensor, shape, weight, eps) -> tuple:
    axes = list(range(x.rank - len(shape), x.rank))
    if eps is None:
        eps = torch.finfo(torch.float32).eps  # the type of the sums, whatever type x has
    y = x.f32()
    scale = ((y * y).mean(axes, True) + float(eps)).apply("rsqrt")
    y = y * scale
    if weight is not None:
        y = y * weight.f32()
    return y.to(x.dtype), scale.to(sinter_dtype(c.meta[1].dtype))


@converts(aten("native_group_norm.default"))
def group_norm(c: Conversion, x: Tensor, weight, bias, n, channels, spatial, groups,
               eps) -> tuple:
    if not isinstance(channels, int):
        raise Unsupported("a group norm of an unknown number of channels")
    shape = list(c.meta[0].shape)
    rows = x.f32().reshape([n, groups, channels // groups * spatial])
    y, average, scale = normalized(rows, [2], eps)
    y = y.reshape([n, channels, spatial])
    if weight is not None:
        y = y * weight.f32().reshape([1, channels, 1])
    if bias is not None:
        y = y + bias.f32().reshape([1, channels, 1])
    return (y.to(x.dtype).reshape(shape),
            average.reshape([n, groups]).to(sinter_dtype(c.meta[1].dtype)),
            scale.reshape([n, groups]).to(sinter_dtype(c.meta[2].dtype)))
