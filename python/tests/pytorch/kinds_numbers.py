"""Statements of random programs with ints that are arguments and change from call to call, and sizes as numbers."""

from __future__ import annotations

import functools

import program_kinds
from program_generator import Draw, Reject
from program_kinds import dtype_name, shape, types_of

KINDS_OF_NUMBERS: dict[str, tuple] = {}
kind = functools.partial(program_kinds.kind, kinds=KINDS_OF_NUMBERS)


def number(g) -> str:
    """An int of any size."""
    n, m = g.rng.choice(g.numbers), g.rng.choice(g.numbers)
    sized = [name for name in g.names if g.rank(name)]
    size = shape(g.rng.choice(sized), -1) if sized else "3"
    return g.rng.choice((n, n, n, f"(-{n})", f"({n} + 1)", f"({n} - {m})", f"(2 * {n})", f"({n} * {size})", size,
                         f"({n} // 3)", f"({size} - {n})", f"({size} * 2 + 1)", f"max({n}, {m})", f"({n} % 5)"))


def small(g) -> str:
    """An int that is near zero."""
    n = g.rng.choice(g.numbers)
    return g.rng.choice((f"({n} % 7)", f"({n} % 5 - 2)", f"({n} % 3)", f"(-({n} % 4))"))


def divisor(g, dtype: str = "i64") -> str:
    """Never 0, nor -1: torch.div(x, -1, rounding_mode="trunc") of the least int64 ends torch's process with SIGFPE."""
    n = f"abs({number(g) if dtype == 'i64' else small(g)})"
    return g.rng.choice((f"(2 * {n} + 3)", f"({small(g)} + 8)", f"(-2 * {n} - 3)"))


def scalar(g) -> str:
    return number(g) if g.rng.random() < 0.4 else small(g)


@kind(4.0)
def changing_sums(g):
    x = g.pick("float")
    y, v = g.broadcasting(g.dims(x)), scalar(g)
    return Draw(g.rng.choice((
        f"{x} + {v}", f"{v} - {x}", f"{x} * {v}", f"{x} / {divisor(g)}", f"torch.add({x}, {y}, alpha={v})",
        f"torch.sub({x}, {y}, alpha={v})", f"torch.add({x}, 0.5, alpha={v})", f"torch.rsub({x}, {y}, alpha={v})",
        f"{x} * ({v} / 4)", f"torch.addcmul({x}, {y}, {y}, value={v})",
        f"torch.addcdiv({x}, {y}, {y}.square() + 0.5, value={v})", f"torch.lerp({x}, {x} * 2, {small(g)})")))


@kind(3.0)
def changing_activation(g):
    x, v = g.pick("float"), small(g)
    return Draw(g.rng.choice((
        f"F.leaky_relu({x}, {v})", f"F.elu({x}, {v})", f"F.softplus({x}, {v} + 5, 20)",
        f"F.threshold({x} * 0, {v}, {v})", f"F.hardtanh({x}, -8, 9 + {v})",
        f"F.hardtanh({x}, -9 - {v} % 2, 8)", f"F.celu({x}, {v} + 5)")))


@kind(3.0)
def changing_power(g):
    x = g.pick("float")
    return Draw(g.rng.choice((f"({x}.abs() + 0.5) ** {small(g)}", f"{x} ** abs({small(g)})",
                              f"({small(g)} + 5) ** {x}", f"({x}.abs() + 1).pow({small(g)} / 4)")))


@kind(4.0)
def changing_bounds(g):
    x, v = g.pick("any", when=lambda name: types_of(g, name) != "bool"), scalar(g)
    if dtype_name(g, x) == "i32":
        v = small(g)
    return Draw(g.rng.choice((f"{x}.clamp(min={v})", f"{x}.clamp(max={v})", f"{x}.clamp(-9, 8 + {small(g)})")),
                moves=types_of(g, x) == "float")


@kind(4.0)
def changing_fill(g):
    x = g.pick("any", 1)
    mask, v = g.broadcasting(g.dims(x), "bool"), number(g) if dtype_name(g, x) in ("i64", "f32") else small(g)
    size = shape(x, g.rng.randrange(g.rank(x)))
    dtype, device = g.rng.choice(("f32", "i64", "b1")), f"device={x}.device"
    return Draw(g.rng.choice((
        f"{x}.masked_fill({mask}, {v})", f"torch.where({mask}, {x}, {v})", f"torch.where({mask}, {v}, {x})",
        f"torch.full(({size}, 2), {v}, dtype={dtype}, {device})", f"torch.full_like({x}, {v})",
        f"{x}.new_full((3,), {v})", f"torch.scalar_tensor({v}, dtype={dtype}, {device})",
        f"torch.tensor({v}, {device})")), moves=True)


@kind(5.0)
def changing_integers(g):
    x, v = g.pick("int"), number(g)
    d = divisor(g, dtype_name(g, x))
    y = g.broadcasting(g.dims(x), "int")
    if dtype_name(g, x) == "i32" or dtype_name(g, y) == "i32":
        v = small(g)
    return Draw(g.rng.choice((
        f"{x} + {v}", f"{x} * {v}", f"{v} - {x}", f"torch.add({x}, {y}, alpha={v})", f"{x} // {d}",
        f"{x} % {d}", f"torch.div({x}, {d}, rounding_mode='trunc')", f"{x} ** abs({small(g)})",
        f"{x} < {v}", f"{x} == {v}", f"{v} >= {x}", f"{x} != {small(g)}", f"({x} % 9) / {d}")), moves=True)


@kind(4.0)
def changing_ranges(g):
    x = g.pick("any", 1)
    size, v, device = shape(x, g.rng.randrange(g.rank(x))), number(g), f"device={x}.device"
    return Draw(g.rng.choice((
        f"torch.arange({v}, {v} + 5, {device})", f"torch.arange({size}, {device}) * {v}",
        f"torch.arange({size}, {device}) // {divisor(g)}", f"torch.arange({size} * 2, {device}) // {size}",
        f"(torch.arange({size} * 2, {device}) + {v}) % {size}", f"torch.arange({small(g)} + 5, {device})",
        f"torch.linspace({g.rng.choice(g.numbers)}, 2, 5, dtype=f32, {device})",
        f"torch.arange({small(g)}, {small(g)} + 6, dtype=f32, {device})",
        f"torch.zeros({small(g)} % 3 + 1, 2, {device})")), moves=True)


@kind(4.0)
def changing_places(g):
    x, n = g.pick("any", 1), g.rng.choice(g.numbers)
    axis = g.axis(x)
    size = shape(x, axis)
    if min(g.dims(x)[axis]) == 0:
        raise Reject
    inside = f"({n} % {size})"
    choices = [f"{x}.roll({number(g)}, {axis})", f"{x}.select({axis}, {inside})", f"{x}.narrow({axis}, {inside}, 1)",
               f"{x}.roll({small(g)})", f"{x}.roll((1, {n}), (0, {axis}))", f"{x}.select({axis}, -1 - {inside})",
               f"{x}.narrow({axis}, 0, {inside} + 1)",
               f"{x}.index_fill({axis}, torch.tensor([0], device={x}.device), {small(g)})"]
    if g.rank(x) >= 2:
        choices += [f"{x}.tril({number(g)})", f"{x}.triu({small(g)})", f"{x}.tril({small(g)})"]
    return Draw(g.rng.choice(choices), moves=True)


@kind(2.0)
def changing_products(g):
    x = g.pick("float", 2, 2)
    y = g.like([g.dims(x)[1], g.any_dim()], "float", dtype=dtype_name(g, x))
    bias = g.like([g.dims(x)[0], g.dims(y)[1]], "float", dtype=dtype_name(g, x))
    a, b = small(g), small(g)
    return Draw(g.rng.choice((f"torch.addmm({bias}, {x}, {y}, beta={b}, alpha={a})",
                              f"torch.addmm({bias}, {x}, {y}, alpha={a})",
                              f"torch.baddbmm({bias}[None], {x}[None], {y}[None], beta={b}, alpha={a})")))


@kind(2.0)
def changing_updates(g):
    x = g.pick("float", 1)
    axis = g.axis(x)
    if min(g.dims(x)[axis]) == 0:
        raise Reject
    index = f"torch.tensor([0], device={x}.device)"
    part = f"{x}.narrow({axis}, 0, 1)"
    return Draw(g.rng.choice((f"{x}.index_add({axis}, {index}, {part}, alpha={small(g)})",
                              f"{x}.scatter({axis}, {part}.long() * 0, {small(g)})",
                              f"F.pad({x}, (1, 0), value={small(g)})",
                              f"{x}.var({axis}, correction={small(g)} % 2)", f"{x}.mean({axis}) * {shape(x, axis)}",
                              f"{x}.sum({axis}) / ({shape(x, axis)} + abs({small(g)}))")))
