"""sinter.pytorch.check, and what explain says of refusals."""

import unittest

import torch
from beside_eager import compiled, reset
from torch import nn
from torch.nn import functional as F

import sinter
import sinter.pytorch
from sinter.pytorch.convert.ops import CONVERSIONS

randn = torch.randn


class TestCheck(unittest.TestCase):
    def test_a_right_module_is_right_with_fixed_and_dynamic_sizes(self):
        class Attention(nn.MultiheadAttention):
            def forward(self, x):
                return super().forward(x, x, x, need_weights=False)[0]

        torch.manual_seed(0)
        report = sinter.pytorch.check(Attention(8, 4, batch_first=True), (randn(2, 8, 8),),
                                      dynamic_shapes=({0: "B", 1: "S"},), sizes=[{"B": 2, "S": 8}])
        self.assertTrue(report, str(report))
        self.assertEqual(report.exit_code, 0)
        names = {one.name for one in report.comparisons}
        self.assertEqual(names, {"output 0", "gradient of argument 0", "gradient of in_proj_weight",
                                 "gradient of in_proj_bias", "gradient of out_proj.weight",
                                 "gradient of out_proj.bias"})
        self.assertEqual({one.kind for one in report.comparisons}, {"fixed", "dynamic"})
        self.assertRegex(str(report), r"output 0 +float32 +2 +\d.* right\n")
        self.assertTrue(str(report).endswith("right"))

    def test_a_wrong_conversion_is_found(self):
        exact = CONVERSIONS[torch.ops.aten.tanh.default]
        planted = lambda c, x: exact(c, x) * 1.001
        try:
            CONVERSIONS[torch.ops.aten.tanh.default] = planted
            report = sinter.pytorch.check(torch.tanh, (randn(4, 4),))
        finally:
            CONVERSIONS[torch.ops.aten.tanh.default] = exact
        self.assertFalse(report)
        self.assertEqual(report.exit_code, 1)
        self.assertRegex(str(report), r"WRONG: output 0, fixed sizes: 1.0e-03 from float64, eager ")

    def test_integers_masks_and_default_sizes(self):
        def picked(x, index, mask):
            return F.embedding(index, x).masked_fill(mask, float("-inf")).softmax(-1)

        report = sinter.pytorch.check(
            picked, (randn(5, 4), torch.tensor([[0, 4], [2, 1]]), torch.zeros(4).bool()),
            dynamic_shapes=({}, {0: "B", 1: "S"}, {}), backward=False)
        self.assertTrue(report, str(report))
        self.assertGreaterEqual(len({one.sizes for one in report.comparisons}), 4)

    def test_a_function_that_dynamo_skips_is_told(self):
        def skipped(x):
            for _ in range(2):
                if x.sum() > 0:
                    torch._dynamo.graph_break()
            return x

        report = sinter.pytorch.check(skipped, (randn(3),))
        self.assertIn("note: Dynamo compiled no graph", str(report))


class TestExplanations(unittest.TestCase):
    def setUp(self):
        reset()

    def test_a_function_that_dynamo_skipped_whole_is_called_so(self):
        def skipped(x):
            for _ in range(2):
                if x.sum() > 0:
                    torch._dynamo.graph_break()
            return x

        function = compiled(skipped)
        self.assertIn("call the function first", str(sinter.explain(function)))
        function(randn(3))
        self.assertIn("Dynamo ran the whole function in eager", str(sinter.explain(function)))

    def test_cross_attention_of_two_dynamic_lengths_is_compiled(self):
        function = compiled(F.scaled_dot_product_attention, dynamic=True)
        q, k, v = randn(2, 2, 3, 8), randn(2, 2, 5, 8), randn(2, 2, 5, 8)
        torch.testing.assert_close(function(q, k, v), F.scaled_dot_product_attention(q, k, v))
        self.assertEqual([op.op for one in sinter.pytorch.tools.report.REPORTS for op in one.eager], [])

    def test_rounded_scores_are_named_with_what_relaxed_attention_would_save(self):
        def attend(q, k, v):
            scores = q @ k.transpose(-2, -1)
            return torch.softmax(scores, -1) @ v

        inputs = [randn(2, 4, 128, 64).bfloat16() for _ in range(3)]
        composed = compiled(attend)
        composed(*inputs)
        lines = str(sinter.explain(composed)).splitlines()
        at = next(i for i, line in enumerate(lines) if "attention: 1 by composed" in line)
        self.assertIn("its scores are rounded to bf16", lines[at])
        self.assertIn("test_check.py:", lines[at + 1])
        self.assertIn("return torch.softmax(scores, -1) @ v", lines[at + 1])
        self.assertRegex(lines[at + 2],
                         r'^    options=\{"attention": "relaxed"\} would save [\d.]+ .?s and [\d.]+ .?B$')

        reset()
        relaxed = compiled(attend, options={"attention": "relaxed"})
        relaxed(*inputs)
        text = str(sinter.explain(relaxed))
        self.assertIn("attention: 1 by tiled_attention", text)
        self.assertNotIn("relaxed", text)

    def test_reasons_have_no_numbers_of_the_irs_constraints(self):
        deep = compiled(lambda x: x.reshape([2] * 9).flip(0) * 2)
        deep(randn(512))
        reasons = [op.reason for op in sinter.explain(deep).eager]
        self.assertTrue(reasons)
        for reason in reasons:
            self.assertNotRegex(reason, r"\(C\d+\)|V\d+:")

    def test_an_exception_out_of_a_conversion_is_told_and_the_op_runs_in_eager(self):
        def broken(c, x):
            raise KeyError("val")

        exact = CONVERSIONS[torch.ops.aten.tanh.default]
        try:
            CONVERSIONS[torch.ops.aten.tanh.default] = broken
            sinter.pytorch.convert.importer.RAISES_FAULTS = False
            function, x = compiled(lambda x: torch.tanh(x) * 2), randn(3)
            self.assertTrue(torch.equal(function(x), torch.tanh(x) * 2))
        finally:
            CONVERSIONS[torch.ops.aten.tanh.default] = exact
            sinter.pytorch.convert.importer.RAISES_FAULTS = True
        (op,) = sinter.explain(function).eager
        self.assertIn("a fault in Sinter's conversion, please report it: KeyError('val')", op.reason)


if __name__ == "__main__":
    unittest.main()
