"""Activations and the gradients of elementwise functions."""

from __future__ import annotations

import math

from ....importing.tensor import Tensor
from ....importing.types import is_real
from .elementwise import formula
from .registry import Conversion, aten, converts


ACTIVATIONS = {"relu.default": "relu", "silu.default": "silu"}
for _name, _op in ACTIVATIONS.items():
    @converts(aten(_name))
    def _activation(c: Conversion, x: Tensor, op: str = _op) -> Tensor:
        if op == "relu" and not is_real(x.dtype):
            return x.maximum(0)
        return c.g.map(op, x)


@converts(aten("gelu.default"))
def gelu(c: Conversion, x: Tensor, approximate: str = "none") -> Tensor:
    return c.g.map("gelu_tanh" if approximate == "tanh" else "gelu", x)


@formula("gelu_backward.default")
def gelu_backward(c, grad, x, approximate: str = "none"):
    if approximate == "tanh":
        # gelu(x) = x s, s = (1 + tanh u) / 2 = sigmoid(2 u), 2 u = x (a + b x^2)
        a = 2.0 * math.sqrt(2.0 / math.pi)
        b, square = 0.044715 * a, x * x
        s = (x * (a + b * square)).apply("sigmoid")
        return grad * (s + x * (a + 3.0 * b * square) * (s * (1.0 - s)))
    cdf = 0.5 * (1.0 + (x * math.sqrt(0.5)).apply("erf"))
    pdf = (-0.5 * (x * x)).apply("exp") * (1.0 / math.sqrt(2.0 * math.pi))
    return grad * (cdf + x * pdf)


@formula("silu_backward.default")
def silu_backward(c, grad, x):
    s = x.apply("sigmoid")
    return grad * s * (1.0 + x * (1.0 - s))


@formula("sigmoid_backward.default")
def sigmoid_backward(c, grad, y): return grad * ((1.0 - y) * y)


@formula("tanh_backward.default")
def tanh_backward(c, grad, y): return grad * (1.0 - y * y)


@formula("threshold_backward.default")
def threshold_backward(c, grad, x, threshold):
    return c.g.where(x.less_equal(threshold), 0.0, grad)


@formula("leaky_relu.default")
def leaky_relu(c, x, slope=0.01): return c.g.where(x.greater(0.0), x, x * slope)


@formula("elu.default")
def elu(c, x, alpha=1.0, scale=1.0, input_scale=1.0):
    low = (x * input_scale).apply("expm1") * alpha * scale
    return c.g.where(x.greater(0.0), x * scale, low)


@formula("hardtanh.default")
def hardtanh(c, x, low=-1.0, high=1.0): return x.maximum(low).minimum(high)


@formula("softplus.default")
def softplus(c, x, beta=1, threshold=20):
    scaled = x * beta
    return c.g.where(scaled.greater(threshold), x,
                     scaled.apply("exp").apply("log1p") / beta)


@converts(aten("log_sigmoid_forward.default"))
def log_sigmoid(c: Conversion, x: Tensor) -> tuple:
    """(log sigmoid x, what torch's gradient keeps on the CPU: e^-|x|; elsewhere nothing, a tensor [0])"""
    dtype, x = x.dtype, x.f32()
    small = x.apply("exp_neg_abs")
    is_kept = c.meta[1].dim() == x.rank and c.meta[1].device.type == "cpu"
    kept = small.to(dtype) if is_kept else c.g.full([0], 0, dtype)
    return (x.minimum(0.0) - small.apply("log1p")).to(dtype), kept


@formula("log_sigmoid_backward.default")
def log_sigmoid_backward(c, grad, x, kept):
    return grad * (-x).apply("sigmoid")
