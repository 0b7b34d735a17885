"""An index out of range is an IndexError that shows the user's index and line."""

import unittest

import torch
from beside_eager import assert_same, compiled, eager_ops, reset, run_beside_eager
from torch import nn, randint
from torch.nn import functional as F

x, index = torch.randn(5, 4), torch.tensor([0, 4, 2])
square = torch.tensor([[0, 1], [4, 2]])

# Conversions with an operand that names rows of five: a call, and arguments of which the last is it.
CALLS = {
    "embedding": (lambda w, i: F.embedding(i, w) * 2, (x, index)),
    "index_select": (lambda x, i: x.index_select(0, i) * 2, (x, index)),
    "gather": (lambda x, i: x.gather(0, i) * 2, (x, square)),
    "gather of a row each": (lambda x, i: (x * 2).gather(0, i), (x, torch.tensor([[0, 1, 4, 2]]))),
    "cross entropy": (lambda x, i: F.cross_entropy(x * 2, i), (torch.randn(3, 5), index)),
    "nll loss": (lambda x, i: F.nll_loss(x * 2, i, reduction="none"), (torch.randn(3, 5), index)),
    "index_add": (lambda x, y, i: x.index_add(0, i, y) * 2, (x, torch.randn(3, 4), index)),
    "scatter_add": (lambda x, y, i: x.scatter_add(0, i, y) * 2, (x, torch.randn(2, 2), square)),
    "scatter_add of a row each": (lambda x, y, i: x.scatter_add(0, i, y) * 2,
                                  (x, torch.randn(1, 4), torch.tensor([[0, 1, 4, 2]]))),
}
# Here an index below zero counts from the end.
FROM_END = {
    "x[i]": (lambda x, i: x[i] * 2, (x, index)),
    "x[j, i]": (lambda x, j, i: x[j, i] * 2, (torch.randn(4, 5), torch.tensor([0, 1, 3]), index)),
    "x[:, i]": (lambda x, i: x[:, i] * 2, (torch.randn(4, 5), index)),
    "index_put": (lambda x, y, i: x.index_put((i,), y, accumulate=True) * 2,
                  (x, torch.randn(3, 4), index)),
    "x[i] = y": (lambda x, y, i: torch.index_put(x, (i,), y) * 2, (x, torch.randn(3, 4), index)),
}


def with_index(arguments, number):
    """The arguments with a number in the middle of the index."""
    changed = arguments[-1].clone()
    changed.view(-1)[1] = number
    return (*arguments[:-1], changed)


class TestIndices(unittest.TestCase):
    def assert_errors(self, name, function, arguments, right, wrong):
        """Numbers in the middle of the index that are right, and some that are wrong."""
        reset()
        ours = compiled(function)
        for number in right:
            given = with_index(arguments, number)
            assert_same(ours(*given), function(*given))
        for number in wrong:
            with self.subTest(name, index=number):
                with self.assertRaises((IndexError, RuntimeError)) as caught:
                    ours(*with_index(arguments, number))
                if not eager_ops():  # else torch says it in its own words
                    self.assertIsInstance(caught.exception, IndexError)
                    self.assertRegex(str(caught.exception),
                                     rf"index {number} is out of bounds for an axis of size 5 "
                                     r"\(test_indices.py:\d+: ")

    def test_an_index_out_of_range_is_an_error(self):
        for name, (function, arguments) in CALLS.items():
            self.assert_errors(name, function, arguments, (3,), (5, 1000, -1))

    def test_an_index_that_counts_from_the_end(self):
        for name, (function, arguments) in FROM_END.items():
            self.assert_errors(name, function, arguments, (3, -5), (5, 1000, -6))

    def test_labels_that_are_ignored_are_no_error(self):
        run_beside_eager(lambda x, i: F.cross_entropy(x * 2, i), torch.randn(3, 5),
                         torch.tensor([1, -100, 4]))
        run_beside_eager(lambda x, i: F.cross_entropy(x * 2, i, ignore_index=7),
                         torch.randn(3, 5), torch.tensor([1, 7, 4]))

    def test_take_along_dim_counts_modulo_the_size_as_in_eager(self):
        for number in (-1, 5, 1003):
            run_beside_eager(lambda x, i: torch.take_along_dim(x, i, 0) * 2, x,
                             torch.tensor([[0, number, 2, 4]]))

    def test_a_gradient_of_a_wrong_label_is_never_computed(self):
        reset()
        logits = torch.randn(3, 5).requires_grad_()
        with self.assertRaisesRegex(IndexError, "index 5 is out of bounds"):
            compiled(nn.CrossEntropyLoss())(logits, torch.tensor([0, 5, 1]))


class TestIndicesThatCount(unittest.TestCase):
    """Indices arange(n) move axes; sizes are dynamic, so that a table of all axes joined has none."""

    def run_beside_eager(self, function, *arguments):
        for dynamic in (False, True):
            run_beside_eager(function, *arguments, dynamic=dynamic)
            self.assertEqual(eager_ops(), [])

    def test_a_mask_for_each_pair_of_tokens(self):
        def pairs(mask):
            rows, keys = (torch.arange(n) for n in mask.shape)
            seen = mask[rows[:, None, None, None], keys[None, None, None, :]]
            return seen & (keys[:, None] >= keys), mask[rows[None, :], keys[:, None] + 0] * 2

        self.run_beside_eager(pairs, randint(0, 2, (3, 5)).bool())

    def test_one_element_of_each_row(self):
        def last(x, i):
            return x[torch.arange(len(i)), i] * 2

        for shape in ((3, 5, 4), (3, 5)):
            self.run_beside_eager(last, torch.randn(shape), torch.tensor([4, 0, -2]))
            reset()
            with self.assertRaisesRegex(IndexError, r"index -6 is out of bounds for an axis of size 5"):
                compiled(last, dynamic=True)(torch.randn(shape), torch.tensor([4, 0, -6]))

    def test_a_mask_whose_batch_is_not_known_to_be_that_of_the_tokens(self):
        def masked(x, mask):
            rows = torch.arange(x.shape[0])[:, None, None, None]
            return torch.where(mask[rows, torch.arange(x.shape[1])], x[:, None, None], 0.0)

        def turned(x, y):
            return y[:, torch.arange(x.shape[0]) - 1, torch.arange(x.shape[0] - 2)[:, None]] * 2

        reset()
        for function, shapes in ((masked, lambda n: ((n, n + 1), (n, n + 1))),
                                 (turned, lambda n: ((n,), (2, n + 1, n, 3)))):
            ours = compiled(function)
            for size in (3, 4, 5):
                x, y = map(torch.randn, shapes(size))
                y = y > 0 if function is masked else y
                assert_same(ours(x, y), function(x, y))
            self.assertEqual(eager_ops(), [])
        with self.assertRaisesRegex(IndexError, "index 3 is out of bounds for an axis of size 3"):
            compiled(masked)(torch.randn(5, 4), torch.randn(3, 4) > 0)

    def test_one_number_that_is_repeated_counts_nothing(self):
        run_beside_eager(lambda x: x[torch.arange(1).expand(4), torch.arange(4)] * 2, torch.randn(4, 4))

    def test_other_indices_stay_what_they_are(self):
        def others(x):
            rows = torch.arange(x.shape[0])
            return (x[rows, rows] * 2, x[rows[:, None], rows[:2]], x[rows[1:, None] - 1, rows],
                    x[:, rows.flip(0)[:, None], rows[None]])

        run_beside_eager(others, torch.randn(4, 4, 4))
        run_beside_eager(others, torch.randn(4, 4, 4), dynamic=True)


if __name__ == "__main__":
    unittest.main()
