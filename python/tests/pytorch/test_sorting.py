"""Sorting along a short axis: values and indices equal torch's stable sort."""

import math
import unittest

import torch

from modules import compiled, reset

import sinter


def special(dtype: torch.dtype) -> torch.Tensor:
    """Rows with ties, and for floats zeros of both signs, NaN and infinities."""
    torch.manual_seed(0)
    x = torch.randint(-3, 4, (5, 12)).to(dtype)
    if dtype.is_floating_point:
        x[0, ::5], x[0, 1::5] = math.nan, -math.inf
        x[1, 3], x[1, 7] = math.inf, math.nan
        x[2] = torch.tensor([0.0, -0.0] * 6)
        x[3] = math.nan
    return x


def bits(x: torch.Tensor) -> torch.Tensor:
    """Numbers of which two are equal where sign and value are."""
    return torch.stack([x.double().nan_to_num(7.5, 9.5, -9.5), x.signbit() & ~x.isnan()])


class TestSorting(unittest.TestCase):
    def setUp(self):
        reset()

    def assert_same(self, own, eager):
        self.assertTrue(torch.equal(bits(own[0]), bits(eager[0])))
        self.assertTrue(torch.equal(own[1], eager[1]))
        self.assertEqual([x.stride() for x in own], [x.stride() for x in eager])
        self.assertEqual([str(op) for graph in sinter.explain().graphs for op in graph.eager], [])

    def test_sort_is_torchs_stable_sort(self):
        def sorts(*tensors):
            return [x.sort(dim=dim, descending=descending, stable=True) for x in tensors
                    for dim, descending in ((-1, False), (-1, True), (0, False), (0, True))]

        tensors = [special(torch.float32), special(torch.bfloat16), special(torch.int64),
                   special(torch.float32).T, special(torch.float32)[:, 3]]
        for own, eager in zip(compiled(sorts, dynamic=False)(*tensors), sorts(*tensors)):
            self.assert_same(own, eager)

    def test_topk_is_the_beginning_of_the_stable_sort(self):
        cases = [(dim, k, largest) for dim, k in ((-1, 4), (0, 1), (-1, 12)) for largest in (True, False)]
        x = special(torch.float32)
        results = compiled(lambda x: [x.topk(k, dim, largest, True) for dim, k, largest in cases],
                           dynamic=False)(x)
        for (dim, k, largest), own in zip(cases, results):
            whole = x.sort(dim=dim, descending=largest, stable=True)
            self.assert_same(own, [part.narrow(dim, 0, k).contiguous() for part in whole])

    def test_gradient_and_rows_of_unknown_number(self):
        def loss(x):
            values, index = x.softmax(-1).topk(2, -1)
            return (values * (index + 1)).sum()

        function = compiled(loss)
        for rows in (3, 7):
            x = torch.randn(rows, 8, requires_grad=True)
            y = x.detach().clone().requires_grad_()
            torch._dynamo.mark_dynamic(y, 0)
            loss(x).backward()
            function(y).backward()
            self.assertTrue(torch.allclose(x.grad, y.grad, rtol=1e-5, atol=1e-6))
        self.assertEqual([str(op) for graph in sinter.explain().graphs for op in graph.eager], [])

    def test_long_axis_stays_in_eager(self):
        x = torch.randn(2, 257)
        own = compiled(lambda x: (x * 2).sort(-1), dynamic=False)(x)
        self.assertTrue(torch.equal(own[0], (x * 2).sort(-1)[0]))
        self.assertEqual([op.op for graph in sinter.explain().graphs for op in graph.eager],
                         ["aten.sort.default"])


if __name__ == "__main__":
    unittest.main()
