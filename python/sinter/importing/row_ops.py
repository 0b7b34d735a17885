"""Ops of the IR that treat one axis in a way of its own, named by torch's axes.

Each brings the axis that it needs into one extent of the value, in its place, before the op is added.
"""

from __future__ import annotations

import math
from typing import Callable, Sequence

from .axes import joined
from .row_checks import ExportedRange, IntegerDivisionByZero, RowCheck
from .tensor import Tensor
from .types import MAX_I32, is_real
from .unsupported import Unsupported

MIN_BITS = 4  # of the digits of i64 that are summed: 16 sums at most


def along_last(x: Tensor, axis: int, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Applies a function of rows, which are the last axis, along any axis."""
    if x.rank == 0:
        return function(x.flatten()).reshape([])
    axis %= x.rank
    if axis == x.rank - 1:
        return function(x)
    return function(x.transpose(axis, -1)).transpose(axis, -1)


def softmax(x: Tensor, axis: int) -> Tensor:
    def rows(x: Tensor) -> Tensor:
        x = x.merged(-1)
        return x._like(x.g._add("softmax", [x._value]))
    return along_last(x, axis, rows)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor | None, eps: float) -> Tensor:
    """Over the last axis; all of one element type."""
    x, weight = x.merged(-1), weight.merged()
    operands = [x._value, weight._value] + ([bias.merged()._value] if bias is not None else [])
    return x._like(x.g._add("layer_norm", operands, f"eps = {float(eps).hex()}"))


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Over the last axis; rounded before it is multiplied by the weight. Both of one element type."""
    x = x.merged(-1)
    return x._like(x.g._add("rms_norm", [x._value, weight.merged()._value], f"eps = {float(eps).hex()}"))


def cumulative_sum(x: Tensor, axis: int) -> Tensor:
    x = x.merged(axis)
    return x._like(x.g._add("cumulative_sum", [x._value], f"axis = {x._start(axis)}"))


def linear(x: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    """x [..., K] by the transpose of a matrix [M, K], plus a bias [M]."""
    x, matrix = x.merged(-1), matrix.merged()
    operands = [x._value, matrix._value]
    if bias is not None:
        operands.append(bias.merged()._value)
    return x._like(x.g._add("linear", operands))


# ---- rows of experts: numbers are i32 [N, k], and a row is counted over both axes

MAX_ROW, MAX_CHOSEN = 1024, 64  # of top_k (kernels/top_k/order.h)


def top_k(x: Tensor, axis: int, count: int) -> Tensor | None:
    """i32: the positions of the largest elements along an axis. None: the op lacks such rows."""
    if not is_real(x.dtype) or not x.product(axis).is_number or not 0 < x.size(axis) <= MAX_ROW or count > MAX_CHOSEN:
        return None

    def rows(x: Tensor) -> Tensor:
        table = (x.flatten(0, -2) if x.rank > 1 else x.unsqueeze(0)).merged()
        value = x.g._add("top_k", [table._value], f"count = {count}")
        return Tensor(x.g, value, (1, 1))._regrouped([*x._all_axes[:-1], (count,)])
    others = [extent for i in range(x.rank) if i != axis for extent in x._axes(i)]
    return along_last(x, axis, rows) if len(joined(others)) < 2 else None


def expert_linear(x: Tensor, matrices: Tensor, experts: Tensor) -> Tensor:
    """[N, k, M]: rows of x [N, k, K] or [N, K] by the transposes of the matrices [E, M, K] that experts name."""
    operands = [x.merged(), matrices.merged(), index_of(experts).merged()]
    return Tensor(x.g, x.g._add("expert_linear", [operand._value for operand in operands]), (1, 1, 1))


def by_number(op: str, numbers: Tensor, count: int) -> Tensor:
    """sorted_positions or sorted_places, i32 [N, k], or run_ends, i32 [count]."""
    value = numbers.g._add(op, [index_of(numbers).merged()._value], f"count = {count}")
    return Tensor(numbers.g, value, (1,) * len(value.dims))


def rows_at(x: Tensor, positions: Tensor) -> Tensor:
    """[N, k, K]: the rows of x [N, k, K] at positions i32 [N, k], or of x [N, K] at positions / k."""
    positions = index_of(positions).merged()
    if x.rank == 2:
        x = x.unsqueeze(1)._broadcast([x._axes(0), positions._axes(1), x._axes(1)])
    return Tensor(x.g, x.g._add("embedding", [x.merged()._value, positions._value]), (1, 1, 1))


def grouped_linear(x: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    """Rows ends[g - 1] .. ends[g] - 1 of x [S, K] by the transpose of matrix g of [G, M, K]."""
    x = x.merged(-1)
    value = x.g._add("grouped_linear", [x._value, matrices.merged()._value, ends._value])
    return Tensor(x.g, value, x._groups)


def linear_by_runs(x: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    """grouped_linear in any float type, by the number of each row's run: how many runs end at the row or before it."""
    run = ends.less_equal(x.places(0)).to("i32").sum([1])
    *outer, inner = x._axes(0)
    pair = [tuple(joined(outer)), (inner,)] if outer else [(inner,), (1,)]
    if len(pair[0]) > 1:
        raise Unsupported("rows along an axis whose size is a product of several unknown sizes")
    count = matrices.size(0)
    named = run.minimum(count - 1)._regrouped(pair)
    result = expert_linear(x._regrouped([*pair, x._axes(1)]), matrices, named).flatten(0, 1)
    return x.g.where(run.less(count).unsqueeze(1), result, 0.0)


def grouped_outer(x: Tensor, y: Tensor, ends: Tensor) -> Tensor:
    """[G, M, K]: sums of the outer products of the rows ends[g - 1] .. ends[g] - 1 of x [S, M] and y [S, K]."""
    x, y = x.merged(-1), y.merged(-1)
    if x._axes(0) != y._axes(0):
        x, y = x.merged(), y.merged()
    return Tensor(x.g, x.g._add("grouped_outer", [x._value, y._value, ends._value]), (1, 1, 1))


def dequantize(packed: Tensor, form: str, length: int) -> Tensor:
    """f32 [M, length] of packed rows i32 [M, words] (packed_codes.py)."""
    packed = packed.merged()
    return packed._like(packed.g._add("dequantize", [packed._value], f'size = {length}, codes = "{form}"'))


def key_rows(q: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """The first and the last key, i32 [B, S], that each token of q [B, S, ...] sees: all keys, or
    `causal`: token s sees the keys 0 .. s."""
    tokens = [q._axes(0), q._axes(1)]
    last = q.g._positions(q._axes(1)) if causal else q.g.number(MAX_I32, "i32")
    return q.g.number(0, "i32")._broadcast(tokens), last._broadcast(tokens)


def attention(q: Tensor, k: Tensor, v: Tensor, first: Tensor, last: Tensor, mask: Tensor | None,
              scale: float, heads: int, kv_heads: int, softcap: float = 0.0, dropout: float = 0.0,
              seed: Tensor | None = None) -> Tensor:
    """q [..., S, heads * D], k and v [..., T, kv_heads * D] -> [..., S, heads * D]. A token sees the keys first ..
    last, i32 [..., S], both included; one that sees no key gets zeros. The mask [..., heads, S, T], with 1 for any of
    them, hides keys where it is false, or is added to the scores. dropout: the probability that a weight is left out,
    by a seed i32 []."""
    q, k, v, first, last = (x.merged() for x in (q, k, v, first, last))
    operands = [q, k, v, first, last, *mask_of(q, k, mask, heads), *seed_of(seed)]
    text = of_scores(scale, heads, kv_heads, softcap, dropout) + ", empty_zero = 1"
    return q._like(q.g._add("attention", [x._value for x in operands], text))


def mask_of(q: Tensor, k: Tensor, mask: Tensor | None, heads: int) -> list[Tensor]:
    """The operand that a mask of merged q [..., S, heads * D] and k is, if there is one."""
    if mask is None:
        return []
    ways = [*q._all_axes[:-2], (heads,), q._axes(-2), k._axes(-2)]
    return [mask._arranged([(1,) if mask.is_one(axis) else way for axis, way in enumerate(ways)])]


def seed_of(seed: Tensor | None) -> list[Tensor]:
    """The operand that the seed of a dropout is, if there is one."""
    return [] if seed is None else [seed.merged()]


def attention_log_sum(q: Tensor, k: Tensor, v: Tensor, first: Tensor, last: Tensor, mask: Tensor | None,
                      scale: float, heads: int, kv_heads: int, softcap: float = 0.0) -> Tensor:
    """log2 of the sum of exp(score), f32 [B, heads, S], of `attention` of [B, S, ...]."""
    operands = [x.merged() for x in (q, k, v, first, last)]
    operands += mask_of(*operands[:2], mask, heads)
    return operands[0]._like(q.g._add("attention_log_sum", [x._value for x in operands],
                                      of_scores(scale, heads, kv_heads, softcap)))


def attention_gradients(q: Tensor, k: Tensor, v: Tensor, first: Tensor, last: Tensor, grad: Tensor,
                        log_sum: Tensor, delta: Tensor, mask: Tensor | None, scale: float, heads: int,
                        kv_heads: int, softcap: float = 0.0, dropout: float = 0.0,
                        seed: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of q, k and v of `attention`. log_sum and delta: f32 [B, heads, S]; grad: of the
    result."""
    operands = [x.merged() for x in (q, k, v, first, last, grad, log_sum, delta)]
    operands += [*mask_of(*operands[:2], mask, heads), *seed_of(seed)]
    values, text = [x._value for x in operands], of_scores(scale, heads, kv_heads, softcap, dropout)
    return tuple(x._like(q.g._add(f"attention_{of}_gradient", values, text))
                 for x, of in zip(operands, ("query", "key", "value")))


def of_scores(scale: float, heads: int, kv_heads: int, softcap: float, dropout: float = 0.0) -> str:
    drops = f"dropout = {float(dropout).hex()}, " if dropout else ""
    cap = f"softcap = {float(softcap).hex()}, " if softcap else ""
    return f"heads = {heads}, kv_heads = {kv_heads}, scale = {float(scale).hex()}, {cap}{drops}any_range = 1"


# ---- rows by index

def index_of(index: Tensor) -> Tensor:
    """An index as i32. One that i32 does not hold becomes the nearest number, outside of every axis."""
    return index.nearest("i32")


def row_numbers(index: Tensor, size, from_end: bool) -> Tensor:
    """An index along an axis of `size` (a number or a size of torch) as row numbers, i32.
    from_end: one below 0 counts from the end."""
    index = index_of(index)
    if not from_end:
        return index
    return index.g.where(index.less(0), index + extent(index, size), index)


def checked_rows(index: Tensor, size, from_end: bool) -> Tensor:
    """Row numbers that are only compared. Where calls are checked, one that names no row is an error
    of the call: the numbers are read from a table of 0 .. size - 1."""
    rows = row_numbers(index, size, from_end)
    if not rows.g.is_checked:
        return rows
    return take_rows(rows.g.iota(size), rows, from_end)


def extent(x: Tensor, size) -> Tensor | int:
    """A size as an operand."""
    product = x.g.extents.product(size)
    return product.number if product.is_number else x.g.scalar(size, "i32")


def nonzero(divisor: Tensor) -> Tensor:
    """An integer divisor that is not zero."""
    return permitted(divisor, lambda x: ~x.equals(0),
                     IntegerDivisionByZero("ZeroDivisionError: integer division by zero"))


def permitted(x: Tensor, is_right: Callable[[Tensor], Tensor], refusal: Exception) -> Tensor:
    """x. Where calls are checked, an element that is not right is an error of the call."""
    g = x.g
    if not g.is_checked:
        return x
    return _where_row_0(x, g.where(is_right(x), g.number(0, "i32"), g.number(-1, "i32")), RowCheck(refusal))


def in_exported_range(x: Tensor, name: str, low: int, high: int) -> Tensor:
    """x, an i64, which is an error of the call outside of low .. high."""
    # No difference exceeds i64, and a cast to i32 ends at its ends.
    below = x.maximum(max(low - 2**32, -2**63)).minimum(low) - low
    above = x.minimum(min(high + 2**32, 2**63 - 1)).maximum(high) - high
    return _where_row_0(x, (below + above).nearest("i32"), RowCheck(exported=ExportedRange(name, low, high)))


def _where_row_0(x: Tensor, row: Tensor, check: RowCheck) -> Tensor:
    """x; a row number that is not 0 names no row of a table with one row."""
    return x * _gathered(x.g.full([1], 1, "i32"), row, check).to(x.dtype)


def take_rows(table: Tensor, rows: Tensor, from_end: bool) -> Tensor:
    """result[..., :] = table[rows[...], :], for a table of one axis or two, whose rows may be counted over several
    unknown sizes. from_end: how the rows were made, for the error."""
    return _gathered(table, rows, RowCheck(from_end=from_end))


def _gathered(table: Tensor, rows: Tensor, check: RowCheck) -> Tensor:
    if table.rank == 1:
        return _gathered(table.unsqueeze(1), rows, check).squeeze([-1])
    if rows.rank == 0:
        return _gathered(table, rows.flatten(), check).squeeze([0])
    g = table.g
    table = table.merged() if table.is_single(0) else table.merged(1)
    value = g._add("embedding", [table._value, rows._value])
    g._note_check(value, check)
    return Tensor(g, value, rows._groups + (1,))


def gather(x: Tensor, index: Tensor, axis: int, from_end: bool = False) -> Tensor:
    """result[i, j, k] = x[i, index[i, j, k], k], for axis 1. The index broadcasts to x along the others.
    from_end: how the rows were made, for the error."""
    axis %= x.rank
    x = x.merged(*(i for i in range(x.rank) if i == axis or x.is_single(i)))
    rows = index_of(index).merged(axis)
    rows = rows._broadcast([rows._axes(i) if i == axis else x._axes(i) for i in range(x.rank)])
    value = x.g._add("gather", [x._value, rows._value], f"axis = {x._start(axis)}")
    x.g._note_check(value, RowCheck(from_end=from_end))
    return Tensor(x.g, value, x._groups)


def sum_rows(rows: Tensor, updates: Tensor, count: int, from_end: bool = False) -> Tensor:
    """float [count, D]: row v is the sum of the updates [N, D] whose row number [N] is v, in the order
    of n. from_end: how the rows were made, for the error."""
    if not is_real(updates.dtype):
        raise Unsupported("sums of integers by index")
    rows, updates = rows.merged(), updates.merged()
    g = rows.g
    value = g._add("scatter_add", [rows._value, updates._value], f"rows = {count}")
    g._note_check(value, RowCheck(from_end=from_end))
    return Tensor(g, value, (1, 1))


def sums_of_i64(x: Tensor, axes: Sequence[int], add: Callable[[Tensor], Tensor]) -> Tensor:
    """Sums of i64 over axes, which wrap around: of digits that are so small that `add` sums them in i32."""
    most = math.prod(x.g.extents.most(x.product(axis)) for axis in axes)
    bits = 31 - max(most, 1).bit_length()
    if bits < MIN_BITS:
        raise Unsupported(f"sums of {most} integers")
    total: Tensor | None = None
    rest = x
    for begin in range(0, 64, bits):
        is_last = begin + bits >= 64
        digits = rest if is_last else x.g.map("mod_floor", rest, 2**bits)
        part = add(digits.nearest("i32")).to("i64")
        part = part * 2**begin if begin else part
        total = part if total is None else total + part
        rest = rest if is_last else x.g.map("div_floor", rest, 2**bits)
    assert total is not None
    return total
