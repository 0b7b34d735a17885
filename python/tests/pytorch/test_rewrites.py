"""The pipeline of rewrites: its table, its checks, and that a rewrite may be left out."""

from __future__ import annotations

import dataclasses
import os
import random
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import make_tables
import torch
from beside_eager import reset
from random_programs import program_of
from program_runs import run_program
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

import sinter
from sinter.errors import SinterError
from sinter.pytorch.backend import compile_aten, read_options
from sinter.pytorch.graphs.decompositions import decompositions
from sinter.pytorch.rewrites import pipeline
from sinter.pytorch.rewrites.pipeline import PIPELINE, ROWS, limited, optional

aten = torch.ops.aten


def planted(name: str, run):
    """Within it a rewrite does something else."""
    return mock.patch.dict(ROWS, {name: dataclasses.replace(ROWS[name], run=run)})


def exchange(before, after):
    """A rewrite that puts one op in the place of another."""
    def run(module):
        for node in list(module.graph.nodes):
            if node.target is before:
                with module.graph.inserting_before(node):
                    other = module.graph.call_function(after, node.args, node.kwargs)
                other.meta.update(node.meta)
                node.replace_all_uses_with(other)
                module.graph.erase_node(node)
    return run


class TestTable(unittest.TestCase):
    def test_the_page_has_every_rewrite(self):
        page = make_tables.ROOT / "docs" / "pytorch_rewrites.md"
        if os.environ.get("SINTER_BLESS"):
            page.write_text(make_tables.rewrites_page())
        self.assertEqual(page.read_text(), make_tables.rewrites_page())

    def test_names_differ(self):
        self.assertEqual(len(ROWS), len(PIPELINE))


class TestRunner(unittest.TestCase):
    def setUp(self):
        reset()

    def compiled(self, function, *arguments):
        compiled = torch.compile(function, backend="sinter")
        return compiled, compiled(*arguments)

    def test_reports_say_what_rewrites_did(self):
        x = torch.randn(2, 8, 16)
        function = lambda x: torch.stack([one.cumsum(1) for one in x.split(4, 1)]) * 1.0
        compiled, result = self.compiled(function, x)
        torch.testing.assert_close(result, function(x))
        table = sinter.explain(compiled).rewrites
        self.assertRegex(table, r"join_chunks +1 of 1 ")
        self.assertRegex(table, r"split_complex +0 of 1 +0 +0 +0 ")

    def test_packed_products_are_reported(self):
        class Two(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)

            def forward(self, x):
                return self.a(x) * self.b(x)

        with torch.no_grad():
            compiled, _ = self.compiled(Two(), torch.randn(3, 64))
        self.assertRegex(sinter.explain(compiled).rewrites, r"find_packing +0 of 1 ")

    def test_a_result_of_another_type_is_a_fault(self):
        def widen(module):
            node = next(node for node in module.graph.nodes if node.target is aten.mul.Tensor)
            with module.graph.inserting_after(node):
                other = module.graph.call_function(aten._to_copy.default, (node,), {"dtype": torch.float16})
            other.meta["val"] = node.meta["val"].half()
            node.replace_all_uses_with(other, lambda user: user is not other)

        with planted("join_chunks", widen), self.assertRaisesRegex(
                Exception, "a fault of the rewrite join_chunks: results .* SINTER_SKIP=join_chunks leaves it out"):
            self.compiled(lambda x: x * 2.0, torch.randn(4))

    def test_an_assertion_needs_no_type(self):
        reset()
        x = torch.tensor([0, 2, 1])
        function = lambda x: nn.functional.one_hot(x, 3) * 2
        graph = make_fx(function, decompositions(), tracing_mode="symbolic")(x)
        if all("val" in node.meta for node in graph.graph.nodes if node.op == "call_function"):
            self.skipTest("this version of PyTorch gives each op a value")
        result = compile_aten(graph, read_options({}), "inference")(x)
        torch.testing.assert_close(result, function(x))

    def test_a_lost_random_op_is_a_fault(self):
        def drop(module):
            for node in list(module.graph.nodes):
                if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
                    with module.graph.inserting_before(node):
                        same = module.graph.call_function(aten.full.default, (list(node.meta["val"].shape), 0.5))
                    same.meta.update(node.meta)
                    node.replace_all_uses_with(same)
                    module.graph.erase_node(node)

        with planted("join_selects", drop), self.assertRaisesRegex(Exception, "join_selects: effects .* become"):
            self.compiled(lambda x: x + torch.rand(4), torch.randn(4))

    def test_a_lost_argument_is_a_fault(self):
        def drop(module):
            node = next(node for node in module.graph.nodes if node.op == "placeholder")
            with module.graph.inserting_after(node):
                same = module.graph.call_function(aten.full.default, ([4], 0.5))
            same.meta.update(node.meta)
            node.replace_all_uses_with(same)
            module.graph.erase_node(node)

        with planted("join_chunks", drop), self.assertRaisesRegex(Exception, "join_chunks: arguments .* become"):
            self.compiled(lambda x, y: x * y, torch.randn(4), torch.randn(4))

    def test_a_node_without_a_type_is_a_fault(self):
        def forget(module):
            exchange(aten.mul.Tensor, aten.mul.Tensor)(module)
            next(node for node in module.graph.nodes if node.target is aten.mul.Tensor).meta.clear()

        with planted("join_chunks", forget), self.assertRaisesRegex(Exception, "mul.* has no type"):
            self.compiled(lambda x: x * 2.0, torch.randn(4))

    def test_graphs_are_dumped(self):
        x = torch.randn(2, 8)
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"SINTER_DUMP": folder}):
            self.compiled(lambda x: torch.stack([one.cumsum(1) for one in x.split(4, 1)]) * 1.0, x)
            names = sorted(path.name for path in Path(folder).iterdir())
            self.assertEqual(names, ["000_join_chunks_after.txt", "000_join_chunks_before.txt"])
            before, after = ((Path(folder) / name).read_text() for name in reversed(names))
            self.assertEqual((before.count("cumsum.default"), after.count("cumsum.default")), (2, 1))

    def test_the_table_stops_after_a_row(self):
        x = torch.randn(2, 8)
        function = lambda x: torch.stack([one.cumsum(1) for one in x.split(4, 1)]) * 1.0
        with limited(stop_after=list(ROWS).index("join_chunks")):
            compiled, result = self.compiled(function, x)
        torch.testing.assert_close(result, function(x))
        self.assertNotIn("join_chunks", sinter.explain(compiled).rewrites)
        self.assertIn("split_complex", sinter.explain(compiled).rewrites)  # it is needed

    def test_unknown_and_needed_rewrites_are_not_left_out(self):
        for name, words in (("join_everything", "there are .*join_chunks"), ("split_complex", "no complex elements")):
            with mock.patch.dict(os.environ, {"SINTER_SKIP": name}), self.assertRaisesRegex(SinterError, words):
                pipeline.is_left_out("join_chunks")
        with self.assertRaisesRegex(SinterError, "no rewrite 'join_everything'"), limited(["join_everything"]):
            pass

    def test_bisect_names_a_wrong_rewrite(self):
        for name in ("join_chunks", "pad_products"):
            with planted(name, exchange(aten.mul.Tensor, aten.add.Tensor)):
                found = sinter.bisect(lambda x: torch.tanh(x) * x + 1.0, (torch.randn(4, 4),), output="")
            self.assertEqual((found.verdict, found.rewrite), ("rewrite", name), str(found))
            self.assertIn(f"wrong by a rewrite of the graph: {name}", str(found))


class Block(nn.Module):
    """Heads, a norm, and products that read one value."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = (self.qkv(self.norm(x)).view(2, 8, 3, 4, 8).permute(2, 0, 3, 1, 4)).unbind()
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return (x + self.out(y.transpose(1, 2).reshape(2, 8, 32))).square().mean()


class TestLeftOut(unittest.TestCase):
    """A rewrite is an optimization. A seed draws one, SINTER_REWRITES gives the seed; all: each of them."""

    def test_results_are_right_without_a_rewrite(self):
        given = os.environ.get("SINTER_REWRITES", "")
        seed = int(given) if given.isdigit() else int(time.time()) // 3600
        names = optional() if given == "all" else [random.Random(seed).choice(optional())]
        for name in names:
            with self.subTest(name, seed=seed), limited([name]):
                self.train()
                self.assertNotIn(f"\n{name} ", sinter.explain().rewrites)
                for number in range(500, 600 if given == "all" else 512):
                    outcome = run_program(program_of(number), "record" if number % 6 else "compile")
                    self.assertFalse(outcome.is_failure, f"{name}, seed {number}: {outcome.detail}")

    def train(self):
        torch.manual_seed(0)
        reset()
        model, x = Block(), torch.randn(2, 8, 32)
        torch.compile(model, backend="sinter")(x).backward()
        ours = [parameter.grad.clone() for parameter in model.parameters()]
        model.zero_grad()
        model(x).backward()
        for mine, parameter in zip(ours, model.parameters()):
            torch.testing.assert_close(mine, parameter.grad, rtol=1e-4, atol=1e-6)


if __name__ == "__main__":
    unittest.main()
