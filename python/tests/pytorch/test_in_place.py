"""Arguments whose rows a graph writes in place: caches."""

import unittest

import torch
from beside_eager import assert_same, compiled, reset
from fake_recorder import recorded_on_cpu
from torch.nn import functional as F

from sinter.pytorch.tools import report

B, H, T, D = 2, 2, 12, 16


def entries() -> list:
    return [entry for graph in report.REPORTS for entry in graph.entries]


def states() -> list[str]:
    return [operand.name for entry in entries() for operand in entry.graph.states]


def eager_ops() -> list[str]:
    return [op.op for graph in report.REPORTS for op in graph.eager]


def decode(q, k, v, keys, values, length):
    """A step of attention over a cache, as transformers writes it."""
    positions = torch.arange(k.shape[2]) + length
    keys.index_copy_(2, positions, k)
    values.index_copy_(2, positions, v)
    mask = torch.arange(T)[None, :] <= positions[:, None]
    return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)


def step_of(tokens: int, length: int) -> list[torch.Tensor]:
    return [*(torch.randn(B, H, tokens, D) for _ in range(3)), torch.tensor([length])]


class TestInPlace(unittest.TestCase):
    def setUp(self):
        reset()
        torch.manual_seed(0)

    def check(self, function, arguments: list, count: int, calls: int = 1, **options) -> None:
        """Runs a function compiled and in eager; both change the arguments. count: of the states."""
        ours, theirs = [x.clone() for x in arguments], [x.clone() for x in arguments]
        run = compiled(function, dynamic=False, **options)
        with torch.no_grad():
            for _ in range(calls):
                assert_same(run(*ours), function(*theirs))
        for a, b in zip(ours, theirs):
            assert_same(a, b)
        self.assertEqual(len(states()), count)

    def test_a_step_with_a_cache(self):
        for tokens in (1, 3):
            with self.subTest(tokens=tokens):
                reset()
                q, k, v, length = step_of(tokens, 5)
                cache = torch.randn(2, B, H, T, D)
                self.check(decode, [q, k, v, *cache, length], 2)
                (entry,) = entries()
                self.assertEqual([operand.sizes for operand in entry.graph.outputs], [(B, H, tokens, D)])
                self.assertEqual(eager_ops(), [])

    def test_writings_by_an_index(self):
        x, row = torch.randn(3, 5, 4), torch.randn(3, 4)

        def put(x, p, v):
            x[:, p] = v

        def rows(x, p, v):
            x[p] = v[0]

        def last(x, p, v):
            x[:, :, p] = v[:, :1].unsqueeze(-1)
            return x[:, :, 0] + 1

        def number(x, p, v):
            x.index_copy_(1, p, v.unsqueeze(1))
            return x.sum()

        for function in (put, rows, last, number):
            for p in ([2], [-1]):
                if function is number and p[0] < 0:
                    continue
                with self.subTest(function=function.__name__, p=p):
                    reset()
                    value = row.unsqueeze(1) if function is put else row
                    self.check(function, [x, torch.tensor(p), value], 1)

    def test_slices_that_are_written(self):
        def one(c, v, p):
            c[:, :, 3] = v[:, :, 0]
            return c.sum(2)

        def last(c, v, p):
            c[:, :, -2:] = v
            return c * 2

        def scatter(c, v, p):
            c.copy_(torch.slice_scatter(c, v * 2, 2, 1, 3))
            return c.mean()

        def steps(c, v, p):
            c[:, :, 1:4:2] = v
            return c.sum()

        def narrow(c, v, p):
            c.narrow(2, 4, 2).copy_(v)

        for function in (one, last, scatter, steps, narrow):
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(function=function.__name__, dtype=dtype):
                    reset()
                    self.check(function, [torch.randn(2, 3, 8, 4).to(dtype),
                                          torch.randn(2, 3, 2, 4).to(dtype), torch.zeros(1)], 1)
                    self.assertEqual(eager_ops(), [])

    def test_slices_whose_place_only_the_call_knows(self):
        def some(c, v, p):
            c[:, :, p:p + 2] = v
            return c.sum(2)

        def one(c, v, p):
            c.select(2, p).copy_(v[:, :, 1])
            return c.sum(2), c.select(2, p) * 2

        for function in (some, one):
            with self.subTest(function=function.__name__), torch.no_grad():
                reset()
                run = compiled(function)
                ours = torch.randn(2, 3, 8, 4)
                theirs, places = ours.clone(), [2, 3, 5, 4]
                for p in places:
                    v = torch.randn(2, 3, 2, 4)
                    assert_same(run(ours, v, p), function(theirs, v, p))
                    assert_same(ours, theirs)
                self.assertEqual(len(report.REPORTS), 2)  # with a number, and with a symbol
                self.assertEqual((len(states()), eager_ops()), (2, []))

    def test_slices_that_stay_copies(self):
        def old(c, v, p):
            y = c[:, :, 2:4] + 1
            c[:, :, 2:4] = v
            return y

        def itself(c, v, p):
            c[:, :, 2:4] = c[:, :, 0:2]
            return c + 1

        def whole(c, v, p):
            c[:, :, :] = v[:, :, :1]
            return c + 1

        def twice(c, v, p):
            c[:, :, 0:2] = v
            c[:, :, 1:3] = v
            return c.sum()

        for function in (old, itself, whole, twice):
            with self.subTest(function=function.__name__):
                reset()
                self.check(function, [torch.randn(2, 3, 8, 4), torch.randn(2, 3, 2, 4), torch.zeros(1)], 0)
                self.assertEqual(eager_ops(), [])

    def test_writings_that_stay_copies(self):
        def old(x, p, v):
            y = x * 2
            x.index_copy_(0, p, v)
            return y

        def twice(x, p, v):  # of two rows the last one stays
            x.index_copy_(0, torch.cat((p, p)), torch.cat((v, v + 1)))
            return x + 1

        def seen(x, p, v):
            x.index_copy_(0, p, v)
            return torch.cummax(x, 0)[0]

        def by_mask(x, p, v):
            x[x > 0] = 0.5
            return x + v

        def views(x, p, v):
            x.index_copy_(0, p, v)
            return x[1:3], x.t() * 2

        for function in (old, twice, seen, by_mask, views):
            with self.subTest(function=function.__name__):
                reset()
                self.check(function, [torch.randn(6, 4), torch.tensor([3]), torch.randn(1, 4)], 0)

    def test_an_index_out_of_range_is_an_error(self):
        function = compiled(lambda x, p, v: x.index_copy_(1, p, v), dynamic=False)
        with self.assertRaisesRegex(IndexError, "index 5 is out of bounds for an axis of size 5"):
            function(torch.randn(3, 5), torch.tensor([5]), torch.randn(3, 1))

    def test_a_cache_that_kernels_cannot_write_where_it_lies(self):
        def function(x, p, v):
            x.index_copy_(0, p, v)
            return x + 1

        ours, theirs = (torch.zeros(25)[1:].view(6, 4) for _ in range(2))
        p, v = torch.tensor([3]), torch.randn(1, 4)
        assert_same(compiled(function, dynamic=False)(ours, p, v), function(theirs, p, v))
        assert_same(ours, theirs)
        self.assertEqual(len(states()), 1)

    def test_caches_that_move_and_recorded_calls(self):
        with recorded_on_cpu():
            run = compiled(decode, dynamic=False, mode="reduce-overhead")
            caches = [torch.randn(2, B, H, T, D) for _ in range(3)]
            copies = [cache.clone() for cache in caches]
            for i in range(18):
                q, k, v, length = step_of(1, i // 3 % T)
                which = i % 3 if i < 12 else 1
                ours = run(q, k, v, *caches[which], length)
                assert_same(ours, decode(q, k, v, *copies[which], length))
            for ours, theirs in zip(caches, copies):
                assert_same(ours, theirs)
            (call,) = [call for graph in report.REPORTS for call in graph.recorded]
            self.assertEqual(len(call.recordings), 3)
            self.assertEqual({len(one.moving) for one in call.recordings}, {2})  # floats and the length

    def test_ops_in_eager_between_two_caches(self):
        def function(x, y, p, v):
            x.index_copy_(0, p, v)
            z = torch.cummax(x.sum(0), 0)[0]
            y.index_copy_(0, p, v + z)
            return y.sum(1)

        self.check(function, [torch.randn(6, 4), torch.randn(6, 4), torch.tensor([3]), torch.randn(1, 4)], 2)
        self.assertEqual(eager_ops(), ["aten.cummax.default"])


if __name__ == "__main__":
    unittest.main()
