"""Ops of torch that read packed codes."""

from __future__ import annotations

import torch
from torch.library import custom_op

from .packed_codes import CodeFormat, unpack


@custom_op("sinter::dequantize", mutates_args=())
def dequantize(packed: torch.Tensor, form: str, length: int) -> torch.Tensor:
    """float32 [M, length]: the elements of packed rows (packed_codes.py) of this format."""
    return unpack(CodeFormat.parse(form), packed, length)


@dequantize.register_fake
def _(packed, form, length):
    return packed.new_empty((packed.shape[0], length), dtype=torch.float32)


@custom_op("sinter::linear_of_codes", mutates_args=())
def linear_of_codes(x: torch.Tensor, packed: torch.Tensor, bias: torch.Tensor | None, form: str) -> torch.Tensor:
    """x [..., K] by the transpose of packed rows whose elements x's type has exactly, plus a bias: in x's
    type."""
    matrix = unpack(CodeFormat.parse(form), packed, x.shape[-1]).to(x.dtype)
    return torch.nn.functional.linear(x, matrix, bias)


@linear_of_codes.register_fake
def _(x, packed, bias, form):
    return x.new_empty((*x.shape[:-1], packed.shape[0]))
