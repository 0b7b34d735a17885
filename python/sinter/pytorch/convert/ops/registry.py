"""The table of conversions, and what a conversion knows of its node."""

from __future__ import annotations

from typing import Callable

import torch
from torch import fx

from ....importing.emitter import Emitter
from ....importing.tensor import Tensor
from ....importing.types import is_real
from ....importing.unsupported import Unsupported
from ...graphs.dtypes import sinter_dtype

CONVERSIONS: dict[object, Callable] = {}


def converts(*ops):
    """Registers a function for ops; torch of another version may lack one (None)."""
    def register(function):
        for op in ops:
            if op is not None:
                CONVERSIONS[op] = function
        return function
    return register


def aten(name: str):
    """An overload of an op, "add.Tensor", or None if this torch has none."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)


class Conversion:
    """A node that is being converted."""

    def __init__(self, emitter: Emitter, node: fx.Node) -> None:
        self.g = emitter
        self.node = node
        self.meta = node.meta["val"]  # a fake tensor, or a tuple of them

    @property
    def dtype(self) -> str:
        """The element type of the result."""
        return sinter_dtype(self.meta.dtype)

    @property
    def shape(self) -> list:
        """The sizes of the result."""
        return list(self.meta.shape)

    @property
    def math_dtype(self) -> str:
        """The type in which torch computes the result."""
        return "f32" if is_real(self.dtype) else self.dtype

    def uses(self, index: int) -> bool:
        """Whether the graph uses result `index` of an op with several results."""
        return any(user.args[1] == index for user in self.node.users if user.args[0] is self.node)

    def common_dtype(self) -> str:
        """The type to which torch's rules promote the node's operands."""
        operands = [arg.meta["val"] if isinstance(arg, fx.Node) else arg
                    for arg in self.node.args[:3]]
        kinds = {torch.SymInt: 1, torch.SymFloat: 1.0}  # any number has the type of its kind
        operands = [kinds.get(type(x), x) for x in operands]
        operands = [x for x in operands if isinstance(x, (torch.Tensor, int, float, bool))]
        dtype = operands[0].dtype if isinstance(operands[0], torch.Tensor) else None
        for other in operands[1:]:
            dtype = torch.result_type(operands[0], other)
        return sinter_dtype(dtype)

    def operands(self, *operands, dtype: str | None = None) -> list[Tensor]:
        """Tensors and numbers as tensors of one type, by default what torch computes in."""
        dtype = dtype or self.math_dtype
        return [self.number(x, dtype) for x in operands]

    def number(self, number, dtype: str) -> Tensor:
        """A number as a tensor without axes, which it is already if it is an operand that changes from call to
        call."""
        if isinstance(number, Tensor):
            return number.to(dtype)
        if isinstance(number, (torch.SymInt, torch.SymFloat)):
            return self.g.scalar(number, dtype)
        if not isinstance(number, (int, float, bool)):
            raise Unsupported("a number that is known only when the graph runs")
        return self.g.number(number, dtype)
