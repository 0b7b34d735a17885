"""Statements of random programs: reductions, softmax and normalizations."""

from __future__ import annotations

from program_generator import Draw, Generator, Reject
from program_kinds import dtype_name, kind, need_separated, shape


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
