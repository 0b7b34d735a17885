"""Matrices of codes and scales, and products with them."""

from __future__ import annotations

import torch

from .. import row_ops
from ..tensor import Tensor
from .registry import Conversion, converts


@converts(torch.ops.sinter.dequantize.default)
def dequantize(c: Conversion, packed: Tensor, form: str, length: int) -> Tensor:
    return row_ops.dequantize(packed, form, length)


@converts(torch.ops.sinter.linear_of_codes.default)
def linear_of_codes(c: Conversion, x: Tensor, packed: Tensor, bias: Tensor | None, form: str) -> Tensor:
    return row_ops.linear(x, row_ops.dequantize(packed, form, x.size(x.rank - 1)), bias)
