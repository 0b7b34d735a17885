"""Constants of a model as values of its module's graph."""

from __future__ import annotations

import re
from typing import Any, Sequence

import numpy as np

from ..importing.emitter import Emitter
from ..importing.names import Names
from ..importing.row_ops import dequantize
from ..importing.tensor import Tensor
from ..importing.types import is_integer
from ..importing.unsupported import Unsupported
from ..module import ModuleBuilder
from .codes import Coded, Quantized
from .origins import Origins
from .registry import DTYPES, Known, Value

MAX_LITERAL = 64  # elements of a computed constant that is written in the module


class Weights:
    """The weights of a module. arrays: tensors by name. functions: by the line of the module's text that declares a
    weight the lines that compute it from such tensors."""

    def __init__(self, module: ModuleBuilder, names: Names) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.functions: dict[str, str] = {}
        self._module, self._names = module, names
        self._used: dict[Any, str] = {}  # by the memory and the type of a constant
        self._packed: dict[Any, list[tuple[Coded, str]]] = {}

    def plain(self, name: str, array: np.ndarray, dtype: str) -> str:
        """The name of a weight that is an array."""
        key = (address(array), array.shape, array.strides, dtype)
        if key not in self._used:
            self._used[key] = self._declared(name or "constant", type_text(dtype, array.shape))
            self.arrays[self._used[key]] = array
        return self._used[key]

    def packed(self, value: Coded) -> str:
        """The name of a weight i32 [M, words] of packed codes, which equal codes share."""
        others = self._packed.setdefault((value.name, value.length, str(value.form)), [])
        for other, name in others:
            if other.has_codes_of(value):
                return name
        type_ = type_text("i32", (value.rows, value.form.row_words(value.length)))
        name = re.sub(r"[^\w.]", "_", value.name or "codes", flags=re.ASCII)
        name = self._declared(name, type_)
        others.append((value, name))
        line = f'  weight %{name} : {type_} = file {{tensor = "{name}"}}'
        self.functions[line] = f"  weight %{name} : {type_} = {self._packing(name, value)}"
        return name

    def _declared(self, name: str, type_: str) -> str:
        name = self._names.unique(name)
        self._module.weight(name, type_)
        return name

    def _packing(self, name: str, value: Coded) -> str:
        """The body of a weight's function, whose operands become tensors."""
        lines, parts = [], value.parts()
        for part, array in parts.items():
            tensor = self._names.unique(f"{name}.{part}")
            self.arrays[tensor] = array
            type_ = type_text(DTYPES[array.dtype.name], array.shape)
            lines.append(f'    %{part} = file {{tensor = "{tensor}"}} : {type_}')
        operands = ", ".join(f"%{part}" for part in parts)
        attributes = f'size = {value.length}, codes = "{value.form}"'
        lines.append(f"    %packed = pack_codes {operands} {{{attributes}}}")
        return "\n".join(["{", *lines, "    return %packed", "  }"])

    def text_of(self, module: str) -> str:
        """A module's text with the functions of its weights."""
        return "\n".join(self.functions.get(line, line) for line in module.split("\n"))


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def type_text(dtype: str, sizes: Sequence[int]) -> str:
    return f"{dtype}[{', '.join(map(str, sizes))}]"


class Constants:
    """The constants of one entry as tensors of its graph."""

    def __init__(self, weights: Weights, emitter: Emitter, origins: Origins) -> None:
        self._weights, self._g, self._origins = weights, emitter, origins
        self.tensors: dict[Known | Coded, Tensor] = {}

    def tensor_of(self, value: Value) -> Tensor:
        if isinstance(value, Tensor):
            return value
        if isinstance(value, Quantized):
            raise Unsupported(f"elements of {value.dtype}")
        if value not in self.tensors:
            self.tensors[value] = (
                self._matrix(value) if isinstance(value, Coded) else self._added(value)
            )
        return self.tensors[value]

    def made(self, value: Value | None) -> Tensor | None:
        """The tensor of a value; None: it has none yet."""
        if isinstance(value, (Known, Coded)):
            return self.tensors.get(value)
        return value if isinstance(value, Tensor) else None

    def _matrix(self, value: Coded) -> Tensor:
        """The elements of codes, rounded to their type."""
        packed = self._g.weight(self._weights.packed(value))
        matrix = dequantize(packed, str(value.form), value.length).to(DTYPES[value.dtype])
        return matrix.permute([1, 0]) if value.is_transposed else matrix

    def _added(self, value: Known) -> Tensor:
        dtype = DTYPES.get(value.dtype)
        if dtype is None:
            raise Unsupported(f"elements of {value.dtype}")
        array = value.array
        if value.has_sizes:
            return self._sizes(array, dtype)
        if array.size == 1:
            return self._g.number(array.reshape(())[()].item(), dtype).reshape([1] * array.ndim)
        if array.size == 0:
            return self._g.full(array.shape, 0, dtype)
        if (
            is_integer(dtype)
            and array.size in array.shape
            and (np.diff(array.reshape(-1)) == 1).all()
        ):
            places = self._g.iota(array.size, dtype).reshape(array.shape)
            if array.flat[0] != 0:
                return places + int(array.flat[0])
            self._origins.axes[places] = array.shape.index(array.size)
            return places
        if array.size <= MAX_LITERAL and not value.is_weight:
            return self._g.literal(array.reshape(-1).tolist(), dtype).reshape(array.shape)
        return self._g.weight(self._weights.plain(value.name, array, dtype))

    def _sizes(self, array: np.ndarray, dtype: str) -> Tensor:
        if array.ndim > 1:
            raise Unsupported(f"sizes in a tensor of {array.ndim} axes")
        parts = [self._g.scalar(size, dtype) for size in array.reshape(-1)]
        return (
            parts[0] if array.ndim == 0 else self._g.concat([one.unsqueeze(0) for one in parts], 0)
        )
