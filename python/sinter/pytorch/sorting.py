"""Sorting along a short axis: the place of an element is the number of elements before it.

Ties have the order of their indices, and NaN is the largest number, as in torch's stable sort.
"""

from __future__ import annotations

import torch

from .layout import Layout

aten = torch.ops.aten

MAX_SIZE = 256  # of the axis, each two of whose elements are compared
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64)


def is_short(x: torch.Tensor, dim: int) -> bool:
    size = x.shape[dim] if x.dim() else 0
    return isinstance(size, int) and 0 < size <= MAX_SIZE and x.dtype in DTYPES


def places(size: int, dim: int, x: torch.Tensor) -> torch.Tensor:
    """0, 1, 2, ... along an axis, followed by an axis of one element for each axis of x after `dim`."""
    numbers = torch.arange(size, dtype=torch.int32, device=x.device)
    return numbers.reshape(size, *[1] * (x.dim() - 1 - dim))


def order(x: torch.Tensor, dim: int, count: int, descending: bool) -> torch.Tensor:
    """int64: the indices of the first `count` elements of x along an axis when it is sorted."""
    size = x.shape[dim]
    a, b = x.unsqueeze(dim + 1), x.unsqueeze(dim)  # two elements: axes dim and dim + 1
    precedes = b > a if descending else b < a
    is_tie = a == b
    if x.is_floating_point():
        nan_a, nan_b = a.isnan(), b.isnan()
        precedes = precedes | (nan_b & ~nan_a if descending else nan_a & ~nan_b)
        is_tie = is_tie | (nan_a & nan_b)
    index = places(size, dim, x)
    before = precedes | (is_tie & (index < index.unsqueeze(1)))
    rank = before.sum(dim + 1, dtype=torch.int32)
    chosen = rank.unsqueeze(dim) == places(count, dim, x).unsqueeze(1)
    return torch.where(chosen, index, 0).sum(dim + 1, dtype=torch.int32).long()


def sort_stable(x, *, stable, dim=-1, descending=False):
    if not is_short(x, dim):
        return NotImplemented
    dim %= x.dim()
    layout = Layout.of(x)
    if not layout.is_plain:  # the results lie as x does
        results = sort_stable(x.permute(layout.order), stable=stable, dim=layout.order.index(dim),
                              descending=descending)
        return tuple(result.permute(layout.inverse) for result in results)
    index = order(x, dim, x.shape[dim], descending)
    return x.gather(dim, index), index


def sort(x, dim=-1, descending=False):
    return sort_stable(x, stable=True, dim=dim, descending=descending)


def topk(x, k, dim=-1, largest=True, sorted=True):
    if not is_short(x, dim) or not isinstance(k, int) or k == 0:
        return NotImplemented
    dim %= x.dim()
    index = order(x, dim, k, largest)
    return x.gather(dim, index), index


DECOMPOSITIONS = {aten.sort.default: sort, aten.sort.stable: sort_stable, aten.topk.default: topk}
