"""Products of matrices, of matrices of codes and scales too, and patch embeddings."""

from __future__ import annotations

import math

import torch

from ....importing import row_ops
from ....importing.tensor import Tensor
from ....importing.types import is_real
from ....importing.unsupported import Unsupported
from .registry import Conversion, aten, converts


MAX_WINDOW = 16  # elements of a kernel along one axis; the windows are that much memory


def need_real(x: Tensor) -> None:
    if not is_real(x.dtype):
        raise Unsupported(f"products of {x.dtype}")


def has_no_terms(a: Tensor, axis: int) -> bool:
    product = a.product(axis)
    return product.is_number and product.number == 0


def multiply(c: Conversion, spec: str, a: Tensor, b: Tensor, dtype: str | None = None) -> Tensor:
    """einsum with float32 sums; the result in the operands' type, or in `dtype`."""
    need_real(a)
    return c.g.einsum(spec, a, b, dtype if dtype != a.dtype else None)


def rows_times(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor | None:
    """a [N, K] by b [K, M] as `linear`, which reads b's transpose from memory; None: b is no transpose
    of a matrix of known sizes."""
    matrix = b.transpose_of
    if matrix is None or not a.product(1).is_number or a.size(1) == 0 or not matrix.is_number:
        return None
    return row_ops.linear(a, matrix, bias)


@converts(aten("mm.default"))
def mm(c: Conversion, a: Tensor, b: Tensor) -> Tensor:
    need_real(a)
    if has_no_terms(a, 1):
        return c.number(0, c.dtype).expand(c.shape)
    return rows_times(a, b) or multiply(c, "nk,km->nm", a, b)


@converts(torch.ops.sinter.mm_in_float32.default)
def mm_in_float32(c: Conversion, a: Tensor, b: Tensor) -> Tensor:
    need_real(a)
    if has_no_terms(a, 1):
        return c.number(0, c.dtype).expand(c.shape)
    return multiply(c, "nk,km->nm", a, b, "f32")


@converts(aten("addmm.default"))
def addmm(c: Conversion, bias: Tensor, a: Tensor, b: Tensor, *, beta=1, alpha=1) -> Tensor:
    need_real(a)
    if alpha == 1 and beta == 1 and bias.rank == 1 and not bias.is_one(0) \
            and not has_no_terms(a, 1):
        result = rows_times(a, b, bias)
        if result is not None:
            return result
    return scaled_sum(c, bias, beta, "nk,km->nm", a, b, alpha)


def scaled_sum(c: Conversion, added: Tensor, beta, spec: str, a: Tensor, b: Tensor,
               alpha) -> Tensor:
    """beta * added + alpha * (a by b) in float32, rounded once. beta = 0: the result has nothing of `added`, nor
    its infinities."""
    if has_no_terms(a, a.rank - 1):
        product = c.g.number(0, "f32").expand(c.shape)
    else:
        product = multiply(c, spec, a, b, "f32")
    if alpha != 1:
        product = product * c.number(alpha, "f32")
    if beta == 0:
        return product.to(c.dtype)
    added = added.f32()
    if beta != 1:
        factor = c.number(beta, "f32")
        added = added * factor if not isinstance(beta, Tensor) else c.g.where(factor.equals(0.0), 0.0, added * factor)
    return (product + added).to(c.dtype)


@converts(aten("bmm.default"))
def bmm(c: Conversion, a: Tensor, b: Tensor) -> Tensor:
    need_real(a)
    if has_no_terms(a, 2):
        return c.number(0, c.dtype).expand(c.shape)
    if a.is_one(2):  # an outer product
        return a * b + 0.0  # a sum starts at +0
    return multiply(c, "bnk,bkm->bnm", a, b)


@converts(aten("baddbmm.default"))
def baddbmm(c: Conversion, added: Tensor, a: Tensor, b: Tensor, *, beta=1, alpha=1) -> Tensor:
    need_real(a)
    return scaled_sum(c, added, beta, "bnk,bkm->bnm", a, b, alpha)


@converts(aten("convolution.default"))
def convolution(c: Conversion, x: Tensor, weight: Tensor, bias, stride, padding, dilation,
                transposed, output_padding, groups) -> Tensor:
    """Patches, each multiplied with the whole kernel: patches of images that do not overlap, and any patches along one
    axis. Where each channel has a kernel of its own along one axis, a sum of moved inputs."""
    if is_of_channels(x, weight, transposed, groups):
        return sum_of_neighbours(c, x, weight, bias, stride[0], padding[0], dilation[0])
    if weight.rank == 3 and not transposed and groups == 1:
        patches, matrix = windows_of(x, weight, stride[0], padding[0], dilation[0])
    else:
        patches, matrix = patches_of(x, weight, stride, padding, dilation, transposed, groups)
    y = row_ops.linear(patches, matrix, bias)
    return y.permute([0, y.rank - 1] + list(range(1, y.rank - 1)))


def windows_of(x: Tensor, weight: Tensor, stride: int, padding: int,
               dilation: int) -> tuple[Tensor, Tensor]:
    """(windows [batch, places, terms], kernel [channels of the result, terms]) along one axis"""
    kernel, size = weight.size(2), x.size(2) + 2 * padding
    count = (size - dilation * (kernel - 1) - 1) // stride + 1
    if x.size(1) == 0 or kernel == 0 or count <= 0:
        raise Unsupported("a convolution of no elements")
    if kernel > MAX_WINDOW:
        raise Unsupported(f"a convolution of {kernel} neighbours")
    x = x.transpose(1, 2)
    if padding:
        zeros = x.filled(x.g.number(0, x.dtype), 1, padding)
        x = x.g.concat([zeros, x, zeros], 1)
    begins = [i * dilation for i in range(kernel)]
    windows = [x.slice(1, begin, begin + (count - 1) * stride + 1, stride) for begin in begins]
    terms = kernel * weight.size(1)
    return x.g.concat(windows, 2), weight.transpose(1, 2).reshape([weight.size(0), terms])


def is_of_channels(x: Tensor, weight: Tensor, transposed: bool, groups: int) -> bool:
    """Whether a convolution along one axis has a kernel [channels, 1, terms] for each channel."""
    return weight.rank == 3 and not transposed and groups > 1 \
        and weight.size(0) == groups == x.size(1) and weight.size(1) == 1


def sum_of_neighbours(c: Conversion, x: Tensor, weight: Tensor, bias: Tensor | None, stride: int,
                      padding: int, dilation: int) -> Tensor:
    """x [batch, channels, places], in float32"""
    terms = neighbours(x.f32(), places_of(weight, dilation), padding, c.shape[2], stride)
    total = None
    for k, term in enumerate(terms):
        product = term * term_of(weight, k)
        total = product if total is None else total + product
    if bias is not None:
        total = total + bias.f32().unsqueeze(1)
    return total.to(c.dtype)


def places_of(weight: Tensor, dilation: int) -> list[int]:
    count = weight.size(2)
    if not 0 < count <= MAX_WINDOW:
        raise Unsupported(f"a convolution of {count} neighbours")
    return [k * dilation for k in range(count)]


def term_of(weight: Tensor, k: int) -> Tensor:
    """float32 [channels, 1]: element k of each kernel [channels, 1, terms]."""
    return weight.f32().select(2, k)


def neighbours(x: Tensor, begins: list[int], padding: int, count, stride: int) -> list[Tensor]:
    """For each beginning every `stride`-th place from it on, `count` of them, of x with zeros before and
    behind its last axis. padding: zeros; below zero, elements that are left out."""
    if not isinstance(count, int) or count == 0:
        raise Unsupported("a convolution of no elements, or an unknown number of them")
    if padding < 0:
        x, padding = x.slice(-1, -padding, x.size(-1) + padding), 0
    if padding:
        zeros = x.filled(x.g.number(0, x.dtype), -1, padding)
        x = x.g.concat([zeros, x, zeros], -1)
    return [x.slice(-1, begin, begin + (count - 1) * stride + 1, stride) for begin in begins]


def gradients_of_channels(c: Conversion, grad: Tensor, x: Tensor, weight: Tensor, stride: int, padding: int,
                          dilation: int, mask) -> tuple:
    """Gradients of the input, the weight and the bias of a convolution along one axis; mask says which are wanted."""
    begins, grad, dx, dw = places_of(weight, dilation), grad.f32(), None, None
    if mask[0]:
        if stride != 1:
            raise Unsupported("the gradient of a convolution with steps")
        moved = neighbours(grad, begins, begins[-1] - padding, x.size(2), 1)
        for k, term in enumerate(reversed(moved)):
            product = term * term_of(weight, k)
            dx = product if dx is None else dx + product
        dx = dx.to(x.dtype)
    if mask[1]:
        terms = neighbours(x.f32(), begins, padding, grad.size(2), stride)
        sums = [(grad * term).sum([0, 2]).unsqueeze(1) for term in terms]
        dw = x.g.concat(sums, 1).unsqueeze(1).to(weight.dtype)
    return dx, dw, grad.sum([0, 2]).to(weight.dtype) if mask[2] else None


def patches_of(x: Tensor, weight: Tensor, stride, padding, dilation, transposed,
               groups) -> tuple[Tensor, Tensor]:
    """(patches [batch, places ..., terms], kernel [channels of the result, terms])"""
    kernel = [weight.size(axis) for axis in range(2, weight.rank)]
    strides = list(stride) * (len(kernel) if len(stride) == 1 else 1)
    if transposed or groups != 1 or any(padding) or any(d != 1 for d in dilation) \
            or strides != kernel:
        raise Unsupported("a convolution whose patches overlap or are padded")
    channels = x.size(1)
    if channels == 0:
        raise Unsupported("a convolution of no channels")
    counts = [x.size(axis) // k for axis, k in zip(range(2, x.rank), kernel)]
    for axis, (count, k) in enumerate(zip(counts, kernel), 2):
        x = x.slice(axis, 0, count * k)
    for axis, (count, k) in reversed(list(enumerate(zip(counts, kernel), 2))):
        x = x.unflatten(axis, [count, k])
    places = list(range(2, x.rank, 2))
    x = x.permute([0] + places + [1] + [axis + 1 for axis in places])
    terms = channels * math.prod(kernel)
    return x.flatten(1 + len(places), -1), weight.reshape([weight.size(0), terms])


@converts(aten("convolution_backward.default"))
def convolution_backward(c: Conversion, grad: Tensor, x: Tensor, weight: Tensor, bias_sizes, stride,
                         padding, dilation, transposed, output_padding, groups, mask) -> tuple:
    """Gradients of a patch embedding, and of a convolution of each channel. The input's gradient is not needed if it is
    an image."""
    if is_of_channels(x, weight, transposed, groups):
        return gradients_of_channels(c, grad, x, weight, stride[0], padding[0], dilation[0], mask)
    patches, _ = patches_of(x, weight, stride, padding, dilation, transposed, groups)
    if mask[0]:
        raise Unsupported("the gradient of a convolution's input")
    grad = grad.permute([0] + list(range(2, grad.rank)) + [1])  # [batch, places ..., channels]
    letters = "abcdefgh"[:grad.rank - 1]
    dw = multiply(c, f"{letters}m,{letters}k->mk", grad, patches)
    db = grad.sum(list(range(grad.rank - 1))) if mask[2] else None
    return None, dw.reshape(weight.sizes) if mask[1] else None, db


@converts(torch.ops.sinter.dequantize.default)
def dequantize(c: Conversion, packed: Tensor, form: str, length: int) -> Tensor:
    return row_ops.dequantize(packed, form, length)


@converts(torch.ops.sinter.linear_of_codes.default)
def linear_of_codes(c: Conversion, x: Tensor, packed: Tensor, bias: Tensor | None, form: str) -> Tensor:
    return row_ops.linear(x, row_ops.dequantize(packed, form, x.size(x.rank - 1)), bias)
