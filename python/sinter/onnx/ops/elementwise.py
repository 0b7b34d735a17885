"""Ops that compute each element from the elements at the same place."""

from __future__ import annotations

import functools
import math
from typing import Callable

from ...importing.row_ops import linear
from ...importing.tensor import Tensor
from ...importing.types import is_integer, is_real
from ...importing.unsupported import Unsupported
from ..codes import Quantized
from ..registry import DTYPES, MICROSOFT, Known, Node, converts, shape_of

# ---- one operand


@converts("Exp", "Log", "Sqrt", "Sigmoid", "Tanh", "Erf", "Sin", "Cos", "Atan", "Floor", "Round")
def unary(c: Node) -> Tensor:
    c.need_real(c[0])
    return c[0].apply(c.op.lower())


converts("Neg")(lambda c: -c[0])
converts("Abs")(lambda c: c[0].apply("abs"))
converts("Not")(lambda c: ~c[0])


def formula(op: str, function: Callable[[Node, Tensor], Tensor], domain: str = "") -> None:
    """Registers a formula in float32 of the first input, rounded once at the end."""

    def convert(c: Node) -> Tensor:
        c.need_real(c[0])
        return function(c, c[0].f32()).to(c[0].dtype)

    converts(op, domain=domain)(convert)


formula("Ceil", lambda c, x: -((-x).apply("floor")))
formula("Reciprocal", lambda c, x: 1.0 / x)
formula("Softplus", lambda c, x: x.maximum(0.0) + x.apply("exp_neg_abs").apply("log1p"))
formula("Swish", lambda c, x: swish(x, c.real("alpha", 1.0)))
formula("QuickGelu", lambda c, x: swish(x, c.real("alpha", 1.702)), MICROSOFT)
formula("LeakyRelu", lambda c, x: c.g.where(x.less(0.0), x * c.real("alpha", 0.01), x))
formula("Elu", lambda c, x: c.g.where(x.less(0.0), x.apply("expm1") * c.real("alpha", 1.0), x))
formula("Celu", lambda c, x: celu(x, c.real("alpha", 1.0)))
formula("Tan", lambda c, x: x.apply("sin") / x.apply("cos"))


def swish(x: Tensor, alpha: float) -> Tensor:
    return x * (x * alpha).apply("sigmoid")


def celu(x: Tensor, alpha: float) -> Tensor:
    """The body in the standard makes one axis of a number."""
    return x.maximum(0.0) + ((x / alpha).apply("expm1") * alpha).minimum(0.0)


@converts("Relu")
def relu(c: Node) -> Tensor:
    return c[0].apply("relu") if is_real(c[0].dtype) else c[0].maximum(0)


@converts("Gelu")
def gelu(c: Node) -> Tensor:
    c.need_real(c[0])
    return c[0].apply("gelu_tanh" if c.text("approximate", "none") == "tanh" else "gelu")


@converts("Gelu", "FastGelu", "BiasGelu", domain=MICROSOFT)
def gelu_of_runtime(c: Node) -> Tensor:
    """With a bias as the second input."""
    x = c[0] + c[1] if c.has(1) else c[0]
    return x.apply("gelu_tanh" if c.op == "FastGelu" else "gelu")


@converts("Sign")
def sign(c: Node) -> Tensor:
    x = c[0]
    one, zero, minus = (c.g.number(number, x.dtype) for number in (1, 0, -1))
    return c.g.where(x.greater(zero), one, c.g.where(x.less(zero), minus, zero))


@converts("IsNaN")
def is_nan(c: Node) -> Tensor:
    c.need_real(c[0])
    return c[0].is_nan()


@converts("IsInf")
def is_inf(c: Node) -> Tensor:
    c.need_real(c[0])
    ends = {"detect_positive": math.inf, "detect_negative": -math.inf}
    found = [c[0].equals(end) for name, end in ends.items() if c.integer(name, 1)]
    return functools.reduce(Tensor.__or__, found or [c[0].less(-math.inf)])


@converts("Cast")
def cast(c: Node) -> Tensor:
    """An integer of a truth is i32 first, whose sums i32 holds."""
    wanted = DTYPES.get(c.text("to"))
    if wanted is None:
        raise Unsupported(f"a cast to {c.text('to')}")
    value = c.value(0)
    x = value.codes if isinstance(value, Quantized) else c[0]
    return x.to("i32").to("i64") if (x.dtype, wanted) == ("i1", "i64") else x.to(wanted)


@converts("CastLike")
def cast_like(c: Node) -> Tensor:
    return c[0].to(DTYPES.get(c.value(1).dtype, c.value(1).dtype))


# ---- two operands and more

converts("Sub")(lambda c: c[0] - c[1])
converts("And")(lambda c: c[0] & c[1])
converts("Or")(lambda c: c[0] | c[1])
converts("Xor")(lambda c: differ(c[0], c[1]))
converts("Less")(lambda c: c[0].less(c[1]))
converts("LessOrEqual")(lambda c: c[0].less_equal(c[1]))
converts("Greater")(lambda c: c[0].greater(c[1]))
converts("GreaterOrEqual")(lambda c: c[0].greater_equal(c[1]))
converts("Sum")(lambda c: functools.reduce(Tensor.__add__, c.tensors()))
converts("Max")(lambda c: functools.reduce(Tensor.maximum, c.tensors()))
converts("Min")(lambda c: functools.reduce(Tensor.minimum, c.tensors()))
converts("Where")(lambda c: c.g.where(c[0], c[1], c[2]))


@converts("Add")
def add(c: Node) -> Tensor:
    """A sum; with a constant row behind a product by a matrix its bias, rounded once."""
    for x, bias in ((c.value(0), c.value(1)), (c.value(1), c.value(0))):
        if isinstance(x, Tensor) and x in c.origins.linears and isinstance(bias, Known):
            rows, matrix = c.origins.linears[x]
            if bias.array.shape == (matrix.size(0),) and bias.array.size > 1:
                return linear(rows, matrix, c.tensor_of(bias))
    return c[0] + c[1]


@converts("Mul")
def mul(c: Node) -> Tensor:
    result = c[0] * c[1]
    for x, factor in ((0, 1), (1, 0)):
        number, is_computed = c.number(factor), isinstance(c.value(x), Tensor)
        if number is not None and is_computed and is_real(c[x].dtype) and c[x].rank == result.rank:
            c.origins.factors[result] = c[x], float(number)
    return result


def differ(a: Tensor, b: Tensor) -> Tensor:
    """Exclusive or."""
    return (a | b) & ~(a & b)


@converts("Equal")
def equal(c: Node) -> Tensor:
    return ~differ(c[0], c[1]) if c[0].dtype == "i1" else c[0].equals(c[1])


@converts("Div")
def div(c: Node) -> Tensor:
    """A quotient; integers are rounded towards zero."""
    a, b = c[0], c[1]
    if not is_integer(a.dtype):
        return a / b
    quotient = c.g.map("div_floor", a, b)
    is_below = differ(a.less(0), b.less(0)) & ~(quotient * b).equals(a)
    return c.g.where(is_below, quotient + 1, quotient)


@converts("Mod")
def mod(c: Node) -> Tensor:
    """The remainder of the sign of b; with `fmod` of the sign of a."""
    a, b = c[0], c[1]
    if not is_integer(a.dtype):
        raise Unsupported("the remainder of floats")
    rest = c.g.map("mod_floor", a, b)
    if not c.integer("fmod"):
        return rest
    return c.g.where(~rest.equals(0) & differ(a.less(0), b.less(0)), rest - b, rest)


@converts("Pow")
def power(c: Node) -> Tensor:
    """In the type of the base."""
    x = c[0]
    c.need_real(x)
    number = c.number(1) if len(shape_of(c.value(1))) <= x.rank else None
    if number in (1, 2, 3):
        return functools.reduce(Tensor.__mul__, [x.f32()] * int(number)).to(x.dtype)
    if number == 0.5:
        return x.apply("sqrt")
    return c.g.map("pow", x.f32(), c[1].f32()).to(x.dtype)


@converts("Mean")
def mean(c: Node) -> Tensor:
    total = functools.reduce(Tensor.__add__, [x.f32() for x in c.tensors()])
    return (total / float(len(c.inputs))).to(c[0].dtype)


@converts("Clip")
def clip(c: Node) -> Tensor:
    """Bounds are attributes before opset 11, then inputs that may be absent."""
    x = c[0]
    low, high = (
        c[i] if c.has(i) else c.g.number(c.real(name), x.dtype) if name in c.attributes else None
        for i, name in ((1, "min"), (2, "max"))
    )
    x = x if low is None else x.maximum(low.reshape([]))
    return x if high is None else x.minimum(high.reshape([]))
