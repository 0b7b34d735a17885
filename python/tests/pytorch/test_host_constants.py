"""Tensors that a graph makes in host memory of numbers alone are computed once."""

from __future__ import annotations

import torch
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from sinter.pytorch.rewrites import host_constants
from sinter.pytorch.rewrites.host_constants import take_constants, with_constants

CPU = torch.device("cpu")
COPY = torch.ops.aten._to_copy.default


def to_device(x: torch.Tensor) -> torch.Tensor:
    """A copy, which stands for one to a GPU."""
    return COPY(x, dtype=torch.float32, device=CPU)


def traced(function, *arguments):
    return make_fx(function, tracing_mode="fake")(*arguments)


def taken(function, *arguments) -> tuple[list[torch.Tensor], set[str], bool]:
    """The constants of a function's graph, the ops that it has left, and whether it gives the same."""
    module = traced(function, *arguments)
    constants = take_constants(module, CPU)
    module.recompile()
    ours = with_constants(module.forward, constants)(*arguments)
    ops = {str(node.target) for node in module.graph.nodes if node.op == "call_function"}
    return constants, ops, torch.equal(ours, function(*arguments))


def window_mask() -> torch.Tensor:
    group = torch.arange(8) // 4
    return torch.where(group[:, None] == group, 0.0, -100.0)


def test_a_mask_of_numbers_is_an_argument() -> None:
    constants, ops, is_same = taken(lambda x: x + to_device(window_mask()) * 2, torch.randn(8, 8))
    assert is_same and len(constants) == 1 and torch.equal(constants[0], window_mask())
    assert ops == {"aten.mul.Tensor", "aten.add.Tensor"}


def test_a_constant_tensor_is_read() -> None:
    constants, ops, is_same = taken(lambda x: x * to_device(torch.tensor([1, 2, 3]) + 1), torch.randn(3))
    assert is_same and constants[0].tolist() == [2, 3, 4] and ops == {"aten.mul.Tensor"}


def numbers_taken(function, x: torch.Tensor) -> tuple[list, bool]:
    """The constants that a function's graph has of its numbers, and whether it gives the same."""
    module = traced(function, x)
    with FakeTensorMode():  # as while torch.compile traces
        take_constants(module, CPU)
    module.graph.lint()
    module.recompile()
    constants = [node for node in module.graph.nodes if node.target is torch.ops.aten.full.default]
    assert all(node.meta["val"].dim() == 0 for node in constants)
    return [(node.args[1], node.kwargs["dtype"]) for node in constants], \
        torch.equal(module.forward(x), function(x))


def test_a_number_that_ops_read_is_a_constant() -> None:
    root = torch.tensor(6.0).sqrt().item()
    assert numbers_taken(lambda x: x / torch.sqrt(torch.tensor(6.0)), torch.randn(4)) == ([(root, torch.float32)], True)
    assert numbers_taken(lambda x: x + torch.tensor(3) * 2, torch.randn(4)) == ([(6, torch.int64)], True)
    assert numbers_taken(lambda x: x.half() * torch.tensor(0.1), torch.randn(4)) \
        == ([(torch.tensor(0.1).item(), torch.float32)], True)


def test_what_the_host_computes_of_data_keeps_its_numbers() -> None:
    module = traced(lambda x: x + torch.tensor(2.0), torch.randn(4))
    take_constants(module, torch.device("meta"))  # no op of the graph is there
    assert not any(node.target is torch.ops.aten.full.default for node in module.graph.nodes)


def test_numbers_of_data_and_results_stay() -> None:
    assert numbers_taken(lambda x: x + x[0], torch.randn(4)) == ([], True)
    assert numbers_taken(lambda x: torch.tensor(2.0) * 3, torch.randn(4)) == ([], True)
    assert numbers_taken(lambda x: x + torch.tensor(2.0, dtype=torch.float64), torch.randn(4)) == ([], True)


def test_data_random_numbers_and_results_stay() -> None:
    x = torch.randn(8)
    assert not taken(lambda x: x + to_device(x > 0), x)[0]
    assert not taken(lambda x: to_device(torch.arange(8))[:4], x)[0]
    module = traced(lambda x: x + to_device(torch.rand(8)), x)
    assert not take_constants(module, CPU)


def test_large_constants_stay(monkeypatch) -> None:
    monkeypatch.setattr(host_constants, "MAX_BYTES", 255)
    assert not taken(lambda x: x + to_device(window_mask()), torch.randn(8, 8))[0]
