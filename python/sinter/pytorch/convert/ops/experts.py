"""Rows in the order of their experts, and products of such rows (expert_ops.py)."""

from __future__ import annotations

import torch

from ....importing import row_ops
from ....importing.tensor import Tensor
from ....importing.unsupported import Unsupported
from .registry import Conversion, aten, converts

ops = torch.ops.sinter


def _by_number(name: str):
    return lambda c, numbers, count: row_ops.by_number(name, numbers, count)


converts(ops.sorted_positions.default)(_by_number("sorted_positions"))
converts(ops.sorted_places.default)(_by_number("sorted_places"))
converts(ops.run_ends.default)(_by_number("run_ends"))


@converts(ops.rows_at.default)
def rows_at(c: Conversion, x: Tensor, positions: Tensor) -> Tensor:
    return row_ops.rows_at(x, positions)


@converts(ops.expert_linear.default)
def expert_linear(c: Conversion, x: Tensor, matrices: Tensor, experts: Tensor) -> Tensor:
    return row_ops.expert_linear(x, matrices, experts)


@converts(aten("_grouped_mm.default"), ops.grouped_mm.default)
def grouped_mm(c: Conversion, a: Tensor, b: Tensor, ends: Tensor | None = None, bias: Tensor | None = None,
               out_dtype=None) -> Tensor:
    """a [S, K] by matrices [G, K, M], or [K, S] by [S, M]."""
    if ends is None or a.rank == 3:
        raise Unsupported("groups that are no runs of rows")
    if bias is not None or c.dtype != a.dtype:
        raise Unsupported("a bias" if bias is not None else "a result of another type than the rows")
    ends = row_ops.index_of(ends)
    if b.rank == 2:
        if a.dtype == "f32":
            raise Unsupported("sums of outer products of float32 over runs of rows")
        return row_ops.grouped_outer(a.transpose(), b, ends)
    product = row_ops.linear_by_runs if a.dtype == "f32" else row_ops.grouped_linear
    return product(a, b.transpose(), ends)
