"""Ops that move or repeat elements."""

from __future__ import annotations

from typing import Any, Sequence

from ...importing.row_ops import gather
from ...importing.tensor import Tensor
from ...importing.unsupported import Unsupported
from ..codes import Coded
from ..registry import Known, Node, Results, Value, axis_in, converts, count_of, shape_of
from ..sizes import Size, quotient

converts("Identity")(lambda c: c.value(0))


@converts("Dropout")
def dropout(c: Node) -> Results:
    """The identity, since no model is trained here; the mask is true everywhere."""
    if c.has(2) and bool(c.array(2)):
        raise Unsupported("a dropout in training")
    return [c.value(0), c.g.full(shape_of(c.value(0)), True, "i1") if c.uses(1) else None]


# ---- other shapes of the same elements; of a constant views


def reshaped(c: Node, sizes: Sequence[Any]) -> Value:
    x = c.value(0)
    if isinstance(x, Known) and all(isinstance(size, int) for size in sizes):
        return x.like(x.array.reshape(tuple(sizes)))
    return c[0].reshape(sizes)


@converts("Reshape")
def reshape(c: Node) -> Value:
    own, sizes = shape_of(c.value(0)), c.ints(1, "shape")
    if not c.integer("allowzero"):
        if any(size == 0 and i >= len(own) for i, size in enumerate(sizes)):
            text = f"a shape {sizes} with a 0 where the tensor of {len(own)} axes has none"
            raise Unsupported(text)
        sizes = [own[i] if size == 0 else size for i, size in enumerate(sizes)]
    if -1 in sizes:
        rest = quotient(count_of(own), count_of([size for size in sizes if size != -1]))
        sizes = [rest if size == -1 else size for size in sizes]
    if count_of(sizes) != count_of(own):
        raise Unsupported(f"{count_of(own)} elements as a shape of {count_of(sizes)}")
    return reshaped(c, sizes)


@converts("Flatten")
def flatten(c: Node) -> Value:
    sizes = shape_of(c.value(0))
    axis = c.integer("axis", 1)
    axis += len(sizes) if axis < 0 else 0
    return reshaped(c, [count_of(sizes[:axis]), count_of(sizes[axis:])])


@converts("Squeeze")
def squeeze(c: Node) -> Value:
    sizes = shape_of(c.value(0))
    axes = c.axes(len(sizes)) or [i for i, size in enumerate(sizes) if size == 1]
    if any(sizes[axis] != 1 for axis in axes):
        text = f"to squeeze axes {axes} of a tensor of {len(sizes)} axes, not all of size 1"
        raise Unsupported(text)
    return reshaped(c, [size for i, size in enumerate(sizes) if i not in axes])


@converts("Unsqueeze")
def unsqueeze(c: Node) -> Value:
    sizes = shape_of(c.value(0))
    for axis in sorted(c.axes(len(sizes) + len(c.ints(1, "axes")))):
        sizes.insert(axis, 1)
    return reshaped(c, sizes)


@converts("Transpose")
def transpose(c: Node) -> Value:
    x = c.value(0)
    rank = len(shape_of(x))
    order = [axis_in(axis, rank) for axis in c.attributes.get("perm") or reversed(range(rank))]
    if sorted(order) != list(range(rank)):
        raise Unsupported(f"the order of axes {order} for a tensor of {rank} axes")
    if isinstance(x, Known):
        return x.like(x.array.transpose(order))
    return x.permute(order) if isinstance(x, Coded) else c[0].permute(order)


# ---- repetitions


def broadcast_sizes(c: Node, own: Sequence[Any], wanted: Sequence[Any]) -> list[Any]:
    """The sizes to which two shapes broadcast."""
    rank = max(len(own), len(wanted))
    own, wanted = [1] * (rank - len(own)) + list(own), [1] * (rank - len(wanted)) + list(wanted)
    for a, b in zip(own, wanted):
        if a != b and 1 not in (a, b):
            raise Unsupported(f"sizes {a} and {b}, which are not known to broadcast")
    return [a if b == 1 else b for a, b in zip(own, wanted)]


@converts("Expand")
def expand(c: Node) -> Tensor:
    return c[0].expand(broadcast_sizes(c, shape_of(c.value(0)), c.ints(1)))


@converts("Tile")
def tile(c: Node) -> Tensor:
    x, counts = c[0], c.ints(1)
    sizes = shape_of(x)
    x = x.reshape([part for size in sizes for part in (1, size)])
    x = x.expand([part for count, size in zip(counts, sizes) for part in (count, size)])
    return x.reshape([count * size for count, size in zip(counts, sizes)])


# ---- parts


def along(x: Tensor, rows: Tensor, axis: int) -> Tensor:
    """A tensor of one axis as one that broadcasts to x, whose axis `axis` it is."""
    for i in range(x.rank):
        if i != axis:
            rows = rows.unsqueeze(i)
    return rows


def at_places(x: Tensor, axis: int, begin: Any, count: Any, step: int = 1) -> Tensor:
    """The elements begin, begin + step, ... of an axis, `count` of them, by their numbers."""
    places = x.g.iota(count)
    places = places if step == 1 else places * step
    places = places if isinstance(begin, int) and begin == 0 else places + x.g.scalar(begin, "i32")
    return gather(x, along(x, places, axis), axis)


def place_in(c: Node, place: Any, size: Any, is_end: bool) -> Any:
    """An end of a slice with a step above 0: from the back if it is negative, and inside."""
    sign = c.extents.sign(place)
    if sign is None:
        raise Unsupported(f"a slice that ends at {place}, which may be negative")
    place = place + size if sign < 0 else place
    beyond, below = c.extents.sign(place - size), c.extents.sign(place)
    if below == -1:
        return 0
    if beyond is None and is_end and isinstance(size, Size):
        raise Unsupported(
            f"a slice that ends at {place} of {size} elements, of which one may be fewer"
        )
    return size if beyond == 1 else place


def sliced(c: Node, x: Tensor, axis: int, begin: Any, end: Any, step: Any) -> Tensor:
    size = shape_of(x)[axis]
    if not isinstance(step, int) or step == 0:
        raise Unsupported(f"a slice with steps of {step}")
    if all(isinstance(one, int) for one in (size, begin, end)):
        places = range(*slice(begin, None if step < 0 and end < -size else end, step).indices(size))
        if not places:
            return x.slice(axis, 0, 0)
        if step < 0:
            return at_places(x, axis, places.start, len(places), step)
        return x.slice(axis, places.start, places.stop, step)
    most, is_known = c.extents.bounds(size)[1], isinstance(begin, int) and isinstance(end, int)
    if step == -1 and is_known and (begin == -1 or begin >= most - 1) and end < -most:
        return at_places(x, axis, size - 1, size, step)
    if step != 1:
        raise Unsupported("a slice with steps along an axis whose ends only the call knows")
    begin, end = place_in(c, begin, size, False), place_in(c, end, size, True)
    return x if begin == 0 and end == size else at_places(x, axis, begin, end - begin)


@converts("Slice")
def slice_(c: Node) -> Tensor:
    x = c[0]
    begins, ends = c.ints(1, "starts"), c.ints(2, "ends")
    axes = c.axes(x.rank, 3) or list(range(len(begins)))
    steps = c.ints(4, "steps") or [1] * len(begins)
    for axis, begin, end, step in zip(axes, begins, ends, steps):
        x = sliced(c, x, axis, begin, end, step)
    return x


@converts("Split")
def split(c: Node) -> list[Tensor]:
    x = c[0]
    axis = c.axis(x.rank)
    sizes, count = c.ints(1, "split"), len(c.outputs)
    if not sizes:
        part = -(-x.size(axis) // count)
        sizes = [part] * (count - 1) + [x.size(axis) - part * (count - 1)]
    if sum(sizes) != x.size(axis) or len(sizes) != count:
        raise Unsupported(
            f"parts of {sizes} elements of an axis of {x.size(axis)}, for {count} outputs"
        )
    ends = [sum(sizes[:i]) for i in range(count + 1)]
    return [x.slice(axis, begin, end) for begin, end in zip(ends, ends[1:])]


@converts("Concat")
def concat(c: Node) -> Tensor:
    parts = c.tensors()
    return joined(parts, c.axis(parts[0].rank))


def joined(parts: Sequence[Tensor], axis: int) -> Tensor:
    """The tensors one behind the other; along a dynamic dim each element is looked up."""
    g = parts[0].g
    filled = [x for x in parts if not (x.product(axis).is_number and x.size(axis) == 0)]
    if len(filled) < 2 or all(x.product(axis).is_number for x in filled):
        return g.concat(filled or parts[:1], axis)
    sizes = [shape_of(x)[axis] for x in filled]
    place, begin = g.iota(sum(sizes)), sizes[0]
    first = filled[0]
    result = gather(first, along(first, place.minimum(first.extent(axis) - 1), axis), axis)
    for x, size in zip(filled[1:], sizes[1:]):
        own = place - g.scalar(begin, "i32")
        inside = own.maximum(0).minimum(x.extent(axis) - 1)
        taken = gather(x, along(x, inside, axis), axis)
        result = g.where(along(x, own.less(0), axis), result, taken)
        begin = begin + size
    return result


@converts("Pad")
def pad(c: Node) -> Tensor:
    x, mode = c[0], c.text("mode", "constant")
    pads = c.ints(1, "pads" if c.opset >= 2 else "paddings")
    axes = c.axes(x.rank, 3) or list(range(x.rank))
    number = c[2].reshape([]) if c.has(2) else c.g.number(c.real("value"), x.dtype)
    for axis, before, behind in zip(axes, pads, pads[len(axes) :]):
        if mode == "constant":
            x = padded(x, axis, before, behind, number)
        else:
            x = moved_inside(x, axis, before, behind, mode)
    return x


def moved_inside(x: Tensor, axis: int, before: int, behind: int, mode: str) -> Tensor:
    """An axis whose places outside repeat its end, or go back, or begin anew."""
    size = x.size(axis)
    place = x.g.iota(size + before + behind) - before
    if mode == "edge":
        place = place.maximum(0).minimum(size - 1)
    elif mode == "wrap":
        place = x.g.map("mod_floor", place, size)
    else:
        last = max(size - 1, 1)
        place = -((x.g.map("mod_floor", place, 2 * last) - last).apply("abs")) + last
    return gather(x, along(x, place, axis), axis)


def padded(x: Tensor, axis: int, before: int, behind: int, number: Tensor) -> Tensor:
    if before < 0 or behind < 0:
        x = x.slice(axis, max(0, -before), x.size(axis) - max(0, -behind))
    first, last = ([x.filled(number, axis, n)] if n > 0 else [] for n in (before, behind))
    return joined([*first, x, *last], axis)


@converts("Trilu")
def trilu(c: Node) -> Tensor:
    x = c[0]
    last = int(c.array(1)) if c.has(1) else 0
    diagonal = x.places(-1) - x.places(-2)
    kept = diagonal.greater_equal(last) if c.integer("upper", 1) else diagonal.less_equal(last)
    return c.g.where(kept, x, c.g.number(0, x.dtype))


@converts("DepthToSpace", "SpaceToDepth")
def depth(c: Node) -> Tensor:
    x, block = c[0], c.integer("blocksize")
    batch, channels, height, width = shape_of(x)
    is_first = c.text("mode", "DCR") == "DCR"  # the places in a block come before the channels
    if c.op == "SpaceToDepth":
        x = x.reshape([batch, channels, height // block, block, width // block, block])
        return x.permute([0, 3, 5, 1, 2, 4] if is_first else [0, 1, 3, 5, 2, 4]).reshape(
            [batch, channels * block * block, height // block, width // block]
        )
    rest = channels // (block * block)
    if is_first:
        x = x.reshape([batch, block, block, rest, height, width]).permute([0, 3, 4, 1, 5, 2])
    else:
        x = x.reshape([batch, rest, block, block, height, width]).permute([0, 1, 4, 2, 5, 3])
    return x.reshape([batch, rest, height * block, width * block])
