"""Complex numbers between real tensors are computed from their parts."""

from __future__ import annotations

import sinter.pytorch
import torch
from beside_eager import compiled, eager_ops, reset, run_beside_eager, train_beside_eager
from sinter.pytorch.tools import report
from torch import nn

randn = torch.randn


def complexes(*sizes: int) -> torch.Tensor:
    return randn(*sizes, dtype=torch.complex64)


def rotations(tokens: int, width: int) -> torch.Tensor:
    """complex64 [tokens, width / 2], as models of Llama make them."""
    angles = torch.outer(torch.arange(tokens).float(), 1e4 ** -torch.linspace(0, 1, width // 2))
    return torch.polar(torch.ones_like(angles), angles)


def rotated(x: torch.Tensor, rotation: torch.Tensor) -> torch.Tensor:
    """x [B, S, H, D], rotation [S, D / 2]"""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * rotation[None, :, None]).flatten(3).type_as(x)


class Rotate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("rotation", rotations(16, width))

    def forward(self, q, k):
        rotation = self.rotation[:q.shape[1]]
        return rotated(q, rotation), rotated(k, rotation)


def launches() -> list[list[int]]:
    return [[entry.compiled.entry().costs().launches for entry in one.entries] for one in report.REPORTS]


def test_rotations_are_one_kernel() -> None:
    q, k = randn(2, 6, 4, 8, requires_grad=True), randn(2, 6, 2, 8, requires_grad=True)
    train_beside_eager(Rotate(8), q, k)
    assert launches() == [[1], [1]] and not eager_ops()


def test_rotations_of_16_bits_have_eagers_bits() -> None:
    """Both round the sum of two products in float32: an FMA between them is lost in the type."""
    reset()
    module, q, k = Rotate(8), randn(2, 6, 4, 8).bfloat16(), randn(2, 6, 2, 8).bfloat16()
    for ours, wanted in zip(compiled(module)(q, k), module(q, k), strict=True):
        torch.testing.assert_close(ours, wanted, rtol=torch.finfo(torch.bfloat16).eps, atol=0)


def test_a_number_of_tokens_that_changes() -> None:
    reset()
    function = compiled(rotated)
    for tokens in (5, 9):
        x, rotation = randn(2, tokens, 2, 8), rotations(tokens, 8)
        for tensor, axis in ((x, 1), (rotation, 0)):
            torch._dynamo.mark_dynamic(tensor, axis)
        torch.testing.assert_close(function(x, rotation), rotated(x, rotation), rtol=1e-5, atol=1e-5)
    assert launches() == [[1]] and not eager_ops()


def test_arithmetic() -> None:
    def function(x, y, r, n):
        real = torch.view_as_real
        return (real(x * y.conj()), real(x.conj() * y), real(x.conj() * y.conj()), real(x.conj() * r),
                real(x + y), real(x - y.conj()), real(r - x), real(-x.conj()), real(x * (2 - 3j)),
                real(x * 2 + n), real(1.5 - x), (x * y).real, x.imag + 1, (x * y).abs())

    run_beside_eager(function, complexes(3, 4), complexes(3, 4), randn(4), torch.arange(4))
    assert not eager_ops()


def test_complex_numbers_of_real_ones() -> None:
    def function(x, angle):
        parts = torch.complex(x, angle) * torch.polar(x, angle)
        return torch.view_as_real(parts), torch.view_as_real(parts.sum(0))

    run_beside_eager(function, randn(3, 4), randn(3, 4))
    assert not eager_ops()


def test_moved_elements() -> None:
    def function(x, index):
        moved = torch.stack([x.t()[1:3], x[:2, index].conj().reshape(3, 2).t()]).squeeze(1)
        flat = x.t().contiguous().view(2, 6)
        rows = torch.cat([moved, moved[:1]]).select(1, 0).unsqueeze(1)
        return (torch.view_as_real(rows.expand(3, 2, 3)) * 2, torch.view_as_real(x.index_select(1, index)),
                torch.view_as_real(flat))

    run_beside_eager(function, complexes(3, 4), torch.tensor([2, 0, 3]))
    assert not eager_ops()


def test_inputs_in_other_layouts() -> None:
    function = lambda x, r: torch.view_as_real(x * r)
    for x in (complexes(4, 3).t(), complexes(3, 8)[:, ::2], complexes(3, 4).conj(),
              complexes(13)[1:].view(3, 4)):
        run_beside_eager(function, x, randn(4))
        assert not {"aten.mul.Tensor"} & set(eager_ops())


def test_complex_results_stay_with_torch() -> None:
    run_beside_eager(lambda x, y: (x * y, torch.view_as_real(x * y) + 1), complexes(3, 4), complexes(3, 4))
    assert set(eager_ops()) == {"aten.mul.Tensor"}


def test_results_of_ops_without_a_rule() -> None:
    run_beside_eager(lambda x: torch.fft.fft(x).abs() * 2, randn(3, 8))
    assert not {"aten.abs.default", "aten.hypot.default"} & set(eager_ops())


def test_exported_module() -> None:
    """A complex buffer is a weight with an axis of parts."""
    module, q, k = Rotate(8), randn(2, 6, 4, 8), randn(2, 6, 2, 8)
    imported = sinter.pytorch.from_torch(module, (q, k))
    ours = imported.compile().run(q=q, k=k).values()
    for one, wanted in zip(ours, module(q, k), strict=True):
        torch.testing.assert_close(one, wanted, rtol=1e-5, atol=1e-5)
    assert imported.weights["rotation"].data_ptr() == module.rotation.data_ptr()
