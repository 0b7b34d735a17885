"""Operands of complex numbers in every type: Python's numbers, tensors without axes, other complex types."""

from __future__ import annotations

import math

import pytest
import sinter.pytorch
import torch
from beside_eager import compiled, eager_ops, reset
from torch import nn, tensor

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
Real = torch.view_as_real
C64, C128, C32 = torch.complex64, torch.complex128, torch.complex32
NUMBERS = [2.0, 1 - 1j, 0.5j, -1.5 + 0.5j]

# The operand beside complex64 [3, 4] and float32 [3, 4]; results of complex128 and complex32 stay with torch.
OPERANDS = {
    "a complex number": lambda: 1 + 2j,
    "a real number": lambda: -1.5,
    "a truth": lambda: True,
    "complex64": lambda: tensor(NUMBERS, dtype=C64),
    "complex64 of no axis": lambda: tensor(1 + 2j, dtype=C64),
    "complex128": lambda: tensor(NUMBERS, dtype=C128),
    "complex128 of no axis": lambda: tensor(1 + 2j, dtype=C128),
    "complex32": lambda: tensor(NUMBERS).to(C32),
    "complex32 of no axis": lambda: tensor(1 + 2j).to(C32),
    "a conjugate of complex64": lambda: tensor(NUMBERS, dtype=C64).conj(),
    "a conjugate of complex128": lambda: tensor(1 + 2j, dtype=C128).conj(),
    "a conjugate of complex32": lambda: tensor(NUMBERS).to(C32).conj(),
    "float32": lambda: tensor([1.0, -2.0, 0.5, 3.0]),
    "float16 of a further axis": lambda: torch.linspace(-2, 2, 24).view(2, 3, 4).half(),
    "float64 of no axis": lambda: tensor(0.75, dtype=torch.float64),
    "int64": lambda: tensor([1, -2, 0, 3]),
    "bool": lambda: tensor([True, False, True, True]),
}


def arithmetic(x, y, w):
    """Every rule that has another operand, with w; x [3, 4] and y [3, 4] are float32."""
    z, polar, conjugate = torch.complex(x, y), torch.polar(x, y), torch.view_as_complex(torch.stack((y, x), -1)).conj()
    results = [z * w, conjugate * w, w * polar, x * (1j * w), z + w, w + conjugate]
    if w is not True and getattr(w, "dtype", None) != torch.bool:  # eager does not subtract these
        results += [z - w, w - conjugate, w - x * 1j]
    if isinstance(w, torch.Tensor):
        results += [z * w.conj(), (z * 1.0).mul_(w.conj()) if w.dim() < 3 and w.dtype != C128 else z]
    return [Real(result) for result in results]


def other_rules(x, y, w):
    z = torch.complex(x, y)
    results = [-z, (z * w).conj() * z, (z + 1j).sum(0), (1j - z).sum(), z.t()[1:3], torch.stack((z * w, z)),
               torch.cat((z, w * z), -1)[:, ::2], torch.cat((w, z[1])).conj() * 1j, z[:2, [2, 0]].conj().reshape(2, 2, 1).squeeze() * 1, z ** 2, z / 2j,
               torch.where(x > 0, z * w, 1j), torch.complex(x, y[0]), torch.complex(x[0], y).sum(0), (x + z[0]).sum(0),
               (z[0] - y).select(0, 1), torch.exp(1j * x), sum(c * z ** k for k, c in enumerate((1, 1j, 2 - 1j)))]
    return [Real(result) for result in results] + [z.abs(), (z * 1j).real, (2j - z).imag * x, torch.angle(z * 1j)]


def run(function, arguments) -> list[torch.Tensor]:
    """Results, then the gradients of the tensors of floats."""
    given = [x.clone().requires_grad_(x.is_floating_point() or x.is_complex()) if isinstance(x, torch.Tensor) else x
             for x in arguments]
    results = function(*given)
    weights = [torch.linspace(0.5, 2, result.numel()).view(result.shape) for result in results]
    sum((result.float() * weight).sum() for result, weight in zip(results, weights)).backward()
    return [result.detach() for result in results] + [
        x.grad for x in given if isinstance(x, torch.Tensor) and x.requires_grad]


def assert_same_gradients(ours, function, *arguments) -> None:
    for one, wanted in zip(run(ours, arguments), run(function, arguments), strict=True):
        assert one.dtype == wanted.dtype and one.shape == wanted.shape
        torch.testing.assert_close(one, wanted, rtol=1e-4, atol=1e-4)


def tensors(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    count = math.prod(shape)
    return torch.linspace(-2, 3, count).view(shape), torch.linspace(1, -2, count).view(shape)


@pytest.mark.parametrize("name", OPERANDS)
def test_an_operand_of_another_type(name: str) -> None:
    reset()
    operand = OPERANDS[name]()
    assert_same_gradients(compiled(arithmetic), arithmetic, *tensors(3, 4), operand)
    if not isinstance(operand, torch.Tensor):
        assert not {"aten.mul.Tensor", "aten.add.Tensor", "aten.sub.Tensor", "aten._conj.default"} & set(eager_ops())


@pytest.mark.parametrize("dtype", (C64, C128, C32), ids=str)
def test_other_rules(dtype: torch.dtype) -> None:
    reset()
    assert_same_gradients(compiled(other_rules), other_rules, *tensors(3, 4), tensor(NUMBERS).to(dtype))


def test_sizes_that_change() -> None:
    def function(x, y, w, v, number):
        z = torch.complex(x, y)
        results = (z * w, v.conj() - z, z * x.shape[0], x.shape[1] - z * number, z[0] + x, x * (1 + 2j))
        return [Real(result) for result in results]

    reset()
    operands = OPERANDS["complex128 of no axis"](), OPERANDS["complex32"]()
    ours = compiled(function, dynamic=True)
    for rows, number in ((3, 0.5), (5, 1.25)):
        assert_same_gradients(ours, function, *tensors(rows, 4), *operands, number)


def test_an_exported_module_reads_no_parts_as_elements() -> None:
    """A complex input is a tensor with an axis of parts: the variance of 12 numbers is not that of 24."""
    class Spread(nn.Module):
        def forward(self, z):
            return z.var()

    with pytest.raises(sinter.SinterError, match=r"aten.var.correction .*: elements of complex64"):
        sinter.pytorch.from_torch(Spread(), (torch.randn(3, 4, dtype=C64),))
