"""Backward passes whose steps run in groups, between which memory changes hands."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch import nn

import sinter.pytorch
from sinter.pytorch.runtime import step_groups
from sinter.pytorch.runtime.compiled_entry import CompiledEntry
from sinter.pytorch.runtime.step_groups import groups_of

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


def peak_of(groups, ends, argument_bytes, begins, result_bytes) -> int:
    """The most bytes of arguments and results at a time."""
    peak, held, made = 0, {*range(len(ends))}, set()
    for group in groups:
        made |= {*group.made}
        assert all(begin >= group.first or i in made for i, begin in enumerate(begins) if begin < group.last)
        assert held >= {i for i, end in enumerate(ends) if end > group.first}
        peak = max(peak, sum(argument_bytes[i] for i in held) + sum(result_bytes[i] for i in made))
        held -= {*group.ended}
    assert not held and made == {*range(len(begins))}
    return peak


def test_groups_bound_the_peak_and_are_few(monkeypatch):
    monkeypatch.setattr(step_groups, "MIN_BYTES", 0)
    steps = 200
    random = torch.Generator().manual_seed(1)
    draw = lambda count, most: torch.randint(1, most, (count,), generator=random).tolist()
    for rising in (0.25, 1.0, 4.0):  # bytes of results by bytes of arguments
        ends, begins = [*draw(90, steps + 1), 0], [*draw(60, steps), steps]
        argument_bytes, result_bytes = draw(91, 1000), draw(61, int(1000 * rising))
        groups = groups_of(steps, ends, argument_bytes, begins, result_bytes)
        assert [one.first for one in groups] == [0, *(one.last for one in groups[:-1])]
        assert groups[-1].last == steps and len(groups) <= step_groups.MAX_GROUPS
        least = max(sum(size for end, size in zip(ends, argument_bytes) if end > step)
                    + sum(size for begin, size in zip(begins, result_bytes) if min(begin, steps - 1) <= step)
                    for step in range(steps))
        total = sum(argument_bytes) + sum(result_bytes)
        assert peak_of(groups, ends, argument_bytes, begins, result_bytes) <= max(
            least + 4 * total * step_groups.SLACK, sum(argument_bytes) + max(result_bytes))


def test_a_small_call_is_one_group():
    groups = groups_of(7, [3, 7], [10, 20], [5, 7], [10, 20])
    assert groups == [step_groups.Group(0, 7, [0, 1], [0, 1])]
    assert groups_of(0, [0], [10], [0, 0], [1 << 30, 1]) == [step_groups.Group(0, 0, [0, 1], [0])]


def model_and_input(device: str):
    torch.manual_seed(3)
    layers = [layer for _ in range(6) for layer in (nn.Linear(96, 96), nn.GELU(), nn.LayerNorm(96))]
    return nn.Sequential(*layers).to(device), torch.randn(64, 96, device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_are_those_of_a_call_in_one_piece(monkeypatch, device):
    model, x = model_and_input(device)
    gradients = []
    for least in (1 << 40, 0):
        monkeypatch.setattr(step_groups, "MIN_BYTES", least)
        torch._dynamo.reset()
        compiled = torch.compile(model, backend=sinter.pytorch.compile_graph, dynamic=False)
        for _ in range(2):
            model.zero_grad()
            compiled(x).square().mean().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*gradients))


@pytest.mark.parametrize("device", DEVICES)
def test_arguments_are_let_go_of_and_a_kept_graph_runs_again(monkeypatch, device):
    monkeypatch.setattr(step_groups, "MIN_BYTES", 0)
    model, x = model_and_input(device)
    torch._dynamo.reset()
    alive = []
    take = CompiledEntry.take

    def watched(entry, arguments):
        if entry.name != "backward":
            assert not entry.in_groups
            return take(entry, arguments)
        assert entry.in_groups
        kept = [weakref.ref(arguments[place.leaf].untyped_storage()) for place in entry.others]
        results = take(entry, arguments)
        assert not arguments
        alive.append(sum(one() is not None for one in kept))
        return results

    monkeypatch.setattr(CompiledEntry, "take", watched)
    compiled = torch.compile(model, backend=sinter.pytorch.compile_graph, dynamic=False)
    loss = compiled(x).square().mean()
    loss.backward(retain_graph=True)
    first = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    loss.backward()
    assert all(torch.equal(one, parameter.grad) for one, parameter in zip(first, model.parameters()))
    kept_by_graph, kept_by_model = alive
    assert kept_by_model < kept_by_graph


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_gradients_lie_where_activations_were():
    """Without groups the peak has all activations and all gradients."""
    torch.manual_seed(3)
    model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(4096, 4096), nn.GELU())]).cuda()
    x = torch.randn(16384, 4096, device="cuda")
    compiled = torch.compile(model, backend=sinter.pytorch.compile_graph, dynamic=False)

    def peak() -> int:
        model.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(x).float().mean()
        before = torch.cuda.memory_allocated()
        loss.backward()
        return torch.cuda.max_memory_allocated() - before

    peak()
    gradients = sum(parameter.nbytes for parameter in model.parameters())
    assert peak() < gradients * 0.75
