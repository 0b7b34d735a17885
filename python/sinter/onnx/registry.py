"""The table of conversions, and what a conversion knows of its node."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from ..importing.emitter import Emitter
from ..importing.tensor import Tensor
from ..importing.types import is_real
from ..importing.unsupported import Unsupported
from .codes import Coded, Quantized
from .origins import Origins
from .sizes import OnnxExtents, Size

MICROSOFT = "com.microsoft"
MAX_FOLDED = 4096  # elements of integers that are computed while a model is imported

# Names of Sinter's element types by those of NumPy.
DTYPES = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int32": "i32",
    "int64": "i64",
    "bool": "i1",
}
NAMES = {own: name for name, own in DTYPES.items()}


@dataclass(eq=False)
class Known:
    """A constant. array: of type `object` where it has sizes that only a call knows.
    dtype: the name of NumPy's type. is_weight: the file has it; a tensor of it is a weight of the module."""

    array: np.ndarray
    dtype: str
    name: str = ""
    is_weight: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def has_sizes(self) -> bool:
        return self.array.dtype == object

    @property
    def is_small(self) -> bool:
        return self.array.size <= MAX_FOLDED and (self.has_sizes or self.array.dtype.kind in "bi")

    @functools.cached_property
    def wide(self) -> Known:
        """The elements in float32."""
        return Known(self.array.astype(np.float32), "float32", self.name, True)

    def like(self, array: Any) -> Known:
        """Another array of this constant's elements."""
        return Known(np.asarray(array), self.dtype, self.name, self.is_weight)


def known(values: Any, dtype: str = "int64") -> Known:
    """A constant of integers and sizes."""
    array = np.array(values, dtype=object)
    if not any(isinstance(one, Size) for one in array.flat):
        return Known(array.astype(np.dtype(dtype)), dtype)
    return Known(array, dtype)


Value = Tensor | Known | Coded | Quantized
Results = Value | Sequence["Value | None"]
Conversion = Callable[["Node"], Results]


class ExpandBody(Exception):
    """Asks for the op's function body in place of its conversion."""


@dataclass(eq=False)
class Node:
    """A node that is being converted: inputs by number, attributes by name, the opset of its domain. note: tells the
    user what is computed in another way than the file says."""

    g: Emitter
    tensor_of: Callable[[Value], Tensor]
    op: str
    opset: int
    inputs: Sequence[Value | None]
    attributes: Mapping[str, Any]
    outputs: Sequence[str]
    origins: Origins
    note: Callable[[str], None]

    @property
    def extents(self) -> OnnxExtents:
        assert isinstance(self.g.extents, OnnxExtents)
        return self.g.extents

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def value(self, index: int) -> Value:
        value = self.inputs[index] if index < len(self.inputs) else None
        if value is None:
            raise Unsupported(f"input {index} is missing")
        return value

    def __getitem__(self, index: int) -> Tensor:
        return self.tensor_of(self.value(index))

    def get(self, index: int) -> Tensor | None:
        """An input that may be absent."""
        return self[index] if self.has(index) else None

    def tensors(self) -> list[Tensor]:
        return [self[i] for i in range(len(self.inputs))]

    def array(self, index: int) -> np.ndarray:
        """An input that must be a constant."""
        value = self.value(index)
        if not isinstance(value, Known):
            raise Unsupported(
                f"input {index} is known only when the model runs; a constant is wanted"
            )
        return value.array

    def number(self, index: int) -> Any:
        """The number that an input is; None: it has several, or only a call knows it."""
        value = self.value(index)
        if isinstance(value, Known) and not value.has_sizes and value.array.size == 1:
            return value.array.item()
        return None

    def ints(self, index: int, name: str = "") -> list[Any]:
        """Integers and sizes of a constant input; of an attribute in older opsets. None of them: []."""
        if self.has(index):
            return [
                one if isinstance(one, Size) else int(one) for one in self.array(index).reshape(-1)
            ]
        return [int(one) for one in self.attributes.get(name) or ()]

    def axes(self, rank: int, index: int = 1, name: str = "axes") -> list[int]:
        return [axis_in(axis, rank) for axis in self.ints(index, name)]

    def axis(self, rank: int, default: int = 0) -> int:
        return axis_in(self.integer("axis", default), rank)

    def integer(self, name: str, default: int = 0) -> int:
        return int(self.attributes.get(name, default))

    def real(self, name: str, default: float = 0.0) -> float:
        return float(self.attributes.get(name, default))

    def text(self, name: str, default: str = "") -> str:
        return str(self.attributes.get(name, default))

    def uses(self, index: int) -> bool:
        """Whether the node has an output of that number."""
        return index < len(self.outputs) and self.outputs[index] != ""

    def need_real(self, x: Tensor) -> None:
        if not is_real(x.dtype):
            raise Unsupported(f"the op for elements of {x.dtype}")


def axis_in(axis: Any, rank: int) -> int:
    if isinstance(axis, Size) or not -rank <= axis < max(rank, 1):
        raise Unsupported(f"axis {axis} of a tensor of {rank} axes")
    return int(axis) % max(rank, 1)


def shape_of(value: Value) -> list[Any]:
    """Sizes of the axes: numbers and sizes that only a call knows."""
    if isinstance(value, Quantized):
        value = value.codes
    if not isinstance(value, Tensor):
        return list(value.shape)
    extents = value.g.extents
    assert isinstance(extents, OnnxExtents)
    return [extents.size_of(product) for product in value.shape]


def count_of(sizes: Sequence[Any]) -> Any:
    """The product of sizes."""
    return math.prod(sizes, start=1)


_CONVERSIONS: dict[tuple[str, str], dict[int, Conversion]] = {}
Fold = Callable[["Node"], "Results"]
_FOLDS: dict[str, Fold] = {}


def converts(*ops: str, since: int = 1, domain: str = "") -> Callable[[Conversion], Conversion]:
    """Registers a conversion of ops from an opset on."""

    def register(function: Conversion) -> Conversion:
        for op in ops:
            _CONVERSIONS.setdefault((domain, op), {})[since] = function
        return function

    return register


def folds(*ops: str) -> Callable[[Fold], Fold]:
    """Registers what computes ops of constants while a model is imported."""

    def register(function: Fold) -> Fold:
        _FOLDS.update(dict.fromkeys(ops, function))
        return function

    return register


def conversion_of(domain: str, op: str, opset: int) -> Conversion | None:
    """The conversion of the newest version of an op up to the opset."""
    versions = _CONVERSIONS.get((domain, op), {})
    return versions.get(max((since for since in versions if since <= opset), default=-1))


def fold_of(domain: str, op: str) -> Fold | None:
    return _FOLDS.get(op) if domain == "" else None


def plain_domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def converted_ops() -> list[tuple[str, str]]:
    """Domain and name of each op that has a conversion."""
    return sorted(_CONVERSIONS)
