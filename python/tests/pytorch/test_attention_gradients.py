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

TYPES = (torch.float16, torch.bfloat16)  # the first cases run in both, the others by turns


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
        for number, case in enumerate(CASES):
            for dtype in TYPES if number < 2 else TYPES[number % 2:][:1]:
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
        for number, (mask, positions) in enumerate(masks(2, 70, 70, 4)):
            for dtype in TYPES if number == 0 else TYPES[number % 2:][:1]:
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


def capped(q, k, v, cap, scale, mask=None):
    """Attention with a soft cap as models write it; keys and values are repeated for query heads."""
    repeat = lambda x: x[:, :, None, :, :].expand(x.shape[0], x.shape[1], q.shape[1] // x.shape[1],
                                                  *x.shape[2:]).reshape(*q.shape[:2], *x.shape[2:])
    weights = torch.matmul(q, repeat(k).transpose(2, 3)) * scale
    weights = torch.tanh(weights / cap) * cap
    if mask is not None:
        weights = weights + mask
    weights = F.softmax(weights, dim=-1, dtype=torch.float32).to(q.dtype)
    return torch.matmul(F.dropout(weights, p=0.0), repeat(v))


class TestSoftCaps(unittest.TestCase):
    def setUp(self):
        reset()
        torch.manual_seed(6)

    def assert_near(self, compiled, function, tensors, grad):
        ours = gradients(lambda *x: compiled(*x[:-1]), tensors, grad, None)
        eager = gradients(lambda *x: function(*x[:-1]), tensors, grad, None)
        exact = gradients(lambda *x: function(*x[:-1]), [x.double() for x in tensors], grad.double(), None)
        unit = torch.finfo(tensors[0].dtype).eps
        for own, other, right in zip(ours, eager, exact):
            limit = 1.1 * (other - right).abs().max() + unit * right.abs().max()
            self.assertLessEqual((own - right).abs().max(), limit)

    def operands(self, dtype, heads, groups, width=32, tokens=70):
        make = lambda count: torch.randn(2, tokens, count, width, dtype=dtype).transpose(1, 2)
        return [make(heads), make(groups), make(groups)], torch.randn(2, heads, tokens, width, dtype=dtype)

    def test_written_attention_has_kernels_of_its_gradient(self):
        causal = torch.full((70, 70), -torch.inf).triu(1)[None, None]
        for number, (heads, groups, mask) in enumerate(((4, 4, None), (4, 2, causal), (6, 1, None))):
            for dtype in TYPES if number == 0 else TYPES[number % 2:][:1]:
                reset()
                tensors, grad = self.operands(dtype, heads, groups)
                function = lambda q, k, v: capped(q, k, v, 5.0, 0.6, None if mask is None else mask.to(q.dtype))
                compiled = torch.compile(function, backend="sinter", dynamic=False,
                                         options={"attention": "relaxed"})
                self.assert_near(compiled, function, tensors, grad)
                report = str(sinter.pytorch.explain())
                self.assertIn("attention_log_sum", report, (dtype, heads, groups))
                self.assertIn("attention_gradients", report)
                self.assertIn("0 ops in eager", report)

    def test_other_texts_stay_what_they_are(self):
        tensors, grad = self.operands(torch.bfloat16, 2, 2)
        other_cap = lambda q, k, v: F.softmax(torch.tanh(q @ k.transpose(2, 3) / 5.0) * 4.0, -1,
                                              dtype=torch.float32).to(q.dtype) @ v
        read_twice = lambda q, k, v: (lambda p: (p @ v) + p.sum())(
            F.softmax(q @ k.transpose(2, 3), -1, dtype=torch.float32).to(q.dtype))
        for function in (other_cap, read_twice):
            reset()
            compiled = torch.compile(function, backend="sinter", dynamic=False, options={"attention": "relaxed"})
            gradients(lambda *x: compiled(*x[:-1]), tensors, grad, None)
            self.assertNotIn("attention_log_sum", str(sinter.pytorch.explain()))


class TestGradientsSideBySide(unittest.TestCase):
    """Gradients of queries, keys and values are stored where the next product reads them."""

    def setUp(self):
        reset()
        torch.manual_seed(7)

    def step(self, block, x, **options):
        compiled = torch.compile(block, backend="sinter", dynamic=False, options=options or None)
        leaf = x.detach().requires_grad_()
        for parameter in block.parameters():
            parameter.grad = None
        compiled(leaf).square().sum().backward()
        return [leaf.grad, *[parameter.grad.clone() for parameter in block.parameters()]]

    def test_no_concatenation_and_no_copy(self):
        for block in (Joined(96, 3), Stacked(96, 3), Joined(24, 24), Stacked(8, 2)):
            reset()
            block = block.to(torch.bfloat16)
            x = torch.randn(2, 40, block.width, dtype=torch.bfloat16)
            fused = self.step(block, x)
            backward = str(sinter.pytorch.explain()).split("\nbackward: ")[1]
            # The sum that a gradient of scores needs, attention's two kernels, the bias's sum, two products.
            self.assertIn(" 6 launches", backward)
            reset()
            unfused = self.step(block, x, fuse=False)
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(fused, unfused)))


class Joined(torch.nn.Module):
    """Queries, keys and values side by side in the columns of one product."""

    def __init__(self, width, heads):
        super().__init__()
        self.width, self.heads = width, heads
        self.qkv = torch.nn.Linear(width, 3 * width)

    def parts(self, x):
        batch, tokens, width = x.shape
        heads = lambda y: y.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
        return [heads(y) for y in self.qkv(x).split(width, dim=2)]

    def forward(self, x):
        y = F.scaled_dot_product_attention(*self.parts(x), is_causal=True)
        return y.transpose(1, 2).reshape(x.shape)


class Stacked(Joined):
    """Queries, keys and values as an axis of one product."""

    def parts(self, x):
        batch, tokens, width = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.heads, width // self.heads)
        return qkv.permute(2, 0, 3, 1, 4).unbind(0)


if __name__ == "__main__":
    unittest.main()
