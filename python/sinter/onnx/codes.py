"""Integers of few bits with scales, as quantized models have them.

A matrix of constant codes stays codes: the library packs them when it loads the module's weights. Codes that the module
computes are whole numbers in float32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..importing.code_format import SCALES, CodeFormat, largest_group
from ..importing.tensor import Tensor

# By the name of NumPy's type: the smallest and the largest code.
RANGES = {f"int{n}": (-(2 ** (n - 1)), 2 ** (n - 1) - 1) for n in (2, 4, 8, 16)}
RANGES |= {f"uint{n}": (0, 2**n - 1) for n in (2, 4, 8, 16)}
# Sinter's codes by the names of NumPy's types; signed ones by the types of codes less their middle.
CODES = {name: name for name in ("int8", "uint8", "int4", "uint4")}
CODES |= {"float8_e4m3fn": "e4m3", "float4_e2m1fn": "e2m1"}
MIDDLES = {"uint8": ("int8", 128), "uint4": ("int4", 8)}
SCALE_TYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


@dataclass(eq=False)
class Quantized:
    """Codes that the module computes, in float32. dtype: the name of NumPy's type, which Sinter lacks."""

    codes: Tensor
    dtype: str


@dataclass(frozen=True, eq=False)
class Coded:
    """A constant matrix scale * (code - zero). bits: uint8 [M, length], the bits of each code, those of int4 plus 8;
    is_packed: of 4 bits two in a byte, the first one low. scale, zero: one or M rows, a column for each group.
    is_transposed: the matrix is [length, M]."""

    bits: np.ndarray
    length: int
    form: CodeFormat
    scale: np.ndarray
    zero: np.ndarray | None
    dtype: str
    name: str
    is_packed: bool = False
    is_transposed: bool = False

    @property
    def rows(self) -> int:
        return int(self.bits.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        return (self.length, self.rows) if self.is_transposed else (self.rows, self.length)

    def permute(self, order: list[int]) -> Coded:
        if order == [0, 1]:
            return self
        if self.scale.size == 1 and not self.is_packed:  # rows and columns have the same scale
            return replace(self, bits=self.bits.T, length=self.rows)
        return replace(self, is_transposed=not self.is_transposed)

    def has_codes_of(self, other: Coded) -> bool:
        pairs = [(self.bits, other.bits), (self.scale, other.scale)]
        if self.zero is not None and other.zero is not None:
            pairs.append((self.zero, other.zero))
        return all(a is b or np.array_equal(a, b) for a, b in pairs)

    def words(self) -> np.ndarray:
        """i32 [M, words]: the codes of each row, the first in the lowest bits."""
        data = self.bits
        if self.form.bits == 4 and not self.is_packed:
            data = padded(data, 2)
            data = data[:, 0::2] | data[:, 1::2] << 4
        return np.ascontiguousarray(padded(data, 4)).view(np.int32)

    def parts(self) -> dict[str, np.ndarray]:
        """The operands of `pack_codes`."""
        sizes = (self.rows, self.form.groups(self.length))
        found = {"words": self.words(), "scales": np.broadcast_to(self.scale, sizes)}
        if self.zero is not None:
            found["zeros"] = np.broadcast_to(self.zero.astype(np.int32), sizes)
        return found


def padded(data: np.ndarray, multiple: int) -> np.ndarray:
    """Columns of zeros up to a multiple."""
    missing = -data.shape[1] % multiple
    return np.pad(data, ((0, 0), (0, missing))) if missing else data


def coded(
    bits: np.ndarray,
    length: int,
    code: str,
    scale: np.ndarray,
    zero: np.ndarray | None,
    block: int,
    dtype: str,
    name: str,
    is_packed: bool = False,
) -> Coded | None:
    """scale, zero: [1 or M, blocks]; block: codes of a scale. None: the kernels have no such format."""
    is_row = scale.shape[1] == 1
    group = 0 if is_row else largest_group(block)
    type_of_scale = SCALE_TYPES.get(scale.dtype.name)
    fits = zero is None or zero.size and -(2**15) <= zero.min() and zero.max() < 2**15
    if group is None or type_of_scale not in SCALES or bits.size == 0 or not fits:
        return None
    blocks = 1 if is_row else -(-length // block)
    if scale.shape[0] not in (1, len(bits)) or scale.shape[1] != blocks:
        raise ValueError(f"scales {list(scale.shape)} of codes [{len(bits)}, {length}]")
    if bits.shape[1] != (-(-length // 2) if is_packed else length):
        raise ValueError(f"{bits.shape[1]} bytes in a row of {length} codes")
    bits, code, zero = without_middle(bits, code, zero, is_packed)
    form = CodeFormat(code, group, type_of_scale, zero is not None)
    if group:
        count = form.groups(length)
        scale = np.repeat(scale, block // group, 1)[:, :count]
        zero = None if zero is None else np.repeat(zero, block // group, 1)[:, :count]
    return Coded(bits, length, form, scale, zero, dtype, name, is_packed)


def without_middle(
    bits: np.ndarray, code: str, zero: np.ndarray | None, is_packed: bool
) -> tuple[np.ndarray, str, np.ndarray | None]:
    """Unsigned codes whose zero points are all their middle as signed ones without."""
    signed, middle = MIDDLES.get(code, ("", 0))
    if zero is None or (zero == 0).all():
        return bits, code, None
    if not signed or not (zero == middle).all():
        return bits, code, zero
    return bits ^ np.uint8(128) if code == "uint8" else bits, signed, None


def bits_of(codes: np.ndarray) -> np.ndarray:
    """uint8: the bits of each code; those of int4 plus 8."""
    return codes.view(np.uint8) ^ np.uint8(8 if codes.dtype.name == "int4" else 0)


def matrix_of(
    codes: np.ndarray,
    scale: np.ndarray,
    zero: np.ndarray | None,
    axis: int,
    block: int,
    dtype: str,
    name: str,
) -> Coded | None:
    """The operands of DequantizeLinear. None: they are no matrix, or the kernels have no such format."""
    code = CODES.get(codes.dtype.name)
    if codes.ndim != 2 or code is None:
        return None
    if scale.size == 1:
        scale, axis = scale.reshape(1, 1), 1
    elif scale.ndim == 1:  # along an axis: of rows, or of columns
        scale, axis = np.expand_dims(scale, 1 - axis), 1 - axis
    if zero is not None:
        zero = zero.astype(np.int32).reshape(scale.shape)
    if axis == 1:
        return coded(bits_of(codes), codes.shape[1], code, scale, zero, block, dtype, name)
    zero = None if zero is None else zero.T
    found = coded(bits_of(codes.T), codes.shape[0], code, scale.T, zero, block, dtype, name)
    return found and replace(found, is_transposed=True)


def spread(array: np.ndarray, sizes: tuple[int, ...], axis: int, block: int) -> np.ndarray:
    """Scales or zero points as they broadcast to a tensor."""
    if array.size == 1:
        return array.reshape(())
    if array.ndim == 1 and not block:
        return array.reshape([-1 if i == axis else 1 for i in range(len(sizes))])
    ends = tuple(slice(0, size) for size in sizes)
    return np.asarray(np.repeat(array, max(block, 1), axis)[ends])


def dequantized(
    codes: np.ndarray, scale: np.ndarray, zero: np.ndarray | None, axis: int, block: int
) -> np.ndarray:
    """float32: the elements of codes, each rounded once."""
    is_whole = codes.dtype.name in (*RANGES, "int32")
    wide = codes.astype(np.int64 if is_whole else np.float32)
    if zero is not None:
        wide = wide - spread(zero.astype(np.float64), codes.shape, axis, block)
    factor = spread(scale, codes.shape, axis, block).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(wide.astype(np.float32) * factor)


def quantized(
    x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None, axis: int, block: int, dtype: str
) -> np.ndarray:
    """Codes of a constant."""
    low, high = RANGES[dtype]
    offset = 0 if zero is None else spread(zero, x.shape, axis, block).astype(np.float32)
    with np.errstate(all="ignore"):
        ratio = (x / spread(scale, x.shape, axis, block).astype(x.dtype)).astype(np.float32)
        whole = np.clip(np.rint(ratio) + offset, low, high).astype(np.int32)
        return np.asarray(whole.astype(np.dtype(dtype)))
