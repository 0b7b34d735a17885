"""The kinds of statements of random programs: a function for each, which draws operands and returns
the text, or raises Reject. `KINDS` has them with their weights."""

from __future__ import annotations

import math

import torch
from program_generator import Draw, Generator, Reject
from programs import NAMES

KINDS: dict[str, tuple] = {}


def kind(weight: float = 1.0, name: str | None = None):
    def register(function):
        KINDS[name or function.__name__.strip("_")] = (function, weight)
        return function
    return register


def moved(expression: str, lines: list[str] | None = None) -> Draw:
    return Draw(expression, lines or [], moves=True)


def shape(name: str, axis: int) -> str:
    return f"{name}.shape[{axis}]"


def dtype_name(g: Generator, name: str) -> str:
    return NAMES[g.value(name).dtype]


# ---- views

@kind(3)
def transpose(g):
    x = g.pick("any", 1)
    return moved(f"{x}.transpose({g.axis(x)}, {g.axis(x)})")


@kind(3)
def permute(g):
    x = g.pick("any", 2)
    order = list(range(g.rank(x)))
    g.rng.shuffle(order)
    return moved(f"{x}.permute({', '.join(map(str, order))})")


@kind()
def other_transposes(g):
    x = g.pick("any", 2)
    return moved(g.rng.choice((f"{x}.mT", f"{x}.swapaxes(0, -1)", f"{x}.movedim(0, -1)",
                               f"{x}.movedim(-1, {g.axis(x)})",
                               f"{x}.transpose(-1, -2).contiguous()")))


@kind(0.5)
def t(g):
    return moved(f"{g.pick('any', 0, 2)}.t()")


@kind(3)
def flatten(g):
    x = g.pick("any", 1)
    begin = g.rng.randrange(g.rank(x))
    end = g.rng.randrange(begin, g.rank(x))
    return moved(f"{x}.flatten({begin}, {end})")


@kind(3)
def unflatten(g):
    x = g.pick("any", 1)
    axis = g.axis(x)
    numbers = [n for n in (2, 3, 4) if all(size % n == 0 and size for size in g.dims(x)[axis])]
    names = [f"{y}.shape[{i}]" for y in g.names for i, dim in enumerate(g.dims(y))
             if all(b > 0 and a % b == 0 for a, b in zip(g.dims(x)[axis], dim))]
    factor = g.rng.choice([str(n) for n in numbers] + g.rng.sample(names, min(3, len(names)))
                          or ["1"])
    parts = g.rng.choice((f"({factor}, -1)", f"(-1, {factor})",
                          f"({shape(x, axis)} // {factor}, {factor})"))
    return moved(f"{x}.unflatten({axis}, {parts})")


@kind(2)
def join_axes(g):
    """A reshape that joins neighbouring axes, each size written out."""
    x = g.pick("any", 2)
    groups, axis = [], 0
    while axis < g.rank(x):
        end = g.rng.randint(axis + 1, min(axis + 3, g.rank(x)))
        groups.append(" * ".join(shape(x, i) for i in range(axis, end)))
        axis = end
    if g.rng.random() < 0.3:
        groups.insert(g.rng.randint(0, len(groups)), "1")
    return moved(f"{x}.reshape({', '.join(groups)})")


@kind(3)
def reshape_to_numbers(g):
    """Any shape with as many elements: the axes are cut in other places."""
    x = g.pick("any", 1)
    count = g.value(x).numel()
    if count == 0 or len(g.worlds) > 1:
        raise Reject
    factors = []
    for prime in (2, 3, 5, 7):
        while count % prime == 0:
            factors.append(prime)
            count //= prime
    factors += [count] * (count > 1)
    g.rng.shuffle(factors)
    sizes = [1] * g.rng.randint(1, 4)
    for factor in factors:
        sizes[g.rng.randrange(len(sizes))] *= factor
    if g.rng.random() < 0.3:
        sizes[g.rng.randrange(len(sizes))] = -1
    return moved(f"{x}.reshape({', '.join(map(str, sizes))})")


@kind()
def reshape_like(g):
    x = g.pick("any")
    counts = [world.eager[x].numel() for world in g.worlds]
    others = [y for y in g.names if [w.eager[y].numel() for w in g.worlds] == counts and y != x]
    if not others:
        return moved(f"{x}.reshape(-1)")
    y = g.rng.choice(others)
    return moved(g.rng.choice((f"{x}.reshape({y}.shape)", f"{x}.contiguous().view({y}.shape)")))


@kind()
def unsqueeze(g):
    x = g.pick("any", 0, 5)
    return moved(f"{x}.unsqueeze({g.rng.randint(-g.rank(x) - 1, g.rank(x))})")


@kind()
def squeeze(g):
    x = g.pick("any", 1, when=lambda name: g.number(1) in g.dims(name))
    axes = [i for i, dim in enumerate(g.dims(x)) if dim == g.number(1)]
    return moved(g.rng.choice((f"{x}.squeeze()", f"{x}.squeeze({g.rng.choice(axes)})",
                               f"{x}.squeeze({tuple(axes)})", f"{x}.squeeze({g.axis(x)})")))


@kind(1.5)
def expand(g):
    x = g.pick("any", 0, 5)
    sizes = []
    for dim in g.dims(x):
        if dim == g.number(1) and g.rng.random() < 0.8:
            sizes.append(g.rng.choice(("2", "3", size_of_any(g))))
        else:
            sizes.append("-1")
    lead = [g.rng.choice(("1", "2", size_of_any(g)))] if g.rng.random() < 0.6 else []
    return moved(f"{x}.expand({', '.join(lead + sizes) or '()'})")


def size_of_any(g: Generator) -> str:
    name = g.pick("any", 1)
    return shape(name, g.rng.randrange(g.rank(name)))


@kind(0.7)
def expand_like(g):
    x = g.pick("any", 1)
    y = g.broadcasting(g.dims(x))
    return moved(f"{y}.expand_as({x})")


@kind(2.5)
def slice_axis(g):
    x = g.pick("any", 1)
    axis = g.fixed_axis(x) % g.rank(x)
    size = g.size(x, axis)
    begin = g.rng.choice(("", "0", "1", "2", "-2", str(size // 2)))
    end = g.rng.choice(("", "", "-1", str(size - 1), str(size), "3", "100"))
    step = g.rng.choice(("", "", "2", "3", "2"))
    text = f"{begin}:{end}" + (f":{step}" if step else "")
    if g.rng.random() < 0.3:
        text = ", ".join(["..."] + [text] + [":"] * (g.rank(x) - 1 - axis))
    else:
        text = ", ".join([":"] * axis + [text])
    return moved(f"{x}[{text}]")


@kind(0.7)
def slice_two_axes(g):
    x = g.pick("any", 2)
    text = lambda: g.rng.choice(("1:", ":-1", "::2", "1::2", ":2", ":", "0", "-1", "None"))
    return moved(f"{x}[{text()}, {text()}]")


@kind()
def select(g):
    x = g.pick("any", 1)
    axis = g.fixed_axis(x)
    size = g.size(x, axis)
    if not size:
        raise Reject
    return moved(f"{x}.select({axis}, {g.rng.randrange(-size, size)})")


@kind()
def narrow(g):
    x = g.pick("any", 1)
    axis = g.fixed_axis(x)
    size = g.size(x, axis)
    begin = g.rng.randint(0, size)
    return moved(f"{x}.narrow({axis}, {begin}, {g.rng.randint(0, size - begin)})")


@kind(2)
def parts(g):
    x = g.pick("any", 1)
    axis = g.fixed_axis(x)
    size = g.size(x, axis)
    cut = g.rng.randint(0, size)
    return moved(g.rng.choice((
        f"{x}.chunk(2, {axis})", f"{x}.chunk(3, {axis})", f"{x}.split(2, {axis})",
        f"{x}.split([{cut}, {size - cut}], {axis})", f"{x}.unbind({axis})",
        f"torch.tensor_split({x}, 2, {axis})", f"{x}.split(1, {axis})")))


@kind(0.7)
def diagonal(g):
    x = g.pick("any", 2)
    a, b = g.rng.sample(range(g.rank(x)), 2)
    return moved(f"{x}.diagonal({g.rng.randint(-2, 2)}, {a}, {b})")


@kind(0.4)
def unfold(g):
    x = g.pick("any", 1)
    axis = g.fixed_axis(x)
    return moved(f"{x}.unfold({axis}, {min(2, g.size(x, axis))}, {g.rng.choice((1, 2))})")


# ---- movement

@kind(2.5)
def cat(g):
    x = g.pick("any", 1)
    axis = g.fixed_axis(x)
    dims = g.dims(x)
    types = types_of(g, x)
    others = [x, g.like(dims, types)] if g.rng.random() < 0.6 else [g.like(dims, types), x]
    if g.rng.random() < 0.4:
        changed = list(dims)
        changed[axis] = g.number(g.rng.choice((1, 2, 3, 0)))
        others.append(g.like(changed, types))
    return moved(f"torch.cat([{', '.join(others)}], {axis})")


@kind()
def stack(g):
    x = g.pick("any", 0, 5)
    y = g.like(g.dims(x), types_of(g, x))
    axis = g.rng.randint(-g.rank(x) - 1, g.rank(x))
    return moved(g.rng.choice((f"torch.stack([{x}, {y}], {axis})",
                               f"torch.stack([{x}, {y}, {x}], {axis})")))


def types_of(g: Generator, name: str) -> str:
    dtype = g.value(name).dtype
    return "float" if dtype.is_floating_point else "bool" if dtype == torch.bool else "int"


@kind()
def flip(g):
    x = g.pick("any")
    axes = () if g.rank(x) == 0 else g.axes(x)
    return moved(f"{x}.flip({list(axes)})")


@kind()
def roll(g):
    x = g.pick("any")
    shift = g.rng.choice((1, -1, 2, 3, -5, 0))
    if g.rank(x) == 0 or g.rng.random() < 0.25:
        return moved(f"{x}.roll({shift})")
    axes = g.axes(x, 2)
    return moved(f"{x}.roll({tuple(g.rng.choice((1, -1, 2, 7)) for _ in axes)}, {axes})")


@kind()
def pad(g):
    x = g.pick("any", 1)
    count = g.rng.randint(1, min(3, g.rank(x)))
    padding = [g.rng.choice((0, 1, 2, -1, 0)) for _ in range(2 * count)]
    value = g.rng.choice(("", ", value=1", ", value=2", ", value=-1"))
    return Draw(f"F.pad({x}, {padding}{value})", moves=True)


@kind(0.7)
def repeat(g):
    x = g.pick("any", 0, 4)
    counts = [g.rng.choice((1, 2, 1, 3)) for _ in range(g.rank(x) + g.rng.randint(0, 1))]
    if not counts:
        raise Reject
    return moved(g.rng.choice((f"{x}.repeat({', '.join(map(str, counts))})",
                               f"torch.tile({x}, {tuple(counts)})")))


@kind(0.5)
def repeat_interleave(g):
    x = g.pick("any", 1, 5)
    return moved(f"{x}.repeat_interleave({g.rng.choice((2, 3))}, {g.axis(x)})")


@kind(0.5)
def band(g):
    x = g.pick("any", 2)
    return Draw(f"{x}.{g.rng.choice(('tril', 'triu'))}({g.rng.randint(-2, 2)})", moves=True)


@kind(0.5)
def copies(g):
    x = g.pick("any")
    return moved(g.rng.choice((f"{x}.clone()", f"{x}.contiguous()", f"{x}.detach()",
                               f"{x} + 0", f"{x}.clone(memory_format=torch.contiguous_format)")))


# ---- element by element, floats

@kind(3)
def binary(g):
    x = g.pick("float")
    y = g.broadcasting(g.dims(x))
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

def edge(g: Generator, dtype: str) -> str:
    base = g.rng.choice(("2**31", "2**53", "2**63", "2**24", "2**32", "2**62") if dtype == "i64"
                        else ("2**31", "2**24", "2**31", "2**40", "2**53"))
    text = f"{base} {g.rng.choice(('- 1', '- 2', '- 3', '+ 1', '+ 0', '+ 5'))}"
    if base == "2**63":
        text = f"{base} - {g.rng.randint(1, 4)}"
    return f"({text})" if g.rng.random() < 0.6 else f"-({text})"


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


# ---- reductions

@kind(4)
def reduce_float(g):
    x = g.pick("float")
    op = g.rng.choice(("sum", "sum", "mean", "mean", "amax", "amin"))
    if op in ("amax", "amin"):
        need_separated(g, x)
    if g.rank(x) == 0 or g.rng.random() < 0.15:
        return Draw(f"{x}.{op}()")
    axes = g.axes(x)
    keep = ", keepdim=True" if g.rng.random() < 0.5 else ""
    dtype = f", dtype={g.rng.choice(('f32', g.float))}" \
        if op in ("sum", "mean") and g.rng.random() < 0.15 else ""
    return Draw(f"{x}.{op}({axes if len(axes) > 1 else axes[0]}{keep}{dtype})")


def need_separated(g: Generator, x: str) -> None:
    """No two elements are nearly the same, unless they have no roundings."""
    if g.value(x).numel() > 1:
        g.need_margin(f"{x}.flatten().sort()[0].diff()", x)


@kind(1.2)
def spread(g):
    x = g.pick("float", 1)
    axes = g.axes(x, 2)
    op = g.rng.choice(("var", "var", "std"))
    text = g.rng.choice((f"{axes}", f"{axes}, correction=0", f"{axes}, keepdim=True",
                         f"{axes}, correction=2"))
    value = f"{x}.{op}({text})"
    return Draw(f"({x} * 1.5).var({axes}, unbiased=False)" if op == "std" and g.backward else value)


@kind(1.2)
def logsumexp(g):
    x = g.pick("float", 1)
    axes = g.axes(x, 2)
    return Draw(f"torch.logsumexp({x}, {axes}, keepdim={g.rng.random() < 0.5})")


@kind(0.8)
def norm(g):
    x = g.pick("float", 1)
    order = g.rng.choice(("2", "1", "float('inf')", "3", "0"))
    if order in ("float('inf')", "0"):
        need_separated(g, x)
    return Draw(g.rng.choice((
        f"torch.linalg.vector_norm({x}, {order}, {g.axes(x, 2)}, keepdim={g.rng.random() < 0.5})",
        f"F.normalize({x}, dim={g.axis(x)})")))


@kind(1)
def cumsum(g):
    x = g.pick("float", 1)
    return Draw(g.rng.choice((f"{x}.cumsum({g.axis(x)})",
                              f"{x}.flip({g.axis(x)}).cumsum({g.axis(x)})")))


@kind(0.8)
def arg_extreme(g):
    x = g.pick("float", 1)
    need_separated(g, x)
    op = g.rng.choice(("argmax", "argmin"))
    axis = g.axis(x)
    return Draw(g.rng.choice((f"{x}.{op}({axis})", f"{x}.{op}()",
                              f"{x}.{op}({axis}, keepdim=True)")))


@kind(0.8)
def extreme_with_position(g):
    x = g.pick("float", 1)
    need_separated(g, x)
    axis = g.axis(x)
    return Draw(g.rng.choice((f"{x}.max({axis})", f"{x}.min({axis}, keepdim=True)",
                              f"{x}.max({axis})[0]", f"{x}.min({axis})[1]",
                              f"{x}.max({axis}, keepdim=True)[0]")))


@kind(0.2)
def prod(g):
    x = g.pick("float", 1)
    return Draw(f"{x}.prod({g.axis(x)})")


# ---- softmax and normalizations

@kind(4)
def softmax(g):
    x = g.pick("float")
    axis = g.axis(x) if g.rank(x) else g.rng.choice((0, -1))
    op = g.rng.choice(("softmax", "softmax", "log_softmax"))
    dtype = ", dtype=f32" if g.rng.random() < 0.1 else ""
    return Draw(f"F.{op}({x}, {axis}{dtype})")


@kind(0.4)
def masked_softmax(g):
    x = g.pick("float", 1)
    mask = g.broadcasting(g.dims(x), "bool")
    return Draw(f"F.softmax({x}.masked_fill({mask}, float('-inf')), {g.axis(x)})")


@kind(3)
def layer_norm(g):
    x = g.pick("float", 1)
    count = 1 if g.rng.random() < 0.7 else g.rng.randint(1, g.rank(x))
    dims = g.dims(x)[g.rank(x) - count:]
    sizes = f"{x}.shape[{g.rank(x) - count}:]"
    need_spread(g, x, count)
    weights = g.rng.choice((0, 1, 2))
    names = [g.like(dims, "float", dtype=dtype_name(g, x)) for _ in range(weights)]
    eps = g.rng.choice(("", ", eps=0.1", ", eps=0.01"))
    return Draw(f"F.layer_norm({x}, {', '.join([sizes, *names])}{eps})")


def need_spread(g: Generator, x: str, count: int) -> None:
    """Rows whose elements are not all nearly the same."""
    rows = g.value(x).double().flatten(g.rank(x) - count)
    if rows.numel() and rows.shape[-1] > 1 and rows.std(-1).min() < 0.05:
        raise Reject


@kind(1.5)
def rms_norm(g):
    x = g.pick("float", 1)
    count = 1 if g.rng.random() < 0.8 else g.rng.randint(1, g.rank(x))
    dims = g.dims(x)[g.rank(x) - count:]
    weight = g.rng.choice(("", ", " + g.like(dims, "float", dtype=dtype_name(g, x))))
    eps = ", eps=0.1" if weight and g.rng.random() < 0.5 else ""
    return Draw(f"F.rms_norm({x}, {x}.shape[{g.rank(x) - count}:]{weight}{eps})")


@kind(1.2)
def group_norm(g):
    x = g.pick("float", 2, 5)
    dim = g.dims(x)[1]
    groups = [n for n in (1, 2, 3, 4) if all(size and size % n == 0 for size in dim)]
    if not groups:
        raise Reject
    weights = [g.like([dim], "float", dtype=dtype_name(g, x)) for _ in range(g.rng.choice((0, 2)))]
    return Draw(f"F.group_norm({', '.join([x, str(g.rng.choice(groups)), *weights])}, eps=0.01)")


# ---- products

@kind(3)
def matmul(g):
    x = g.pick("float", 1, 5)
    inner = g.dims(x)[-1]
    dims = g.rng.choice(([inner, g.any_dim()], [inner, g.any_dim()], [inner]))
    if g.rank(x) >= 3 and g.rng.random() < 0.4:
        dims = [*g.dims(x)[:-2], inner, g.any_dim()]
    w = g.like(dims, dtype=dtype_name(g, x))
    return Draw(scaled(g, f"{x} @ {w}", inner))


def scaled(g: Generator, text: str, inner) -> str:
    return f"({text}) * 0.5" if max(inner) > 3 and g.rng.random() < 0.5 else text


@kind(2)
def matmul_of_itself(g):
    x = g.pick("float", 2, 5)
    return Draw(g.rng.choice((f"{x} @ {x}.mT", f"{x}.mT @ {x}", f"{x} @ {x}",
                              f"{x} @ {x}.transpose(-1, -2) @ {x}")))


@kind(2.5)
def linear(g):
    x = g.pick("float", 1, 5)
    out = g.any_dim()
    w = g.like([out, g.dims(x)[-1]], dtype=dtype_name(g, x))
    bias = ", " + g.like([out], dtype=dtype_name(g, x)) if g.rng.random() < 0.5 else ""
    return Draw(f"F.linear({x}, {w}{bias})")


@kind()
def add_product(g):
    x = g.pick("float", 2, 3)
    dims = [*g.dims(x)[:-2], g.dims(x)[-1], g.any_dim()]
    w = g.like(dims, dtype=dtype_name(g, x))
    out = [*g.dims(x)[:-1], dims[-1]]
    if g.rank(x) == 3:
        bias = g.like(out, dtype=dtype_name(g, x))
        return Draw(f"torch.baddbmm({bias}, {x}, {w}, beta=0.5, alpha=2)")
    bias = g.like(out[g.rng.randint(0, 1):], dtype=dtype_name(g, x))
    options = g.rng.choice(("", ", beta=0.5", ", alpha=2", ", beta=0, alpha=0.5"))
    return Draw(f"torch.addmm({bias}, {x}, {w}{options})")


@kind(3)
def einsum(g):
    x = g.pick("float", 1, 4)
    letters = "abcde"[:g.rank(x)]
    shared = g.rng.sample(range(g.rank(x)), g.rng.randint(1, g.rank(x)))
    dims = [g.dims(x)[i] for i in shared]
    other = "".join(letters[i] for i in shared)
    if g.rng.random() < 0.6:
        at = g.rng.randint(0, len(dims))
        dims.insert(at, g.any_dim())
        other = other[:at] + "f" + other[at:]
    w = g.like(dims, dtype=dtype_name(g, x))
    kept = [c for c in dict.fromkeys(letters + other) if g.rng.random() < 0.6]
    g.rng.shuffle(kept)
    return Draw(f"torch.einsum('{letters},{other}->{''.join(kept)}', {x}, {w})")


@kind(0.7)
def small_products(g):
    x = g.pick("float", 1, 2)
    y = g.like(g.dims(x)[-1:], dtype=dtype_name(g, x))
    return Draw(f"torch.mv({x}, {y})" if g.rank(x) == 2 else
                g.rng.choice((f"torch.dot({x}, {y})", f"torch.outer({x}, {y})",
                              f"torch.inner({x}, {y})")))


# ---- attention

@kind(3)
def attention(g):
    """q, k and v of four axes, new or there already, with each kind of mask."""
    x = g.pick("float", 4, 4) if g.rng.random() < 0.6 else None
    if x is None:
        x = g.input("float", [g.any_dim() for _ in range(4)])
    dims = g.dims(x)
    keys = [*dims]
    if g.rng.random() < 0.4:
        keys[2] = g.any_dim()
    grouped = ""
    if g.rng.random() < 0.3:
        times = [n for n in (2, 3, 4) if all(h and h % n == 0 for h in dims[1])]
        if times:
            n = g.rng.choice(times)
            keys[1] = tuple(h // n for h in dims[1])
            grouped = ", enable_gqa=True"
    values = [*keys[:3], g.any_dim()] if g.rng.random() < 0.15 else keys
    k, v = (g.like(one, dtype=dtype_name(g, x)) for one in (keys, values))
    scale = g.rng.choice(("", "", ", scale=0.3"))
    return Draw(f"F.scaled_dot_product_attention({x}, {k}, {v}"
                f"{attention_mask(g, [*dims[:3], keys[2]], dtype_name(g, x))}{scale}{grouped})")


def attention_mask(g: Generator, dims: list, dtype: str) -> str:
    choice = g.rng.choice(("", "causal", "bool", "float"))
    if choice == "causal":
        return ", is_causal=True"
    if not choice:
        return ""
    one = g.number(1)
    kept = g.rng.choice((dims, [one, one, *dims[2:]], [dims[0], one, one, dims[3]], dims[2:],
                         [dims[0], one, *dims[2:]]))
    mask = g.input("bool", kept) if choice == "bool" else g.input("float", kept, dtype=dtype)
    return f", attn_mask={mask}"


@kind(2.5)
def attention_block(g):
    """Multi-head attention of [batch, tokens, width], as modules write it."""
    x = g.pick("float", 3, 3)
    batch, tokens, width = g.dims(x)
    dtype = dtype_name(g, x)
    heads = [n for n in (1, 2, 3, 4) if all(size and size % n == 0 for size in width)]
    if not heads:
        raise Reject
    h = g.rng.choice(heads)
    three = tuple(3 * size for size in width)
    lines = []
    if g.rng.random() < 0.5:
        w = g.like([three, width], dtype=dtype)
        lines.append(f"q, k, v = F.linear({x}, {w}).chunk(3, -1)")
    else:
        names = [g.like([width, width], dtype=dtype) for _ in range(3)]
        for letter, w in zip("qkv", names):
            lines.append(f"{letter} = {x} @ {w}" + g.rng.choice(("", ".t()", ".mT")))
    style = g.rng.randrange(3)
    split = (f".unflatten(-1, ({h}, -1)).transpose(1, 2)",
             f".view({shape(x, 0)}, {shape(x, 1)}, {h}, -1).permute(0, 2, 1, 3)",
             f".reshape({shape(x, 0)}, -1, {h}, {shape(x, 2)} // {h}).transpose(1, 2)")[style]
    if style == 1:
        split = split.replace(".view", ".contiguous().view")
    lines.append("q, k, v = " + ", ".join(letter + split for letter in "qkv"))
    if g.rng.random() < 0.6:
        mask = attention_mask(g, [batch, g.number(h), tokens, tokens], dtype)
        lines.append(f"o = F.scaled_dot_product_attention(q, k, v{mask})")
    else:
        lines.append("s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5")
        if g.rng.random() < 0.5:
            lines.append(f"s = s.masked_fill(torch.ones({shape(x, 1)}, {shape(x, 1)}, dtype=b1, "
                         f"device={x}.device).triu(1), float('-inf'))")
        lines.append("o = F.softmax(s, -1) @ v")
    joined = g.rng.choice((".transpose(1, 2).flatten(2)", ".transpose(1, 2).contiguous()"
                           f".view({x}.shape)", f".permute(0, 2, 1, 3).reshape({x}.shape)",
                           f".transpose(1, 2).reshape(-1, {shape(x, 2)})"))
    return Draw(f"o{joined}", lines)


@kind(2)
def module_attention(g):
    """What nn.MultiheadAttention computes, of [tokens, batch, width]."""
    x = g.pick("float", 3, 3)
    tokens, batch, width = g.dims(x)
    dtype = dtype_name(g, x)
    heads = [n for n in (1, 2, 3, 4) if all(size and size % n == 0 for size in width)]
    if not heads:
        raise Reject
    h = g.rng.choice(heads)
    three = tuple(3 * size for size in width)
    key, keys = x, tokens
    if g.rng.random() < 0.3:
        keys = g.any_dim()
        key = g.like([keys, batch, width], dtype=dtype)
    w_in, w_out = g.like([three, width], dtype=dtype), g.like([width, width], dtype=dtype)
    b_in = g.like([three], dtype=dtype) if g.rng.random() < 0.5 else "None"
    options = f"need_weights={g.rng.random() < 0.5}, training=False"
    if g.rng.random() < 0.4:
        rows = [tuple(h * size for size in batch), tokens, keys] if g.rng.random() < 0.5 \
            else [tokens, keys]
        options += ", attn_mask=" + g.input("float", rows, dtype=dtype)
    if g.rng.random() < 0.3:
        options += f", average_attn_weights={g.rng.random() < 0.5}"
    return Draw(f"F.multi_head_attention_forward({x}, {key}, {key}, {shape(x, 2)}, {h}, {w_in}, {b_in}, "
                f"None, None, False, 0.0, {w_out}, None, {options})[0]")


@kind(1.5)
def flat_attention_block(g):
    """Tokens of all sequences behind one another, [batch * tokens, width], with a residual sum."""
    x = g.pick("float", 3, 3)
    width, dtype = g.dims(x)[2], dtype_name(g, x)
    heads = [n for n in (1, 2, 3, 4) if all(size and size % n == 0 for size in width)]
    if not heads:
        raise Reject
    h = g.rng.choice(heads)
    w = g.like([tuple(3 * size for size in width), width], dtype=dtype)
    batch, tokens = shape(x, 0), shape(x, 1)
    lines = [f"t = {x}.flatten(0, 1)"]
    if g.rng.random() < 0.5:
        lines.append("t = F.layer_norm(t, t.shape[1:]) * 0.5" if max(width) > 1 else "t = t * 2")
    lines += [f"u = F.linear(t, {w})", f"u = u.view({batch}, {tokens}, 3, {h}, -1)"
              if g.rng.random() < 0.6 else f"u = u.view({batch}, {tokens}, -1).unflatten(2, (3, {h}, -1))",
              "q, k, v = u.permute(2, 0, 3, 1, 4).unbind(0)"]
    if g.rng.random() < 0.5:
        lines.append(f"o = F.scaled_dot_product_attention(q, k, v, "
                     f"is_causal={g.rng.random() < 0.5})")
    else:
        lines += ["q, k, v = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)",
                  "o = torch.bmm(F.softmax(torch.bmm(q, k.mT), -1), v)",
                  f"o = o.unflatten(0, ({batch}, {h}))"]
    result = f"o.transpose(1, 2).reshape({batch} * {tokens}, {shape(x, 2)})"
    return Draw(g.rng.choice((f"{result} + t", f"({result} + t).view({x}.shape) + {x}", result)), lines)


@kind(1)
def mlp_block(g):
    x = g.pick("float", 2, 4)
    width, inner, dtype = g.dims(x)[-1], g.any_dim(), dtype_name(g, x)
    up, down = g.like([inner, width], dtype=dtype), g.like([width, inner], dtype=dtype)
    op = g.rng.choice(("F.gelu", "F.silu", "torch.relu", "torch.tanh"))
    return Draw(f"{x} + F.linear({op}(F.linear({x}, {up})), {down})")


# ---- indexing

def rows_of(g: Generator, dims: list, high, low: int = 0, dtype: str | None = None) -> str:
    if min(high) == 0:
        raise Reject
    return g.input("int", dims, high=high, low=low, dtype=dtype)


@kind(1.5)
def embedding(g):
    width = g.any_dim()
    rows = g.any_dim()
    table = g.like([rows, width])
    index = rows_of(g, [g.any_dim() for _ in range(g.rng.choice((1, 2, 2, 0, 3)))], rows)
    padding = f", padding_idx={g.rng.choice((0, -1))}" if g.rng.random() < 0.2 else ""
    return Draw(f"F.embedding({index}, {table}{padding})", moves=True)


@kind(1.5)
def index_select(g):
    x = g.pick("any", 1)
    axis = g.axis(x)
    index = rows_of(g, [g.any_dim()], g.dims(x)[axis])
    return moved(f"{x}.index_select({axis}, {index})")


@kind(2)
def gather(g):
    x = g.pick("any", 1, 4)
    axis = g.axis(x)
    dims = g.dims(x)
    high = dims[axis]
    sizes = list(dims)
    sizes[axis] = g.number(g.rng.choice((1, 2, 3))) if g.rng.random() < 0.6 else dims[axis]
    if g.rng.random() < 0.2:
        other = g.rng.randrange(len(sizes))
        sizes[other] = g.number(1)
    index = rows_of(g, sizes, high, dtype="i64")
    return moved(g.rng.choice((f"{x}.gather({axis}, {index})",
                               f"torch.take_along_dim({x}, {index}, {axis})")))


@kind(2.5)
def advanced(g):
    """x[i, j] with indices that broadcast, some negative, beside slices and None."""
    x = g.pick("any", 1, 4)
    rank = g.rank(x)
    lead = [g.any_dim() for _ in range(g.rng.choice((1, 1, 2, 0)))]
    places = g.rng.sample(range(rank), g.rng.randint(1, min(rank, 2)))
    items = []
    for axis in range(rank):
        if axis in places:
            dims = lead if g.rng.random() < 0.8 else lead[len(lead):]
            high = g.dims(x)[axis]
            low = -min(high) if g.rng.random() < 0.4 else 0
            items.append(rows_of(g, dims, high, low, dtype=g.rng.choice(("i64", "i64", "i32"))))
        else:
            items.append(g.rng.choice((":", ":", ":", "1:", "0", "None, :")))
    while items and items[-1] == ":":
        items.pop()
    return moved(f"{x}[{', '.join(items)}]")


@kind(0.5)
def index_list(g):
    x = g.pick("any", 1)
    numbers = [g.rng.randrange(-g.size(x, 0), max(1, g.size(x, 0))) for _ in range(3)]
    return moved(f"{x}[{numbers}]")


@kind(0.7)
def one_hot(g):
    high = g.any_dim()
    index = rows_of(g, [g.any_dim() for _ in range(g.rng.choice((1, 2)))], high, dtype="i64")
    return Draw(f"F.one_hot({index}, {max(high)})")


@kind(1.5)
def scatter_add(g):
    x = g.pick("float", 1, 3)
    axis = g.axis(x)
    sizes = list(g.dims(x))
    high = sizes[axis]
    if g.rng.random() < 0.6:
        sizes[axis] = g.number(g.rng.choice((1, 2, 3)))
    index = rows_of(g, sizes, high, dtype="i64")
    source = g.like(sizes, dtype=dtype_name(g, x))
    return Draw(f"{x}.scatter_add({axis}, {index}, {source})")


@kind(1.2)
def index_add(g):
    x = g.pick("float", 1, 3)
    axis = g.axis(x)
    sizes = list(g.dims(x))
    high, sizes[axis] = sizes[axis], g.any_dim()
    index = rows_of(g, [sizes[axis]], high)
    source = g.like(sizes, dtype=dtype_name(g, x))
    alpha = g.rng.choice(("", ", alpha=0.5"))
    return Draw(f"{x}.index_add({axis}, {index}, {source}{alpha})")


@kind(1.5)
def index_put(g):
    x = g.pick("float", 1, 3)
    count = g.rng.randint(1, min(2, g.rank(x)))
    lead = [g.any_dim() for _ in range(g.rng.choice((1, 1, 2)))]
    names = []
    for axis in range(count):
        high = g.dims(x)[axis]
        names.append(rows_of(g, lead, high, -min(high) if g.rng.random() < 0.4 else 0, "i64"))
    values = g.like(lead + g.dims(x)[count:], dtype=dtype_name(g, x)) \
        if g.rng.random() < 0.7 else g.like(g.dims(x)[count:], dtype=dtype_name(g, x))
    return Draw(f"{x}.index_put(({', '.join(names)},), {values}, accumulate=True)")


@kind(0.7)
def overwrite_rows(g):
    """Rows of distinct numbers are overwritten."""
    x = g.pick("any", 1, 3)
    high = g.dims(x)[0]
    if min(high) < 2:
        raise Reject
    index = g.input("int", [g.number(2)], high=high, maker="distinct", dtype="i64")
    values = g.like([g.number(2), *g.dims(x)[1:]], types_of(g, x), dtype=dtype_name(g, x))
    return Draw(g.rng.choice((f"{x}.index_copy(0, {index}, {values})",
                              f"{x}.index_put(({index},), {values})",
                              f"{x}.index_fill(0, {index}, 1)",
                              )), moves=True)


@kind(0.4)
def scatter(g):
    x = g.pick("any", 1, 3)
    axis = g.axis(x)
    sizes = list(g.dims(x))
    high = sizes[axis]
    sizes[axis] = g.number(1)
    index = rows_of(g, sizes, high, dtype="i64")
    source = g.like(sizes, types_of(g, x), dtype=dtype_name(g, x))
    return Draw(g.rng.choice((f"{x}.scatter({axis}, {index}, {source})",
                              f"{x}.scatter({axis}, {index}, 1)",
                              f"{x}.slice_scatter({x}.narrow({axis}, 0, 1) * 1, {axis}, 0, 1)",
                              )), moves=True)


# ---- changes in place, of a copy

@kind(2)
def in_place(g):
    x = g.pick("float")
    dims = g.dims(x)
    y = g.broadcasting(dims, dtype=dtype_name(g, x))
    mask = g.broadcasting(dims, "bool")
    change = g.rng.choice((f"t.add_({y})", f"t.mul_({y})", f"t.sub_({y}, alpha=0.5)", "t.mul_(0.5)",
                           f"t.masked_fill_({mask}, 0.5)", "t.tanh_()", "t.clamp_(-1, 1)",
                           f"t.copy_({y})", "t.zero_()", "t.fill_(0.25)", "t.add_(1)",
                           f"t.addcmul_({y}, {y}, value=0.5)", f"t.lerp_({y}.expand_as(t), 0.25)"))
    return Draw("t", [f"t = {x}.clone()", change])


@kind(2.5)
def write_part(g):
    """Writes into a view of a copy: a slice, an element of an axis, or a transpose."""
    x = g.pick("any", 1)
    axis = g.fixed_axis(x) % g.rank(x)
    size = g.size(x, axis)
    if size == 0:
        raise Reject
    lead = ":, " * axis
    begin = g.rng.randrange(size)
    end = g.rng.randint(begin + 1, size)
    if g.rng.random() < 0.5:
        place = f"t[{lead}{begin}:{end}]" if g.rng.random() < 0.8 else f"t[{lead}{begin}::2]"
    else:
        place = f"t[{lead}{g.rng.randrange(-size, size)}]"
    types = types_of(g, x)
    y = g.pick(types, 0, 2)
    change = g.rng.choice((f"{place} = {g.rng.choice((0, 1, 2))}", f"{place} *= 2",
                           f"{place}.copy_({place}.flip(0))", f"{place} = {y}",
                           f"{place}.fill_(1)", f"{place} += 1", f"{place}.zero_()"))
    if types == "bool":
        change = change.replace("*=", "|=").replace("+=", "^=").replace(" 2", " 1")
    return Draw("t", [f"t = {x}.clone()", change])


@kind(1.2)
def write_view(g):
    """A view of a copy that is read after the copy changed, and the other way round."""
    x = g.pick("float", 2)
    y = g.broadcasting(g.dims(x), dtype=dtype_name(g, x))
    view = g.rng.choice(("t.transpose(0, 1)", "t[0]", "t[..., -1]", "t.flatten(0, 1)", "t.unsqueeze(0)",
                         "t.mT", "t[1:]", "t.view(-1)", "t.diagonal(0, -2, -1)", "t.unbind(-1)[0]",
                         "t.view(t.shape)", "t.chunk(2, -1)[0]", "t.permute(*range(t.dim() - 1, -1, -1))"))
    if g.rng.random() < 0.5:
        return Draw("u + 1", [f"t = {x}.clone().contiguous()", f"u = {view}",
                              g.rng.choice((f"t.mul_({y})", "t.add_(1)", "t[0] = 0", f"t += {y}"))])
    return Draw("t", [f"t = {x}.clone().contiguous()", f"u = {view}",
                      g.rng.choice(("u.mul_(0.5)", "u.add_(1)", "u.fill_(0.5)", "u += 1", "u.neg_()",
                                    "u.copy_(u.flip(0))"))])


@kind(0.8)
def put_in_place(g):
    x = g.pick("float", 1, 3)
    dtype = dtype_name(g, x)
    rows = g.any_dim()
    index = rows_of(g, [rows], g.dims(x)[0], dtype="i64")
    values = g.like([rows, *g.dims(x)[1:]], dtype=dtype)
    return Draw("t", [f"t = {x}.clone()", g.rng.choice((
        f"t.index_put_(({index},), {values}, accumulate=True)", f"t.index_add_(0, {index}, {values})",
        f"t[{index}] = 0"))])


@kind(0.8)
def integers_in_place(g):
    x = g.pick("int", 1)
    y = g.broadcasting(g.dims(x), "int", dtype=dtype_name(g, x))
    return Draw("t", [f"t = {x}.clone()", g.rng.choice((
        f"t.add_({y})", f"t.mul_({y})", "t[0] += 1", "t.clamp_(-3, 3)", "t.sub_(1)", "t[..., 0] = 7",
        f"t.add_({edge(g, dtype_name(g, x))})"))])


# ---- losses

@kind(2)
def cross_entropy(g):
    x = g.pick("float", 1, 3)
    dims = g.dims(x)
    axis = 0 if len(dims) == 1 else 1
    classes = dims[axis]
    target = rows_of(g, [dim for i, dim in enumerate(dims) if i != axis], classes, dtype="i64")
    options = g.rng.choice(("", ", reduction='sum'", ", reduction='none'", ", ignore_index=0",
                            ", label_smoothing=0.1", ", ignore_index=1, reduction='sum'"))
    if g.rng.random() < 0.25:
        weight = g.like([classes], dtype=dtype_name(g, x))
        options += f", weight={weight}.abs() + 0.5"
    if g.rng.random() < 0.3:
        return Draw(f"F.nll_loss(F.log_softmax({x}, {axis}), {target}"
                    f"{options if 'smooth' not in options else ''})")
    return Draw(f"F.cross_entropy({x}, {target}{options})")


@kind(0.6)
def cross_entropy_of_probabilities(g):
    x = g.pick("float", 2, 2)
    return Draw(f"F.cross_entropy({x}, F.softmax({g.like(g.dims(x), dtype=dtype_name(g, x))}, 1))")


@kind(1.2)
def regression_loss(g):
    x = g.pick("float")
    y = g.like(g.dims(x), dtype=dtype_name(g, x))
    loss = g.rng.choice(("mse_loss", "mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss",
                         "binary_cross_entropy_with_logits"))
    if loss == "l1_loss":
        g.need_margin(f"{x} - {y}", x, y)
    if "binary" in loss:
        y = f"{y}.sigmoid()"
    return Draw(f"F.{loss}({x}, {y}, reduction='{g.rng.choice(('mean', 'sum', 'none'))}')")


assert all(math.isfinite(weight) for _, weight in KINDS.values())
