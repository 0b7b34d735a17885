"""Backward passes whose steps run in groups, between which memory changes hands."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch import nn

import sinter.pytorch
from sinter.pytorch import step_groups
from sinter.pytorch.runtime import CompiledEntry
from sinter.pytorch.step_groups import groups_of

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


def test_a_group_has_a_part_of_the_bytes(monkeypatch):
    monkeypatch.setattr(step_groups, "MIN_BYTES", 0)
    monkeypatch.setattr(step_groups, "MOST_PARTS", 2)
    # Arguments of 4 bytes that end behind steps 0, 2 and 3, and never begin; results of 4 from steps 0 and 3.
    groups = groups_of(4, [1, 3, 4, 0], [4, 4, 4, 0], [0, 3], [4, 4])
    assert [(one.first, one.last) for one in groups] == [(0, 2), (2, 4)] or \
        [(one.first, one.last) for one in groups] == [(0, 2), (2, 3), (3, 4)]
    assert [i for one in groups for i in one.made] == [0, 1]
    assert sorted(i for one in groups for i in one.ended) == [0, 1, 2, 3]
    for one in groups:
        assert all(one.first <= [0, 3][i] < one.last for i in one.made)
        assert all([1, 3, 4, 0][i] <= one.last for i in one.ended)


def test_a_small_call_is_one_group():
    groups = groups_of(7, [3, 7], [10, 20], [5, 7], [10, 20])
    assert groups == [step_groups.Group(0, 7, [0, 1], [0, 1])]


def model_and_input(device: str):
    torch.manual_seed(3)
    layers = [layer for _ in range(6) for layer in (nn.Linear(96, 96), nn.GELU(), nn.LayerNorm(96))]
    return nn.Sequential(*layers).to(device), torch.randn(64, 96, device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_are_those_of_a_call_in_one_piece(monkeypatch, device):
    model, x = model_and_input(device)
    gradients = []
    for parts in (1, 24):
        monkeypatch.setattr(step_groups, "MIN_BYTES", 0)
        monkeypatch.setattr(step_groups, "MOST_PARTS", parts)
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
