"""Strides, offsets and shared memory of results, and of what ops in eager read."""

import unittest

import torch
import torch._dynamo
from beside_eager import (assert_same, compiled, eager_ops, reset, run_beside_eager, tensors_of,
                          train_beside_eager)
from test_overwriting import Function
from torch import nn
from torch.nn import functional as F

randn = torch.randn


def run_alike(function, *arguments, **options):
    """Results have eager's numbers, strides and offsets, and share memory where eager's do."""
    reset()
    ours = compiled(function, **options)
    results, wanted = ours(*arguments), function(*arguments)
    assert_same(results, wanted)
    pairs = list(zip(tensors_of(results), tensors_of(wanted), strict=True))
    for a, b in pairs:
        assert a.storage_offset() == b.storage_offset(), (a.storage_offset(), b.storage_offset())
    storage = lambda x: x.untyped_storage()._cdata
    mine = [storage(x) for x in [*tensors_of(arguments), *[a for a, _ in pairs]]]
    theirs = [storage(x) for x in [*tensors_of(arguments), *[b for _, b in pairs]]]
    assert [mine.index(x) for x in mine] == [theirs.index(x) for x in theirs], "shared memory"


class TestParameters(unittest.TestCase):
    def test_parameters_that_change_their_memory_or_strides(self):
        """Also at the same address."""
        reset()
        module, x = nn.Linear(16, 16).requires_grad_(False), randn(3, 16)
        function = compiled(module, options={"pack": False})
        changes = (lambda weight: weight, lambda weight: weight.t(), lambda weight: weight * 2,
                   lambda weight: randn(257)[1:].view(16, 16), lambda weight: randn(16, 32)[:, ::2],
                   lambda weight: torch._neg_view(weight))
        for change in changes:
            module.weight.data = change(module.weight.data)
            for _ in range(2):
                assert_same(function(x), module(x))


class TestResults(unittest.TestCase):
    def test_permuted_results_have_torchs_strides(self):
        for dynamic in (False, True):
            run_alike(lambda x: (x @ x.mT @ x).transpose(-1, 0), randn(3, 4, 5), dynamic=dynamic)
            run_alike(lambda x: x * 2, randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
                      dynamic=dynamic)
            run_alike(lambda x: (x * 2).permute(2, 0, 1) + 1, randn(2, 3, 4), dynamic=dynamic)

    def test_views_of_results_are_views(self):
        for dynamic in (False, True):
            run_alike(lambda x: ((y := x * 2), y.t(), y[1:], y[:, ::2]), randn(4, 6), dynamic=dynamic)
            run_alike(lambda x: (x * 2).chunk(2, -1), randn(4, 6), dynamic=dynamic)
            run_alike(lambda x: (x.sum(0, keepdim=True) * 2).expand(4, 6), randn(4, 6),
                      dynamic=dynamic)

    def test_views_of_arguments_are_views(self):
        for dynamic in (False, True):
            run_alike(lambda x: (x.t(), x[1:, 2], x * 2), randn(4, 6), dynamic=dynamic)
        run_alike(lambda x, y: (x.unflatten(0, (-1, y.shape[0])).transpose(0, 1), y * 2), randn(20),
                  randn(4, 5), dynamic=True)

    def test_axes_of_one_element_and_of_none(self):
        run_alike(lambda x: (x * 2).transpose(0, 1), randn(1, 4))
        run_alike(lambda x: (x * 2).transpose(0, 1), randn(0, 4))
        run_alike(lambda x: x.permute(2, 0, 1) * 2, randn(3, 1, 4))

    def test_padded_products_return_dense_results(self):
        run_beside_eager(lambda x, y: x @ y, randn(520, 8).bfloat16(), randn(8, 513).bfloat16(),
                         tolerance=2e-2)


class TestEagerReaders(unittest.TestCase):
    def test_as_strided_reads_the_memory_that_torch_traced(self):
        last = lambda *sizes: randn(*sizes).to(memory_format=torch.channels_last)
        for dynamic in (False, True):
            run_beside_eager(lambda x: torch.as_strided(x * 2, (3, 4), (1, 3)), last(1, 3, 2, 2),
                             dynamic=dynamic)
            run_beside_eager(lambda x: torch.as_strided(torch.roll(x, -1, 0), (5, 4), (4, 1)),
                             last(2, 5, 2, 2), dynamic=dynamic)
            run_beside_eager(lambda x: (x.permute(2, 0, 1) * 2).as_strided((3,), (2,), 1),
                             randn(2, 3, 4), dynamic=dynamic)
            # Strides count in the storage, of which the view is a part.
            run_beside_eager(lambda x: (x * 2)[1:, 1].as_strided((3, 2), (4, 1), 2), randn(3, 4),
                             dynamic=dynamic)
        self.assertIn("aten.as_strided.default", eager_ops())

    def test_gradients_are_written_into_the_memory_of_a_view(self):
        def strided(x):
            y = x * 2
            y.as_strided((3, 2), (7, 2), 3).mul_(x[:, 0, :2])
            return y.sin(), x.as_strided((2, 2), (4, 1), 1) * 3, x.as_strided((5, 3, 4), (1, 20, 5)).square()

        for function in (strided, lambda x: F.adaptive_avg_pool1d(x.transpose(1, 2), 1).flatten(1)):
            train_beside_eager(Function(function), randn(3, 4, 5).requires_grad_(), dynamic=False)
            self.assertEqual(eager_ops(), [])

    def test_a_type_that_torch_traced_wrongly_is_converted(self):
        # torch's trace has float32 for the running mean of bfloat16 that batch norm computes.
        run_beside_eager(nn.BatchNorm2d(3).bfloat16(), randn(3, 3, 6, 6).bfloat16(), tolerance=2e-2)
        reset()
        ours, eager = nn.BatchNorm2d(3).bfloat16(), nn.BatchNorm2d(3).bfloat16()
        x = randn(3, 3, 6, 6).bfloat16()
        compiled(ours)(x), eager(x)
        assert_same(ours.running_mean, eager.running_mean, 1e-2)

    def test_gradients_through_views_of_changed_tensors(self):
        def change(x):
            t = x.clone()
            t[-1].zero_()
            return t

        for dynamic in (False, True):
            reset()
            x, weight = randn(2, 2, 5).requires_grad_(), randn(2, 2, 5)
            (ours,) = torch.autograd.grad((compiled(change, dynamic=dynamic)(x) * weight).sum(), x)
            (wanted,) = torch.autograd.grad((change(x) * weight).sum(), x)
            assert_same(ours, wanted)


if __name__ == "__main__":
    unittest.main()
