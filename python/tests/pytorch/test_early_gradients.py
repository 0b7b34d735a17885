"""Gradients of losses that the forward pass computes: numbers beside float64, what is kept, and when it stays
in the backward pass."""

from __future__ import annotations

import re
from typing import Callable

import pytest
import sinter
import torch
import torch.nn.functional as F
from beside_eager import compiled, reset
from sinter.pytorch import report
from torch import nn
from torch.utils.checkpoint import checkpoint

TOKENS, WIDTH, CLASSES = 24, 16, 40
SIZES = [(TOKENS, WIDTH, CLASSES), (16, 16, 16), (24, 16, 523)]  # tokens, width, classes
# An error is at most that of eager, or as many roundings of the largest element as the square root of the
# terms of its sums.
FACTOR = 2.0


class Head(nn.Module):
    """Logits of tokens, and what a loss makes of them."""

    def __init__(self, objective: Callable, width: int, classes: int, bias: bool = True) -> None:
        super().__init__()
        self.linear, self.objective = nn.Linear(width, classes, bias), objective

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.objective(self.linear(x), y)


def class_weights(logits: torch.Tensor) -> torch.Tensor:
    return torch.linspace(0.5, 2, logits.shape[-1], dtype=logits.dtype, device=logits.device)


def wide(logits: torch.Tensor) -> torch.Tensor:
    """At least float32, as autocast has losses."""
    return logits if logits.dtype == torch.float64 else logits.float()


def z_loss(x, y):
    return F.cross_entropy(wide(x), y) + 0.01 * torch.logsumexp(wide(x), -1).square().mean()


def soft_capped(x, y):
    return F.cross_entropy(5 * torch.tanh(wide(x) / 5), y)


def weighted(x, y):
    x = wide(x)
    return F.cross_entropy(x, y, weight=class_weights(x), label_smoothing=0.1)


OBJECTIVES: dict[str, Callable] = {
    "mean": lambda x, y: F.cross_entropy(wide(x), y),
    "sum": lambda x, y: F.cross_entropy(wide(x), y, reduction="sum"),
    "smoothing": lambda x, y: F.cross_entropy(wide(x), y, label_smoothing=0.2),
    "class weights": lambda x, y: F.cross_entropy(wide(x), y, weight=class_weights(wide(x))),
    "weights and smoothing": weighted,
    "soft cap": soft_capped,
    "z-loss": z_loss,
    "factor and another loss": lambda x, y: 3 * F.cross_entropy(wide(x), y) + 0.1 * wide(x)[:, 0].square().mean(),
    "two losses": lambda x, y: F.cross_entropy(wide(x), y) + F.cross_entropy(2 * wide(x), y.flip(0)),
    "mean of rows": lambda x, y: F.cross_entropy(wide(x), y, reduction="none").mean(),
    "no cast": F.cross_entropy,
    "three axes": lambda x, y: F.cross_entropy(wide(x).unflatten(0, (2, -1)).flatten(0, 1), y),
}
STAYS = {"factor and another loss"}  # a part of the logits has another gradient


def labels(tokens: int, classes: int, ignored: int = 0) -> torch.Tensor:
    y = torch.randint(0, classes, (tokens,))
    y[:ignored] = -100
    return y


def gradients(function: Callable, module: nn.Module, x: torch.Tensor, y: torch.Tensor, factor: float) -> list:
    x = x.detach().requires_grad_()
    module.zero_grad()
    loss = function(x, y)
    (loss * factor).backward()
    return [loss.detach(), *(tensor.grad / factor for tensor in (x, *module.parameters()))]


def check(objective: Callable, dtype: torch.dtype, sizes: tuple = SIZES[0], ignored: int = 0, factor: float = 1,
          bias: bool = True, is_autocast: bool = False) -> None:
    """Compares a compiled head with float64: no error is above that of eager, or roundings."""
    reset()
    tokens, width, classes = sizes
    x, y = torch.randn(tokens, width), labels(tokens, classes, ignored)
    module = Head(objective, width, classes, bias)
    if not is_autocast:
        x, module = x.to(dtype), module.to(dtype)
    exact = Head(objective, width, classes, bias).double()
    exact.load_state_dict(module.state_dict())
    wanted = gradients(exact, exact, x.double(), y, factor)
    with torch.autocast("cpu", dtype, enabled=is_autocast):
        ours = gradients(compiled(module), module, x, y, factor)
        eager = gradients(module, module, x, y, factor)
    terms = max(sizes) ** 0.5
    for a, b, c in zip(ours, eager, wanted, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        if c.isnan().any():
            assert a.isnan().equal(b.isnan())
            continue
        largest = c.abs().max().item()
        errors = [(one.double() - c).abs().max().item() for one in (a, b)]
        assert errors[0] <= max(FACTOR * errors[1], terms * torch.finfo(dtype).eps * largest), errors


def is_early() -> bool:
    """Whether the gradient of the one loss of the reports is computed in the forward pass: the backward graph
    computes no exponential."""
    backward = [graph for graph in report.REPORTS if graph.phase == "backward"]
    return not any(" exp" in entry.compiled.optimized_text for graph in backward for entry in graph.entries)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_beside_float64(name: str, dtype: torch.dtype) -> None:
    check(OBJECTIVES[name], dtype)
    assert is_early() == (name not in STAYS)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("ignored", [0, 5])
@pytest.mark.parametrize("name", ["mean", "weights and smoothing"])
def test_sizes_and_ignored_labels(name: str, sizes: tuple, ignored: int) -> None:
    check(OBJECTIVES[name], torch.bfloat16, sizes, ignored)
    assert is_early()


@pytest.mark.parametrize("name", ["mean", "sum"])
def test_all_labels_are_ignored(name: str) -> None:
    """The mean of no numbers is NaN, and so are its gradients."""
    check(OBJECTIVES[name], torch.float32, ignored=TOKENS)
    assert is_early()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("factor", [65536.0, 0.37])
def test_the_factor_of_a_scaled_loss(dtype: torch.dtype, factor: float) -> None:
    check(OBJECTIVES["mean"], dtype, factor=factor, bias=False)
    assert is_early() == (dtype != torch.float16)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype: torch.dtype) -> None:
    check(OBJECTIVES["mean"], dtype, SIZES[2], is_autocast=True, factor=1024)
    assert is_early() == (dtype != torch.float16)


def test_small_probabilities_of_float16_are_not_lost() -> None:
    """A gradient that vanishes in float16 without the factor of the loss."""
    reset()
    head = nn.Linear(8, 512, bias=False).half()
    with torch.no_grad():
        head.weight.mul_(0.01)
    x, y = torch.randn(64, 8).half().requires_grad_(), labels(64, 512)
    compiled(lambda: F.cross_entropy(head(x).float(), y) * 2.0**14)().backward()
    ours = head.weight.grad.clone()
    exact = head.weight.detach().double().requires_grad_()
    (F.cross_entropy(x.detach().double() @ exact.T, y) * 2.0**14).backward()
    assert (ours.double() - exact.grad).abs().max() <= 0.01 * exact.grad.abs().max()


class Tied(nn.Module):
    """A model whose embedding is its head."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.norm = nn.Embedding(40, 16), nn.LayerNorm(16)

    def forward(self, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        logits = F.linear(self.norm(self.tokens(ids)), self.tokens.weight)
        return F.cross_entropy(logits.float().flatten(0, 1), y.flatten())


def test_tied_embeddings_and_accumulated_gradients() -> None:
    """Two backward passes add to the same gradients."""
    reset()
    module, exact = Tied().bfloat16(), Tied().double()
    exact.load_state_dict(module.state_dict())
    function = compiled(module)
    for scale in (1.0, 0.25):
        ids, y = torch.randint(0, 40, (2, 12)), torch.randint(0, 40, (2, 12))
        (function(ids, y) * scale).backward()
        (exact(ids, y) * scale).backward()
    assert is_early()
    for ours, wanted in zip(module.parameters(), exact.parameters(), strict=True):
        largest = wanted.grad.abs().max()
        assert (ours.grad.double() - wanted.grad).abs().max() <= 0.05 * largest


@pytest.mark.parametrize("classes", [4096, 4091])
def test_the_logits_are_read_once(classes: int) -> None:
    """The forward pass writes the logits, reads them, and writes the gradient; two products read that. It is kept
    in place of the logits."""
    reset()
    head = Head(OBJECTIVES["mean"], 8, classes, bias=False).bfloat16()
    function = compiled(head)
    function(torch.randn(256, 8).bfloat16().requires_grad_(), labels(256, classes)).backward()
    step = sinter.explain(function)
    logits = 2 * 256 * 4096
    assert sum(role.moved_bytes for role in step.roles.values()) <= 5.4 * logits
    (kept,) = [re.search(r"kept for the backward pass: .* ([\d,]+) bytes;", line) for line in str(step).splitlines()
               if "kept for the backward pass" in line]
    assert int(kept[1].replace(",", "")) <= 1.1 * logits
    assert step.plan().verify()


# ---- gradients that stay in the backward pass

def late_reasons(function: Callable, *arguments: torch.Tensor) -> str:
    reset()
    result = compiled(function)(*arguments)
    sum(tensor.sum() for tensor in (result if isinstance(result, tuple) else (result,))).backward()
    (forward,) = [graph for graph in report.REPORTS if graph.phase == "forward"]
    (late,) = forward.late
    return late.reason


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.randn(TOKENS, WIDTH), torch.randn(CLASSES, WIDTH, requires_grad=True), labels(TOKENS, CLASSES)


def test_a_loss_of_each_row_has_a_factor_for_each(batch: tuple) -> None:
    assert "its factor is no single number" in late_reasons(
        lambda x, w, y: F.cross_entropy(x @ w.T, y, reduction="none"), *batch)


def test_logits_that_the_caller_sees(batch: tuple) -> None:
    def both(x, w, y):
        logits = x @ w.T
        return F.cross_entropy(logits, y), logits
    assert "the gradients of several results reach it" in late_reasons(both, *batch)


def test_logits_that_the_caller_sees_without_a_gradient(batch: tuple) -> None:
    def both(x, w, y):
        logits = x @ w.T
        return F.cross_entropy(logits, y), logits.detach()
    reset()
    compiled(both)(*batch)[0].backward()
    assert "the caller sees" in report.REPORTS[0].late[0].reason


def test_two_losses_with_gradients_of_their_own(batch: tuple) -> None:
    def both(x, w, y):
        logits = x @ w.T
        return F.cross_entropy(logits, y), F.cross_entropy(logits, y.flip(0))
    assert "the gradients of several results reach it" in late_reasons(both, *batch)


def test_logits_that_another_op_of_the_backward_pass_reads(batch: tuple) -> None:
    def both(x, w, y):
        logits = x @ w.T
        return F.cross_entropy(logits, y) + (logits.detach() * (w @ w.T)[:1]).square().mean()
    assert "reads" in late_reasons(both, *batch)


def test_a_checkpoint_computes_the_logits_again(batch: tuple) -> None:
    def again(x, w, y):
        return checkpoint(lambda x, w: F.cross_entropy(x @ w.T, y), x, w, use_reentrant=False)
    assert "computed again" in late_reasons(again, *batch)


def test_float16_needs_its_factor_first(batch: tuple) -> None:
    x, w, y = batch
    half = w.detach().half().requires_grad_()
    assert "float16 needs the scale" in late_reasons(lambda x, w: F.cross_entropy((x @ w.T).float(), y), x.half(), half)


def test_the_gradient_of_logits_that_are_arguments() -> None:
    """No product reads it: the backward pass is as it was, and no reason is told."""
    reset()
    x = torch.randn(TOKENS, CLASSES, requires_grad=True)
    compiled(F.cross_entropy)(x, labels(TOKENS, CLASSES)).backward()
    assert not report.REPORTS[0].late and not is_early()


def test_without_gradients_none_is_computed(batch: tuple) -> None:
    reset()
    with torch.no_grad():
        compiled(lambda x, w, y: F.cross_entropy(x @ w.T, y))(*batch)
    (graph,) = report.REPORTS
    assert graph.phase == "inference" and len(graph.entries[0].compiled.ledger["entries"]) == 1
