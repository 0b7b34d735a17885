"""Ops that make constants, and arithmetic of shapes, which is computed while a model is imported."""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Sequence

import numpy as np

from ...importing.unsupported import Unsupported
from ..registry import (
    MAX_FOLDED,
    Known,
    Node,
    Results,
    axis_in,
    converts,
    count_of,
    folds,
    known,
    shape_of,
)
from ..sizes import Size, quotient

MAX_RANGE = 2**24  # numbers of a range without sizes


@converts("Constant")
def constant(c: Node) -> Known:
    for name in ("value", "value_int", "value_ints", "value_float", "value_floats"):
        if name in c.attributes:
            value = c.attributes[name]
            dtype = "float32" if "float" in name else "int64"
            return value if isinstance(value, Known) else Known(np.asarray(value, dtype), dtype)
    raise Unsupported("a constant of texts or a sparse one")


@converts("ConstantOfShape")
def constant_of_shape(c: Node) -> Results:
    value, sizes = c.attributes.get("value"), c.ints(0)
    one = value if isinstance(value, Known) else Known(np.zeros(1, np.float32), "float32")
    is_known = all(isinstance(size, int) for size in sizes)
    if is_known and count_of(sizes) <= MAX_FOLDED and one.is_small:
        return one.like(np.broadcast_to(one.array.reshape(()), sizes))
    return c.tensor_of(one).reshape([]).expand(sizes)


@converts("Shape")
def shape(c: Node) -> Known:
    sizes = shape_of(c.value(0))
    return known(sizes[slice(c.integer("start"), c.attributes.get("end"))])


converts("Size")(lambda c: known(count_of(shape_of(c.value(0)))))


@converts("Range")
def range_(c: Node) -> Results:
    """Places of an axis, i32 or i64; other numbers where all are constants."""
    start, limit, delta = (plain(c.array(i).reshape(-1)[0]) for i in range(3))
    dtype = c.value(0).dtype
    if any(isinstance(one, Size) for one in (start, limit, delta)):
        count = quotient(limit - start, delta)
    else:
        count = max(0, math.ceil((limit - start) / delta))
        is_integer = dtype in ("int32", "int64")
        count = max(0, -((start - limit) // delta)) if is_integer else count
        if count > MAX_RANGE:
            raise Unsupported(f"a range of {count} numbers")
        if count <= MAX_FOLDED or not is_integer:
            return Known(np.arange(start, limit, delta).astype(np.dtype(dtype)), dtype)
    places = c.g.iota(count, "i32" if dtype == "int32" else "i64")
    if delta == 1 and start == 0:
        c.origins.axes[places] = 0
    places = places if delta == 1 else places * int(delta)
    return places if start == 0 else places + c.g.scalar(start, places.dtype)


# ---- folding


def elementwise(function: Callable[..., Any]) -> Callable[[Node], Known]:
    """A fold of integers and sizes, one by one."""

    def fold(c: Node) -> Known:
        arrays = [c.array(i) for i in range(len(c.inputs))]
        need_few(np.broadcast_shapes(*(array.shape for array in arrays)))
        values = np.frompyfunc(lambda *one: function(c, *map(plain, one)), len(arrays), 1)(*arrays)
        values = np.asarray(values, dtype=object)
        is_truth = all(isinstance(one, (bool, np.bool_)) for one in values.flat) and values.size > 0
        return known(values, "bool" if is_truth else c.value(len(arrays) - 1).dtype)

    return fold


def need_few(sizes: Sequence[int]) -> None:
    """Refuses a result of more elements than constants may have that are computed here."""
    if math.prod(sizes) > MAX_FOLDED:
        raise Unsupported(f"a constant of {math.prod(sizes)} elements")


def plain(number: Any) -> Any:
    return number.item() if hasattr(number, "item") else number


def sign(c: Node, size: Any) -> int:
    result = c.extents.sign(size)
    if result is None:
        raise Unsupported(f"a comparison that the size {size} decides only when the model runs")
    return result


def truncated(c: Node, a: Any, b: Any) -> Any:
    if isinstance(a, Size) or isinstance(b, Size):
        return quotient(a, b)
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(c: Node, a: Any, b: Any) -> Any:
    if isinstance(a, Size) or isinstance(b, Size):
        quotient(a, b)
        return 0
    if b == 0:
        return a
    return a - truncated(c, a, b) * b if c.integer("fmod") else a % b


FOLDED: dict[str, Callable[..., Any]] = {
    "Add": lambda c, a, b: a + b,
    "Sub": lambda c, a, b: a - b,
    "Mul": lambda c, a, b: a * b,
    "Div": truncated,
    "Mod": remainder,
    "Neg": lambda c, a: -a,
    "Abs": lambda c, a: a if sign(c, a) >= 0 else -a,
    "Equal": lambda c, a, b: sign(c, a - b) == 0,
    "Less": lambda c, a, b: sign(c, a - b) < 0,
    "LessOrEqual": lambda c, a, b: sign(c, a - b) <= 0,
    "Greater": lambda c, a, b: sign(c, a - b) > 0,
    "GreaterOrEqual": lambda c, a, b: sign(c, a - b) >= 0,
    "And": lambda c, a, b: bool(a and b),
    "Or": lambda c, a, b: bool(a or b),
    "Xor": lambda c, a, b: bool(a) != bool(b),
    "Not": lambda c, a: not a,
    "Where": lambda c, condition, a, b: a if condition else b,
    "Max": lambda c, *given: extreme(c, given, 1),
    "Min": lambda c, *given: extreme(c, given, -1),
}


def extreme(c: Node, given: tuple[Any, ...], way: int) -> Any:
    return functools.reduce(lambda a, b: b if sign(c, b - a) * way > 0 else a, given)


for _name, _function in FOLDED.items():
    folds(_name)(elementwise(_function))


@folds("Cast")
def fold_cast(c: Node) -> Known:
    array, dtype = c.array(0), c.text("to")
    if array.dtype != object:
        return Known(array.astype(np.dtype(dtype)), dtype, getattr(c.value(0), "name", ""))
    if dtype not in ("int32", "int64"):
        raise Unsupported("sizes as other numbers")
    return Known(array, dtype)


@folds("Concat")
def fold_concat(c: Node) -> Known:
    arrays = [c.array(i) for i in range(len(c.inputs))]
    return known(np.concatenate(arrays, c.integer("axis")), c.value(0).dtype)


@folds("Gather")
def fold_gather(c: Node) -> Known:
    array, index = c.array(0), c.array(1)
    axis = axis_in(c.integer("axis"), array.ndim)
    size = array.shape[axis]
    if index.dtype == object or index.size and not (-size <= index.min() and index.max() < size):
        raise Unsupported(f"an index outside of an axis of {size} elements")
    need_few([index.size, array.size // max(size, 1)])
    return known(np.take(array, index, axis), c.value(0).dtype)


@folds("Slice")
def fold_slice(c: Node) -> Known:
    array = c.array(0)
    begins, ends = c.ints(1, "starts"), c.ints(2, "ends")
    axes = c.ints(3, "axes") or list(range(len(begins)))
    steps = c.ints(4, "steps") or [1] * len(begins)
    if any(isinstance(one, Size) for one in [*begins, *ends, *axes, *steps]):
        raise Unsupported("a slice of sizes whose ends are known only when the model runs")
    for begin, end, axis, step in zip(begins, ends, axes, steps):
        last = None if step < 0 and end < -array.shape[axis] else end
        ways = [slice(None)] * array.ndim
        ways[axis_in(axis, array.ndim)] = slice(begin, last, step)
        array = array[tuple(ways)]
    return known(array, c.value(0).dtype)


@folds("Expand")
def fold_expand(c: Node) -> Known:
    sizes = c.ints(1)
    if any(isinstance(one, Size) for one in sizes) or count_of(sizes) > MAX_FOLDED:
        raise Unsupported("a constant of unknown shape")
    array = c.array(0)
    return known(np.broadcast_to(array, np.broadcast_shapes(array.shape, sizes)), c.value(0).dtype)


@folds("ReduceProd", "ReduceSum")
def fold_reduction(c: Node) -> Known:
    array = c.array(0)
    if array.ndim != 1 or c.has(1) and c.ints(1) not in ([0], [-1]):
        raise Unsupported("a reduction of constants along other axes")
    combined = count_of if c.op == "ReduceProd" else sum
    total = combined([plain(one) for one in array])
    return known([total] if c.integer("keepdims", 1) else total, c.value(0).dtype)


@folds("OneHot")
def fold_one_hot(c: Node) -> Known:
    index, depth, values = c.array(0), int(c.array(1).reshape(-1)[0]), c.array(2)
    need_few([index.size, depth])
    if index.dtype == object or c.integer("axis", -1) not in (-1, index.ndim):
        raise Unsupported("a choice by sizes, or along another axis")
    chosen = (index % depth)[..., None] == np.arange(depth)
    inside = (index >= -depth) & (index < depth)
    return known(np.where(chosen & inside[..., None], values[1], values[0]), c.value(2).dtype)
