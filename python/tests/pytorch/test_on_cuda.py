"""Checked calls, layouts, and tensors of several devices on a GPU. Skipped without one."""

import unittest

import torch
import torch._dynamo
from beside_eager import assert_same, compiled, eager_ops, reset, run_beside_eager
from torch import nn
from torch.nn import functional as F

GPUS = torch.cuda.device_count() if torch.cuda.is_available() else 0


@unittest.skipUnless(GPUS, "no GPU")
class TestOneGpu(unittest.TestCase):
    def setUp(self):
        reset()
        self.enterContext(torch.device("cuda"))

    def test_a_checked_call_finds_wrong_indices_and_divisors(self):
        logits, labels = torch.randn(3, 5), torch.tensor([0, 5, 1])
        function = compiled(lambda x, i: F.cross_entropy(x * 2, i), options={"check": True})
        with self.assertRaisesRegex(IndexError, r"index 5 is out of bounds for an axis of size 5 \("):
            function(logits, labels)
        assert_same(function(logits, labels % 5), F.cross_entropy(logits * 2, labels % 5))
        reset()
        divide = compiled(lambda a, b: a // b, options={"check": True})
        a, b = torch.tensor([5, 6, 7]), torch.tensor([1, 0, 2])
        with self.assertRaisesRegex(RuntimeError, "ZeroDivisionError"):
            divide(a, b)
        assert_same(divide(b, a), b // a)
        reset()
        look_up = compiled(lambda w, i: w[i] * 2, options={"check": True})
        with self.assertRaisesRegex(IndexError, "index -6 is out of bounds for an axis of size 5"):
            look_up(torch.randn(5, 4), torch.tensor([0, -6]))

    def test_an_unchecked_call_gives_what_the_guide_says(self):
        divide = compiled(lambda a, b: (a // b, a % b))
        quotient, rest = divide(torch.tensor([5, -6]), torch.tensor([0, 0]))
        self.assertEqual((quotient.tolist(), rest.tolist()), ([0, 0], [5, -6]))
        x = torch.randn(2, 5)
        loss = compiled(lambda x, i: F.cross_entropy(x, i, reduction="sum"))
        assert_same(loss(x, torch.tensor([1, 9])), F.cross_entropy(x[:1], torch.tensor([1])))

    def test_layouts_bits_and_integers(self):
        for dynamic in (False, True):
            run_beside_eager(lambda x: ((x @ x.mT @ x).transpose(-1, 0), (y := x * 2), y[1:]),
                             torch.randn(3, 4, 5), dynamic=dynamic)
            run_beside_eager(lambda x: torch.as_strided((x * 2)[1:], (3, 2), (1, 3)),
                             torch.randn(2, 3, 2, 2).to(memory_format=torch.channels_last),
                             dynamic=dynamic)
        run_beside_eager(lambda x: x * 2 + 1, torch._neg_view(torch.randn(4, 5)))
        x = torch.tensor([0, 1, 2**53, 2**53 + 1, 2**63 - 1, -2**63])
        run_beside_eager(lambda x: (x * 6364136223846793005 + 1442695040888963407, x == 2**53 + 1,
                                    x.to(torch.int32), x % (2**61 - 1), x.clamp(-2**62 - 1)), x)

    def test_a_mask_that_is_made_in_host_memory_is_made_once(self):
        def function(x):
            group = torch.arange(8, device="cpu") // 4
            return (x + torch.where(group[:, None] == group, 0.0, -100.0).to(x.device)).softmax(-1)

        x = torch.randn(3, 8, 8)
        with torch.no_grad():
            ours = compiled(function)
            for _ in range(2):
                assert_same(ours(x), function(x))
        self.assertEqual(eager_ops(), [])


@unittest.skipUnless(GPUS > 1, "one GPU or none")
class TestTwoGpus(unittest.TestCase):
    def test_tensors_of_a_device_that_is_not_the_default_one(self):
        module = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU()).to("cuda:1")
        x = torch.randn(4, 8, device="cuda:1")
        run_beside_eager(module, x, tolerance=1e-4)
        reset()
        function = compiled(module)
        for device in ("cuda:0", "cuda:1", "cuda:0"):  # one function, two devices
            module.to(device)
            assert_same(function(x.to(device)), module(x.to(device)), 1e-4)

    def test_tensors_of_two_devices_are_named(self):
        reset()
        function = compiled(lambda x, y: (x * 2 + 1, y * 3, x + y.to(x.device)))
        x, y = torch.randn(4, device="cuda:0"), torch.randn(4, device="cuda:1")
        assert_same(function(x, y), (x * 2 + 1, y * 3, x + y.to(x.device)))
        self.assertTrue(eager_ops())


if __name__ == "__main__":
    unittest.main()
