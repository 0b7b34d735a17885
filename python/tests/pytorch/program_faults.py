"""Faults that are planted in conversions, to see that random programs find them."""

from __future__ import annotations

import contextlib
from typing import Callable, Iterable, Iterator

import torch
from program_runs import run_program
from programs import Program
from sinter.pytorch.convert.ops import CONVERSIONS

aten = torch.ops.aten


def shape_of(c, argument: int = 0) -> list:
    return list(c.node.args[argument].meta["val"].shape)


def other_axis(shape: list, axis: int) -> int:
    """Another axis of the same size, or the axis itself."""
    axis %= max(len(shape), 1)
    return next((i for i, size in enumerate(shape) if i != axis and size == shape[axis]), axis)


def softmax_axis(function):
    return lambda c, x, axis, *rest: function(c, x, len(shape_of(c)) - 1 if shape_of(c) else axis,
                                              *rest)


def permute_inverse(function):
    def wrong(c, x, order, *rest):
        shape = shape_of(c)
        order = [axis % len(shape) for axis in order]
        inverse = [order.index(axis) for axis in range(len(order))]
        same = [shape[axis] for axis in inverse] == [shape[axis] for axis in order]
        return function(c, x, inverse if same else order, *rest)
    return wrong


def slice_step(function):
    def wrong(c, x, axis=0, begin=None, end=None, step=1):
        if step > 1 and ((end or 0) - (begin or 0)) % step == 0:
            begin = (begin or 0) + 1
        return function(c, x, axis, begin, end, step)
    return wrong


def swapped_products(function):
    def wrong(c, a, b, *rest):
        square = shape_of(c) == shape_of(c, 1) and shape_of(c)[-1] == shape_of(c)[-2]
        return function(c, *((b, a) if square else (a, b)), *rest)
    return wrong


def rounded_numbers(function):
    def wrong(c, a, b, *rest, **options):
        if isinstance(b, int) and abs(b) < 2**62:
            b = int(torch.tensor(float(b), dtype=torch.float32).item())
        return function(c, a, b, *rest, **options)
    return wrong


def fixed_numbers(function):
    def wrong(c, a, b, *rest, **options):
        value = getattr(c.node.args[1], "meta", {}).get("val")
        return function(c, a, value.node.hint if isinstance(value, torch.SymInt) else b, *rest, **options)
    return wrong


def reduced_axis(function):
    def wrong(c, x, axes=None, *rest, **options):
        if axes and len(axes) == 1:
            axes = [other_axis(shape_of(c), axes[0])]
        return function(c, x, axes, *rest, **options)
    return wrong


def gathered_axis(function):
    def wrong(c, x, axis, *rest, **options):
        shape = shape_of(c)
        axis %= max(len(shape), 1)
        longer = [i for i, size in enumerate(shape) if i != axis and size >= shape[axis]]
        fits = longer and shape == shape_of(c, 2)
        return function(c, x, longer[0] if fits else axis, *rest, **options)
    return wrong


def cumulative_axis(function):
    return lambda c, x, axis, *rest, **options: function(
        c, x, other_axis(shape_of(c), axis), *rest, **options)


# Name: (ops, what wraps their conversions).
FAULTS: dict[str, tuple[tuple, Callable]] = {
    "softmax along the last axis": ((aten._softmax.default,), softmax_axis),
    "permute by the inverse order": ((aten.permute.default,), permute_inverse),
    "a slice with steps begins one later": ((aten.slice.Tensor,), slice_step),
    "operands of square products swapped": ((aten.mm.default, aten.bmm.default), swapped_products),
    "numbers rounded to float32": ((aten.add.Tensor, aten.mul.Tensor), rounded_numbers),
    "numbers that change stay as they were traced": ((aten.add.Tensor, aten.mul.Tensor, aten.clamp.default),
                                                     fixed_numbers),
    "a sum along another axis of the same size": ((aten.sum.dim_IntList, aten.mean.dim),
                                                  reduced_axis),
    "a gather along another axis": ((aten.gather.default,), gathered_axis),
    "a running sum along another axis": ((aten.cumsum.default,), cumulative_axis),
}


ORIGINAL = dict(CONVERSIONS)


@contextlib.contextmanager
def replaced(conversions: dict) -> Iterator[None]:
    before = {op: CONVERSIONS[op] for op in conversions}
    CONVERSIONS.update(conversions)
    try:
        yield
    finally:
        CONVERSIONS.update(before)


def planted(name: str):
    """A context in which the conversions of a fault are wrong."""
    ops, wrap = FAULTS[name]
    return replaced({op: wrap(ORIGINAL[op]) for op in ops})


def found_after(name: str, programs: Iterable[Program]) -> int | None:
    """How many programs it took to find a planted fault: one that fails with it and not without."""
    for number, program in enumerate(programs, 1):
        if run_program(program).is_failure:
            with replaced({op: ORIGINAL[op] for op in FAULTS[name][0]}):
                is_right = not run_program(program).is_failure
            if is_right:
                return number
    return None
