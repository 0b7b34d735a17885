"""The graphs of one compiled function share their memory of intermediate values, in each stream."""

import gc

import pytest
import torch
from beside_eager import errors_of_threads
from torch import nn

import sinter.pytorch
from sinter.pytorch.runtime import shared_memory
from sinter.pytorch.runtime.shared_memory import memory_of


class Broken(nn.Module):
    """Two graphs: print breaks the first one off."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x):
        x = torch.nn.functional.gelu(self.first(x))
        torch._dynamo.graph_break()
        return torch.nn.functional.gelu(self.second(x)) + x.sum()


def sessions_of(model) -> list:
    return [session for graph in sinter.pytorch.explain(model).graphs for entry in graph.entries
            for session in entry._sessions._by_stream.values()]


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    sinter.pytorch.reset()


def test_graphs_of_a_module_share_a_lock_and_memory():
    model = Broken().eval()
    x = torch.randn(4, 16)
    compiled = torch.compile(model, backend="sinter")
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))
    sessions = sessions_of(compiled)
    assert len(sessions) == 2
    assert len({id(session.lock) for session in sessions}) == 1


def test_forward_and_backward_share():
    model = Broken()
    compiled = torch.compile(model, backend="sinter")
    compiled(torch.randn(4, 16)).sum().backward()
    phases = {graph.phase for graph in sinter.pytorch.explain(compiled).graphs}
    assert phases == {"forward", "backward"}
    assert len({id(session.lock) for session in sessions_of(compiled)}) == 1


def test_threads_call_graphs_that_share():
    model = Broken().eval()
    compiled = torch.compile(model, backend="sinter", dynamic=True)
    inputs = [torch.randn(rows, 16) for rows in range(2, 10)]

    def run():
        with torch.no_grad():
            for x in [*inputs, *inputs]:
                torch.testing.assert_close(compiled(x), model(x))

    run()
    assert errors_of_threads(run) == []


def test_memory_is_forgotten_with_its_function():
    def function(x):
        return x + 1

    kept = memory_of(function)
    assert memory_of(function) is kept
    gc.collect()  # functions of other tests
    known = len(shared_memory._MEMORIES)
    del function
    gc.collect()
    assert len(shared_memory._MEMORIES) == known - 1


def test_modules_and_methods_are_apart():
    model = Broken()
    assert memory_of(model) is not memory_of(Broken())
    assert memory_of(model.forward) is memory_of(model.forward)
    assert memory_of(model.forward) is not memory_of(model.extra_repr)
    assert memory_of(None) is not memory_of(None)
