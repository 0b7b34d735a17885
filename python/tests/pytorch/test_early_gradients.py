"""Gradients of losses that the forward pass computes: numbers beside float64, what is read and kept, and when a
gradient stays in the backward pass."""

from __future__ import annotations

import re
from typing import Any, Callable

import pytest
import sinter
import torch
import torch.nn.functional as F
from beside_eager import compiled, reset
from sinter.pytorch.tools import report
from torch import nn
from torch.utils.checkpoint import checkpoint

# An error is at most FACTOR times eager's, or sqrt(n) roundings of the largest element for sums of n terms.
FACTOR = 2.0


def wide(logits: torch.Tensor) -> torch.Tensor:
    """At least float32, as autocast has losses."""
    return logits if logits.dtype == torch.float64 else logits.float()


def class_weights(logits: torch.Tensor) -> torch.Tensor:
    return torch.linspace(0.5, 2, logits.shape[-1], dtype=wide(logits).dtype)


OBJECTIVES: dict[str, Callable] = {
    "mean": lambda x, y: F.cross_entropy(wide(x), y),
    "sum": lambda x, y: F.cross_entropy(wide(x), y, reduction="sum"),
    "smoothing": lambda x, y: F.cross_entropy(wide(x), y, label_smoothing=0.2),
    "weights": lambda x, y: F.cross_entropy(wide(x), y, weight=class_weights(x)),
    "weights, smoothing": lambda x, y: F.cross_entropy(wide(x), y, weight=class_weights(x), label_smoothing=0.1),
    "soft cap": lambda x, y: F.cross_entropy(5 * torch.tanh(wide(x) / 5), y),
    "z-loss": lambda x, y: F.cross_entropy(wide(x), y) + 0.01 * torch.logsumexp(wide(x), -1).square().mean(),
    "factor": lambda x, y: 3 * F.cross_entropy(wide(x), y),
    "two losses": lambda x, y: F.cross_entropy(wide(x), y) + F.cross_entropy(2 * wide(x), y.flip(0)),
    "rows": lambda x, y: F.cross_entropy(wide(x), y, reduction="none").mean(),
    "no cast": F.cross_entropy,
    "three axes": lambda x, y: F.cross_entropy(wide(x).unflatten(0, (2, -1)).flatten(0, 1), y),
}


class Heads(nn.Module):
    """A sum of objectives, each of a head of its own, so that each has gradients of its own."""

    def __init__(self, names: list[str], width: int, classes: int, bias: bool = False) -> None:
        super().__init__()
        self.names, self.heads = names, nn.ModuleList(nn.Linear(width, classes, bias) for _ in names)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return sum(OBJECTIVES[name](head(x), y) for name, head in zip(self.names, self.heads))


def labels(tokens: int, classes: int, ignored: int = 0) -> torch.Tensor:
    y = torch.randint(0, classes, (tokens,))
    y[:ignored] = -100
    return y


def gradients(function: Callable, module: nn.Module, x: torch.Tensor, y: torch.Tensor, factor: float) -> dict:
    x = x.detach().requires_grad_()
    module.zero_grad()
    loss = function(x, y)
    (loss * factor).backward()
    return {"loss": loss.detach(), "x": x.grad / factor,
            **{name: parameter.grad / factor for name, parameter in module.named_parameters()}}


def check(dtype: torch.dtype, sizes: tuple[int, int, int] = (24, 16, 40), *, names: list[str] | None = None,
          ignored: int = 0, factor: float = 1, is_autocast: bool = False, bias: bool = False) -> list:
    """Compares heads with float64. sizes: tokens, width, classes. Returns the gradients that stay in the backward
    pass."""
    reset()
    tokens, width, classes = sizes
    names = [*OBJECTIVES] if names is None else names
    x, y = torch.randn(tokens, width), labels(tokens, classes, ignored)
    module, exact = Heads(names, width, classes, bias), Heads(names, width, classes, bias).double()
    if not is_autocast:
        x, module = x.to(dtype), module.to(dtype)
    exact.load_state_dict(module.state_dict())
    wanted = gradients(exact, exact, x.double(), y, factor)
    with torch.autocast("cpu", dtype, enabled=is_autocast):
        ours = gradients(compiled(module), module, x, y, factor)
        eager = gradients(module, module, x, y, factor)
    for name, c in wanted.items():
        a, b = ours[name], eager[name]
        assert a.dtype == b.dtype and a.shape == b.shape, name
        if c.isnan().any():
            assert a.isnan().equal(b.isnan()), name
            continue
        errors = [(one.double() - c).abs().max().item() for one in (a, b)]
        bound = max(sizes) ** 0.5 * torch.finfo(dtype).eps * c.abs().max().item()
        assert errors[0] <= max(FACTOR * errors[1], bound), (name, errors)
    (forward,) = [graph for graph in report.REPORTS if graph.phase == "forward"]
    return forward.late


@pytest.mark.parametrize("dtype, factor", [(torch.float32, 65536.0), (torch.bfloat16, 0.37)])
def test_gradients_beside_float64(dtype: torch.dtype, factor: float) -> None:
    assert not check(dtype, factor=factor)


def test_gradients_of_float16_stay() -> None:
    late = check(torch.float16, names=["mean", "soft cap"], factor=1024.0)
    assert len(late) == 2 and all("float16 needs the scale" in str(one) for one in late)


def test_the_gradient_of_a_bias_is_summed_where_that_of_the_logits_is_computed() -> None:
    (late,) = check(torch.bfloat16, (24, 16, 523), names=["mean"], is_autocast=True, bias=True)
    assert "has its sum from the kernel that computes it" in late.reason


@pytest.mark.parametrize("sizes, ignored", [((16, 16, 16), 5), ((24, 16, 523), 5)])
def test_sizes_that_coincide_and_odd_ones(sizes: tuple[int, int, int], ignored: int) -> None:
    assert not check(torch.bfloat16, sizes, names=["mean", "weights, smoothing"], ignored=ignored, is_autocast=True)


def test_all_labels_are_ignored() -> None:
    """The mean of no numbers is NaN, and so are its gradients; the sum is zero."""
    assert not check(torch.float32, names=["mean"], ignored=24)
    assert not check(torch.float32, names=["sum"], ignored=24)


def test_small_probabilities_of_float16_are_not_lost() -> None:
    """Without the factor of the loss they vanish in float16."""
    reset()
    head = nn.Linear(8, 512, bias=False).half()
    with torch.no_grad():
        head.weight.mul_(0.01)
    x, y = torch.randn(64, 8).half().requires_grad_(), labels(64, 512)
    compiled(lambda: F.cross_entropy(head(x).float(), y) * 2.0**14)().backward()
    exact = head.weight.detach().double().requires_grad_()
    (F.cross_entropy(x.detach().double() @ exact.T, y) * 2.0**14).backward()
    assert (head.weight.grad.double() - exact.grad).abs().max() <= 0.01 * exact.grad.abs().max()


class Tied(nn.Module):
    """A model whose embedding is its head."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.norm = nn.Embedding(40, 16), nn.LayerNorm(16)

    def forward(self, ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        logits = F.linear(self.norm(self.tokens(ids)), self.tokens.weight)
        return F.cross_entropy(logits.float().flatten(0, 1), y.flatten())


def test_tied_embeddings_and_accumulated_gradients() -> None:
    """Two backward passes with other factors add to the same gradients."""
    reset()
    module, exact = Tied().bfloat16(), Tied().double()
    exact.load_state_dict(module.state_dict())
    function = compiled(module)
    for scale in (1.0, 0.3):
        ids, y = torch.randint(0, 40, (2, 12)), torch.randint(0, 40, (2, 12))
        (function(ids, y) * scale).backward()
        (exact(ids, y) * scale).backward()
    assert not report.REPORTS[0].late
    for ours, wanted in zip(module.parameters(), exact.parameters(), strict=True):
        assert (ours.grad.double() - wanted.grad).abs().max() <= 0.05 * wanted.grad.abs().max()


@pytest.mark.parametrize("classes", [4096, 4091])
def test_the_logits_are_read_once(classes: int) -> None:
    """The forward pass writes the logits, reads them, and writes the gradient; two products read that. It is kept
    in place of the logits. Fused and unfused plans agree in every bit."""
    reset()
    head = Heads(["mean"], 8, classes).bfloat16()
    function = compiled(head)
    function(torch.randn(256, 8).bfloat16().requires_grad_(), labels(256, classes, 9)).backward()
    step = sinter.explain(function)
    logits = 2 * 256 * 4096
    assert sum(role.moved_bytes for role in step.roles.values()) <= 5.4 * logits
    (kept,) = re.findall(r"kept for the backward pass: .* ([\d,]+) bytes;", str(step))
    assert int(kept.replace(",", "")) <= 1.1 * logits
    assert "verified" in str(step.plan().verify())


# ---- gradients that stay in the backward pass

def reasons(function: Callable[..., Any], *arguments: torch.Tensor) -> list[str]:
    reset()
    results = compiled(function)(*arguments)
    sum(one.sum() for one in results if one.requires_grad).backward()
    return [one.reason for one in report.REPORTS[0].late]


def test_reasons_of_gradients_that_stay() -> None:
    """Each objective has logits of its own."""
    def several(x, y, *weights):
        a, b, c, d, e = (x @ w.T for w in weights[:5])
        again = checkpoint(lambda: F.cross_entropy(x @ weights[5].T, y), use_reentrant=False)
        return (F.cross_entropy(a, y, reduction="none"),
                F.cross_entropy(b, y), b,
                F.cross_entropy(c, y), F.cross_entropy(c, y.flip(0)),
                F.cross_entropy(d, y), d.detach(),
                F.cross_entropy(e, y) + (e * 0.1).tanh().detach().mul(weights[4].sum()).mean(),
                again)

    x, y = torch.randn(24, 16), labels(24, 40)
    found = reasons(several, x, y, *(torch.randn(40, 16, requires_grad=True) for _ in range(6)))
    for part in ("its factor is no single number", "the gradients of several results reach it", "the caller sees",
                 "of the backward pass reads", "to be computed again"):
        assert any(part in reason for reason in found), (part, found)
    assert len(found) == 6


def test_the_gradient_of_logits_that_are_arguments() -> None:
    """No product reads it: the backward pass computes it, and there is nothing to tell."""
    assert not reasons(lambda x, y: (F.cross_entropy(x, y),), torch.randn(24, 40, requires_grad=True), labels(24, 40))
    assert " exp" in report.REPORTS[1].entries[0].compiled.optimized_text


def test_rows_that_no_kernel_holds() -> None:
    """They are read twice in any case."""
    assert not reasons(lambda x, w, y: (F.cross_entropy(x @ w.T, y),), torch.randn(4, 8),
                       torch.randn(65544, 8, requires_grad=True), labels(4, 65544))
    assert " exp" in report.REPORTS[1].entries[0].compiled.optimized_text


def test_an_error_of_squares_keeps_what_it_kept() -> None:
    """Nothing reads a row twice."""
    reset()
    head = nn.Linear(16, 40)
    compiled(lambda x, y: F.mse_loss(head(x), y))(torch.randn(24, 16), torch.randn(24, 40)).backward()
    forward, _ = report.REPORTS
    assert not forward.late and not any("full" in name for kept in forward.kept for name in kept)
