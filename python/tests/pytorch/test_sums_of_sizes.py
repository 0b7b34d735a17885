"""Slices, padding and concatenations where a size between them is a sum, such as s - 1; and norms over
axes whose sizes change."""

import unittest

import torch
from beside_eager import compiled, eager_ops, reset, run_beside_eager, train_beside_eager
from test_overwriting import Function
from torch import nn, randint, randn
from torch.nn import functional as F

import sinter.pytorch


def shifted(x):
    return torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1) * x


def written(x):
    y = x * 2
    y[:, 1:] = x[:, :-1]
    y[:, 1:] += x[:, 1:] * 3
    y[:, :-1] = 0.5
    return y * x


SHIFTS = {
    "cat": shifted,
    "negative padding": lambda x: x * F.pad(x, (0, 0, 1, -1)),
    "a slice of padding": lambda x: x * F.pad(x, (0, 0, 1, 0))[:, :-1],
    "padding of a slice": lambda x: x * F.pad(x[:, 1:], (0, 0, 0, 1), value=2.0),
    "a slice that is written": written,
    "elements of a slice": lambda x: torch.cat([x[:, :1] * 2, torch.add(x[:, 1:], x[:, 1:].exp(), alpha=3)], 1) * x,
    "a choice of slices": lambda x: torch.cat([torch.where(x[:, 1:] > 0, x[:, 1:].sigmoid(), x[:, 1:]), x[:, :1]], 1) * x,
    "a slice in another order": lambda x: x * torch.cat([x[:, 1:].flip(1), x[:, :1]], 1)
    + torch.cat([x[:, -1:], x[:, :-1].flip((0, 1))], 1) + torch.cat([x[:, 1:].flip(0), x[:, :1]], 1),
    "another order": lambda x: x * x.flip(1) + x.flip([0]),
}


class TestSums(unittest.TestCase):
    def test_tokens_are_shifted(self):
        for number, (name, function) in enumerate(SHIFTS.items()):
            for shape in ((4, 5, 3), (4, 4, 4))[:1 + number % 2]:
                with self.subTest(name, shape=shape):
                    train_beside_eager(Function(function), randn(shape).requires_grad_(), dynamic=True)
                    self.assertEqual(eager_ops(), [])
        train_beside_eager(Function(written), randn(4, 5, 3).requires_grad_(), dynamic=False)

    def test_operands_without_elements_are_left_out(self):
        for function in (lambda x: torch.cat([torch.zeros(0), x[:, 1:], x[:, :1]], 1) * x,
                         lambda x: torch.cat([torch.zeros(0), (x > 0).int()], 0) * x,
                         lambda x: torch.cat([torch.zeros(0), x[:, :0]], 1).sum() + x):
            for dynamic in (False, True):
                with self.subTest(dynamic=dynamic):
                    train_beside_eager(Function(function), randn(3, 4, 5).requires_grad_(), dynamic=dynamic)
                    self.assertEqual(eager_ops(), [])

    def test_operands_without_elements_along_another_axis_have_rows(self):
        reset()
        self.assertEqual(compiled(lambda x: torch.cat([x, x]) * 2)(randn(3, 0, 1)).shape, (6, 0, 1))

    def test_the_gradient_of_a_slice_that_has_no_elements_in_some_calls(self):
        def function(x, number):
            return (torch.zeros(number % 3 + 1, 2) @ x)[1:, 0]

        reset()
        call = compiled(function, dynamic=True)
        for number in (-3, -2, -1, 5, 0):
            with self.subTest(number=number):
                x = randn(2, 1).requires_grad_()
                result = call(x, number)
                self.assertEqual(result.shape, function(x, number).shape)
                result.sum().backward()
                self.assertEqual(x.grad.tolist(), [[0.0], [0.0]])

    def test_elements_by_index_of_each_row_have_gradients(self):
        n = torch.tensor([1, 3, -2, 0])
        for name, function in {
            "of each row": lambda x, n: x[torch.arange(x.shape[0]), n],
            "of each row and column": lambda x, n: x[torch.arange(x.shape[0])[:, None],
                                                     torch.arange(x.shape[1]), n[:, None].expand(-1, x.shape[1])],
            "behind": lambda x, n: x[:, torch.arange(x.shape[1]), n],
            "all": lambda x, n: x[torch.arange(x.shape[0])[:, None], torch.arange(x.shape[1])] + n[0],
        }.items():
            for shape in ((4, 4, 4), (4, 4, 5)):
                with self.subTest(name, shape=shape):
                    reset()
                    train_beside_eager(Function(lambda x: function(x, n) * 2), randn(shape).requires_grad_(),
                                       dynamic=True)
                    self.assertEqual(eager_ops(), [])

    def test_positions_that_the_backward_pass_reads_need_not_count(self):
        train_beside_eager(Function(lambda x: x.max(1)[0] * x.gather(1, x.argmax(1, True))[:, 0]),
                           randn(4, 5).requires_grad_())

    def test_results_share_no_memory_with_arguments(self):
        def cut(x):
            return F.pad(x, (0, 0, 0, -1)), F.pad(x[:, 1:], (0, 0, 1, 0))

        run_beside_eager(cut, randn(4, 5, 3), dynamic=True)
        reset()
        x = randn(4, 5, 3)
        for result in compiled(cut, dynamic=True)(x):
            self.assertNotEqual(result.untyped_storage().data_ptr(), x.untyped_storage().data_ptr())

    def test_results_keep_their_layout(self):
        x = randn(4, 3, 5, 6).to(memory_format=torch.channels_last)
        run_beside_eager(lambda x: (F.pad(x[..., 1:], (1, 0)), F.pad(x, (0, 0, 1, -1))), x, dynamic=True)

    def test_labels_are_shifted(self):
        def loss(x, labels):
            labels = F.pad(labels, (0, 1), value=-100)[..., 1:]
            return F.cross_entropy(x.flatten(0, 1), labels.flatten())

        run_beside_eager(loss, randn(3, 5, 7), randint(7, (3, 5)), dynamic=True)
        self.assertEqual(eager_ops(), [])

    def test_what_needs_the_size_itself_stays_in_eager(self):
        run_beside_eager(lambda x: (x[:, 1:] * 2).mean(), randn(3, 5), dynamic=True)
        self.assertIn("aten.slice.Tensor", eager_ops())

    def test_positions_and_rows_along_an_axis_of_unknown_size(self):
        run_beside_eager(lambda x: (x.argmax(1), x.max(0), x.argmin(-1)), randn(3, 6), dynamic=True)
        self.assertEqual(eager_ops(), [])
        run_beside_eager(lambda x, i: (x.index_select(1, i) * 2, x[:, i] + 1, F.embedding(i, x) * 2),
                         randn(5, 5), torch.tensor([0, 4, 4, 1]), dynamic=True)
        self.assertEqual(eager_ops(), [])


class TestNorms(unittest.TestCase):
    def assert_right(self, module, shape, names, sizes):
        report = sinter.pytorch.check(module, (randn(shape),), dynamic_shapes=(names,), sizes=sizes)
        self.assertEqual(report.exit_code, 0, str(report))

    def test_group_norm(self):
        self.assert_right(nn.GroupNorm(2, 4), (3, 4, 5, 6), {0: "B", 2: "H", 3: "W"},
                          [{"B": 3, "H": 5, "W": 6}, {"B": 4, "H": 4, "W": 4}])

    def test_batch_norm_with_the_numbers_of_the_batch(self):
        for norm, shape, names, sizes in (
                (nn.BatchNorm1d(4, track_running_stats=False), (3, 4, 5), {0: "B", 2: "S"}, {"B": 3, "S": 5}),
                (nn.BatchNorm1d(4, affine=False, track_running_stats=False), (3, 4), {0: "B"}, {"B": 4})):
            self.assert_right(norm, shape, names, [sizes])

    def test_batch_norm_in_training_counts_what_it_saw(self):
        for dynamic in (False, True):
            train_beside_eager(nn.BatchNorm2d(4), randn(3, 4, 5, 6).requires_grad_(), dynamic=dynamic)
            self.assertEqual(eager_ops(), [])

    def test_rms_norm_of_small_numbers_adds_the_roundings_of_its_sums(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            run_beside_eager(lambda x: F.rms_norm(x, (6,)), randn(3, 6).mul(0.1).to(dtype),
                             tolerance=4 * torch.finfo(dtype).eps)
            self.assertEqual(eager_ops(), [])

    def test_spread(self):
        run_beside_eager(lambda x: (x.std(1), x.var((0, 1)), x.var(0, correction=0)), randn(4, 4),
                         dynamic=True)
        self.assertEqual(eager_ops(), [])


class TestProducts(unittest.TestCase):
    def test_products_and_running_products(self):
        for dynamic in (False, True):
            train_beside_eager(Function(lambda x: x.prod(1) * x.prod(0, keepdim=True).sum()),
                               randn(5, 5).requires_grad_(), dynamic=dynamic)
            self.assertEqual(eager_ops(), [])
            reset()
            run_beside_eager(lambda x: (x.prod(1), x.cumprod(-1), (x > 0).prod(0)),
                             randint(-3, 4, (3, 5)), dynamic=dynamic)
            self.assertEqual(eager_ops(), [])


if __name__ == "__main__":
    unittest.main()
