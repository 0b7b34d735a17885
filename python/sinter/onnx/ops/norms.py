"""Softmax and norms of rows."""

from __future__ import annotations

from ...importing import row_ops
from ...importing.row_ops import index_of, take_rows
from ...importing.tensor import Tensor
from ...importing.unsupported import Unsupported
from ..registry import MICROSOFT, Node, converts, count_of, shape_of


@converts("Softmax", since=13)
def softmax(c: Node) -> Tensor:
    return row_ops.softmax(c[0], c.axis(c[0].rank, -1))


@converts("Softmax")
def softmax_of_matrix(c: Node) -> Tensor:
    """Before opset 13: over all axes from `axis` on."""
    x = c[0]
    axis, sizes = c.axis(x.rank, 1), shape_of(c[0])
    rows = x.reshape([count_of(sizes[:axis]), count_of(sizes[axis:])])
    return row_ops.softmax(rows, 1).reshape(sizes)


@converts("LogSoftmax", since=13)
def log_softmax(c: Node) -> Tensor:
    x = c[0].f32()
    axis = c.axis(x.rank, -1)
    moved = x - x.max([axis], True)
    return (moved - moved.apply("exp").sum([axis], True).apply("log")).to(c[0].dtype)


@converts("LayerNormalization")
def layer_norm(c: Node) -> list[Tensor | None]:
    """Over the axes from `axis` on, with the mean and the inverse deviation where they are wanted."""
    x, weight, bias = c[0], c[1], c.get(2)
    axis, eps = c.axis(x.rank, -1), c.real("epsilon", 1e-5)
    own = [weight] if bias is None else [weight, bias]
    if not c.uses(1) and not c.uses(2) and all(fits_rows(x, axis, one) for one in own):
        rows = x.flatten(axis, -1) if axis < x.rank - 1 else x
        shift = None if bias is None else bias.flatten()
        return [row_ops.layer_norm(rows, weight.flatten(), shift, eps).reshape(shape_of(x))]
    axes = list(range(axis, x.rank))
    average = x.f32().mean(axes, True)
    centered = x.f32() - average
    scale = inverse_deviation(centered, axes, eps)
    y = centered * scale * weight.f32()
    y = y if bias is None else y + bias.f32()
    return [y.to(x.dtype), average, scale]


def inverse_deviation(centered: Tensor, axes: list[int], eps: float) -> Tensor:
    return ((centered * centered).mean(axes, True) + eps).apply("rsqrt")


def fits_rows(x: Tensor, axis: int, weight: Tensor) -> bool:
    """Whether a weight has the type of x and its sizes from `axis` on."""
    return (
        weight.dtype == x.dtype
        and weight.shape == x.shape[axis:]
        and all(size.is_number and size.number > 0 for size in weight.shape)
    )


@converts("RMSNormalization", "SimplifiedLayerNormalization")
@converts("SimplifiedLayerNormalization", domain=MICROSOFT)
def rms_norm(c: Node) -> list[Tensor | None]:
    """Normalized in float32, rounded, then multiplied by the weight."""
    if c.uses(1):
        raise Unsupported("the inverse deviation as a result")
    return [rms_rows(c[0], c[1], c.axis(c[0].rank, -1), c.real("epsilon", 1e-5))]


def rms_rows(x: Tensor, weight: Tensor, axis: int, eps: float) -> Tensor:
    if fits_rows(x, axis, weight):
        rows = x.flatten(axis, -1) if axis < x.rank - 1 else x
        return row_ops.rms_norm(rows, weight.flatten(), eps).reshape(shape_of(x))
    wide = x.f32()
    scale = inverse_deviation(wide, list(range(axis, x.rank)), eps)
    return (wide * scale).to(weight.dtype) * weight


@converts("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_rms_norm(c: Node) -> list[Tensor | None]:
    """Inputs x, skip, weight, bias; results are the norm and, as the fourth, the sum."""
    total = sum_of_skip(c, 3)
    return [rms_rows(total, c[2], total.rank - 1, c.real("epsilon", 1e-12)), None, None, total]


@converts("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(c: Node) -> list[Tensor | None]:
    """Inputs x, skip, weight, shift, bias."""
    total = sum_of_skip(c, 4)
    return [row_ops.layer_norm(total, c[2], c.get(3), c.real("epsilon", 1e-12)), None, None, total]


@converts("EmbedLayerNormalization", domain=MICROSOFT)
def embedding_norm(c: Node) -> list[Tensor | None]:
    """Inputs ids, segments, tables of words, places and segments, weight, shift, mask, places. The second result is the
    number of tokens of each sequence that the mask shows."""
    batch, tokens = shape_of(c[0])
    places = c[8] if c.has(8) else c.g.iota(tokens).unsqueeze(0)
    rows = take_rows(c[2], index_of(c[0]), False)
    total = rows + take_rows(c[3], index_of(places), False)
    if c.has(1):
        total = total + take_rows(c[4], index_of(c[1]), False)
    shown = index_of(c[7]).sum([1]) if c.has(7) else c.g.full([batch], 0, "i32")
    return [row_ops.layer_norm(total, c[5], c[6], c.real("epsilon", 1e-12)), shown, total]


def sum_of_skip(c: Node, bias: int) -> Tensor:
    if c.uses(1) or c.uses(2):
        raise Unsupported("the mean or the inverse deviation as a result")
    total = c[0] + c[1]
    return total + c[bias] if c.has(bias) else total


@converts("GroupNormalization", since=21)
def group_norm(c: Node) -> Tensor:
    x, groups, sizes = c[0], c.integer("num_groups"), shape_of(c[0])
    rows = x.f32().reshape([sizes[0], groups, count_of(sizes[1:]) // groups])
    centered = rows - rows.mean([2], True)
    scale = inverse_deviation(centered, [2], c.real("epsilon", 1e-5))
    y = (centered * scale).reshape(sizes)
    weight, bias = (c[i].f32().reshape([sizes[1], *[1] * (len(sizes) - 2)]) for i in (1, 2))
    return (y * weight + bias).to(x.dtype)
