"""Gradients of attention from log-sums, beside eager and float64."""

import unittest

import torch
from beside_eager import reset
from torch.nn import functional as F

import sinter.pytorch

# batch, tokens, keys, query heads, key heads, elements of a head of queries, and of values, causal
CASES = (
    (2, 70, 70, 4, 4, 64, 64, True),
    (2, 65, 130, 4, 2, 32, 48, False),
    (1, 33, 20, 6, 1, 20, 12, True),
    (3, 129, 129, 2, 2, 128, 128, False),
    (4, 4, 4, 4, 4, 4, 4, True),
)


def gradients(function, tensors, grad, causal):
    leaves = [x.detach().requires_grad_() for x in tensors]
    result = function(*leaves, causal)
    result.backward(grad)
    return [result.detach(), *[x.grad for x in leaves]]


def attention(q, k, v, causal):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                          enable_gqa=q.shape[1] != k.shape[1])


def masks(batch, tokens, keys, heads):
    """Masks of data and of positions, of truth values and of numbers; some hide all keys of a token."""
    lengths = torch.randint(keys // 2, keys + 1, (batch, 1, 1, 1))
    seen = torch.arange(keys) < lengths
    numbers = torch.randn(batch, heads, tokens, keys)
    causal = torch.arange(keys) <= torch.arange(tokens)[:, None]
    yield seen, None
    yield torch.rand(tokens, keys) < 0.5, None
    yield torch.where(torch.rand(batch, heads, tokens, 1) < 0.1, -torch.inf, numbers), None
    yield None, lambda q, k: torch.arange(k.shape[2]) <= torch.arange(q.shape[2])[:, None]
    yield None, lambda q, k: torch.ones(q.shape[0], 1, q.shape[2], k.shape[2], dtype=torch.bool)
    yield torch.where(causal, 0.0, -torch.inf), None


class TestAttentionGradients(unittest.TestCase):
    def setUp(self):
        reset()
        torch.manual_seed(5)

    def operands(self, case, dtype):
        batch, tokens, keys, heads, groups, width, value_width, _ = case
        make = lambda rows, count, width: torch.randn(batch, rows, count, width, dtype=dtype).transpose(1, 2)
        return ([make(tokens, heads, width), make(keys, groups, width), make(keys, groups, value_width)],
                make(tokens, heads, value_width))

    def test_they_are_as_near_to_float64_as_eager(self):
        for case in CASES:
            for dtype in (torch.float16, torch.bfloat16):
                reset()
                tensors, grad = self.operands(case, dtype)
                compiled = torch.compile(attention, backend="sinter", dynamic=False)
                ours = gradients(compiled, tensors, grad, case[-1])
                eager = gradients(attention, tensors, grad, case[-1])
                exact = gradients(attention, [x.double() for x in tensors], grad.double(), case[-1])
                # P and dS are rounded to the type once, and the sum is rounded once more.
                unit = torch.finfo(dtype).eps
                for own, other, right in zip(ours, eager, exact):
                    scale = right.abs().max()
                    limit = 1.1 * (other - right).abs().max() + unit * scale
                    self.assertLessEqual((own - right).abs().max(), limit, (case, dtype))
                again = gradients(compiled, tensors, grad, case[-1])
                self.assertTrue(all(torch.equal(x, y) for x, y in zip(ours, again)))

    def test_masks(self):
        for dtype in (torch.float16, torch.bfloat16):
            for number, (mask, positions) in enumerate(masks(2, 70, 70, 4)):
                reset()
                tensors, grad = self.operands(CASES[0], dtype)

                def attention(q, k, v, _):
                    given = mask if positions is None else positions(q, k)
                    if given.dtype != torch.bool:
                        given = given.to(q.dtype)
                    return F.scaled_dot_product_attention(q, k, v, attn_mask=given)

                ours = gradients(torch.compile(attention, backend="sinter", dynamic=False), tensors, grad, None)
                eager = gradients(attention, tensors, grad, None)
                exact = gradients(attention, [x.double() for x in tensors], grad.double(), None)
                for own, other, right in zip(ours, eager, exact):
                    scale = right.abs().max()
                    limit = 1.1 * (other - right).abs().max() + 2 * torch.finfo(dtype).eps * scale
                    self.assertLessEqual((own - right).abs().max(), limit, (number, dtype))
                report = str(sinter.pytorch.explain())
                self.assertIn("attention_log_sum", report, number)
                self.assertIn("0 ops in eager", report)

    def test_the_forward_pass_keeps_log_sums_and_no_op_runs_in_eager(self):
        tensors, grad = self.operands(CASES[0], torch.bfloat16)
        gradients(torch.compile(attention, backend="sinter"), tensors, grad, True)
        forward, backward = str(sinter.pytorch.explain()).split("\nbackward: ")
        self.assertIn("attention_log_sum", forward)
        self.assertNotIn("attention_log_sum", backward)
        self.assertIn("0 ops in eager", forward)


if __name__ == "__main__":
    unittest.main()
