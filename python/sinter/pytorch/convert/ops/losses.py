"""The values that a loss refuses."""

from __future__ import annotations

import torch

from ....importing.row_ops import permitted
from ....importing.tensor import Tensor
from ...graphs.library import range_error
from .registry import Conversion, aten, converts


@converts(torch.ops.sinter.in_range.default)
def in_range(c: Conversion, x: Tensor, low: int, high: int, name: str) -> Tensor:
    return permitted(x, lambda x: x.greater_equal(low) & x.less_equal(high), RuntimeError(range_error(low, high, name)))
