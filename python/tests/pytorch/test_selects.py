"""Gradients of parts that were selected one by one: stacks of the parts' gradients."""

import unittest

import torch
from beside_eager import assert_same, compiled, reset

import sinter.pytorch


def backward_text() -> str:
    (graph,) = [one for one in sinter.explain().graphs if one.phase == "backward"]
    return "".join(entry.compiled.optimized_text for entry in graph.entries)


def check(function, x) -> str:
    reset()
    ours, eager = (x.clone().requires_grad_() for _ in range(2))
    compiled(function, dynamic=False)(ours).square().sum().backward()
    function(eager).square().sum().backward()
    assert_same(ours.grad, eager.grad, 1e-5)
    return backward_text()


class TestSelects(unittest.TestCase):
    def test_parts_that_are_all_of_an_axis_are_stacked(self):
        def attention(x):
            q, k, v = x.unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
            return (q * k.exp()).sin() + v

        text = check(attention, torch.randn(2, 5, 48))
        self.assertIn("stack", text)
        self.assertNotIn("select_scatter", text)

    def test_parts_that_are_missing_or_repeated_stay(self):
        check(lambda x: x[0] * x[2].exp(), torch.randn(3, 4))
        check(lambda x: x[0].sin() * x[1].exp() + x[0].cos() * x[1], torch.randn(2, 4))
        check(lambda x: torch.cat([x[0], x[1] * x[0]]) * x[:, 1:3].sum(), torch.randn(2, 4))


if __name__ == "__main__":
    unittest.main()
