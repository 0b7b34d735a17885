"""Integers stay exact: constants, casts, divisions, at the ends of their types."""

import unittest

import torch
from beside_eager import compiled, eager_ops, reset, run_beside_eager

from sinter.integers import index_of

BIG = [0, 1, -1, 2**53, 2**53 + 1, -2**53 - 1, 2**62 + 1, 2**63 - 1, -2**63]
EDGES = [0, 1, -1, 7, -7, 2**31 - 1, -2**31]


class TestArguments(unittest.TestCase):
    def test_a_tensor_without_axes_is_a_whole_number_for_the_library(self):
        self.assertEqual(index_of(torch.tensor(2**40)), 2**40)
        for value in (torch.tensor(True), torch.tensor(5.0), torch.tensor([5])):
            self.assertIsNone(index_of(value))


class TestConstants(unittest.TestCase):
    def test_int64_constants_beyond_2_53_are_exact(self):
        x = torch.tensor(BIG)
        run_beside_eager(lambda x: (x + (2**53 + 1), x * 6364136223846793005 + 1442695040888963407,
                                    x - (2**62 + 1), x == 2**53 + 1, x > 2**53, x // (2**53 + 1),
                                    x % (2**61 - 1), x.clamp(-2**53 - 1, 2**62 + 1)), x)
        run_beside_eager(lambda x: (torch.full((2,), 2**62 + 1) + x[:2],
                                    x.masked_fill(x > 1, 2**63 - 1),
                                    torch.where(x > 0, x, -2**63),
                                    torch.arange(2**53 + 1, 2**53 + 10, 2) * x[1],
                                    x.new_full((3,), -2**63) - 1), x)

    def test_numbers_outside_of_int32_wrap_around_as_in_eager(self):
        x = torch.tensor(EDGES, dtype=torch.int32)
        run_beside_eager(lambda x: (x + 2**31, x * (2**32 + 3), x < 2**40 + 5, x == 2**32 + 1,
                                    x - 2**33, x.clamp(max=2**40)), x)

    def test_a_size_of_the_call_is_an_exact_integer(self):
        def shifted(x):
            return x + x.shape[0] * 2**31, x[:1] * x.shape[0]

        reset()
        function = compiled(shifted, dynamic=True)
        for size in (5, 6):
            x = torch.arange(size) + 2**54
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(function(x), shifted(x))))


class TestSums(unittest.TestCase):
    def test_sums_and_running_sums_of_int64_wrap_around_as_in_eager(self):
        x = torch.tensor(BIG + BIG[::-1]).reshape(3, 6)
        reset()
        sums = lambda x: (x.sum(), x.sum(0), (x + 1).sum(-1, keepdim=True), x.cumsum(0), x.cumsum(-1))
        for dynamic in (False, True):
            run_beside_eager(sums, x, dynamic=dynamic)
            self.assertEqual(eager_ops(), [])


class TestBits(unittest.TestCase):
    def test_shifts_bits_and_remainders_with_the_sign_of_the_first_operand(self):
        divisors = torch.tensor([3, -3, 7, -1, 2**30, -2**30, 5])
        def bits(x, divisor):
            return (torch.fmod(x, divisor), torch.fmod(x, 7), torch.fmod(x, -7),
                    x << 0, x << 5, x << 30, x >> 0, x >> 5, x >> 30, torch.bitwise_left_shift(x, 3),
                    x & 0, x & 1, x & 255, x & (2**30 - 1), x & -1, x & -2, x & -256, x & -2**30, x & 5, x | 1,
                    x ^ divisor, x & divisor, x | -divisor, ~x, x << 63, x >> 63, x << x, x >> divisor,
                    torch.bitwise_left_shift(3, x), (x > 2) ^ 5, (x > 2) | (x < -2))
        for dtype in (torch.int32, torch.int64):
            x = torch.tensor(EDGES if dtype == torch.int32 else BIG[2:])
            run_beside_eager(bits, x.to(dtype), divisors.to(dtype))
            self.assertEqual(eager_ops(), [])


class TestCasts(unittest.TestCase):
    def test_int64_to_int32_wraps_around(self):
        run_beside_eager(lambda x: (x.to(torch.int32), (x + 1).int() * 3), torch.tensor(
            [*BIG, 2**31, -2**31 - 1, 2**32 + 5, 2**40 + 7]))

    def test_an_index_outside_of_int32_names_no_row(self):
        for index in (2**32 + 1, -2**32 + 1, 2**31, -2**63):
            reset()
            with self.assertRaisesRegex(IndexError, "out of bounds for an axis of size 3"):
                compiled(lambda x, i: x.index_select(0, i) * 2)(torch.randn(3, 4),
                                                                torch.tensor([index]))


class TestDivisions(unittest.TestCase):
    def test_quotients_at_the_ends_are_torchs(self):
        for dtype in (torch.int32, torch.int64):
            info = torch.iinfo(dtype)
            x = torch.tensor([info.min, info.max, 0, 1, -1, 7, -7], dtype=dtype)
            run_beside_eager(lambda x: [
                result for divisor in (1, 2, 3, -3, info.max, info.min)
                for result in (x // divisor, x % divisor,
                               torch.div(x, divisor, rounding_mode="trunc"))], x)
            # The least number by -1 ends eager's process.
            run_beside_eager(lambda x: (x // -1, x % -1,
                                        torch.div(x, -1, rounding_mode="trunc")), x[1:])
            reset()
            for name in ("floor", "trunc"):
                result = compiled(lambda x: torch.div(x, -1, rounding_mode=name))(x[:1])
                self.assertEqual(result.item(), info.min)

    def test_division_by_zero_is_an_error_as_in_eager(self):
        a, b = torch.tensor([5, 6, 7]), torch.tensor([1, 0, 2])
        for function in (lambda a, b: a // b, lambda a, b: a % b + 1,
                         lambda a, b: torch.div(a, b, rounding_mode="trunc")):
            reset()
            with self.assertRaisesRegex(RuntimeError, r"ZeroDivisionError.*test_integers.py:\d+"):
                compiled(function)(a, b)
            self.assertEqual(eager_ops(), [])
            self.assertTrue(torch.equal(compiled(function)(b, a), function(b, a)))
        with self.assertRaisesRegex(RuntimeError, "ZeroDivisionError"):
            compiled(lambda a: a * 2 // 0)(a)


if __name__ == "__main__":
    unittest.main()
