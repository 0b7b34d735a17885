"""Conversions of torch's ops to Sinter's IR: a function for each, found by the op.

A function gets the `Conversion` of its node and the node's arguments: a `Tensor` for each tensor,
torch's sizes and Python's numbers as they stand. It returns a tensor, or a tuple of them for an op
with several results (None where a result is not needed), or raises `Unsupported`.
"""

from ...graphs import expert_ops, library  # noqa: F401, registers ops of sinter
from ...quantized import ops  # noqa: F401, registers ops of sinter
from . import (activations, attention, choice, elementwise, experts, generators, indexing, movement, norms,
               overwriting, products, reductions, scatter, sorting)
from .registry import CONVERSIONS, Conversion, converts

__all__ = ["CONVERSIONS", "Conversion", "converts"]
