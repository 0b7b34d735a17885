"""Elements by index that take other values: caches, masks, rows; beside eager."""

import unittest

import torch
from beside_eager import compiled, eager_ops, reset, run_beside_eager, train_beside_eager
from torch import nn, randint, randn, tensor

from sinter.pytorch.tools import report

TRANSFORMERS = True
try:
    import transformers
except ImportError:
    TRANSFORMERS = False


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments):
        return self.function(*arguments)


def put(x, index, values):
    x = x * 2
    x[:, index] = values
    return x


class TestOverwriting(unittest.TestCase):
    def run_beside_eager(self, function, *arguments):
        for dynamic in (False, True):
            run_beside_eager(function, *arguments, dynamic=dynamic)
            self.assertEqual(eager_ops(), [])

    def train_beside_eager(self, function, *arguments, dynamic=(False, True)):
        for is_dynamic in dynamic:
            given = [x.clone().requires_grad_() if x.is_floating_point() else x for x in arguments]
            train_beside_eager(Function(function), *given, dynamic=is_dynamic)
            self.assertEqual(eager_ops(), [])

    def test_rows_are_copied(self):
        copied = lambda x, i, y: (x * 2).index_copy(1, i, y)
        self.train_beside_eager(copied, randn(3, 5, 4), tensor([4, 0, 2]), randn(3, 3, 4), dynamic=(False,))
        self.train_beside_eager(copied, randn(3, 3, 3), tensor([2, 0, 1]), randn(3, 3, 3), dynamic=(False,))
        self.run_beside_eager(copied, randn(3, 5, 4), tensor([4, 0, 2]), randn(3, 3, 4))
        self.run_beside_eager(lambda x, i, y: x.index_copy(1, i, y) | False, randint(2, (3, 5)).bool(),
                              tensor([3]), randint(2, (3, 1)).bool())
        run_beside_eager(lambda x, i, y: (x * 2).index_copy(0, i, y), randn(()), tensor([0]), randn(1))

    def test_the_last_of_several_rows_stays(self):
        for index in ([1, 1, 3], [2, 2, 2]):
            self.run_beside_eager(lambda x, i, y: (x * 2).index_copy(0, i, y), randn(5, 3), tensor(index),
                                  randn(3, 3))
            self.run_beside_eager(put, randn(3, 5), tensor(index), randn(3, 3))

    def test_rows_are_filled(self):
        self.run_beside_eager(lambda x, i: ((x * 2).index_fill(1, i, 3.0),
                                            x.index_fill(0, i[:1] % 2 - 2, x.sum())),
                              randn(3, 5), tensor([4, 0, 2]))

    def test_rows_are_put(self):
        self.run_beside_eager(put, randn(3, 5, 4), tensor([-1, 0, -3]), randn(3, 1, 4))
        self.run_beside_eager(put, randn(2, 5, 4), tensor(3), randn(2, 4))
        self.train_beside_eager(put, randn(2, 5, 4), tensor([4, 0, 2]), randn(2, 3, 4), dynamic=(False,))
        run_beside_eager(put, randn(2, 5, 4), tensor([[0, 1], [3, 3]]), randn(2, 2, 2, 4))
        self.assertEqual(eager_ops(), [])

    def test_elements_are_put_by_several_indices(self):
        def pairs(x, i, v):
            x = x * 2
            x[i, i % 4] = v
            x[i[:, None], i % 4] = v[0, 0]
            return x

        def apart(x, i, v):
            x = x * 2
            x[i, :, i % 3] = v
            return x

        self.train_beside_eager(pairs, randn(5, 4, 3), tensor([4, 0, 2]), randn(3, 3), dynamic=(False,))
        run_beside_eager(apart, randn(5, 4, 3), tensor([4, 0, 2]), randn(3, 4))
        self.assertEqual(eager_ops(), [])

    def test_elements_are_put_where_a_mask_is_true(self):
        def masked(x, m, v):
            x = x * 2
            x[m] = v
            x[m[0] == m[1]] = 0.5
            return x

        self.run_beside_eager(masked, randn(4, 4), randn(4, 4) > 0, randn(1))
        self.train_beside_eager(lambda x, m: masked(x, m, 2.0), randn(4, 4), randn(4, 4) > 0)

    def test_elements_are_scattered(self):
        def scattered(x, i, y):
            return (x * 2).scatter(1, i, y), x.scatter(1, i, 2.5)

        self.run_beside_eager(scattered, randn(3, 5), randint(5, (3, 3)), randn(3, 3))
        run_beside_eager(lambda x, i, y: (x.scatter(1, i[:2, :2], y) * 2, x.scatter(0, i % 3, y[:, :3]) * 2),
                         randn(3, 5), randint(5, (3, 3)), randn(3, 4))
        self.assertEqual(eager_ops(), [])
        self.train_beside_eager(lambda x, i, y: (x * 2).scatter(1, i, y), randn(3, 5),
                                tensor([[0, 2, 4]] * 3), randn(3, 3))

    def test_slices_with_steps_are_written(self):
        def written(x, y):
            x = x * 2
            x[:, ::2] = y
            x[1:, 1::3] = 4.0
            return x

        self.train_beside_eager(written, randn(3, 6), randn(3, 3), dynamic=(False,))
        self.run_beside_eager(lambda x, y: torch.slice_scatter(x * 2, y, 1, 0, None, 2), randn(3, 6),
                              randn(3, 3))

    def test_a_cache_is_changed_in_place(self):
        def step(cache, position, new):
            cache.index_copy_(2, position, new)
            return (cache * 2).sum(2)

        def step_from(cache, begin, new):
            return step(cache, torch.arange(new.shape[2]) + begin, new)

        for count in (1, 3, 5):
            self.run_beside_eager(step, randn(2, 3, 5, 4), torch.arange(count), randn(2, 3, count, 4))
        for count, begin in ((1, 4), (3, 2), (5, 0)):
            self.run_beside_eager(step_from, randn(2, 3, 5, 4), tensor(begin), randn(2, 3, count, 4))
        reset()
        with self.assertRaisesRegex(IndexError, "index 5 is out of bounds for an axis of size 5"):
            compiled(step_from)(randn(2, 3, 5, 4), tensor(3), randn(2, 3, 3, 4))

    def test_a_long_cache_has_few_comparisons(self):
        def step(cache, begin, new):
            return cache.index_copy(1, torch.arange(new.shape[1]) + begin, new) * 2

        self.run_beside_eager(step, randn(1, 2**15), tensor(5), randn(1, 2**14))


@unittest.skipUnless(TRANSFORMERS, "transformers is not installed")
class TestStaticCache(unittest.TestCase):
    def test_steps_of_decoding(self):
        config = transformers.LlamaConfig(
            vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)
        reset()
        model = transformers.LlamaForCausalLM(config).eval()

        def decode(function):
            cache = transformers.StaticCache(config=config, max_cache_len=16)
            ids, rows = torch.arange(10).reshape(2, 5), []
            with torch.no_grad():
                for _ in range(4):
                    rows.append(function(input_ids=ids, past_key_values=cache, use_cache=True).logits[:, -1])
                    ids = rows[-1].argmax(-1, keepdim=True)
            return torch.stack(rows), torch.stack([layer.keys for layer in cache.layers])

        for ours, wanted in zip(decode(compiled(model)), decode(model)):
            torch.testing.assert_close(ours, wanted, rtol=1e-5, atol=1e-5)
        self.assertEqual(eager_ops(), [])
        self.assertEqual([len(one.entries) for one in report.REPORTS], [1, 1])


if __name__ == "__main__":
    unittest.main()
