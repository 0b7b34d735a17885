"""Element types of torch and of Sinter."""

from __future__ import annotations

import functools

import torch

from .unsupported import Unsupported

TO_SINTER = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.bool: "i1",
}
# Ops of torch whose result is their operand in another type, or on another device.
CASTS = (torch.ops.aten._to_copy.default, torch.ops.prims.convert_element_type.default)
_REAL = {name: dtype for dtype, name in TO_SINTER.items() if dtype.is_floating_point}


def sinter_dtype(dtype: torch.dtype) -> str:
    """Sinter's name of an element type; `Unsupported` if it has none."""
    name = TO_SINTER.get(dtype)
    if name is None:
        raise Unsupported(f"elements of {str(dtype).removeprefix('torch.')}")
    return name


def is_double_number(tensor: torch.Tensor) -> bool:
    """A float of Python's as torch keeps it where sizes are dynamic: a float64 tensor of no axes.
    Ops on other tensors read it in their own type, and so it is an input of float32."""
    return tensor.dtype == torch.float64 and tensor.dim() == 0


def in_memory(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor whose elements Sinter has: of complex64 the view with an axis of real and imaginary
    parts; others as they are."""
    if tensor.dtype != torch.complex64:
        return tensor
    return torch.view_as_real(tensor.resolve_conj())


def is_real(dtype: str) -> bool:
    return dtype in _REAL


def is_integer(dtype: str) -> bool:
    return dtype in ("i32", "i64")


def wrapped(number: int, dtype: str) -> int:
    """A number modulo 2^32 or 2^64, in the range of an integer type."""
    half = 2**31 if dtype == "i32" else 2**63
    return (number + half) % (2 * half) - half


def clamped(number: int, dtype: str) -> int:
    """The nearest number that an integer type has."""
    half = 2**31 if dtype == "i32" else 2**63
    return min(max(number, -half), half - 1)


@functools.cache
def holds(dtype: str, number: float) -> bool:
    """Whether a float type has exactly this number. Layers ask of the same numbers, and while torch traces
    each tensor takes a millisecond."""
    if number != number or number in (float("inf"), float("-inf")):
        return True
    return float(torch.tensor(number, dtype=torch.float64).to(_REAL[dtype])) == number
