"""Statements of random programs: complex numbers between real tensors.

A statement begins with real tensors, takes some complex steps whose operands are of other types too, and
ends with a real tensor. Numbers of complex32 are exact in it, because float64 does not round them."""

from __future__ import annotations

from program_generator import Draw, Generator, Reject
from program_kinds import kind

NUMBERS = ("(1 + 2j)", "0.5j", "(0.25 - 1j)", "-1j", "(2 + 0j)", "2", "-0.5", "True")


def finite(g: Generator, name: str) -> str:
    """A value without infinities, whose complex products with zeros eager has as NaN."""
    if not g.value(name).isfinite().all():
        raise Reject
    return name


def wide(g: Generator, name: str) -> str:
    return f"{finite(g, name)}.to(f32)"


def begun(g: Generator, x: str) -> str:
    """complex64 of the shape of x."""
    a, b = wide(g, x), wide(g, g.broadcasting(g.dims(x)))
    texts = [f"torch.complex({a}, {b})", f"torch.polar({a}.abs(), {b})", f"{a} * {number_of(g)}j",
             f"{a} + {g.rng.choice(NUMBERS[:4])}", f"{g.rng.choice(NUMBERS[:4])} - {a}",
             f"torch.view_as_complex(torch.stack(torch.broadcast_tensors({a}, {b}), -1))",
             f"{a} * {scalar_of(g)}", f"torch.exp(1j * {a})", f"{a} - 1j * {b}"]
    return g.rng.choice(texts)


def number_of(g: Generator) -> str:
    return g.rng.choice(("1", "0.5", "2"))


def scalar_of(g: Generator) -> str:
    """A complex tensor without axes. Beside complex64 and float32 with axes the result is complex64."""
    return f"torch.tensor({g.rng.choice(NUMBERS[:5])}, dtype={g.rng.choice(('c128', 'c128', 'c64', 'c32'))})"


def operand(g: Generator, x: str) -> str:
    """An operand beside complex64 of the shape of x."""
    y = finite(g, g.broadcasting(g.dims(x), g.rng.choice(("float", "int", "bool"))))
    texts = [g.rng.choice(NUMBERS), g.rng.choice(NUMBERS), scalar_of(g), scalar_of(g),
             f"{scalar_of(g)}.conj()", y, "torch.tensor(0.5, dtype=torch.float64)",
             f"{x}.shape[0]" if g.rank(x) else "3", "z", "z.conj()"]
    if g.rng.random() < 0.2:
        i, dtype = g.broadcasting(g.dims(x), "int"), g.rng.choice(("c32", "c64"))
        texts = [f"torch.complex(({i} % 5).to(f32), ({i} % 3).to(f32)).to({dtype})"]
    return g.rng.choice(texts)


def step(g: Generator, x: str) -> str:
    w = operand(g, x)
    chance = g.rng.random()
    if chance < 0.6:
        return g.rng.choice((f"z * {w}", f"{w} * z", f"z + {w}", f"{w} + z", f"z - {w}", f"{w} - z"))
    mask = g.broadcasting(g.dims(x), "bool")
    texts = ["z.conj()", "-z", "z.conj() * z", f"(z * 1.0).mul_({w})", f"z.clone().add_({w})", "z ** 2",
             "torch.stack((z, z.conj())).sum(0)", f"torch.where({mask}, z, {g.rng.choice(NUMBERS)})",
             f"(z.to(c128) * {scalar_of(g)}).to(c64)", f"torch.add(z, {w}, alpha=0.5j)",
             f"z / {g.rng.choice(NUMBERS[:4])}",
             f"torch.cat((z.flatten(), z.flatten().conj()))[:{x}.numel()].view({x}.shape)"]
    return g.rng.choice(texts)


@kind(1.5)
def complex_numbers(g):
    x = g.pick("float", 0, 4)
    lines = [f"z = {begun(g, x)}"]
    lines += [f"z = {step(g, x)}" for _ in range(g.rng.randint(1, 3))]
    if g.rank(x) and g.rng.random() < 0.2:
        lines.append(f"z = z.sum({g.axis(x)})")
    return Draw(g.rng.choice(("torch.view_as_real(z)", "torch.view_as_real(z).flatten(-2)", "z.real", "z.imag",
                              "z.abs()", "z.real * z.imag", "torch.cos(torch.angle(z))")), lines)
