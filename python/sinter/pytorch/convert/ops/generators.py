"""Tensors that are made of no other tensor."""

from __future__ import annotations

import torch

from ....importing.tensor import Tensor
from .registry import Conversion, aten, converts


@converts(aten("full.default"))
def full(c: Conversion, sizes, value, **options) -> Tensor:
    return c.number(value, c.dtype).expand(c.shape)


@converts(aten("full_like.default"))
def full_like(c: Conversion, x: Tensor, *arguments, **options) -> Tensor:
    return c.number(arguments[-1], c.dtype).expand(c.shape)


@converts(aten("empty.memory_format"), aten("empty_permuted.default"),
          aten("empty_strided.default"), aten("new_empty_strided.default"))
def zeros(c: Conversion, *ignored, **options) -> Tensor:
    return c.number(0, c.dtype).expand(c.shape)


@converts(aten("scalar_tensor.default"))
def scalar_tensor(c: Conversion, value, **options) -> Tensor:
    return c.number(value, c.dtype)


@converts(aten("arange.start_step"))
def arange(c: Conversion, *arguments, **options) -> Tensor:
    begin, step = 0, 1
    if len(arguments) >= 2:
        begin = arguments[0]
    if len(arguments) == 3:
        step = arguments[2]
    index = c.g.iota(c.shape[0]).to(c.math_dtype)
    if not (isinstance(step, (int, float)) and step == 1):
        index = index * c.number(step, index.dtype)
    if not (isinstance(begin, (int, float)) and begin == 0):
        index = index + c.number(begin, index.dtype)
    return index.to(c.dtype)


@converts(torch.ops.prims.iota.default)
def iota(c: Conversion, length, start=0, step=1, **options) -> Tensor:
    return arange(c, start, None, step)
