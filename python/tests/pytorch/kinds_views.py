"""Statements of random programs: views and movements."""

from __future__ import annotations

from program_generator import Draw, Reject
from program_kinds import kind, moved, shape, size_of_any, types_of


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
