"""Attention and rotary positions, of the standard and of ONNX Runtime's contrib ops."""

from __future__ import annotations

import math
from typing import Any

from ...importing import row_ops
from ...importing.row_ops import gather, index_of, linear, take_rows
from ...importing.tensor import Tensor
from ...importing.types import MAX_I32
from ...importing.unsupported import Unsupported
from ..registry import MICROSOFT, ExpandBody, Node, converts, shape_of
from .movement import joined, padded
from .products import transposed_matrix


def with_heads(x: Tensor, heads: int) -> Tensor:
    """[B, H, S, D] of [B, S, H * D]; a tensor of four axes as it is."""
    if x.rank == 4:
        return x
    if x.rank != 3 or heads <= 0:
        raise Unsupported(f"attention of {x} with {heads} heads")
    return x.unflatten(2, [heads, x.size(2) // heads]).permute([0, 2, 1, 3])


def rows_of_heads(x: Tensor) -> Tensor:
    """[B, S, H * D] of [B, H, S, D]."""
    return x.permute([0, 2, 1, 3]).flatten(2, 3)


def attend(
    c: Node,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    last: Tensor | None,
    mask: Tensor | None,
    first: Tensor | None = None,
) -> Tensor:
    """[B, H, S, E] of q [B, H, S, D], k [B, G, T, D] and v [B, G, T, E]. first, last: the keys that a token
    sees, i32 that broadcasts to [B, S]; None: all."""
    heads, width = q.size(1), v.size(3)
    rows, keys, values = rows_of_heads(q), rows_of_heads(k), rows_of_heads(v)
    tokens = shape_of(rows)[:2]
    begin, end = (
        (c.g.number(number, "i32") if one is None else one).expand(tokens)
        for one, number in ((first, 0), (last, MAX_I32))
    )
    scale, cap = c.real("scale") or 1.0 / math.sqrt(q.size(3)), c.real("softcap")
    result = row_ops.attention(rows, keys, values, begin, end, mask, scale, heads, k.size(1), cap)
    return result.unflatten(2, [heads, width]).permute([0, 2, 1, 3])


def mask_of_4_axes(mask: Tensor | None, q: Tensor, keys: Any) -> Tensor | None:
    """A mask [..., S, T'] as one of four axes and all keys; keys behind the mask are hidden."""
    if mask is None:
        return None
    while mask.rank < 4:
        mask = mask.unsqueeze(0)
    if mask.product(3).is_number and isinstance(keys, int) and 1 <= mask.size(3) < keys:
        hidden = q.g.number(False if mask.dtype == "i1" else -math.inf, mask.dtype)
        mask = padded(mask, 3, 0, keys - mask.size(3), hidden)
    return mask if mask.dtype == "i1" else mask.to(q.dtype)


def joined_past(c: Node, past: int, x: Tensor) -> Tensor:
    return joined([c[past], x], 2) if c.has(past) else x


@converts("Attention", since=23)
def attention(c: Node) -> list[Tensor | None]:
    """Token s sees the keys up to its own with `is_causal`, behind those of the past."""
    if c.uses(3):
        raise ExpandBody
    is_flat = c[0].rank == 3
    q = with_heads(c[0], c.integer("q_num_heads"))
    k, v = (joined_past(c, i + 3, with_heads(c[i], c.integer("kv_num_heads"))) for i in (1, 2))
    mask = mask_of_4_axes(c.get(3), q, shape_of(k)[2])
    place = c.g.iota(shape_of(q)[2]).unsqueeze(0)
    past: Tensor | int = c[4].extent(2) if c.has(4) else 0
    if c.has(6):
        past = index_of(c[6]).unsqueeze(1) - q.extent(2)
    place = place if isinstance(past, int) else place + past
    last = place if c.integer("is_causal") else None
    right, left = c.integer("right_window_size", -1), c.integer("left_window_size", -1)
    if right >= 0 and last is None:
        last = place + right
    if c.has(6):
        end = index_of(c[6]).unsqueeze(1) - 1
        last = end if last is None else last.minimum(end)
    first = place - left if left >= 0 else None
    y = attend(c, q, k, v, last, mask, first)
    return [rows_of_heads(y) if is_flat else y, k, v]


# ---- rotary positions


def rotated(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """x with the pairs of its last axis rotated. cos and sin have half of the elements that are rotated."""
    half = cos.size(-1)
    rest = x.slice(-1, 2 * half, x.size(-1))
    x = x.slice(-1, 0, 2 * half)
    pairs = x.unflatten(-1, [half, 2]) if interleaved else None
    a, b = (
        (pairs.select(-1, i) for i in range(2))
        if pairs is not None
        else (x.slice(-1, i * half, (i + 1) * half) for i in range(2))
    )
    parts = [a * cos - b * sin, a * sin + b * cos]
    if interleaved:
        turned = x.g.concat([part.unsqueeze(part.rank) for part in parts], -1).flatten(-2, -1)
    else:
        turned = x.g.concat(parts, -1)
    return turned if rest.size(-1) == 0 else x.g.concat([turned, rest], -1)


def rotate(c: Node, x: Tensor, places: Tensor | None, cos: Tensor, sin: Tensor) -> Tensor:
    """x [B, H, S, D], or [B, S, H * D] with `num_heads`. places [B, S]: rows of cos and sin."""
    heads, axis = c.integer("num_heads"), 1
    is_flat = x.rank == 3
    if is_flat:
        width = x.size(2) // heads if heads else 2 * cos.size(-1)
        x, axis = x.unflatten(2, [-(-x.size(2) // width), width]), 2
    if places is not None:
        cos, sin = (take_rows(table, index_of(places), False) for table in (cos, sin))
    width = c.integer("rotary_embedding_dim") or x.size(3)
    cos, sin = (table.slice(-1, 0, width // 2).to(x.dtype).unsqueeze(axis) for table in (cos, sin))
    y = rotated(x, cos, sin, bool(c.integer("interleaved")))
    return y.flatten(2, 3) if is_flat else y


converts("RotaryEmbedding", since=23)(lambda c: rotate(c, c[0], c.get(3), c[1], c[2]))


@converts("RotaryEmbedding", domain=MICROSOFT)
def rotary_of_runtime(c: Node) -> Tensor:
    """Positions [B, S], or [1]: the place of the first token."""
    x, places = c[0], c[1]
    if c.real("scale", 1.0) != 1.0:
        raise Unsupported("scaled positions")
    if places.rank == 1:
        tokens = shape_of(x)[1 if x.rank == 3 else 2]
        places = (index_of(places) + c.g.iota(tokens)).unsqueeze(0).expand([shape_of(x)[0], tokens])
    return rotate(c, x, places, c[2], c[3])


# ---- attention of ONNX Runtime


@converts("MultiHeadAttention", domain=MICROSOFT)
def multi_head(c: Node) -> list[Tensor | None]:
    """Inputs q, k, v, bias, key_padding_mask, attention_bias, past_key, past_value."""
    heads = c.integer("num_heads")
    if not c.has(1) or not c.has(2):
        raise Unsupported("packed queries, keys and values; export them as three inputs")
    parts = [c[i] for i in range(3)]
    if c.has(3):
        ends = [0, parts[0].size(2), parts[0].size(2) * 2, c[3].size(0)]
        parts = [x + c[3].slice(0, begin, end) for x, begin, end in zip(parts, ends, ends[1:])]
    q, k, v = (with_heads(x, heads) for x in parts)
    k, v = joined_past(c, 6, k), joined_past(c, 7, v)
    mask = mask_of_4_axes(c.get(5), q, shape_of(k)[2])
    if c.has(4):
        if c[4].rank != 2 or mask is not None:
            raise Unsupported("a padding mask that is no [batch, keys], or beside a bias of scores")
        mask = c[4].to("i1").unsqueeze(1).unsqueeze(1)
    place = c.g.iota(shape_of(q)[2]).unsqueeze(0)
    place = place + c[6].extent(2) if c.has(6) else place
    y = attend(c, q, k, v, place if c.integer("unidirectional") else None, mask)
    return [rows_of_heads(y), k, v]


@converts("GroupQueryAttention", domain=MICROSOFT)
def group_query(c: Node) -> list[Tensor | None]:
    """Inputs q, k, v, past_key, past_value, valid keys minus 1, total length, cos, sin, positions, bias."""
    heads, groups = c.integer("num_heads"), c.integer("kv_num_heads")
    if any(c.has(i) for i in range(11, 16)):
        raise Unsupported("sinks, scales or norms of grouped attention")
    parts = [c[0], c[1], c[2]] if c.has(1) else packed_parts(c[0], [heads, groups, groups])
    parts = [with_heads(x, n) for x, n in zip(parts, (heads, groups, groups))]
    tokens = shape_of(parts[0])[2]
    place = c.g.iota(tokens).unsqueeze(0)
    has_past = c.has(3) and shape_of(c[3])[2] != 0
    begin = None
    if has_past:
        begin = index_of(c[5]).reshape([shape_of(parts[0])[0], 1]) + 1 - parts[0].extent(2)
        place = place + begin
    if c.integer("do_rotary"):
        places = index_of(c[9]) if c.has(9) else place.expand([shape_of(parts[0])[0], tokens])
        cos, sin = (take_rows(c[i], places, False).unsqueeze(1) for i in (7, 8))
        turn = bool(c.integer("rotary_interleaved"))
        parts[:2] = [rotated(x, cos, sin, turn) for x in parts[:2]]
    q, k, v = parts
    if begin is not None:
        k, v = behind(c, c[3], k, begin), behind(c, c[4], v, begin)
    window = c.integer("local_window_size", -1)
    first = (place - (window - 1)).maximum(0) if window > 0 else None
    y = attend(c, q, k, v, place, mask_of_4_axes(c.get(10), q, shape_of(k)[2]), first)
    return [rows_of_heads(y), k, v]


def packed_parts(x: Tensor, heads: list[int]) -> list[Tensor]:
    """Queries, keys and values that lie side by side, as many heads of each."""
    width = x.size(2) // sum(heads)
    ends = [width * sum(heads[:i]) for i in range(4)]
    return [x.slice(2, begin, end) for begin, end in zip(ends, ends[1:])]


@converts("Attention", domain=MICROSOFT)
def attention_of_runtime(c: Node) -> Tensor:
    """Inputs x, the matrices of queries, keys and values side by side, biases, a mask, a past, a bias of scores."""
    if c.has(4) or c.uses(1) or c.attributes.get("qkv_hidden_sizes") or c.integer("do_rotary"):
        raise Unsupported("a past, rotation or sizes of their own of packed attention")
    matrix = transposed_matrix(c, 1)
    x = linear(c[0], matrix if matrix is not None else c[1].transpose(), c.get(2))
    heads = c.integer("num_heads")
    q, k, v = (with_heads(part, heads) for part in packed_parts(x, [heads] * 3))
    mask, tokens = mask_of_4_axes(c.get(5), q, shape_of(k)[2]), shape_of(q)[2]
    last = c.g.iota(tokens).unsqueeze(0) if c.integer("unidirectional") else None
    seen = c.get(3)
    if seen is not None and seen.rank == 1:  # the number of keys of each sequence
        end = index_of(seen).unsqueeze(1) - 1
        last = end if last is None else last.minimum(end)
    elif seen is not None:
        if seen.rank > 3 or mask is not None:
            raise Unsupported("a mask of four axes, or beside a bias of scores")
        mask = (seen.to("i1") if seen.rank == 3 else seen.to("i1").unsqueeze(1)).unsqueeze(1)
    return rows_of_heads(attend(c, q, k, v, last, mask))


def behind(c: Node, past: Tensor, x: Tensor, begin: Tensor) -> Tensor:
    """[B, G, P + S, D]: the rows of the past, with those of x from row `begin` [B, 1] of each batch on."""
    total = shape_of(past)[2] + shape_of(x)[2]
    place = c.g.iota(total).reshape([1, 1, total, 1])
    own = place - begin.unsqueeze(1).unsqueeze(1)
    old = gather(past, place.minimum(past.extent(2) - 1), 2)
    new = gather(x, own.maximum(0).minimum(x.extent(2) - 1), 2)
    return c.g.where(own.greater_equal(0), new, old)
