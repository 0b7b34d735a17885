"""Element types of torch and of Sinter."""

from __future__ import annotations

import torch

from ...importing.unsupported import Unsupported

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
