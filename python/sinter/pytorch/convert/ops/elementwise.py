"""Ops that compute each element from the elements at the same place."""

from __future__ import annotations

import math
from typing import Callable

import torch
from torch import fx

from ....importing.row_ops import nonzero, permitted
from ....importing.tensor import Tensor
from ....importing.types import clamped, holds, is_integer, is_real, wrapped
from ....importing.unsupported import Unsupported
from ...graphs.library import range_error
from .choice import differ, truth
from .registry import Conversion, aten, converts

def single(c: Conversion, op: str, *operands) -> Tensor:
    """One op of Sinter: computed in float32 and rounded once, as torch does."""
    dtype = c.dtype
    direct = all(x.dtype == dtype if isinstance(x, Tensor)
                 else isinstance(x, (int, float)) and (not is_real(dtype) or holds(dtype, float(x)))
             for x in operands)
    if direct and any(isinstance(x, Tensor) for x in operands):
        return c.g.map(op, *[x if isinstance(x, Tensor) else c.number(x, dtype)
                             for x in operands])
    return c.g.map(op, *c.operands(*operands)).to(dtype)


def need_real(c: Conversion) -> None:
    if not is_real(c.dtype):
        raise Unsupported(f"the op for {c.dtype}")


# ---- one operand

UNARY = {"abs.default": "abs", "neg.default": "neg"}
UNARY_REAL = {
    "expm1.default": "expm1", "log.default": "log",
    "log1p.default": "log1p", "sqrt.default": "sqrt", "rsqrt.default": "rsqrt",
    "sigmoid.default": "sigmoid", "tanh.default": "tanh", "erf.default": "erf",
    "sin.default": "sin", "cos.default": "cos",
}


def _unary(op: str, is_real_only: bool):
    def convert(c: Conversion, x: Tensor) -> Tensor:
        if is_real_only:
            need_real(c)
        return single(c, op, x)
    return convert


for _name, _op in UNARY.items():
    converts(aten(_name))(_unary(_op, False))
for _name, _op in UNARY_REAL.items():
    converts(aten(_name))(_unary(_op, True))


@converts(aten("exp.default"))
def exp(c: Conversion, x: Tensor) -> Tensor:
    need_real(c)
    return single(c, "exp_neg_abs" if is_negative_abs(c.node.args[0]) else "exp", x)


def is_negative_abs(node: fx.Node) -> bool:
    """-|x|, whose power is less work than the power of a number of any sign."""
    return node.target is torch.ops.aten.neg.default \
        and node.args[0].target is torch.ops.aten.abs.default


def real(function):
    """A formula in float32 of operands that are cast to it, rounded once at the end."""
    def convert(c: Conversion, *operands, **options) -> Tensor:
        need_real(c)
        tensor = lambda x: x.f32() if isinstance(x, Tensor) else x
        return function(c, *map(tensor, operands),
                        **{name: tensor(x) for name, x in options.items()}).to(c.dtype)
    return convert


def formula(*names: str):
    def register(function):
        converts(*[aten(name) for name in names])(real(function))
        return function
    return register


# Formulas in float32 that are one expression.
FORMULAS: dict[str, Callable[..., Tensor]] = {
    "reciprocal.default": lambda c, x: 1.0 / x,
    "log2.default": lambda c, x: x.apply("log") * (1.0 / math.log(2.0)),
    "log10.default": lambda c, x: x.apply("log") * (1.0 / math.log(10.0)),
    "exp2.default": lambda c, x: c.g.map("pow", c.g.number(2.0, "f32"), x),
    "erfc.default": lambda c, x: 1.0 - x.apply("erf"),
    "tan.default": lambda c, x: x.apply("sin") / x.apply("cos"),
    "leaky_relu.default": lambda c, x, slope=0.01: c.g.where(x.greater(0.0), x, x * slope),
    "hardtanh.default": lambda c, x, low=-1.0, high=1.0: x.maximum(low).minimum(high),
    "addcmul.default": lambda c, x, a, b, value=1: x + value * a * b,
    "addcdiv.default": lambda c, x, a, b, value=1: x + value * (a / b),
}
for _name, _function in FORMULAS.items():
    formula(_name)(_function)


def trunc(x: Tensor) -> Tensor:
    """Rounds towards zero; keeps the sign of zero."""
    return x.g.where(x.less(0.0), ceil(x), x.apply("floor"))


def ceil(x: Tensor) -> Tensor:
    return -((-x).apply("floor"))


def _rounding(function):
    """To integers, which integers are."""
    def convert(c: Conversion, x: Tensor) -> Tensor:
        return x if is_integer(x.dtype) else function(c, x)
    return convert


converts(aten("floor.default"))(_rounding(lambda c, x: single(c, "floor", x)))
converts(aten("round.default"))(_rounding(lambda c, x: single(c, "round", x)))
converts(aten("ceil.default"))(_rounding(real(lambda c, x: ceil(x))))
converts(aten("trunc.default"))(_rounding(real(lambda c, x: trunc(x))))


@formula("sinh.default")
def sinh(c, x):
    e = x.apply("abs").apply("expm1")
    return c.g.where(x.less(0.0), -_half_sinh(e), _half_sinh(e))


def _half_sinh(e: Tensor) -> Tensor:
    # With e = exp(|x|) - 1: sinh |x| = (e + e / (e + 1)) / 2; e / (e + 1) is 1 where e is infinite.
    ratio = e.g.where(e.equals(math.inf), 1.0, e / (e + 1.0))
    return (e + ratio) * 0.5


@formula("cosh.default")
def cosh(c, x):
    e = x.apply("abs").apply("exp")
    return (e + 1.0 / e) * 0.5


@converts(aten("sign.default"))
def sign(c: Conversion, x: Tensor) -> Tensor:
    """As torch: the sign of NaN is 0."""
    if x.dtype == "i1":
        return x
    one, zero, minus = (c.g.number(number, x.dtype) for number in (1, 0, -1))
    return c.g.where(x.greater(zero), one, c.g.where(x.less(zero), minus, zero))


# ---- two operands

def scaled(c: Conversion, b, alpha):
    """alpha * b, in what torch computes in."""
    if not isinstance(b, Tensor) and not isinstance(alpha, Tensor):
        return b * alpha
    b, alpha = c.operands(b, alpha)
    return b * alpha


@converts(aten("add.Tensor"), aten("add.Scalar"))
def add(c: Conversion, a, b, alpha=1) -> Tensor:
    if c.dtype == "i1":
        return truth(a) | truth(c.g.tensor(b, "i1"))
    return single(c, "add", a, b) if alpha == 1 else single(c, "add", a, scaled(c, b, alpha))


@converts(aten("sub.Tensor"), aten("sub.Scalar"))
def sub(c: Conversion, a, b, alpha=1) -> Tensor:
    return single(c, "sub", a, b) if alpha == 1 else single(c, "sub", a, scaled(c, b, alpha))


@converts(aten("mul.Tensor"), aten("mul.Scalar"))
def mul(c: Conversion, a, b) -> Tensor:
    if c.dtype == "i1":
        return truth(a) & truth(c.g.tensor(b, "i1"))
    return single(c, "mul", a, b)


@converts(aten("div.Tensor"), aten("div.Scalar"))
def div(c: Conversion, a, b) -> Tensor:
    return single(c, "div", a, b)


@converts(aten("div.Tensor_mode"), aten("div.Scalar_mode"))
def div_mode(c: Conversion, a, b, rounding_mode: str | None) -> Tensor:
    if rounding_mode is None:
        return single(c, "div", a, b)
    if is_integer(c.dtype):
        return integer_division(c, a, b, rounding_mode)
    if rounding_mode == "floor":
        raise Unsupported("a quotient of floats that is rounded down")
    x, y = c.operands(a, b)
    return trunc(x / y).to(c.dtype)


def integer_division(c: Conversion, a, b, mode: str) -> Tensor:
    """The quotient of the least number by -1 is the least number."""
    a, b = c.operands(a, divisor(c, b))
    quotient = c.g.map("div_floor", a, b)
    if mode == "floor":
        return quotient
    is_below = differ(a.less(0), b.less(0)) & ~(quotient * b).equals(a)
    return c.g.where(is_below, quotient + 1, quotient)


def divisor(c: Conversion, b):
    """An integer divisor. A number that is zero stays for eager, which raises."""
    if isinstance(b, Tensor):
        return nonzero(b.to(c.math_dtype))
    if wrapped(int(b), c.math_dtype) == 0:
        raise Unsupported("an integer division by zero")
    return b


@converts(aten("remainder.Tensor"), aten("remainder.Scalar"))
def remainder(c: Conversion, a, b) -> Tensor:
    if is_real(c.dtype):
        raise Unsupported("the remainder of floats")
    return c.g.map("mod_floor", *c.operands(a, divisor(c, b)))


@converts(aten("fmod.Tensor"), aten("fmod.Scalar"))
def fmod(c: Conversion, a, b) -> Tensor:
    """The remainder with the sign of a, made of the one with the sign of b."""
    if is_real(c.dtype):
        raise Unsupported("the remainder of floats")
    a, b = c.operands(a, divisor(c, b))
    rest = c.g.map("mod_floor", a, b)
    return c.g.where(~rest.equals(0) & differ(a.less(0), b.less(0)), rest - b, rest)


def _shift(direction: str, letter: str) -> None:
    @converts(*[aten(f"__{letter}shift__.{kind}") for kind in ("Scalar", "Tensor")],
              *[aten(f"bitwise_{direction}_shift.{kind}") for kind in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")])
    def shift(c: Conversion, x, count) -> Tensor:
        if not is_integer(c.dtype):
            raise Unsupported("a shift of floats")
        return single(c, f"shift_{direction}", x, count)


_shift("left", "l")
_shift("right", "r")


@converts(aten("maximum.default"))
def maximum(c: Conversion, a, b) -> Tensor:
    return a | b if c.dtype == "i1" else single(c, "maximum", a, b)


@converts(aten("minimum.default"))
def minimum(c: Conversion, a, b) -> Tensor:
    return a & b if c.dtype == "i1" else single(c, "minimum", a, b)


@converts(aten("fmax.default"))
def fmax(c: Conversion, a, b) -> Tensor:
    a, b = c.operands(a, b)
    return c.g.where(b.is_nan(), a, c.g.where(a.is_nan(), b, a.maximum(b))).to(c.dtype)


@converts(aten("fmin.default"))
def fmin(c: Conversion, a, b) -> Tensor:
    a, b = c.operands(a, b)
    return c.g.where(b.is_nan(), a, c.g.where(a.is_nan(), b, a.minimum(b))).to(c.dtype)


@converts(aten("clamp.default"), aten("clamp.Tensor"))
def clamp(c: Conversion, x, low=None, high=None) -> Tensor:
    """A number outside of an integer type is the nearest one that it has."""
    def limit(bound):
        if not is_integer(c.dtype):
            return bound
        if isinstance(bound, Tensor):
            return bound if c.node.target is torch.ops.aten.clamp.Tensor else bound.nearest(c.dtype)
        return clamped(bound, c.dtype) if isinstance(bound, int) else bound

    x, = c.operands(x)
    if low is not None:
        x = x.maximum(c.operands(limit(low))[0])
    if high is not None:
        x = x.minimum(c.operands(limit(high))[0])
    return x.to(c.dtype)


@converts(aten("pow.Tensor_Scalar"), aten("pow.Tensor_Tensor"), aten("pow.Scalar"))
def power(c: Conversion, base, exponent) -> Tensor:
    if isinstance(exponent, bool) and isinstance(base, Tensor) and base.dtype == "i1":
        raise Unsupported("a power of two truths, whose type torch traces otherwise than eager computes it")
    if not is_real(c.dtype):
        if isinstance(exponent, int) and 0 <= exponent <= 8:
            return repeated(c.operands(base)[0], exponent)
        raise Unsupported("integer powers")
    x = base if not isinstance(base, Tensor) else base.f32()
    if isinstance(x, Tensor) and not isinstance(exponent, Tensor):
        if exponent in (2, 3, 4):
            return repeated(x, int(exponent)).to(c.dtype)
        if exponent == 1:
            return x.to(c.dtype)
        if exponent == 0.5:
            return x.apply("sqrt").to(c.dtype)
        if exponent == -0.5:
            return x.apply("rsqrt").to(c.dtype)
        if exponent == -1:
            return (1.0 / x).to(c.dtype)
    return c.g.map("pow", *c.operands(base, exponent)).to(c.dtype)


def repeated(x: Tensor, count: int) -> Tensor:
    if count == 0:
        return x * 0 + 1
    result = x
    for _ in range(count - 1):
        result = result * x
    return result


@formula("hypot.default")
def hypot(c, a, b):
    x, y = a.apply("abs"), b.apply("abs")
    high, low = x.maximum(y), x.minimum(y)
    ratio = low / high
    root = high * (1.0 + ratio * ratio).apply("sqrt")
    root = c.g.where(high.equals(0.0), 0.0, root)
    return c.g.where(x.equals(math.inf) | y.equals(math.inf), math.inf, root)


@formula("logaddexp.default")
def logaddexp(c, a, b):
    high = a.maximum(b)
    rest = (a - b).apply("exp_neg_abs").apply("log1p")
    return c.g.where(a.equals(b) & a.apply("abs").equals(math.inf), a, high + rest)


@converts(torch.ops.sinter.in_range.default)
def in_range(c: Conversion, x: Tensor, low: int, high: int, name: str) -> Tensor:
    return permitted(x, lambda x: x.greater_equal(low) & x.less_equal(high), RuntimeError(range_error(low, high, name)))


# ---- conversion

@converts(aten("_to_copy.default"), torch.ops.prims.convert_element_type.default)
def to_copy(c: Conversion, x: Tensor, *ignored, device=None, **options) -> Tensor:
    source = c.node.args[0].meta["val"].device
    if device is not None and device.type != source.type:
        raise Unsupported(f"a copy from {source} to {device}")
    return x.to(c.dtype)


@formula("lerp.Scalar", "lerp.Tensor")
def lerp(c, a, b, weight):
    if not isinstance(weight, Tensor):
        weight = c.g.number(weight, "f32")
    return c.g.where(weight.apply("abs").less(0.5), a + weight * (b - a),
                     b - (b - a) * (1.0 - weight))


def _fma():
    from torch._inductor import inductor_prims  # registers the op, where this torch has it
    return getattr(inductor_prims, "fma", None)


# Dynamo makes this op of addcmul_ and addcdiv_ with a factor that is a tensor.
converts(_fma())(real(lambda c, a, b, x: a * b + x))
