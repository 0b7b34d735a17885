"""A forward graph keeps values for the backward graph, and no copies of their parts."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
import torch.nn.functional as F
from beside_eager import reset, train_beside_eager
from sinter.pytorch import backend
from sinter.pytorch.rewrites.pipeline import ROWS
from sinter.pytorch.tools import report
from torch import nn


class Attention(nn.Module):
    def __init__(self, parts: int) -> None:
        super().__init__()
        self.qkv, self.parts = nn.Linear(32, 32 * parts), parts

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (2, 16)).transpose(1, 2)
                   for t in self.qkv(x).chunk(self.parts, -1)[:3])
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)


def kept(monkeypatch: pytest.MonkeyPatch, module: nn.Module) -> tuple[list, list]:
    """Trains a module beside eager: the names of what is kept, and of the backward graph's inputs."""
    graphs = []
    keep = ROWS["keep_roots"].run

    def observed(forward, backward, visible):
        keep(forward, backward, visible)
        output = next(node for node in forward.graph.nodes if node.op == "output")
        graphs.append(([node.name for node in output.args[0][visible:]],
                       [node.name for node in backward.graph.nodes if node.op == "placeholder"]))

    monkeypatch.setitem(ROWS, "keep_roots", dataclasses.replace(ROWS["keep_roots"], run=observed))
    reset()
    train_beside_eager(module, torch.randn(2, 8, 32))
    return graphs[0]


def test_slices_of_one_product_are_kept_as_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    values, inputs = kept(monkeypatch, Attention(3))
    assert "addmm" in values and inputs[:len(values)] == values
    assert not any(name.startswith("permute_1") for name in values)


def test_slices_that_are_smaller_than_the_product_are_kept_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    values, inputs = kept(monkeypatch, Attention(5))
    assert "addmm" not in values and inputs[:len(values)] == values


class MaskedAttention(Attention):
    """Attention with a mask of positions, which is computed from no argument, as Hugging Face's models have it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (2, 16)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        places = torch.arange(x.shape[1], device=x.device)
        texts = (torch.diff(places, prepend=places[:1] - 1) != 1).cumsum(-1)
        mask = (places[None, :] <= places[:, None]) & (texts[None, :] == texts[:, None])
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(-2)


def test_a_mask_of_positions_is_made_again_and_is_a_range_of_keys() -> None:
    reset()
    module = MaskedAttention(3).bfloat16()
    x = torch.randn(2, 8, 32, dtype=torch.bfloat16)
    torch.compile(module, backend="sinter", dynamic=False)(x).sum().backward()
    _, backward = report.REPORTS
    [entry] = backward.entries
    gradients = [line for line in entry.compiled.optimized_text.splitlines() if "_gradient %" in line]
    assert len(gradients) == 3
    # q, keys, values, first, last, grad, log_sum and delta, and no mask
    assert all(line.split("{")[0].count("%") == 1 + 8 for line in gradients)


def test_random_numbers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    class Noise(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(32))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.scale * torch.rand(8, 32, device=x.device)

    graphs = []
    cut = ROWS["make_again"].run

    def observed(forward, backward, visible):
        cut(forward, backward, visible)
        graphs.append([node.target for node in backward.graph.nodes if node.op == "call_function"])

    monkeypatch.setitem(ROWS, "make_again", dataclasses.replace(ROWS["make_again"], run=observed))
    reset()
    module = Noise()
    torch.manual_seed(3)
    result = torch.compile(module, backend="sinter", dynamic=False)(torch.ones(8, 32))
    result.sum().backward()
    torch.testing.assert_close(module.scale.grad, result.detach().sum(0))
    assert graphs and not any("rand" in str(target) for target in graphs[0])


def test_labels_that_name_no_column_are_ignored_by_the_loss() -> None:
    reset()

    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(8, 11)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(self.head(x), torch.tensor([3, -100, 10, 0]))

    train_beside_eager(Loss(), torch.randn(4, 8))


class ConditionedNorm(nn.Module):
    """`reads`: what else reads the norm's result."""

    def __init__(self, reads: str = "", affine: bool = False) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(32, elementwise_affine=affine)
        self.first, self.scale, self.out = (nn.Linear(32, 32) for _ in range(3))
        self.reads = reads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.first(x))
        z = self.out(y * (1 + self.scale(x)))
        return z + self.out(y) if self.reads == "product" else z


def norms(names: list[str]) -> int:
    return sum(name.startswith("getitem") for name in names)


def test_a_norm_that_a_condition_scales_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    results, inputs = kept(monkeypatch, ConditionedNorm())
    assert norms(results) == 2 and {*results} <= {*inputs}  # mean and deviation


@pytest.mark.parametrize("module", [ConditionedNorm("product"), ConditionedNorm(affine=True)])
def test_other_norms_are_kept(monkeypatch: pytest.MonkeyPatch, module: nn.Module) -> None:
    assert norms(kept(monkeypatch, module)[0]) == 3


class RandomCheckpoint(nn.Module):
    """A checkpoint computes the random numbers of the forward pass again."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 8)

    def noisy(self, x):
        y = F.gelu(self.first(x))
        return self.second(F.dropout(y * torch.rand_like(y) + torch.randn(4, 1), 0.3))

    def forward(self, x):
        for _ in range(2):
            x = torch.utils.checkpoint.checkpoint(self.noisy, x, use_reentrant=False)
        return x * torch.rand(8)


def test_random_numbers_of_a_checkpoint():
    model, x = RandomCheckpoint(), torch.randn(4, 8)
    eager, ours = copy.deepcopy(model), torch.compile(model, backend=backend.compile_graph)
    reset()
    for module, function in ((model, ours), (eager, eager)):
        torch.manual_seed(7)
        function(x).square().sum().backward()
    for a, b in zip(model.parameters(), eager.parameters()):
        torch.testing.assert_close(a.grad, b.grad)
    assert len(report.REPORTS) == 2
