"""Compares functions and modules through the backend with eager."""

from __future__ import annotations

import copy
import threading
from typing import Any, Callable

import torch
import torch._dynamo
from torch import nn
from torch.utils._pytree import tree_flatten

from sinter.pytorch.tools import report
from sinter.pytorch.backend import compile_graph


def reset() -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    report.reset()
    torch._dynamo.utils.counters.clear()


def compiled(function: Callable, **options: Any) -> Callable:
    return torch.compile(function, backend=compile_graph, **options)


def tensors_of(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor)]


def assert_same(ours: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    """The same structure, types, shapes and strides, and numbers within a tolerance."""
    leaves, structure = tree_flatten(ours)
    wanted_leaves, wanted_structure = tree_flatten(wanted)
    assert structure == wanted_structure, (structure, wanted_structure)
    for a, b in zip(leaves, wanted_leaves, strict=True):
        if not isinstance(b, torch.Tensor):
            assert a == b, (a, b)
            continue
        for fact in ("dtype", "shape", "device", "requires_grad"):
            assert getattr(a, fact) == getattr(b, fact), (fact, getattr(a, fact), getattr(b, fact))
        assert a.stride() == b.stride(), (a.stride(), b.stride())
        torch.testing.assert_close(a.detach(), b.detach(), rtol=tolerance, atol=tolerance,
                                   equal_nan=True)


def run_beside_eager(function: Callable, *arguments: Any, tolerance: float = 1e-5,
                     **options: Any) -> None:
    """Twice, because torch compiles in the first call; arguments may be changed."""
    reset()
    ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
    function_of_ours = compiled(function, **options)
    for _ in range(2):
        assert_same(function_of_ours(*ours), function(*theirs), tolerance)
        assert_same(ours, theirs, tolerance)


def train_beside_eager(module: nn.Module, *arguments: Any, tolerance: float = 1e-5,
                       **options: Any) -> None:
    """Results and all gradients of a sum of squares, twice."""
    reset()
    eager, theirs = copy.deepcopy(module), copy.deepcopy(arguments)
    ours = compiled(module, **options)
    for _ in range(2):
        sides = []
        for function, root, given in ((ours, module, arguments), (eager, eager, theirs)):
            root.zero_grad()
            for tensor in tensors_of(given):
                tensor.grad = None
            result = function(*given)
            sum(tensor.float().square().sum() for tensor in tensors_of(result)
                if tensor.requires_grad).backward()
            grads = [tensor.grad for tensor in [*root.parameters(), *tensors_of(given)]]
            sides.append((result, grads))
        assert_same(sides[0][0], sides[1][0], tolerance)
        assert_same(sides[0][1], sides[1][1], 10 * tolerance)


def errors_of_threads(work: Callable[[], None]) -> list[Exception]:
    """Runs the function in four threads at the same time."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def eager_ops() -> list[str]:
    """Ops of all graphs that run in eager."""
    return [op.op for one in report.REPORTS for op in one.eager]
