"""Statements of random programs: indexing, changes in place and losses."""

from __future__ import annotations

from program_generator import Draw, Reject
from program_kinds import dtype_name, edge, kind, moved, rows_of, shape, types_of


# ---- indexing



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


@kind(2.5)
def gather(g):
    x = g.pick("any", 1, 4)
    axis = g.axis(x)
    dims = g.dims(x)
    high = dims[axis]
    sizes = list(dims)
    sizes[axis] = g.number(g.rng.choice((1, 2, 3))) if g.rng.random() < 0.45 else dims[axis]
    if g.rng.random() < 0.15:
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
