"""Mixtures of experts of transformers: whole graphs, and the numbers of eager.

A token's experts are open where its router's logits tie, or differ by roundings: such tokens are not compared.
"""

from __future__ import annotations

import logging
import math
import re

import pytest
import torch
from beside_eager import compiled, eager_ops, reset
from generation import differences, model_of
from test_step_kernels import text_of

from sinter.importing import row_ops

transformers = pytest.importorskip("transformers")

SIZES = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2,
             num_key_value_heads=1)
KINDS = {"Qwen3Moe": dict(head_dim=16, moe_intermediate_size=24, num_experts=8, num_experts_per_tok=2,
                          norm_topk_prob=True),
         "Olmoe": dict(num_experts=8, num_experts_per_tok=3),
         "Mixtral": dict(num_local_experts=4, num_experts_per_tok=1)}


def small(kind: str, dtype: torch.dtype = torch.float32, **sizes) -> torch.nn.Module:
    logging.disable(logging.WARNING)
    try:
        return model_of(kind, {**SIZES, **KINDS[kind], **sizes}, "cpu").to(dtype)
    finally:
        logging.disable(logging.NOTSET)


def largest_error(model: torch.nn.Module, function, tokens: torch.Tensor) -> float:
    """The largest error of a logit, in roundings of the largest logit. Tokens whose experts are a close call are left
    out."""
    count = model.config.num_experts_per_tok
    wanted = model(tokens, use_cache=False, output_router_logits=True)
    ours = function(tokens, use_cache=False).logits
    (router,) = wanted.router_logits
    best = router.float().topk(count + 1, -1)[0]
    eps = torch.finfo(ours.dtype).eps
    is_sure = (best[:, -2] - best[:, -1] > 4 * eps * best.abs().amax(-1)).view(tokens.shape)
    assert is_sure.float().mean() > 0.5
    error = (ours - wanted.logits)[is_sure].abs().max() / wanted.logits.abs().max()
    return error.item() / eps


@pytest.mark.parametrize("kind, implementation, dtype, shapes", [
    ("Qwen3Moe", "grouped_mm", torch.bfloat16, [(1, 12), (1, 30)]),
    ("Qwen3Moe", "batched_mm", torch.float32, [(2, 12)]),
    ("Olmoe", "grouped_mm", torch.float32, [(2, 12)]), ("Olmoe", "batched_mm", torch.bfloat16, [(2, 12)]),
    ("Mixtral", "grouped_mm", torch.float16, [(2, 12)]), ("Mixtral", "batched_mm", torch.float32, [(2, 12)])])
@torch.no_grad()
def test_a_model_is_one_graph(kind: str, implementation: str, dtype: torch.dtype, shapes: list[tuple]) -> None:
    reset()
    model = small(kind, dtype)
    model.set_experts_implementation(implementation)
    function = compiled(model, fullgraph=True)
    for shape in shapes:
        tokens = torch.randint(0, 64, shape)
        if len(shapes) > 1:
            torch._dynamo.mark_dynamic(tokens, 1)
        assert largest_error(model, function, tokens) < 8
    assert eager_ops() == []
    if len(shapes) == 1:  # no matrix is copied: but for sorted rows, the rows of tokens alone are taken from a table
        taken = [line for line in text_of("inference").splitlines() if " = embedding " in line]
        assert sum("sorted_" not in line for line in taken) == 1


@torch.no_grad()
def test_products_of_many_tokens_are_of_sorted_rows_and_of_few_are_not() -> None:
    model = small("Qwen3Moe", torch.bfloat16)
    for shape, products in (((2, 20), "grouped_linear"), ((2, 3), "expert_linear")):
        reset()
        assert largest_error(model, compiled(model, fullgraph=True), torch.randint(0, 64, shape)) < 8
        assert text_of("inference").count(f" = {products} ") == 2


@torch.no_grad()
def test_generated_tokens_are_those_of_eager() -> None:
    reset()
    assert differences(small("Qwen3Moe", vocab_size=512), 3, 14) == []
    assert eager_ops() == []


def check_training(module: torch.nn.Module, loss, tokens: torch.Tensor) -> None:
    """Each gradient is within roundings of its largest element."""
    module.requires_grad_()
    ours, wanted = [torch.autograd.grad(loss(function(tokens)), list(module.parameters()))
                    for function in (compiled(module), module)]
    for a, b in zip(ours, wanted, strict=True):
        assert (a - b).abs().max() <= 8 * torch.finfo(b.dtype).eps * b.abs().max()


def test_a_step_of_training_is_whole() -> None:
    reset()
    tokens = torch.randint(0, 64, (2, 12))
    loss = lambda result: torch.nn.functional.cross_entropy(result.logits.flatten(0, 1), tokens.flatten())
    check_training(small("Qwen3Moe", torch.bfloat16, num_hidden_layers=2), loss, tokens)
    assert eager_ops() == []
    text = text_of("backward")
    assert [text.count(f" = {op} ") for op in ("grouped_outer", "grouped_linear", "scatter_add")] == [4, 4, 1]
    matrices = re.findall(r" = grouped_linear %\S+, (%\S+),", text)
    # Matrices are read where they are, not copied.
    assert len(matrices) == 4 and all(f"{matrix} = transpose " in text for matrix in matrices)


def test_sums_of_outer_products_of_float32_stay_in_eager() -> None:
    reset()
    layer = small("Qwen3Moe").model.layers[0].mlp
    check_training(layer, lambda result: result.square().sum(), torch.randn(2, 12, 32))
    assert eager_ops() == ["sinter.grouped_mm.default"] * 2


def routed(x: torch.Tensor, logits: torch.Tensor, w: torch.Tensor, scale=None) -> tuple[torch.Tensor, ...]:
    """The experts of transformers around one product. scale: a factor of each sorted row."""
    chosen = logits.topk(2, -1)[1]
    numbers, order = chosen.reshape(-1).sort(stable=True)
    ends = numbers.float().histc(w.shape[0], 0, w.shape[0] - 1).cumsum(0, dtype=torch.int32)
    y = torch._grouped_mm(x[order // 2], w.transpose(1, 2), ends)
    y = y if scale is None else y * scale
    return y[order.argsort()].view(x.shape[0], 2, -1), numbers, order


def case(tokens: int = 9) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(2)
    draw = lambda *shape: torch.randn(shape).bfloat16()
    return draw(tokens, 16), torch.randn(tokens, 6), draw(6, 24, 16)


@pytest.mark.parametrize("results", [[0], [0, 1, 2]], ids=["rows", "rows and their order"])
def test_the_order_of_rows_is_made_where_it_shows(results: list[int]) -> None:
    function = lambda *operands: [routed(*operands)[i] for i in results]
    arguments = case()
    reset()
    for ours, wanted in zip(compiled(function)(*arguments), function(*arguments), strict=True):
        torch.testing.assert_close(ours, wanted, rtol=0, atol=0.05)
    assert eager_ops() == []


def check_factor() -> None:
    arguments = (*case(), torch.arange(18).bfloat16()[:, None])
    function = lambda *operands: routed(*operands)[0]
    reset()
    torch.testing.assert_close(compiled(function)(*arguments), function(*arguments), rtol=0.02, atol=0.05)
    assert " = embedding " in text_of("inference") and eager_ops() == []


def test_a_factor_of_each_sorted_row_keeps_the_order() -> None:
    check_factor()


def test_an_order_that_is_read_at_other_places_stays() -> None:
    places = torch.randperm(18)
    function = lambda logits: (lambda order: order[places][order.argsort()])(
        logits.topk(2, -1)[1].reshape(-1).sort(stable=True)[1])
    arguments = case()[1]
    reset()
    assert torch.equal(compiled(function)(arguments), function(arguments))


def test_rows_that_no_token_has_are_multiplied_one_by_one() -> None:
    """A vector that stands for all tokens, as long as there are experts of one."""
    torch.manual_seed(3)
    x, logits, w = torch.randn(4), torch.randn(2, 6), torch.randn(6, 5, 4)
    function = lambda x, logits, w: torch.bmm(
        w[logits.topk(4)[1].reshape(-1)], x.unsqueeze(1).expand(2, 4, 4).reshape(8, 4, 1))
    reset()
    torch.testing.assert_close(compiled(function)(x, logits, w), function(x, logits, w))


def test_a_planted_fault_is_found(monkeypatch) -> None:
    right = row_ops.by_number
    monkeypatch.setattr(row_ops, "by_number", lambda op, numbers, count: right(
        "sorted_positions" if op == "sorted_places" else op, numbers, count))
    with pytest.raises(AssertionError, match="not close"):
        check_factor()


def test_long_rows_have_their_largest_elements_by_top_k() -> None:
    torch.manual_seed(5)
    x = torch.randint(-40, 40, (5, 1000)).float()
    x[1, 7], x[2, 3], x[3] = math.nan, math.inf, math.nan
    reset()
    values, index = compiled(lambda x: x.topk(9), dynamic=False)(x)
    wanted = x.sort(dim=-1, descending=True, stable=True)
    assert torch.equal(index, wanted[1][:, :9])
    torch.testing.assert_close(values, wanted[0][:, :9], rtol=0, atol=0, equal_nan=True)
    assert "top_k" in text_of("inference") and eager_ops() == []
