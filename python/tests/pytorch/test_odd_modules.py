"""Odd functions and modules: what they return, change and are made of, beside eager."""

import unittest

import torch
from beside_eager import (assert_same, compiled, eager_ops, reset, run_beside_eager,
                          train_beside_eager)
from torch import nn
from torch.nn import functional as F

randn = torch.randn


class TestResults(unittest.TestCase):
    def test_inputs_and_views_of_inputs_are_returned(self):
        run_beside_eager(lambda x: (x, x.t(), x[0], x + 1), randn(4, 5))
        run_beside_eager(lambda x: x, randn(3))
        run_beside_eager(lambda x: (x.view(4, 3), x.t()), randn(3, 4))

    def test_one_result_is_returned_twice_and_as_views(self):
        run_beside_eager(lambda x: ((y := x * 2), y, y.t(), y[1:]), randn(4, 5))

    def test_none_and_structures_are_returned(self):
        run_beside_eager(lambda x: {"a": x * 2, "b": None, "c": [x.sum(), (x > 0,)]}, randn(4, 5))

    def test_constants_are_returned(self):
        run_beside_eager(lambda x: (torch.ones(3), torch.arange(4), x + 1), randn(3))
        run_beside_eager(lambda x: torch.zeros(2, 3), randn(3))

    def test_integers_and_truth_values_are_returned(self):
        numbers = torch.arange(12).reshape(3, 4)
        run_beside_eager(lambda x: (x + 1, x // 3, x % 3, x > 2, x.float().mean(), x.sum()),
                         numbers)
        run_beside_eager(lambda x: (x > 0, (x > 0) & (x < 1), (x > 0).any(), (x > 0).sum()),
                         randn(4, 5))

    def test_tensors_of_no_axes_and_of_no_elements(self):
        run_beside_eager(lambda x, y: (x * y, x + 1), torch.tensor(2.0), torch.tensor(3.0))
        run_beside_eager(lambda x: (x * 2, x.sum(), x.sum(0)), randn(0, 5))
        run_beside_eager(lambda x, y: x @ y, randn(4, 0), randn(0, 3))

    def test_a_later_call_leaves_earlier_results_alone(self):
        reset()
        double = compiled(lambda x: x * 2)
        first = double(torch.ones(4))
        double(torch.zeros(4))
        self.assertTrue(torch.equal(first, torch.full((4,), 2.0)))

    def test_more_than_eight_axes_run_in_eager(self):
        run_beside_eager(lambda x: x.permute(*reversed(range(10))) * 2, randn(*[2] * 10))
        self.assertIn("aten.mul.Tensor", eager_ops())

    def test_special_numbers_are_torchs(self):
        nan, inf = float("nan"), float("inf")
        x = torch.tensor([[1.0, nan, 2.0], [inf, 1.0, -inf]])
        run_beside_eager(lambda x: (x.softmax(-1), x.relu(), x.clamp(-1, 1), x.amax(),
                                    x.isnan()), x)
        run_beside_eager(lambda x: x.softmax(-1), torch.full((2, 3), -inf))


class TestRandomNumbers(unittest.TestCase):
    def test_random_ops_of_two_branches_keep_their_order(self):
        def encoded_and_decoded(x, y):
            for _ in range(3):
                x = F.dropout((x @ x).relu(), 0.5)
            for _ in range(3):
                y = F.dropout(y, 0.5) + (y @ y).relu()
            return (x @ y).relu()

        reset()
        x, y = randn(4, 4).requires_grad_(), randn(4, 4)
        results = []
        for function in (encoded_and_decoded, compiled(encoded_and_decoded)):
            torch.manual_seed(3)
            results.append(function(x, y))
        torch.testing.assert_close(*results)


class TestParametrizations(unittest.TestCase):
    def test_weight_norm(self):
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
            for axis in (0, 1, None):
                layer = torch.nn.utils.parametrizations.weight_norm(nn.Linear(5, 4).to(dtype), dim=axis)
                train_beside_eager(layer, randn(3, 5, dtype=dtype), tolerance=tolerance)
                self.assertEqual(eager_ops(), [])


class TestArguments(unittest.TestCase):
    def test_memory_with_gaps_overlaps_and_odd_addresses(self):
        run_beside_eager(lambda x: (x * 2, x.sum(0)), randn(6, 8).t()[::2])
        run_beside_eager(lambda x: (x + 1, x.sum(0)), randn(1, 5).expand(4, 5))
        run_beside_eager(lambda x: x + 1, randn(10).as_strided((4, 3), (2, 1)))
        run_beside_eager(lambda x: x * 2 + 1, randn(33)[1:])
        run_beside_eager(lambda x: x @ x.t(), randn(21)[1:].view(4, 5))

    def test_results_keep_the_layout_that_torch_gives_them(self):
        run_beside_eager(lambda x: (x * 2, x + x.sum()),
                         randn(2, 3, 4, 5).to(memory_format=torch.channels_last))
        run_beside_eager(lambda x: (x.t() * 2, (x @ x.t()).t(), x.t().contiguous()), randn(3, 4))

    def test_a_tensor_given_twice(self):
        x = randn(5)
        run_beside_eager(lambda a, b: a * b + a, x, x)

    def test_numbers_as_arguments(self):
        run_beside_eager(lambda x, s: x * s + s, randn(3), 2.5)
        run_beside_eager(lambda x, s: x * s, randn(3), 3)

    def test_arguments_are_changed_in_place(self):
        def change(x):
            x.add_(1)
            y = x * 2
            x[0] = 5
            return y

        def change_view(x):
            view = x[1:]
            view.mul_(3)
            return view, x.sum()

        def swap(a, b):
            kept = a.clone()
            a.copy_(b)
            b.copy_(kept)

        run_beside_eager(change, randn(4, 5))
        run_beside_eager(change_view, randn(4, 5))
        run_beside_eager(swap, randn(4), randn(4))
        run_beside_eager(lambda x: x.add_(1), randn(3))

    def test_arguments_that_share_memory_are_changed(self):
        def change(a, b):
            a.add_(1)
            return a + b

        reset()
        ours, theirs, function = randn(5), None, compiled(change)
        theirs = ours.clone()
        assert_same(function(ours[:4], ours[1:]), change(theirs[:4], theirs[1:]))
        assert_same(ours, theirs)

    def test_many_arguments_and_results(self):
        run_beside_eager(lambda *xs: sum(xs), *[randn(3) for _ in range(200)])
        run_beside_eager(lambda x: [x * i for i in range(200)], randn(3))


class TestModules(unittest.TestCase):
    def test_tied_weights(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding, self.head = nn.Embedding(10, 8), nn.Linear(8, 10, bias=False)
                self.head.weight = self.embedding.weight

            def forward(self, tokens):
                return self.head(torch.tanh(self.embedding(tokens)))

        train_beside_eager(Tied(), torch.randint(0, 10, (3, 4)))

    def test_gradients_of_inputs_frozen_and_unused_parameters(self):
        make = lambda: nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))
        train_beside_eager(make(), randn(2, 5, 4, requires_grad=True))
        module = make()
        module[0].weight.requires_grad_(False)
        module[1].unused = nn.Linear(2, 2)
        train_beside_eager(module, randn(2, 4))

    def test_parameters_whose_memory_is_transposed(self):
        module = nn.Linear(4, 6)
        module.weight.data = randn(4, 6).t()
        train_beside_eager(module, randn(2, 4))

    def test_constants_in_the_forward_function(self):
        class Constants(nn.Module):
            def __init__(self):
                super().__init__()
                self.shift, self.linear = torch.tensor([1.0, 2.0]), nn.Linear(2, 2)

            def forward(self, x):
                return self.linear(x + self.shift) * torch.tensor([3.0, 4.0])

        train_beside_eager(Constants(), randn(3, 2))

    def test_attention_with_grouped_heads_masks_and_both_layouts(self):
        attention = F.scaled_dot_product_attention
        q, k = randn(2, 4, 5, 8), randn(2, 2, 5, 8)
        run_beside_eager(lambda q, k: attention(q, k, k, enable_gqa=True), q, k)
        run_beside_eager(lambda q, k, m: attention(q, k, k, attn_mask=m), q, q,
                         torch.rand(2, 1, 5, 5) > 0.3)
        run_beside_eager(lambda q: attention(q.transpose(1, 2), q.transpose(1, 2),
                                             q.transpose(1, 2), is_causal=True), q)
        train_beside_eager(nn.MultiheadAttention(16, 4, batch_first=True), *[randn(2, 5, 16)] * 3)

    def test_checkpoints_hooks_and_functions_with_their_own_gradient(self):
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**3

            @staticmethod
            def backward(ctx, grad):
                return 5 * grad * ctx.saved_tensors[0]  # not the cube's, to tell them apart

        class Module(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
                self.b.register_forward_hook(lambda module, inputs, result: result * 2)

            def forward(self, x):
                run = lambda x: self.b(torch.tanh(self.a(x)))
                return Cube.apply(torch.utils.checkpoint.checkpoint(run, x, use_reentrant=False))

        train_beside_eager(Module(), randn(2, 4))

    def test_vmap_and_grad_of_torch_func(self):
        run_beside_eager(lambda x, w: torch.func.vmap(lambda a: torch.tanh(w @ a))(x),
                         randn(4, 5), randn(3, 5))
        run_beside_eager(lambda x: torch.func.grad(lambda a: torch.tanh(a).square().sum())(x),
                         randn(4, 5))

    def test_control_flow_of_data_breaks_the_graph_and_stays_right(self):
        run_beside_eager(lambda x: x + 1 if x.sum() > 0 else x - 1, randn(3))
        run_beside_eager(lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)),
                         randn(3))
        run_beside_eager(lambda x: (x[x > 0], torch.nonzero(x > 0)), randn(10))

    def test_autocast_rounds_where_torch_does(self):
        reset()
        module = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 8))
        function, x = compiled(module), randn(4, 16)
        with torch.autocast("cpu", torch.bfloat16):
            assert_same(function(x), module(x), 2e-2)

    def test_a_second_derivative_is_an_error_that_says_so(self):
        reset()
        x = randn(4, requires_grad=True)
        grad, = torch.autograd.grad(compiled(lambda x: (x**3).sum())(x), x, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "double backward"):
            grad.sum().backward()


if __name__ == "__main__":
    unittest.main()
