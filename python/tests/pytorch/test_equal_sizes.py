"""Sizes of several inputs that torch knows to be equal only as products."""

import copy
import unittest

import torch
from beside_eager import assert_same, compiled, eager_ops, reset
from torch import nn, randint, randn
from torch.nn import functional as F

from sinter.pytorch.tools import report


class Classifier(nn.Module):
    """A class for each token: the loss is of flattened tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(8, 11)

    def forward(self, x, labels):
        return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


class TestEqualSizes(unittest.TestCase):
    def train(self, shapes):
        """Losses and gradients beside eager, of tokens and labels of these shapes one after another."""
        reset()
        model = Classifier()
        eager, ours = copy.deepcopy(model), compiled(model)
        for tokens, labels in shapes:
            given = randn(*tokens, 8), randint(11, labels)
            sides = []
            for module, function in ((model, ours), (eager, eager)):
                module.zero_grad()
                loss = function(*given)
                loss.backward()
                sides.append([loss.detach(), *[p.grad for p in module.parameters()]])
            assert_same(*sides)

    def test_labels_have_the_tokens_sizes(self):
        self.train([((size, size), (size, size)) if size == 4 else ((size, 9 - size), (size, 9 - size))
                    for size in (2, 3, 4, 5)])
        self.assertEqual(eager_ops(), [])
        self.assertEqual(len(report.REPORTS), 4)  # of fixed sizes, and of all others

    def test_marked_sizes(self):
        reset()
        x, labels = randn(4, 4, 8), randint(11, (4, 4))
        for axis in (0, 1):
            torch._dynamo.mark_dynamic(x, axis, min=2, max=16)
            torch._dynamo.mark_dynamic(labels, axis, min=2, max=16)
        model = Classifier()
        ours = compiled(model)
        for given in ((x, labels), (randn(3, 5, 8), randint(11, (3, 5)))):
            assert_same(ours(*given).detach(), model(*given).detach())
        self.assertEqual(eager_ops(), [])
        self.assertEqual(len(report.REPORTS), 2)

    def test_labels_of_another_order_are_compiled_anew(self):
        self.train([((2, 3), (2, 3)), ((3, 5), (3, 5)), ((3, 5), (5, 3)), ((4, 6), (6, 4))])
        self.assertEqual(eager_ops(), [])
        self.assertEqual(len(report.REPORTS), 6)

    def test_other_products_are_right(self):
        self.train([((2, 3), (2, 3)), ((2, 6), (3, 4)), ((6, 4), (3, 8))])


if __name__ == "__main__":
    unittest.main()
