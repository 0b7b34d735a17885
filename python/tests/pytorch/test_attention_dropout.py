"""Dropout inside attention, beside the formula of its mask in torch's ops and beside float64."""

import unittest
from unittest import mock

import torch
from beside_eager import compiled, eager_ops, reset
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

from sinter.pytorch.graphs import library
from sinter.pytorch.graphs.attention_call import SEED_RANGE
from sinter.pytorch.rewrites.seeds import join_seeds

# probability, batch, tokens, keys, query heads, key heads, elements of a head, causal, with a mask, type
CASES = (
    (0.1, 2, 70, 70, 4, 4, 64, True, False, torch.bfloat16),
    (0.5, 2, 33, 150, 4, 2, 32, False, True, torch.float16),
    (0.97, 1, 129, 129, 2, 1, 128, False, False, torch.bfloat16),
    (1e-7, 3, 4, 4, 4, 4, 4, True, False, torch.float16),
)


def drawn_seeds(count):
    """The seeds that a call draws from torch's generator."""
    return torch.randint(*SEED_RANGE, (count,), dtype=torch.int32)


def results(function, tensors, grad):
    leaves = [x.detach().requires_grad_() for x in tensors]
    result = function(*leaves)
    result.backward(grad)
    return [result.detach(), *[x.grad for x in leaves]]


class TestAttentionDropout(unittest.TestCase):
    def setUp(self):
        reset()

    def test_it_leaves_out_the_weights_of_its_formula(self):
        for case in CASES:
            p, batch, tokens, keys, heads, groups, width, causal, has_mask, dtype = case
            reset()
            torch.manual_seed(3)
            make = lambda rows, count: torch.randn(batch, rows, count, width, dtype=dtype).transpose(1, 2)
            tensors, grad = [make(tokens, heads), make(keys, groups), make(keys, groups)], make(tokens, heads)
            mask = torch.rand(batch, 1, 1, keys) < 0.7 if has_mask else None

            def attention(q, k, v):
                return F.scaled_dot_product_attention(q, k, v, mask, p, causal, enable_gqa=heads != groups)

            torch.manual_seed(11)
            ours = results(compiled(attention, dynamic=False), tensors, grad)
            self.assertEqual(eager_ops(), ["aten.randint.low"], case)
            torch.manual_seed(11)
            seed, = drawn_seeds(1)

            def formula(q, k, v):
                factors = library.dropout_factors((batch, heads, tokens, keys), p, seed)
                weights = library.probabilities(q, k, mask, causal, width**-0.5) * factors
                return torch.einsum("bhst,bhte->bhse", weights, library.repeated(v, q).to(weights.dtype))

            with mock.patch.object(torch.Tensor, "float", torch.Tensor.double):
                exact = results(formula, [x.double() for x in tensors], grad.double())
            # Weights and their gradients are rounded to the type once, and sums once more.
            for own, right in zip(ours, exact):
                limit = 2.5 * torch.finfo(dtype).eps * right.abs().max()
                self.assertLessEqual((own - right).abs().max(), limit, case)

    def test_probabilities_and_independence(self):
        seeds = drawn_seeds(2)
        for p in (0.1, 0.5):
            kept = [library.dropout_factors((3, 2, 100, 128), p, seed) != 0 for seed in seeds]
            count = kept[0].numel()
            deviation = (p * (1 - p) / count) ** 0.5
            for one in kept:
                self.assertLess(abs(one.double().mean() - (1 - p)), 5 * deviation + 2**-16)
                for axis in range(4):  # neighbours along an axis, and keys that share a word
                    for distance in (1, 8):
                        if distance >= one.shape[axis]:
                            continue
                        both = one & one.roll(distance, axis)
                        self.assertLess(abs(both.double().mean() - (1 - p) ** 2), 8 * deviation)
            both = kept[0] & kept[1]
            self.assertLess(abs(both.double().mean() - (1 - p) ** 2), 6 * deviation)

    def test_one_op_draws_the_seeds_of_all_layers(self):
        def layers(x):
            for _ in range(3):
                x = x + F.scaled_dot_product_attention(x, x, x, dropout_p=0.3)
            return x

        x = torch.randn(2, 3, 40, 16, dtype=torch.bfloat16)
        function, calls = compiled(layers, dynamic=False), []
        for seed in (7, 7, 8):
            torch.manual_seed(seed)
            calls.append(results(function, [x], x))
        self.assertEqual(eager_ops(), ["aten.randint.low"])
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(*calls[:2])))
        self.assertFalse(torch.equal(calls[0][0], calls[2][0]))
        with torch.no_grad():
            torch.manual_seed(7)
            torch.testing.assert_close(function(x), calls[0][0])

    def test_joined_seeds_are_a_graph_that_runs(self):
        def seeds(q):
            attend = torch.ops.sinter.attention.default
            draw = torch.ops.aten.randint.low
            for _ in range(3):
                seed = draw(*SEED_RANGE, [], dtype=torch.int32, device=torch.device("cpu"), pin_memory=False)
                q = attend(q, q, q, None, False, 0.25, 0.0, 0.5, seed).transpose(1, 2)
            return q

        q = torch.randn(1, 2, 5, 16)
        module = make_fx(seeds, tracing_mode="fake")(q)
        join_seeds(module.graph)
        module.recompile()
        nodes = [*module.graph.nodes]
        self.assertEqual(nodes, [*reversed(module.graph.nodes)][::-1])
        self.assertEqual(sum(node.target is torch.ops.aten.randint.low for node in nodes), 1)
        self.assertEqual(module(q).shape, q.shape)

    def test_eagers_numbers(self):
        def attention(x):
            return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)

        x = torch.randn(2, 3, 20, 16, dtype=torch.bfloat16)
        with torch._inductor.config.patch(fallback_random=True):
            function = compiled(attention, dynamic=False)
            torch.manual_seed(5)
            ours = function(x)
            torch.manual_seed(5)
            torch.testing.assert_close(ours, attention(x))
        self.assertNotIn("aten.randint.low", eager_ops())


if __name__ == "__main__":
    unittest.main()
