"""Running sums in chunks are one running sum."""

from __future__ import annotations

from typing import Callable

import torch
from beside_eager import compiled, eager_ops, reset, run_beside_eager, train_beside_eager
from test_attention import count_of, recorded_nodes
from torch import nn

SUM = torch.ops.aten.cumsum.default


def scan(decay: torch.Tensor, value: torch.Tensor, chunk: int = 4) -> torch.Tensor:
    """h[t] = exp(decay[t]) h[t - 1] + value[t] along axis 1, chunk by chunk."""
    state, results = torch.zeros_like(value[:, 0]), []
    for d, v in zip(decay.split(chunk, 1), value.split(chunk, 1)):
        total = d.cumsum(1)
        h = total.exp() * (state.unsqueeze(1) + ((-total).exp() * v).cumsum(1))
        state = h[:, -1]
        results.append(h)
    return torch.cat(results, 1)


def sums_of(function: Callable, *arguments: torch.Tensor) -> int:
    """Runs a function beside eager; the running sums of its graph, after the pass."""
    with recorded_nodes() as nodes:
        run_beside_eager(function, *arguments)
    return count_of(nodes, SUM)


def test_a_scan_has_two_sums() -> None:
    assert sums_of(scan, -torch.rand(2, 16, 3), torch.randn(2, 16, 3)) == 2
    assert not eager_ops()


def test_a_scan_is_the_recurrence() -> None:
    reset()
    decay, value = -torch.rand(2, 16, 3), torch.randn(2, 16, 3)
    state, wanted = torch.zeros(2, 3, dtype=torch.float64), []
    for t in range(16):
        state = decay[:, t].double().exp() * state + value[:, t].double()
        wanted.append(state)
    ours = compiled(scan)(decay, value).double()
    torch.testing.assert_close(ours, torch.stack(wanted, 1), rtol=1e-5, atol=1e-5)


def test_training() -> None:
    class Scan(nn.Module):
        def forward(self, decay, value):
            return scan(decay, value)

    decay, value = -torch.rand(2, 8, 3), torch.randn(2, 8, 3)
    train_beside_eager(Scan(), decay.requires_grad_(), value.requires_grad_())


def test_sums_that_stay() -> None:
    """Parts of several lengths, sums along another axis, of some parts only, in several ways, and results."""
    x = torch.randn(2, 10, 3)
    sums = lambda parts, axis: [part.cumsum(axis) * 2 for part in parts]
    assert sums_of(lambda x: sums(x.split(4, 1), 1), x) == 3
    assert sums_of(lambda x: sums(x.split(5, 1), 2), x) == 2
    assert sums_of(lambda x: sums(x.split(2, 1)[1:], 1), x) == 4
    assert sums_of(lambda x: sums((x.split(5, 1)[0].exp(), x.split(5, 1)[1]), 1), x) == 2
    assert sums_of(lambda x: sums([part.split(2, 2)[0] for part in x.split(5, 1)], 1), x) == 2
    assert sums_of(lambda x: [part.cumsum(1) for part in x.split(5, 1)], x) == 2


def test_parts_in_another_order() -> None:
    """The sums of two tensors meet where their indexes are the same."""
    def function(x, y):
        (a, b), (c, d) = x.split(5, 1), y.split(5, 1)
        sums = (b * d).cumsum(1), (a * c).cumsum(1), (a * d).cumsum(1), (2 - b).cumsum(1)
        return [part * 2 for part in sums]

    assert sums_of(function, torch.randn(2, 10, 3), torch.randn(2, 10, 3)) == 3
