"""The loss of token labels.

The element of a row that its label names is a sum over the row in which all others are zeros: a
reduction of that row, which shares a kernel with the softmax that made it.
"""

from __future__ import annotations

from ..dtypes import sinter_dtype
from ..tensor import Tensor
from .registry import Conversion, aten, converts

NONE, MEAN, SUM = 0, 1, 2


def at_label(c: Conversion, target: Tensor, classes: int) -> Tensor:
    """i1 [..., classes]: whether the column is the row's label."""
    columns = c.g.iota(classes)
    return columns.equals(target.to("i32").unsqueeze(target.rank))


def label_weights(c: Conversion, at: Tensor, target: Tensor, weight: Tensor | None,
                  ignore: int) -> Tensor:
    """float32 weight of each row: that of its label's class, 0 if the label is ignored."""
    kept = ~target.equals(ignore)
    one = c.g.number(1.0, "f32") if weight is None \
        else c.g.where(at, weight.f32(), 0.0).sum([-1])
    return c.g.where(kept, one, 0.0)


@converts(aten("nll_loss_forward.default"))
def nll_loss(c: Conversion, x: Tensor, target: Tensor, weight, reduction, ignore) -> tuple:
    dtype = x.dtype
    at = at_label(c, target, x.size(-1))
    weights = label_weights(c, at, target, weight, ignore)
    loss = -(c.g.where(at, x.f32(), 0.0).sum([-1]) * weights)
    # An ignored label may belong to a column that holds an infinity.
    loss = c.g.where(target.equals(ignore), 0.0, loss)
    total = weights.sum()
    if reduction == NONE and target.rank:
        return loss.to(dtype), c.g.number(0, sinter_dtype(c.meta[1].dtype))
    result = loss.sum()
    if reduction == MEAN:
        result = result / total
    return result.to(dtype), total.to(sinter_dtype(c.meta[1].dtype))


@converts(aten("nll_loss_backward.default"))
def nll_loss_backward(c: Conversion, grad: Tensor, x: Tensor, target: Tensor, weight, reduction,
                      ignore, total: Tensor) -> Tensor:
    at = at_label(c, target, x.size(-1))
    weights = label_weights(c, at, target, weight, ignore)
    scale = grad.f32()
    if reduction == MEAN:
        scale = scale / total.f32()
    factor = -(weights * scale)
    return c.g.where(at, factor.unsqueeze(factor.rank), 0.0).to(c.dtype)


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
