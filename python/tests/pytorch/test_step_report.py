"""The report of a training step: graphs by role, kernels by class, what the backward pass costs."""

from __future__ import annotations

import re

import pytest
import torch
from beside_eager import reset
from sinter.pytorch import explain
from sinter.pytorch.tools.report import Explanation
from sinter.pytorch.tools.step_report import class_rows, kept_values, ledgers_of, role_rows
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

import sinter

CLASSES = {"attention", "products", "loss", "norms", "activations", "optimizer", "elementwise", "copies"}


def step_of_gpt2() -> Explanation:
    """A step of a small GPT-2: forward, backward, clipping and AdamW."""
    reset()
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=97, n_positions=32, n_embd=32, n_layer=1, n_head=2, use_cache=False,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(1e-3), capturable=True)

    def change():
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    compiled, step = (torch.compile(one, backend="sinter") for one in (model, change))
    ids = torch.randint(0, 97, (2, 16))
    compiled(input_ids=ids, labels=ids).loss.backward()
    step()
    return explain(compiled, step)


@pytest.fixture(scope="module")
def gpt2() -> Explanation:
    return step_of_gpt2()


def test_forward_backward_and_optimizer_are_roles(gpt2):
    assert list(gpt2.roles) == ["forward", "backward", "optimizer"]
    assert [graph.phase for graph in gpt2.graphs if graph.phase == "optimizer"] == ["optimizer"] * 2
    assert not gpt2.eager


def test_sums_of_roles_are_those_of_their_plans(gpt2):
    for name, role in gpt2.roles.items():
        costs = [entry.compiled.entry().costs() for graph in gpt2.graphs if graph.phase == name
                 for entry in graph.entries]
        assert role.launches == sum(one.launches for one in costs)
        assert role.moved_bytes == sum(one.moved_bytes for one in costs)
        assert role.seconds == pytest.approx(sum(one.predicted_seconds for one in costs), rel=1e-12)
        assert 0 < role.kernels <= role.launches


def test_classes_of_a_role_add_up_to_it(gpt2):
    for role in gpt2.roles.values():
        assert set(role.classes) <= CLASSES
        assert sum(one.launches for one in role.classes.values()) == role.launches
        assert sum(one.moved_bytes for one in role.classes.values()) == role.moved_bytes
        assert sum(one.seconds for one in role.classes.values()) == pytest.approx(role.seconds, rel=1e-12)
        seconds = [one.seconds for one in role.classes.values()]
        assert seconds == sorted(seconds, reverse=True)


def test_the_classes_are_those_of_the_work(gpt2):
    roles = gpt2.roles
    assert {"attention", "products", "norms", "activations", "loss"} <= set(roles["forward"].classes)
    assert {"products", "norms", "activations"} <= set(roles["backward"].classes)
    assert "optimizer" in roles["optimizer"].classes
    assert "products" not in roles["optimizer"].classes
    assert roles["forward"].classes["attention"].launches == 1
    # Two gradients for each product of the forward pass.
    assert roles["backward"].classes["products"].launches >= 2 * roles["forward"].classes["products"].launches


def test_the_text_has_a_row_for_each_role_and_class(gpt2):
    text = str(gpt2)
    for rows in (role_rows(gpt2.roles), class_rows(gpt2.roles)):
        for row in rows[1:]:
            pattern = r"^" + r"\s+".join(re.escape(cell) for cell in row if cell) + "$"
            assert re.search(pattern, text, flags=re.M), row
    assert re.search(r"^  kept for the backward pass: \d+ values, [\d,]+ bytes; written for it alone: \d+,", text,
                     flags=re.M)
    assert re.search(r"^  not fused: .*\(port\.closed\), at most", text, flags=re.M)
    assert re.search(r"^  refusals: \d+ port\.closed", text, flags=re.M)
    markdown = gpt2.markdown()
    assert "| --- | ---: |" in markdown and "| products |" in markdown and "not fused:" in markdown


def test_kept_values_are_results_of_the_forward_pass_and_arguments_of_the_backward_pass(gpt2):
    forward = [graph for graph in gpt2.graphs if graph.phase == "forward"]
    for graph in forward:
        kept = kept_values(graph)
        assert kept
        for (entry, ledger), names in zip(ledgers_of(graph), graph.kept, strict=True):
            results = entry.compiled.entry().outputs
            readers = {edge["value"] for edge in ledger["edges"]}
            for value in kept:
                dtype, _, dims = results[value.name].partition("[")
                assert value.type.startswith(dtype)
                assert not (value.alone and value.name in readers)
                elements = torch.Size(int(dim) for dim in re.findall(r"\d+", dims)).numel()
                assert value.nbytes % elements == 0
            assert {value.name for value in kept} == set(names)
    # A value that only the backward pass reads: the argument of GELU, which shares a kernel with the bias.
    assert any(value.alone and value.name.endswith("mlp.c_fc") for value in kept_values(forward[0]))
    assert all(not graph.kept or not any(graph.kept) for graph in gpt2.graphs if graph.phase != "forward")


def test_the_plan_of_all_graphs_has_an_entry_for_each_with_its_costs(gpt2):
    plan = gpt2.plan()
    assert list(plan.entries) == ["forward", "forward_2", "backward", "backward_2", "optimizer", "optimizer_2"]
    assert gpt2.plan() is plan
    entries = [entry for graph in gpt2.graphs for entry in graph.entries]
    for alone, together in zip(entries, plan.entries.values(), strict=True):
        a, b = alone.compiled.entry().costs(), together.costs()
        assert (a.launches, a.moved_bytes, a.predicted_seconds) == (b.launches, b.moved_bytes, b.predicted_seconds)
        assert [(step.kind, step.values) for step in alone.compiled.entry().steps] == \
            [(step.kind, step.values) for step in together.steps]
    assert plan.verify()
    assert sinter.compile(gpt2.text).entries.keys() == plan.entries.keys()


def test_the_page_has_all_entries_with_their_classes_and_the_users_lines(gpt2):
    page = gpt2.explain_html()
    for name in gpt2.plan().entries:
        assert f'"title":"{name}"' in page
    assert '"classes":[{"class":"products"' in page
    assert "modeling_gpt2.py" in page


def test_two_runs_give_the_same_report(gpt2):
    def report_of(explanation: Explanation) -> list[str]:
        text = re.sub(r"compiled in [\d.]+ s", "", str(explanation))
        return [text, explanation.text, explanation.explain_html()]

    assert report_of(gpt2) == report_of(step_of_gpt2())


def test_a_graph_that_writes_neither_parameters_nor_gradients_is_inference():
    reset()

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x):
            self.count.add_(x.sum(0))
            return self.norm(x)

    with torch.no_grad():
        torch.compile(Counting(), backend="sinter")(torch.randn(4, 3))
    explanation = explain()
    assert [graph.phase for graph in explanation.graphs] == ["inference"]
    assert "us by class" not in str(explanation)
    assert explanation.markdown().startswith("```\n1 graph")


def test_symbols_of_one_name_and_other_bounds_stay_apart():
    reset()
    functions = [torch.compile(one, backend="sinter", dynamic=True)
                 for one in (lambda x: torch.tanh(x) * 2, lambda x: x.exp().sum(-1))]
    with torch.no_grad():
        functions[0](torch.randn(8, 4))
        functions[1](torch.randn(200, 4))
    explanation = explain()
    entries = [entry for graph in explanation.graphs for entry in graph.entries]
    plan = explanation.plan()
    for alone, together in zip(entries, plan.entries.values(), strict=True):
        ranges = [{(one.low, one.high, one.multiple) for one in entry.symbols.values()}
                  for entry in (alone.compiled.entry(), together)]
        assert ranges[0] == ranges[1]
    assert len(plan.symbols) == 3  # the lengths 8 and 200 have other bounds, both widths the same
    assert plan.verify()


def test_no_graph_and_other_options_are_errors():
    reset()
    with pytest.raises(sinter.SinterError, match="no graph was compiled"):
        explain().plan()
    for options in ({}, {"fuse": False}):
        torch.compile(lambda x: x.exp() + 1, backend="sinter", options=options)(torch.randn(4))
    with pytest.raises(sinter.SinterError, match="different options"):
        explain().plan()


def test_the_fused_adamw_of_torch_stands_beside_compiled_graphs():
    """AdamW(fused=True) is one op of torch, uncompiled: parameters after three steps equal the result of a step in
    which AdamW alone is eager's."""
    def parameters(fused: bool) -> list[torch.Tensor]:
        reset()
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=fused)
        compiled = torch.compile(model, backend="sinter", options={"require_full": True})
        for _ in range(3):
            optimizer.zero_grad()
            compiled(torch.randn(4, 8, generator=torch.Generator().manual_seed(2))).square().mean().backward()
            optimizer.step()
        assert list(explain(compiled).roles) == ["forward", "backward"]
        return list(model.parameters())

    for ours, eager in zip(parameters(True), parameters(False), strict=True):
        torch.testing.assert_close(ours, eager)
