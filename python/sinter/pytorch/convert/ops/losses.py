"""Mean squares, and the values that a loss refuses."""

from __future__ import annotations

import torch

from ....importing.row_ops import permitted
from ....importing.tensor import Tensor
from ...graphs.library import range_error
from .registry import Conversion, aten, converts

NONE, MEAN = 0, 1


@converts(aten("mse_loss.default"))
def mse_loss(c: Conversion, x: Tensor, y: Tensor, reduction=MEAN) -> Tensor:
    difference = x.f32() - y.f32()
    return reduced(c, difference * difference, reduction)


def reduced(c: Conversion, loss: Tensor, reduction: int) -> Tensor:
    if reduction == NONE:
        return loss.to(c.dtype)
    return (loss.mean() if reduction == MEAN else loss.sum()).to(c.dtype)


@converts(aten("mse_loss_backward.default"))
def mse_loss_backward(c: Conversion, grad: Tensor, x: Tensor, y: Tensor, reduction) -> Tensor:
    norm = 2.0 / x.count(None) if reduction == MEAN else 2.0
    return ((x.f32() - y.f32()) * grad.f32() * norm).to(c.dtype)


@converts(torch.ops.sinter.in_range.default)
def in_range(c: Conversion, x: Tensor, low: int, high: int, name: str) -> Tensor:
    return permitted(x, lambda x: x.greater_equal(low) & x.less_equal(high), RuntimeError(range_error(low, high, name)))
