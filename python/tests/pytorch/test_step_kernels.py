"""Which kernels a training step has: nothing is copied, and no sum is the work of one block alone. Numbers
are eager's."""

from __future__ import annotations

import copy
import re

import pytest
import torch
import torch.nn.functional as F
from beside_eager import compiled, reset, train_beside_eager
from sinter.pytorch.tools import report
from sinter.pytorch.rewrites.padding import pad_products
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx


def compiled_of(phase: str):
    """The compiled form of the one entry of the graph of a phase."""
    (graph,) = [one for one in report.REPORTS if one.phase == phase]
    (entry,) = graph.entries
    return entry.compiled


def text_of(phase: str) -> str:
    return compiled_of(phase).optimized_text


def ops_of(phase: str) -> list[set[str]]:
    """The ops of each kernel of a graph; of a call of the library, its product."""
    (ledger,) = compiled_of(phase).ledger["entries"]
    ops = {value["name"]: value["op"] for value in ledger["values"]}
    return [{ops[value] for value in kernel["values"]} for kernel in ledger["kernels"]]


class Projections(nn.Module):
    """Attention whose queries, keys and values are products of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(32, 32) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (linear(x).unflatten(-1, (2, 16)).transpose(1, 2) for linear in (self.q, self.k, self.v))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2))


def test_products_that_attention_reads_are_kept_where_they_were_written() -> None:
    train_beside_eager(Projections(), torch.randn(2, 8, 32))
    assert {"copy"} not in ops_of("forward")


def test_the_result_of_attention_is_kept_once() -> None:
    train_beside_eager(Projections().bfloat16(), torch.randn(2, 8, 32).bfloat16(), tolerance=5e-2)
    (attention,) = [ops for ops in ops_of("forward") if any("attention" in op for op in ops)]
    assert "copy" not in attention


class JoinedProjection(nn.Module):
    """Causal attention whose queries, keys and values are one product."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (2, 16)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        result = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(result.transpose(1, 2).flatten(-2))


@pytest.mark.parametrize("module", [Projections, JoinedProjection])
def test_kernels_of_attentions_gradients_sum_them_for_biases(module: type[nn.Module]) -> None:
    train_beside_eager(module().bfloat16(), torch.randn(2, 128, 32).bfloat16(), tolerance=5e-2)
    kernels = [ops for ops in ops_of("backward") if any("gradient" in op for op in ops)]
    assert len(kernels) == 2 and all("reduce_sum" in ops for ops in kernels)


class Gelu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.out = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(F.gelu(self.fc(x), approximate="tanh"))


def test_gelu_its_gradient_and_the_sum_for_a_bias_are_in_kernels_of_products() -> None:
    train_beside_eager(Gelu().bfloat16(), torch.randn(3, 128, 32).bfloat16(), tolerance=5e-2,
                       options={"products": "own"})
    assert any({"tiled_linear", "gelu_tanh"} <= ops for ops in ops_of("forward"))
    assert any({"tiled_linear", "sigmoid", "reduce_sum"} <= ops for ops in ops_of("backward"))


class Head(nn.Module):
    """The loss of labels among `classes`, which is no multiple of 8."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(16, classes)
        self.register_buffer("labels", torch.arange(24) * 11 % classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.head(x).float(), self.labels)


def test_a_biased_product_of_odd_width_is_padded_once() -> None:
    reset()
    head, x = Head(523).bfloat16(), torch.randn(24, 16).bfloat16()
    results = []
    for function in (head, compiled(head)):
        head.zero_grad()
        function(x).backward()
        results.append([parameter.grad.clone() for parameter in head.parameters()])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(b, a, rtol=2e-2, atol=1e-4)
    assert re.search(r"= linear .*: bf16\[24, 528\]", text_of("forward"))
    assert re.search(r"= reduce_sum .*\[(1, )?528\]", text_of("backward"))


def test_a_sum_in_another_type_reads_the_padded_operand() -> None:
    def gradients(g: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return g @ w, g.sum([0], keepdim=True, dtype=torch.float32)  # of a bias in autocast

    g, w = torch.randn(24, 523).bfloat16(), torch.randn(523, 16).bfloat16()
    graph = make_fx(gradients, tracing_mode="fake")(g, w)
    pad_products(graph)
    (sums,) = [node for node in graph.graph.nodes if node.target is torch.ops.aten.sum.dim_IntList]
    assert sums.args[0].meta["val"].shape == (24, 528) and sums.kwargs == {"dtype": torch.float32}
    for a, b in zip(gradients(g, w), graph(g, w), strict=True):
        torch.testing.assert_close(b, a, rtol=1e-2, atol=1e-2)


class Kinds(nn.Module):
    """The sum of two tables' rows, one of which has few rows that many numbers name."""

    def __init__(self, padding: int | None) -> None:
        super().__init__()
        self.words, self.kinds = nn.Embedding(50, 16), nn.Embedding(3, 16, padding_idx=padding)

    def forward(self, words: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        return self.words(words) + self.kinds(kinds)


def test_rows_of_a_small_table_have_column_sums() -> None:
    for padding in (None, 1):
        train_beside_eager(Kinds(padding), torch.randint(0, 50, (4, 40)), torch.randint(0, 3, (4, 40)),
                           tolerance=1e-4)
        assert sum("scatter_add" in ops for ops in ops_of("backward")) == 1


class Squares(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.mse_loss(x * self.scale, y)


def test_a_sum_of_very_many_terms_is_one_of_rows() -> None:
    train_beside_eager(Squares(), torch.randn(64, 1024), torch.randn(64, 1024))
    sums = [ops for ops in ops_of("forward") if "reduce_sum" in ops]
    assert len(sums) == 2 and any("mul" in ops for ops in sums)


def test_gradients_of_autocast_weights_are_float32_sums() -> None:
    """Their products are not rounded to 16 bits, and are not read again by a cast."""
    reset()
    layer, x = nn.Linear(64, 48, bias=False), torch.randn(32, 64)
    with torch.autocast("cpu", torch.bfloat16):
        y = compiled(layer)(x)
    y.float().square().sum().backward()
    exact = (2 * y.detach().double()).T @ x.bfloat16().double()
    terms = 32
    torch.testing.assert_close(layer.weight.grad.double(), exact, rtol=0.0,
                               atol=terms * 2**-24 * exact.abs().max().item())
    assert re.search(r"= einsum .*: f32\[48, 64\]", text_of("backward"))
    assert "cast" not in text_of("backward").split("einsum")[-1]


class Norms(nn.Module):
    """Residuals around two norms and products with biases."""

    def __init__(self, norm: type[nn.Module]) -> None:
        super().__init__()
        self.norms = nn.ModuleList([norm(512), norm(512)])
        self.linears = nn.ModuleList([nn.Linear(512, 512), nn.Linear(512, 512)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for norm, linear in zip(self.norms, self.linears):
            x = x + linear(norm(x))
        return x


def gradients_of_norms(module: nn.Module, x: torch.Tensor, function) -> list[torch.Tensor]:
    module.zero_grad()
    leaf = x.clone().requires_grad_()
    function(leaf).square().mean().backward()
    return [leaf.grad, *(parameter.grad.clone() for parameter in module.parameters())]


@pytest.mark.parametrize("norm", (nn.LayerNorm, nn.RMSNorm))
def test_the_gradients_of_a_norm_are_one_kernel_of_rows(norm: type[nn.Module]) -> None:
    reset()
    module, x = Norms(norm), torch.randn(2, 2048, 512)
    fused = gradients_of_norms(module, x, compiled(module))
    kernels = [ops for ops in ops_of("backward") if "run_sums" in ops]
    # dx has row sums of its own, and its kernel the sums for weight and bias, and for the bias of the
    # product before.
    assert len(kernels) == 2 and all("reduce_sum" in ops for ops in kernels)
    reset()
    unfused = gradients_of_norms(module, x, torch.compile(module, backend="sinter",
                                                          options={"fuse": False}))
    for a, b in zip(fused, unfused, strict=True):
        assert torch.equal(a, b)
    exact = copy.deepcopy(module).double()
    eager = gradients_of_norms(module, x, module)
    for a, b, c in zip(fused, eager, gradients_of_norms(exact, x.double(), exact), strict=True):
        size = c.abs().max().item()
        # A sum of 4,096 terms in float32.
        assert (a - c).abs().max().item() <= max(3 * (b - c).abs().max().item(),
                                                 64 * torch.finfo(torch.float32).eps * size)
