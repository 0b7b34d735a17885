"""Statements of random programs: products and attention."""

from __future__ import annotations

from program_generator import Draw, Generator, Reject
from program_kinds import dtype_name, kind, shape


# ---- products

@kind(3)
def matmul(g):
    x = g.pick("float", 1, 5)
    inner = g.dims(x)[-1]
    dims = g.rng.choice(([inner, g.any_dim()], [inner, g.any_dim()], [inner]))
    if g.rank(x) >= 3 and g.rng.random() < 0.4:
        dims = [*g.dims(x)[:-2], inner, g.any_dim()]
    w = g.operand(dims, dtype=dtype_name(g, x))
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
    w = g.operand(dims, dtype=dtype_name(g, x))
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
    x = g.pick("float", 4, 4)
    dims, q = g.dims(x), x
    if g.rng.random() < 0.4:
        order = g.rng.sample(range(4), 4)
        dims, q = [dims[i] for i in order], f"{x}.permute({', '.join(map(str, order))})"
    elif g.rng.random() < 0.3:  # the tokens are the first axis of an input, a product
        dims = [g.any_dim(), g.any_dim(), g.dim_of(" * ".join(g.pair)), g.any_dim()]
        x = g.input("float", [dims[2], *dims[:2], dims[3]])
        q = f"{x}.permute(1, 2, 0, 3)"
    if 0 in dims[1]:  # attention without heads ends the process of torch 2.11 with SIGFPE
        raise Reject
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
    k, v = (g.operand(one, dtype=dtype_name(g, x)) for one in (keys, values))
    if keys == dims and g.rng.random() < 0.3:
        k = q
    scale = g.rng.choice(("", "", ", scale=0.3"))
    return Draw(f"F.scaled_dot_product_attention({q}, {k}, {v}"
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
    """The formula of nn.MultiheadAttention for [tokens, batch, width]."""
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


@kind(1.5)
def attention_of_rows(g):
    """Tokens of all sequences attend to one another: the axis of the keys is a joined one."""
    x = g.pick("float", 2, 4)
    dtype = dtype_name(g, x)
    width = g.dims(x)[-1]
    heads = [n for n in (1, 2, 3, 4) if all(size and size % n == 0 for size in width)]
    if not heads:
        raise Reject
    h = g.rng.choice(heads)
    w = g.like([width, width], dtype=dtype)
    lines = [f"t = {x}" if g.rank(x) == 2 else f"t = {x}.flatten(0, {g.rank(x) - 2})",
             f"q = t.unflatten(1, ({h}, -1)).transpose(0, 1)[None]",
             f"k = F.linear(t, {w}).unflatten(1, ({h}, -1)).transpose(0, 1)[None]"]
    if g.rng.random() < 0.6:
        mask = g.rng.choice(("", ", is_causal=True"))
        lines.append(f"o = F.scaled_dot_product_attention(q, k, k{mask})")
    else:
        lines.append("o = F.softmax(q @ k.mT, -1) @ k")
    return Draw(g.rng.choice(("o[0].transpose(0, 1).flatten(1)", "o.transpose(1, 2).flatten(2)",
                              f"o[0].transpose(0, 1).reshape({x}.shape)")), lines)


@kind(1)
def mlp_block(g):
    x = g.pick("float", 2, 4)
    width, inner, dtype = g.dims(x)[-1], g.any_dim(), dtype_name(g, x)
    up, down = g.like([inner, width], dtype=dtype), g.like([width, inner], dtype=dtype)
    op = g.rng.choice(("F.gelu", "F.silu", "torch.relu", "torch.tanh"))
    return Draw(f"{x} + F.linear({op}(F.linear({x}, {up})), {down})")
