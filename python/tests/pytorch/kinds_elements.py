"""Statements of random programs: elementwise arithmetic, truths, integers, types, generators."""

from __future__ import annotations

from program_generator import Draw, Reject
from program_kinds import dtype_name, edge, kind, shape, types_of


# ---- element by element, floats

@kind(3)
def binary(g):
    x = g.pick("float")
    y = g.broadcasting(g.dims(x))
    if g.rng.random() < 0.25:
        y = g.operand(g.dims(x))
    op = g.rng.choice(("+", "-", "*", "*", "+"))
    return Draw(g.rng.choice((f"{x} {op} {y}", f"{y} {op} {x}")))


@kind()
def outer_binary(g):
    """Two tensors that broadcast against one another."""
    x, y = g.pick("float", 1, 3), g.pick("float", 1, 3)
    return Draw(f"{x}.unsqueeze(-1) {g.rng.choice('+-*')} {y}.unsqueeze(0)")


@kind(2)
def with_number(g):
    x = g.pick("float")
    op = g.rng.choice(("+", "-", "*", "/"))
    number = g.scalar()
    return Draw(g.rng.choice((f"{x} {op} {number}", f"{number} {op.replace('/', '*')} {x}",
                              f"torch.add({x}, {x}, alpha={number})",
                              f"torch.sub({x}, 1, alpha={number})")))


@kind()
def divide(g):
    x = g.pick("float")
    y = g.broadcasting(g.dims(x))
    return Draw(g.rng.choice((f"{x} / ({y}.abs() + 0.5)", f"{x} / (1 + {y} * {y})",
                              f"1 / ({x}.square() + 1)")))


UNARY = ("tanh", "sigmoid", "exp", "sin", "cos", "erf", "neg", "square", "expm1", "atan", "sinh",
         "cosh", "asinh")


@kind(2)
def unary(g):
    return Draw(f"torch.{g.rng.choice(UNARY)}({g.pick('float')})")


@kind()
def unary_positive(g):
    op = g.rng.choice(("log", "sqrt", "rsqrt", "log1p", "log2", "reciprocal"))
    return Draw(f"torch.{op}({g.pick('float')}.square() + 0.5)")


@kind(0.3)
def unary_special(g):
    """Results with NaN and infinities."""
    return Draw(f"torch.{g.rng.choice(('log', 'sqrt', 'rsqrt', 'reciprocal'))}({g.pick('float')})")


@kind(2)
def activation(g):
    x = g.pick("float")
    op = g.rng.choice(("silu", "gelu", "relu", "softplus", "elu", "leaky_relu", "logsigmoid",
                       "hardswish", "hardtanh", "mish", "selu", "celu", "hardsigmoid", "relu6",
                       "softsign", "tanhshrink"))
    options = ", approximate='tanh'" if op == "gelu" and g.rng.random() < 0.5 else ""
    return Draw(f"F.{op}({x}{options})")


@kind(0.7)
def gated(g):
    x = g.pick("float", 1)
    axis = g.fixed_axis(x)
    if any(size % 2 for size in g.dims(x)[axis]):
        raise Reject
    return Draw(g.rng.choice((f"F.glu({x}, {axis})",
                              f"F.silu({x}.chunk(2, {axis})[0]) * {x}.chunk(2, {axis})[1]")))


@kind()
def extremes(g):
    x = g.pick("float")
    y = g.broadcasting(g.dims(x))
    g.need_margin(f"{x} - {y}", x, y)
    op = g.rng.choice(("maximum", "minimum", "fmax", "fmin"))
    return Draw(f"torch.{op}({x}, {y})")


@kind()
def clamp(g):
    x = g.pick("float")
    bounds = g.rng.choice(("-0.5, 0.5", "min=0.1", "max=0.3", "0.25, 1"))
    return Draw(f"{x}.clamp({bounds})")


@kind(0.7)
def steps(g):
    """Floats to whole numbers."""
    x = g.pick("float")
    op = g.rng.choice(("floor", "ceil", "trunc", "round", "sign", "frac"))
    if op in ("floor", "ceil", "trunc", "frac"):
        g.need_margin(f"{x} - {x}.round()", x)
    elif op == "round":
        g.need_margin(f"({x} * 2) - ({x} * 2).round()", x)
    else:
        g.need_margin(x, x)
    return Draw(f"torch.{op}({x})")


@kind(0.7)
def power(g):
    x = g.pick("float")
    return Draw(g.rng.choice((f"{x}.pow(2)", f"{x}.pow(3)", f"{x} ** 4", f"({x}.abs() + 0.3) ** 0.5",
                              f"({x}.abs() + 0.5) ** 1.7", f"({x}.abs() + 0.5) ** -0.5",
                              f"2.0 ** {x}", f"({x}.abs() + 0.5).pow({x})", f"{x} ** 0")))


@kind(0.7)
def three_operands(g):
    x = g.pick("float")
    y, z = g.broadcasting(g.dims(x)), g.broadcasting(g.dims(x))
    return Draw(g.rng.choice((
        f"torch.lerp({x}, {y}.to({dtype_name(g, x)}), 0.3)", f"torch.addcmul({x}, {y}, {z}, value=0.5)",
        f"torch.addcdiv({x}, {y}, {z}.square() + 0.5, value=2)", f"torch.hypot({x}, {y})",
        f"torch.logaddexp({x}, {y})")))


@kind(2)
def where(g):
    x = g.pick("any")
    mask = g.broadcasting(g.dims(x), "bool")
    y = g.broadcasting(g.dims(x), types_of(g, x))
    text = g.rng.choice((f"torch.where({mask}, {x}, {y})", f"torch.where({mask}, {y}, {x})",
                         f"torch.where({mask}, {x}, 0)", f"torch.where({mask}, 2, {x})",
                         f"torch.where({mask}, {x}, -0.5)"))
    return Draw(text, moves=True)


@kind(1.5)
def masked_fill(g):
    x = g.pick("any")
    mask = g.broadcasting(g.dims(x), "bool")
    value = g.rng.choice(("0", "1", "-1", "-2"))
    return Draw(f"{x}.masked_fill({mask}, {value})", moves=True)


# ---- truths

@kind(2)
def compare(g):
    x = g.pick("any", when=lambda name: types_of(g, name) != "bool")
    op = g.rng.choice(("<", "<=", ">", ">=", "==", "!="))
    if g.rng.random() < 0.4:
        y = g.rng.choice(("0", "1", "0.5", "-1", "2"))
        if types_of(g, x) == "int" and g.rng.random() < 0.6:
            y = edge(g, dtype_name(g, x))
        g.need_margin(f"{x} - ({y})", x)
    else:
        y = g.broadcasting(g.dims(x), types_of(g, x))
        g.need_margin(f"{x} - {y}", x, y)
    return Draw(f"{x} {op} {y}")


@kind(0.7)
def compare_types(g):
    """An integer beside a float or a truth value."""
    x = g.pick("int")
    y = g.broadcasting(g.dims(x), g.rng.choice(("float", "bool")))
    if types_of(g, y) == "float":
        g.need_margin(f"{y} - {y}.round()", y)
    return Draw(f"{x} {g.rng.choice(('<', '>=', '=='))} {y}")


@kind()
def logic(g):
    x = g.pick("bool")
    y = g.broadcasting(g.dims(x), "bool")
    return Draw(g.rng.choice((f"{x} & {y}", f"{x} | {y}", f"{x} ^ {y}", f"~{x}",
                              f"torch.logical_and({x}, {y})", f"torch.logical_xor({x}, {y})",
                              f"{x} == {y}", f"{x} != {y}", f"{x} <= {y}",
                              f"torch.logical_not({x})", f"torch.maximum({x}, {y})",
                              f"{x} + {y}", f"{x} * {y}")))


@kind(0.6)
def any_all(g):
    x = g.pick("any")
    if types_of(g, x) == "float":
        g.need_margin(x, x)
    op = g.rng.choice(("any", "all"))
    if g.rank(x) == 0 or g.rng.random() < 0.3:
        return Draw(f"{x}.{op}()")
    return Draw(f"{x}.{op}({g.axis(x)}, keepdim={g.rng.random() < 0.4})")


@kind(0.4)
def special_values(g):
    x = g.pick("float")
    return Draw(f"torch.{g.rng.choice(('isnan', 'isinf', 'isfinite', 'nan_to_num'))}({x})")


# ---- integers



@kind(3)
def integer_arithmetic(g):
    x = g.pick("int")
    y = g.broadcasting(g.dims(x), "int")
    op = g.rng.choice("+-*")
    return Draw(f"{x} {op} {y}")


@kind(3)
def integer_with_number(g):
    x = g.pick("int")
    number = edge(g, dtype_name(g, x)) if g.rng.random() < 0.5 \
        else g.rng.choice(("1", "2", "-3", "7", "1000", "-1", "0"))
    op = g.rng.choice("+-*")
    return Draw(g.rng.choice((f"{x} {op} {number}", f"{number} {op} {x}")))


@kind(1.5)
def integer_division(g):
    x = g.pick("int")
    divisor = g.rng.choice(("2", "3", "-2", "-3", "7", "10", "2**31 - 1", "1", "-7", "64"))
    if g.rng.random() < 0.35:
        y = g.broadcasting(g.dims(x), "int")
        divisor = f"({y}.clamp(-9, 9) * 2 + 21)"
    op = g.rng.choice(("//", "%", "trunc", "floor", "fmod", "/"))
    if op == "fmod":
        return Draw(f"torch.fmod({x}, {divisor})")
    if op in ("trunc", "floor"):
        return Draw(f"torch.div({x}, {divisor}, rounding_mode='{op}')")
    return Draw(f"{x} {op} ({divisor})")


@kind(1.5)
def integer_functions(g):
    x = g.pick("int")
    y = g.broadcasting(g.dims(x), "int")
    low, high = sorted((g.rng.randint(-5, 5), g.rng.randint(-5, 5)))
    return Draw(g.rng.choice((
        f"{x}.abs()", f"-{x}", f"torch.maximum({x}, {y})", f"torch.minimum({x}, {y})",
        f"{x}.clamp({low}, {high})", f"{x}.clamp(min={low})",
        f"{x}.clamp(max={edge(g, dtype_name(g, x))})", f"{x}.clamp(min={edge(g, dtype_name(g, x))})",
        f"{x}.sign()", f"~{x}", f"{x}.square()", f"{x} ** {g.rng.choice((0, 1, 2, 3, 5))}",
        f"torch.relu({x})")))


@kind()
def shift(g):
    x = g.pick("int")
    return Draw(g.rng.choice((f"{x} << {g.rng.choice((0, 1, 3, 8, 20))}",
                              f"{x} >> {g.rng.choice((0, 1, 3, 8, 20))}",
                              f"{x} & {g.rng.choice((1, 7, 255))}", f"{x} | 1", f"{x} ^ 3")))


@kind(0.7)
def integer_sums(g):
    x = g.pick("any", 1, when=lambda name: types_of(g, name) != "float")
    return Draw(g.rng.choice((f"{x}.sum({g.axis(x)})", f"{x}.sum()", f"{x}.cumsum({g.axis(x)})",
                              f"{x}.sum({g.axis(x)}, dtype=i32)", f"{x}.amax({g.axis(x)})",
                              f"{x}.amin({g.axis(x)})", f"{x}.max()", f"{x}.prod({g.axis(x)})",
                              f"{x}.sum({g.axes(x)}, keepdim=True)")))


# ---- types

@kind(3)
def cast(g):
    x = g.pick("any")
    to = g.rng.choice(("f32", "f16", "bf16", "i64", "i32", "b1"))
    types = types_of(g, x)
    if types == "float" and to in ("i64", "i32"):
        g.need_margin(f"{x} - {x}.round()", x)
        if not g.value(x).isfinite().all():
            raise Reject
    if types == "float" and to == "b1":
        g.need_margin(x, x)
    return Draw(f"{x}.to({to})", moves=types != "float" and to not in ("f16", "bf16"))


@kind(0.7)
def integer_to_float(g):
    x = g.pick("int")
    return Draw(f"({x} % {g.rng.choice((5, 7, 100))}).to({g.float}) * 0.25")


# ---- generators

@kind(1.2)
def make(g):
    x = g.pick("any", 1)
    size = shape(x, g.rng.randrange(g.rank(x)))
    dtype = g.rng.choice((g.float, "f32", "i64", "i32"))
    device = f"device={x}.device"
    return Draw(g.rng.choice((
        f"torch.arange({size}, {device})", f"torch.arange(3, 11, 2, {device})",
        f"torch.arange({size}, dtype={dtype}, {device})", f"torch.arange(10, 0, -3, {device})",
        f"torch.arange(0.5, 3.0, 0.5, {device})",
        f"torch.full(({size}, 2), {g.rng.choice((2, -1, 0))}, dtype={dtype}, {device})",
        f"torch.full((2,), {edge(g, 'i64')}, dtype=i64, {device})",
        f"torch.full((), 1.5, dtype={g.float}, {device})",
        f"torch.zeros({size}, {size}, dtype={dtype}, {device})",
        f"torch.zeros({size}, dtype=b1, {device})",
        f"torch.ones({size}, 3, dtype={dtype}, {device})", f"torch.ones_like({x})",
        f"torch.zeros_like({x})", f"torch.full_like({x}, 1)", f"{x}.new_zeros(2, {size})",
        f"{x}.new_full((3,), 1)", f"{x}.new_ones({x}.shape)",
        f"torch.eye({size}, dtype={dtype}, {device})",
        f"torch.ones({size}, {size}, dtype=b1, {device}).tril()",
        f"torch.linspace(0, 1, 4, dtype=f32, {device})",
        f"torch.tensor([1, 2, 3], {device})", f"torch.tensor(0.5, dtype={g.float}, {device})",
        f"torch.scalar_tensor(2.5, dtype={g.float}, {device})")), moves=True)


@kind(0.6)
def positions(g):
    """A mask or a table from positions along axes."""
    x = g.pick("any", 2)
    rows = f"torch.arange({shape(x, -2)}, device={x}.device)"
    columns = f"torch.arange({shape(x, -1)}, device={x}.device)"
    return Draw(g.rng.choice((f"{rows}[:, None] >= {columns}", f"{rows}[:, None] - {columns}",
                              f"({rows}[:, None] * 3 + {columns}) % 4",
                              f"{rows}.unsqueeze(1) < {columns}.unsqueeze(0)")))
