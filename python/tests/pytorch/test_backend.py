"""torch.compile(backend="sinter"): options, the explanation, shared memory, sizes that change."""

import unittest

import torch
from beside_eager import assert_same, compiled, eager_ops, errors_of_threads, reset
from torch import nn

import sinter.pytorch
from sinter.pytorch.tools import report

randn = torch.randn


def compilations() -> int:
    return len(report.REPORTS)


class TestOptions(unittest.TestCase):
    def setUp(self):
        reset()

    def assert_refused(self, text, **arguments):
        with self.assertRaisesRegex(Exception, text):
            compiled(lambda x: x + 1, **arguments)(randn(3))

    def test_an_unknown_option_is_an_error_that_lists_the_options(self):
        self.assert_refused("no option 'fsue'; it has require_full, fuse", options={"fsue": 1})

    def test_values_of_options_are_checked(self):
        self.assert_refused('option numerics: "hm" is neither strict nor fast',
                            options={"numerics": "hm"})
        self.assert_refused("unknown device description 'sm_1'; choose one of",
                            options={"target": "sm_1"})

    def test_an_unknown_mode_is_an_error(self):
        self.assert_refused("no mode 'fastest'; it has default, reduce-overhead", mode="fastest")

    def test_require_full_names_the_ops_that_would_run_in_eager(self):
        function = compiled(lambda x: x.cummax(0)[0] + 1, options={"require_full": True})
        with self.assertRaisesRegex(Exception, r"aten.cummax.default test_backend.py:\d+: .*no conv"):
            function(randn(3))

    def test_unfused_graphs_have_a_launch_for_each_op_and_the_same_bits(self):
        function = lambda x: torch.tanh(x * 3) / (1 + x.square()).sum(-1, keepdim=True)
        x, launches = randn(7, 33), []
        results = []
        for fuse in (True, False):
            torch._dynamo.reset()
            results.append(compiled(function, options={"fuse": fuse})(x))
            launches.append(report.REPORTS[-1].entries[0].compiled.entry().costs().launches)
        self.assertTrue(torch.equal(*results))
        self.assertEqual(launches[0], 1)
        self.assertGreaterEqual(launches[1], 5)

    def test_a_target_is_compiled_for(self):
        compiled(lambda x: x + 1, options={"target": "sm_80"})(randn(3))
        self.assertEqual(report.REPORTS[-1].entries[0].compiled.target, "sm_80")


class TestExplain(unittest.TestCase):
    def setUp(self):
        reset()

    def test_an_op_in_eager_is_named_with_its_line_and_the_reason(self):
        def rank(x):
            return torch.tanh(x).cummax(-1)[0] * 2

        function = compiled(rank)
        function(randn(3, 4))
        explanation = sinter.pytorch.explain(function)
        (op,) = explanation.eager
        self.assertEqual((op.op, op.reason), ("aten.cummax.default", "no conversion"))
        self.assertRegex(op.location, r"test_backend.py:\d+: return torch.tanh\(x\).cummax")
        self.assertIn("1 graph, 1 op in eager", str(explanation))
        self.assertIn("in eager: aten.cummax.default: no conversion\n    test_backend.py",
                      str(explanation))

    def test_two_modules_of_one_class_have_their_own_graphs(self):
        make = lambda: nn.Sequential(nn.Linear(4, 4), nn.GELU())
        a, b = compiled(make()), compiled(make())
        self.assertIn("no graph was compiled", str(sinter.pytorch.explain(a)))
        a(randn(2, 4)).sum().backward()
        self.assertEqual([one.phase for one in sinter.pytorch.explain(a).graphs],
                         ["forward", "backward"])
        self.assertEqual(sinter.pytorch.explain(b).graphs, [])

    def test_graph_breaks_give_several_graphs(self):
        def broken(x):
            y = x * 2 + 1
            torch._dynamo.graph_break()
            return y.softmax(-1)

        function = compiled(broken)
        function(randn(3, 4))
        self.assertEqual(len(sinter.pytorch.explain(function).graphs), 2)

    def test_a_module_compiled_in_place_is_explained(self):
        module = nn.Linear(4, 4)
        module.compile(backend=sinter.pytorch.compile_graph)
        module(randn(2, 4))
        self.assertEqual(len(sinter.pytorch.explain(module).graphs), 1)

    def test_why_is_asked_in_the_names_of_the_modules(self):
        model = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32), nn.GELU())
        with torch.no_grad():
            function = compiled(model)
            function(randn(64, 32))  # more tokens than a gemv takes
        (graph,) = sinter.pytorch.explain(function).graphs
        self.assertFalse(graph.entries[0].compiled.why("0", "2"))

    def test_the_page_names_the_line_that_made_a_value(self):
        function = compiled(lambda x: torch.tanh(x) + 1)
        function(randn(4))
        (graph,) = sinter.pytorch.explain(function).graphs
        self.assertIn("test_backend.py:", graph.entries[0].compiled.explain_html())


class TestRandomNumbers(unittest.TestCase):
    def test_dropout_and_random_tensors_are_torchs_under_the_same_seed(self):
        reset()
        model = nn.Sequential(nn.Linear(32, 32), nn.Dropout(0.5), nn.Linear(32, 8))
        functions = [(compiled(one), one) for one in (model, lambda x: x + torch.rand_like(x))]
        x = randn(8, 32)
        for ours, eager in functions:
            torch.manual_seed(5)
            result = ours(x)
            torch.manual_seed(5)
            assert_same(result, eager(x))
        self.assertEqual(set(eager_ops()),
                         {"aten.native_dropout.default", "aten.rand_like.default"})


class TestSharedMemory(unittest.TestCase):
    def test_a_parameter_that_changes_is_read_anew(self):
        reset()
        module, x = nn.Linear(4, 4), randn(2, 4)
        function = compiled(module)
        with torch.no_grad():
            for change in (lambda: None,
                           lambda: module.weight.mul_(2),
                           lambda: module.load_state_dict(nn.Linear(4, 4).state_dict()),
                           lambda: setattr(module.weight, "data", randn(4, 4))):
                change()
                assert_same(function(x), module(x))
        self.assertEqual(compilations(), 1)

    def test_buffers_that_the_module_changes_are_changed(self):
        class Count(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)
                self.register_buffer("calls", torch.zeros(()))

            def forward(self, x):
                self.calls.add_(1)
                return self.linear(x) * self.calls

        reset()
        module, x = Count(), randn(2, 4)
        function = compiled(module)
        for _ in range(3):
            function(x).sum().backward()
        self.assertEqual(module.calls.item(), 3)

    def test_gradients_accumulate_and_a_graph_runs_backward_twice(self):
        reset()
        module, x = nn.Linear(4, 1), randn(2, 4)
        function = compiled(module)
        loss = function(x).sum()
        loss.backward(retain_graph=True)
        grad = module.weight.grad.clone()
        loss.backward()
        function(x).sum().backward()
        assert_same(module.weight.grad, 3 * grad)

    def test_threads_share_a_compiled_module(self):
        reset()
        module = nn.Linear(8, 8).requires_grad_(False)
        function = compiled(module)
        function(randn(4, 8))

        def work():
            for _ in range(100):
                x = randn(4, 8)
                assert_same(function(x), module(x))

        self.assertEqual(errors_of_threads(work), [])


class TestPlacesAndTypes(unittest.TestCase):
    def test_types_that_sinter_lacks_run_in_eager(self):
        for x, dtype in ((randn(4).double(), "float64"),
                         (torch.arange(4, dtype=torch.uint8), "uint8")):
            reset()
            function = lambda x: (x * 2, x.float() + 1)
            assert_same(compiled(function)(x), function(x))
            self.assertIn(f"elements of {dtype}", {op.reason for op in report.REPORTS[0].eager})

    def test_an_index_out_of_range_is_an_index_error_on_the_cpu(self):
        reset()
        with self.assertRaisesRegex(IndexError, "index 9 is out of bounds for an axis of size 4"):
            compiled(nn.Embedding(4, 3))(torch.tensor([0, 9]))


class TestDynamicSizes(unittest.TestCase):
    def test_one_compilation_serves_all_batch_sizes(self):
        reset()
        module = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU()).requires_grad_(False)
        function = compiled(module, dynamic=True)
        for batch in (2, 3, 5, 64, 30):
            x = randn(batch, 7, 8)
            assert_same(function(x), module(x))
        self.assertEqual(compilations(), 1)

    def test_a_size_that_changes_becomes_dynamic_in_its_second_value(self):
        reset()
        function = lambda x: x.softmax(-1).sum(0)
        ours = compiled(function)
        for batch in (4, 5, 6, 7):
            assert_same(ours(x := randn(batch, 8)), function(x))
        self.assertEqual(compilations(), 2)

    def test_a_float_that_changes_becomes_an_input(self):
        reset()
        function = lambda x, s: x * s + (x > s)
        ours = compiled(function, dynamic=True)
        for number in (0.3, 0.7, -1.5):
            assert_same(ours(x := randn(3, 8), number), function(x, number))
        self.assertEqual((compilations(), eager_ops()), (1, []))

    def test_batch_and_length_change_in_training(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.LayerNorm(16)
                self.mix, self.head = nn.Linear(16, 16), nn.Linear(16, 9)

            def forward(self, x):
                q = self.norm(x).unsqueeze(1)
                x = x + nn.functional.scaled_dot_product_attention(q, q, self.mix(q),
                                                                   is_causal=True).squeeze(1)
                return self.head(x)[:, -1].square().mean()

        reset()
        module = Model()
        ours = compiled(module, dynamic=True)
        for batch, length in ((2, 7), (3, 9), (5, 16), (4, 30)):
            x, grads = randn(batch, length, 16), []
            for function in (ours, module):
                module.zero_grad()
                function(x).backward()
                grads.append([parameter.grad for parameter in module.parameters()])
            assert_same(*grads, 1e-4)
        self.assertEqual((compilations(), eager_ops()), (2, []))


if __name__ == "__main__":
    unittest.main()
