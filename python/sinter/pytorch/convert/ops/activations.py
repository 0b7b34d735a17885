"""Activations."""

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


@formula("elu.default")
def elu(c, x, alpha=1.0, scale=1.0, input_scale=1.0):
    low = (x * input_scale).apply("expm1") * alpha * scale
    return c.g.where(x.greater(0.0), x * scale, low)
