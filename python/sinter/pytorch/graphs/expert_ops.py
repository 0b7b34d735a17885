"""Ops that the backend adds to torch for the rows of experts (expert_rows.py).

Numbers are the experts [N, k] of N tokens, below `count`. A position is counted over both axes: n * k + r.
Where Sinter does not take an op, it runs in eager by the function below.
"""

from __future__ import annotations

import torch
from torch.library import custom_op


@custom_op("sinter::sorted_positions", mutates_args=())
def sorted_positions(numbers: torch.Tensor, count: int) -> torch.Tensor:
    """int32 [N, k]: the positions by ascending number; equal numbers keep their order."""
    return numbers.flatten().sort(stable=True)[1].int().view(numbers.shape)


@custom_op("sinter::sorted_places", mutates_args=())
def sorted_places(numbers: torch.Tensor, count: int) -> torch.Tensor:
    """int32 [N, k]: the inverse, the place of each position."""
    return sorted_positions(sorted_positions(numbers, count), numbers.numel())


@sorted_positions.register_fake
@sorted_places.register_fake
def _(numbers, count):
    return numbers.new_empty(numbers.shape, dtype=torch.int32)


@custom_op("sinter::run_ends", mutates_args=())
def run_ends(numbers: torch.Tensor, count: int) -> torch.Tensor:
    """int32 [count]: element e is how many numbers are 0 .. e."""
    return numbers.flatten().bincount(minlength=count).cumsum(0, dtype=torch.int32)


@run_ends.register_fake
def _(numbers, count):
    return numbers.new_empty((count,), dtype=torch.int32)


@custom_op("sinter::rows_at", mutates_args=())
def rows_at(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """[N, k, K]: the rows of x [N, k, K] at positions [N, k], or of x [N, K] at positions // k."""
    rows = positions if x.dim() == 3 else positions // positions.shape[1]
    return x.reshape(-1, x.shape[-1])[rows.long()]


@rows_at.register_fake
def _(x, positions):
    return x.new_empty((*positions.shape, x.shape[-1]))


@custom_op("sinter::expert_linear", mutates_args=())
def expert_linear(x: torch.Tensor, matrices: torch.Tensor, experts: torch.Tensor) -> torch.Tensor:
    """[N, k, M]: rows of x [N, k, K] or [N, K] by the transposes of the matrices [E, M, K] that experts [N, k] name."""
    rows = x.repeat_interleave(experts.shape[1], 0) if x.dim() == 2 else x.flatten(0, 1)
    result, order = x.new_empty((len(rows), matrices.shape[1])), experts.flatten().argsort()
    result[order] = grouped_mm(rows[order], matrices.transpose(1, 2), run_ends(experts, len(matrices)))
    return result.view(*experts.shape, -1)


@expert_linear.register_fake
def _(x, matrices, experts):
    return x.new_empty((*experts.shape, matrices.shape[1]))


@custom_op("sinter::grouped_mm", mutates_args=())
def grouped_mm(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """torch's _grouped_mm in any float type. b [G, K, M]: the rows ends[g - 1] .. ends[g] - 1 of a [S, K] by b[g].
    b [S, M]: [G, K, M], for each g these columns of a [K, S] by these rows of b."""
    result = torch.zeros(grouped_shape(a, b, ends), dtype=a.dtype, device=a.device)
    begin = 0
    for group, end in enumerate(ends.tolist()):
        if b.dim() == 3:
            result[begin:end] = a[begin:end] @ b[group]
        else:
            result[group] = a[:, begin:end] @ b[begin:end]
        begin = end
    return result


def grouped_shape(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor) -> tuple:
    return (a.shape[0], b.shape[2]) if b.dim() == 3 else (ends.shape[0], a.shape[0], b.shape[1])


@grouped_mm.register_fake
def _(a, b, ends):
    return a.new_empty(grouped_shape(a, b, ends))
