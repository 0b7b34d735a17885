"""Products of matrices. Those by a constant matrix are `linear` of the transposed weight."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter

from ...facts import max_operands
from ...importing import row_ops
from ...importing.tensor import Tensor
from ...importing.unsupported import Unsupported
from ..codes import Coded
from ..registry import Known, Node, converts, shape_of
from .movement import padded

LETTERS = "abcdefghijuvwxyz"  # of the axes before the last two


@converts("MatMul")
def matmul(c: Node) -> Tensor:
    """As NumPy's: leading axes broadcast, an operand of one axis is a row or a column. The factors of
    both operands are multiplied with float32 sums."""
    a, rank = c[0], len(shape_of(c.value(1)))
    c.need_real(a)
    if a.rank == 0 or rank == 0:
        raise Unsupported("a product of a number")
    if a.rank == 1:
        a = a.unsqueeze(0)
    matrix = transposed_matrix(c, 1) if rank == 2 and has_terms(a) else None
    if matrix is not None:
        result = row_ops.linear(a, matrix)
        c.origins.linears[result] = a, matrix
    elif a in c.origins.factors and c[1] in c.origins.factors:
        (a, factor), (b, other) = c.origins.factors[a], c.origins.factors[c[1]]
        result = (wide_product(c, a, b) * (factor * other)).to(a.dtype)
    else:
        result = product(c, a, c[1].unsqueeze(1) if rank == 1 else c[1])
    gone = [result.rank - 2] if len(shape_of(c.value(0))) == 1 else []
    gone += [result.rank - 1] if rank == 1 else []
    return result.squeeze(gone) if gone else result


def has_terms(rows: Tensor) -> bool:
    """Whether a product of these rows by a matrix is a `linear`, whose sums have a known number of terms."""
    terms = rows.product(rows.rank - 1)
    return terms.is_number and terms.number > 0


def transposed_matrix(c: Node, index: int) -> Tensor | None:
    """The transpose of an operand: of a constant as a weight of that form, of a transpose what it is of."""
    value = c.value(index)
    if isinstance(value, Known):
        return c.tensor_of(value.like(value.array.T))
    if isinstance(value, Coded):
        return c.tensor_of(value.permute([1, 0]))
    matrix = c.tensor_of(value).transpose_of
    return matrix if matrix is not None and matrix.is_number else None


def product(c: Node, a: Tensor, b: Tensor, dtype: str | None = None) -> Tensor:
    """a [..., N, K] by b [..., K, M], whose leading axes broadcast; an axis of size 1 is left out."""
    rank = max(a.rank, b.rank) - 2
    letters = LETTERS[:rank]
    names, parts = [], []
    for x, other, rest in ((a, b, "nk"), (b, a, "km")):
        lead = rank - (x.rank - 2)
        gone = [
            i for i in range(x.rank - 2) if x.is_one(i) and not is_one(other, i + lead - rank - 2)
        ]
        names.append("".join(letters[lead + i] for i in range(x.rank - 2) if i not in gone) + rest)
        parts.append(x.squeeze(gone) if gone else x)
    return c.g.einsum(f"{names[0]},{names[1]}->{letters}nm", parts[0], parts[1], dtype)


def wide_product(c: Node, a: Tensor, b: Tensor) -> Tensor:
    """The same in float32."""
    return product(c, a, b, None if a.dtype == "f32" else "f32")


def is_one(x: Tensor, axis: int) -> bool:
    """Whether an axis, counted from the end, has size 1 or is missing."""
    return -axis > x.rank or x.is_one(axis)


@converts("Gemm")
def gemm(c: Node) -> Tensor:
    """alpha * A' B' + beta * C."""
    a, alpha, beta, bias = c[0], c.real("alpha", 1.0), c.real("beta", 1.0), c.get(2)
    c.need_real(a)
    a = a.transpose() if c.integer("transA") else a
    plain = bias is None or bias.rank == 1 and not bias.is_one(0) and beta == 1.0
    if plain and alpha == 1.0 and has_terms(a):
        matrix = c[1] if c.integer("transB") else transposed_matrix(c, 1)
        if matrix is not None:
            return row_ops.linear(a, matrix, bias)
    b = c[1].transpose() if c.integer("transB") else c[1]
    result = wide_product(c, a, b)
    result = result if alpha == 1.0 else result * alpha
    if bias is not None and beta != 0.0:
        result = result + (bias.f32() if beta == 1.0 else bias.f32() * beta)
    return result.to(a.dtype)


@converts("Einsum")
def einsum(c: Node) -> Tensor:
    spec = c.text("equation").replace(" ", "")
    given, arrow, result = spec.partition("->")
    names, counts = given.split(","), Counter(given + result)
    fits = arrow and "." not in spec and len(names) == 2 and counts.pop(",") == 1
    if not fits or min(counts.values()) < 2 or any(len(set(name)) < len(name) for name in names):
        raise Unsupported(
            f"the einsum {spec}; two operands whose letters stand in two places each are wanted"
        )
    c.need_real(c[0])
    return c.g.einsum(spec, c[0], c[1])


@converts("Conv")
def conv(c: Node) -> Tensor:
    """Windows, each multiplied with the whole kernel; with a kernel for each channel a sum over its places."""
    x, weight = c[0], c[1]
    kernel, groups = weight.sizes[2:], c.integer("group", 1)
    is_of_channels = groups == weight.size(0) == x.size(1) and groups > 1
    is_padded = c.text("auto_pad", "NOTSET") not in ("NOTSET", "VALID")
    fits = is_of_channels or groups == 1
    if is_padded or not fits or math.prod(kernel) > max_operands("concat"):
        text = f"a convolution with a kernel of {kernel}, {groups} groups or automatic padding"
        raise Unsupported(text)
    parts = windows(c, x.f32() if is_of_channels else x, kernel)
    bias = c.get(2)
    if is_of_channels:
        taps, channels = weight.f32().flatten(1, -1), [groups, *[1] * len(kernel)]
        terms = [part * taps.select(1, i).reshape(channels) for i, part in enumerate(parts)]
        total = functools.reduce(Tensor.__add__, terms)
        total = total if bias is None else total + bias.f32().reshape(channels)
        return total.to(x.dtype)
    rows = c.g.concat([part.unsqueeze(2) for part in parts], 2).flatten(1, 2)
    rows = rows.permute([0, *range(2, rows.rank), 1])
    y = row_ops.linear(rows, weight.flatten(1, -1), bias)
    return y.permute([0, y.rank - 1, *range(1, y.rank - 1)])


def windows(c: Node, x: Tensor, kernel: list[int]) -> list[Tensor]:
    """For each place of the kernel the elements of x [batch, channels, ...] that it meets."""
    rank = len(kernel)
    strides, dilations = (
        [int(one) for one in c.attributes.get(name) or [1] * rank]
        for name in ("strides", "dilations")
    )
    pads = [int(one) for one in c.attributes.get("pads") or [0] * (2 * rank)]
    for axis in range(rank):
        x = padded(x, axis + 2, pads[axis], pads[axis + rank], c.g.number(0, x.dtype))
    spans = []
    for axis, (width, dilation, stride) in enumerate(zip(kernel, dilations, strides)):
        places = (x.size(axis + 2) - dilation * (width - 1) - 1) // stride
        spans.append(places * stride + 1)
    if min(spans) < 1:
        raise Unsupported(f"a kernel of {kernel} larger than its input {x}")
    parts = []
    for place in itertools.product(*map(range, kernel)):
        part = x
        for axis, i in enumerate(place):
            begin = i * dilations[axis]
            part = part.slice(axis + 2, begin, begin + spans[axis], strides[axis])
        parts.append(part)
    return parts
