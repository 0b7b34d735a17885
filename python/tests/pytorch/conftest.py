"""How every test of this folder runs.

The imports are in the fixture: the process that hands tests to the others (pytest-xdist) runs none, and does
without torch."""

import gc

import pytest


@pytest.fixture(scope="session", autouse=True)
def settings() -> None:
    import torch
    import torch._dynamo.guards

    from sinter.pytorch.convert import importer

    # An exception out of a conversion fails the test: users would get the op in eager.
    importer.RAISES_FAULTS = True
    # Dynamo clears the processor's caches and times the guards of each graph, for its log alone: 18 ms a graph.
    torch._dynamo.guards.profile_guard_manager = lambda *arguments: 0.0
    torch._dynamo.config.run_gc_after_compile = False
    # The tensors are small, and every processor has a process of its own.
    torch.set_num_threads(1)
    gc.freeze()  # modules stay: a collection need not walk through them
