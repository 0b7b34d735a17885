"""Codes with scales: constant matrices stay codes, other constants become floats, and activations are rounded as the
model says."""

from __future__ import annotations

import functools
import operator

import numpy as np

from ...importing.row_ops import linear, row_numbers, take_rows
from ...importing.tensor import Tensor
from ...importing.types import is_integer
from ...importing.unsupported import Unsupported
from ..codes import RANGES, Quantized, coded, dequantized, matrix_of, quantized, spread
from ..reader import unpacked
from ..registry import (
    DTYPES,
    MICROSOFT,
    NAMES,
    Known,
    Node,
    Results,
    Value,
    axis_in,
    converts,
    shape_of,
)
from .products import product

MAX_TERMS = 256  # products of two differences of 8-bit codes whose sum float32 has exactly
MAX_CHUNKS = 64  # of MAX_TERMS terms, in one sum
MIN_NOTED = 4096  # elements of a constant whose size is worth a note


def constant(c: Node, index: int) -> np.ndarray | None:
    """A constant operand; None: there is none, or it is computed."""
    value = c.value(index) if c.has(index) else None
    return value.array if isinstance(value, Known) and not value.has_sizes else None


def operand(c: Node, index: int, x: Value, axis: int) -> Tensor:
    """f32: scales or zero points as they broadcast to x."""
    value, rank, block = c.value(index), len(shape_of(x)), c.integer("block_size")
    if isinstance(value, Known):
        sizes = tuple(shape_of(x)) if block else (1,) * rank
        array = spread(value.array, sizes, axis, block).astype(np.float32)
        return c.tensor_of(Known(array, "float32", value.name, value.is_weight))
    wide = value.codes if isinstance(value, Quantized) else c.tensor_of(value).f32()
    if all(wide.is_one(i) for i in range(wide.rank)):
        return wide.reshape([])
    if wide.rank != 1:
        raise Unsupported("scales in blocks that are no constants")
    return wide.reshape([shape_of(wide)[0] if i == axis else 1 for i in range(rank)])


def place_of_scales(c: Node, x: Value) -> int:
    """The axis along which scales stand; those of a tensor of no axes are one."""
    rank = len(shape_of(x))
    return axis_in(c.integer("axis", 1), rank) if rank > 1 else 0


@converts("DequantizeLinear")
def dequantize(c: Node) -> Results:
    """(code - zero) * scale, rounded once."""
    x = c.value(0)
    axis, dtype = place_of_scales(c, x), c.text("output_dtype") or c.value(1).dtype
    dtype = NAMES.get(dtype, dtype)
    scale, zero = constant(c, 1), constant(c, 2)
    if isinstance(x, Known) and scale is not None and (zero is not None or not c.has(2)):
        return constant_of_codes(c, x, scale, zero, axis, dtype)
    wide = codes_of(c, 0)
    if c.has(2):
        wide = wide - operand(c, 2, x, axis)
    result = wide * operand(c, 1, x, axis)
    return result.to(DTYPES.get(dtype, "f32"))


def constant_of_codes(
    c: Node, x: Known, scale: np.ndarray, zero: np.ndarray | None, axis: int, dtype: str
) -> Value:
    block = c.integer("block_size")
    found = matrix_of(x.array, scale, zero, axis, block, dtype, x.name)
    if found is not None:
        return found
    if x.array.size >= MIN_NOTED and x.dtype != "int32":
        c.note(f'the codes of "{x.name}" become {dtype}: no kernel reads {x.dtype} of this form')
    array = dequantized(x.array, scale, zero, axis, block).astype(np.dtype(dtype))
    return Known(array, dtype, x.name, True)


@converts("QuantizeLinear")
def quantize(c: Node) -> Results:
    """round(x / scale) + zero, within the type of the codes; the quotient is rounded to the type of x."""
    x, zero = c.value(0), constant(c, 2)
    dtype = c.text("output_dtype") or (c.value(2).dtype if c.has(2) else "uint8")
    if dtype not in RANGES:
        raise Unsupported(f"codes of {dtype}")
    axis, scale = place_of_scales(c, x), constant(c, 1)
    if isinstance(x, Known) and scale is not None and (zero is not None or not c.has(2)):
        codes = quantized(x.array, scale, zero, axis, c.integer("block_size"), dtype)
        return Known(codes, dtype, x.name, True)
    ratio = c[0].f32() / operand(c, 1, x, axis)
    ratio = ratio if is_integer(c[0].dtype) else ratio.to(c[0].dtype).f32()
    return rounded(ratio, operand(c, 2, x, axis) if c.has(2) else None, dtype)


def rounded(x: Tensor, zero: Tensor | None, dtype: str) -> Quantized:
    """Codes: round(x) + zero, within their type."""
    low, high = RANGES[dtype]
    whole = x.apply("round")
    whole = whole if zero is None else whole + zero
    return Quantized(whole.maximum(float(low)).minimum(float(high)), dtype)


@converts("DynamicQuantizeLinear")
def dynamic_quantize(c: Node) -> Results:
    """uint8 codes over the range of all elements and 0, their scale and their zero point."""
    x = c[0].f32()
    high, low = (x.max().maximum(0.0), x.min().minimum(0.0))
    scale = (high - low) / 255.0
    zero = rounded(-low / scale, None, "uint8")
    return [rounded(x / scale, zero.codes, "uint8"), scale, zero]


# ---- products of codes


def difference(c: Node, index: int, zero: int, axis: int) -> Tensor:
    """f32: codes of 8 bits less their zero points, which stand along an axis if they are several."""
    x, points = c.value(index), constant(c, zero)
    if x.dtype not in ("int8", "uint8"):
        raise Unsupported(f"a product of codes of {x.dtype}")
    wide = codes_of(c, index)
    if not c.has(zero) or points is not None and not points.any():
        return wide
    point = codes_of(c, zero)
    return wide - (point.unsqueeze(1) if axis == -2 and point.rank == 1 else point)


def codes_of(c: Node, index: int) -> Tensor:
    value = c.value(index)
    if isinstance(value, Known):
        return c.tensor_of(value.wide)
    return value.codes if isinstance(value, Quantized) else c.tensor_of(value).f32()


def exact_product(c: Node, a: Tensor, b: Tensor) -> Tensor:
    """i32: sums of so few terms that float32 has them exactly, added as integers."""
    terms = a.size(a.rank - 1)
    if -(-terms // MAX_TERMS) > MAX_CHUNKS:
        raise Unsupported(f"a product of codes with sums of {terms} terms")
    sums = []
    for begin in range(0, terms, MAX_TERMS):
        left, right = (
            x.slice(axis, begin, min(begin + MAX_TERMS, terms)) for x, axis in ((a, -1), (b, -2))
        )
        sums.append(product(c, left, right).to("i32"))
    return functools.reduce(operator.add, sums)


@converts("MatMulInteger")
def matmul_integer(c: Node) -> Tensor:
    """Inputs a, b and their zero points."""
    return exact_product(c, difference(c, 0, 2, -2), difference(c, 1, 3, -1))


@converts("QLinearMatMul")
def matmul_of_codes(c: Node) -> Quantized:
    """Inputs a, its scale and zero point, those of b, and those of the result."""
    total = exact_product(c, difference(c, 0, 2, -2), difference(c, 3, 5, -1)).f32()
    scales = [codes_of(c, i) for i in (1, 4, 6)]
    if any(scale.rank and not scale.is_one(scale.rank - 1) for scale in scales):
        raise Unsupported("a product of codes with several scales")
    a, b, y = (scale.reshape([]) for scale in scales)
    return rounded(total * (a * b / y), codes_of(c, 7).reshape([]), c.value(7).dtype)


# ---- ONNX Runtime's matrices of codes


@converts("MatMulNBits", domain=MICROSOFT)
def matmul_of_bits(c: Node) -> Tensor:
    """Inputs x, codes, scales, zero points, group indices, bias. The matrix is not rounded to the type of x."""
    if c.has(4) or c.integer("weight_prepacked"):
        raise Unsupported("codes in another order, or packed for a device")
    matrix = matrix_of_bits(c, (1, 2, 3), c.integer("N"), c.integer("K"))
    return linear(c[0], c.tensor_of(matrix), c.get(5))


@converts("GatherBlockQuantized", domain=MICROSOFT)
def rows_of_bits(c: Node) -> Tensor:
    """Inputs codes, row numbers, scales, zero points."""
    rows, width = c.array(0).shape
    is_of_rows = c.integer("gather_axis") == 0 and c.integer("quantize_axis", 1) in (1, -1)
    if c.value(0).dtype != "uint8" or not is_of_rows:
        raise Unsupported("codes that are no bytes, or columns of a table")
    matrix = matrix_of_bits(c, (0, 2, 3), rows, width * 8 // c.integer("bits", 4))
    numbers = row_numbers(c[1], rows, from_end=True)
    return take_rows(c.tensor_of(matrix), numbers, True).to(DTYPES[c.value(2).dtype])


def matrix_of_bits(c: Node, places: tuple[int, int, int], rows: int, length: int) -> Value:
    """A matrix in float32. places: inputs with codes, scales and zero points."""
    bits, block, given = c.integer("bits", 4), c.integer("block_size", 128), c.value(places[0])
    if bits not in (4, 8) or given.dtype != "uint8":
        raise Unsupported(f"codes of {bits} bits in {given.dtype}; 4 and 8 bits are taken")
    if not (16 <= block and block & (block - 1) == 0 and rows > 0 and length > 0):
        raise Unsupported(f"blocks of {block} codes of a matrix [{rows}, {length}]")
    blocks, name = -(-length // block), getattr(given, "name", "")
    codes = c.array(places[0]).reshape(rows, -1)[:, : -(-length * bits // 8)]
    scale = c.array(places[1]).reshape(rows, blocks)
    zero = zeros_of_bits(c, places[2], rows, blocks, bits)
    if (zero == np.rint(zero)).all():
        parts = (codes, length, f"uint{bits}", scale, zero, block, "float32", name)
        matrix = coded(*parts, is_packed=bits == 4)
        if matrix is not None:
            return matrix
    c.note(f'the codes of "{name}" become {scale.dtype}: no kernel reads their form')
    array = dequantized(unpacked(codes, bits)[:, :length], scale, zero, 1, block)
    return Known(array.astype(scale.dtype), scale.dtype.name, name, True)


def zeros_of_bits(c: Node, index: int, rows: int, blocks: int, bits: int) -> np.ndarray:
    """One for each row and block; without any the middle of the codes. Packed ones fill whole bytes of a row."""
    if not c.has(index):
        return np.full((1, blocks), 2 ** (bits - 1), np.int32)
    given = c.array(index)
    if given.dtype != np.uint8:
        return given.reshape(rows, blocks).astype(np.float32)
    packed = given.reshape(rows, -(-blocks * bits // 8))
    return unpacked(packed, bits)[:, :blocks].astype(np.int32)
