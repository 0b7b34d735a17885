"""Products that read one value are one, by packed parameters, in graphs without gradients."""

import copy
import io
import pickle
import tempfile
import unittest
from pathlib import Path

import torch
from beside_eager import assert_same, compiled, reset
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

import sinter.pytorch
from sinter.pytorch.runtime.graph_report import PackingReport
from sinter.pytorch.tools import report

randn = torch.randn
UNPACKED = {"pack": False}


class Mixer(nn.Module):
    """Three products of one value and two of another, with and without biases."""

    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.q, self.k, self.v = (nn.Linear(16, size, bias) for size in (16, 8, 8))
        self.gate, self.up = nn.Linear(8, 24, False), nn.Linear(8, 24, False)

    def forward(self, x):
        x = self.norm(x)
        y = self.q(x).unflatten(-1, (2, 8)).sum(-2) * self.k(x).tanh() + self.v(x)
        return nn.functional.silu(self.gate(y)) * self.up(y)


def packing() -> PackingReport:
    """The report of packed parameters of the graph that was compiled last."""
    return report.REPORTS[-1].packing


def is_packed(module: nn.Module, *names: str) -> bool:
    """Whether parameters lie one behind the other in one storage."""
    parameters = [module.get_parameter(name) for name in names]
    ends = [one.data_ptr() + one.nbytes for one in parameters]
    return len({one.untyped_storage().data_ptr() for one in parameters}) == 1 \
        and ends[:-1] == [one.data_ptr() for one in parameters[1:]]


class TestPacking(unittest.TestCase):
    def setUp(self):
        reset()
        self.enterContext(torch.no_grad())
        self.module, self.x = Mixer(), randn(2, 5, 16)

    def pack(self, module=None, **options):
        """The compiled module, after a call."""
        function = compiled(module or self.module, **options)
        function(self.x)
        return function

    def assert_right(self, function, module=None):
        """The bits equal the bits of the module compiled without packing."""
        twin = compiled(copy.deepcopy(module or self.module), options=UNPACKED)
        self.assertTrue(torch.equal(function(self.x), twin(self.x)))

    def test_products_of_one_value_are_one_with_the_same_bits(self):
        before = copy.deepcopy(self.module.state_dict())
        function = self.pack()
        (graph,) = report.REPORTS
        text = str(sinter.explain(function))
        self.assertEqual((packing().products, packing().calls), (5, 2))
        self.assertIn("packed: 5 products as 2, 3,712 bytes of parameters", text)
        self.assertTrue(is_packed(self.module, "q.weight", "k.weight", "v.weight"))
        self.assertTrue(is_packed(self.module, "q.bias", "k.bias", "v.bias"))
        self.assertTrue(is_packed(self.module, "gate.weight", "up.weight"))
        assert_same(dict(self.module.state_dict()), dict(before), 0)
        self.assertEqual([one.eager for one in report.REPORTS], [[]])
        self.assert_right(function)
        assert_same(function(self.x), self.module(self.x))
        packed, unpacked = (one.entries[0].compiled.entry().costs().launches
                            for one in (graph, report.REPORTS[-1]))
        self.assertLessEqual(packed, unpacked)

    def test_no_parameter_is_in_memory_twice(self):
        before = [StorageWeakRef(one.untyped_storage()) for one in self.module.parameters()]
        self.pack()
        names = [name for name, _ in self.module.named_parameters() if not name.startswith("norm")]
        moved = [old for old, (name, _) in zip(before, self.module.named_parameters()) if name in names]
        self.assertTrue(all(old.expired() for old in moved))
        storages = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes()
                    for one in self.module.parameters()}
        self.assertEqual(sum(storages.values()), sum(one.nbytes for one in self.module.parameters()))

    def test_without_the_option_parameters_stay(self):
        addresses = [one.data_ptr() for one in self.module.parameters()]
        function = self.pack(options=UNPACKED)
        self.assertEqual([one.data_ptr() for one in self.module.parameters()], addresses)
        self.assertNotIn("pack", str(sinter.explain(function)))

    def test_the_option_is_true_or_false(self):
        with self.assertRaisesRegex(Exception, 'option pack: "no" is neither True nor False'):
            self.pack(options={"pack": "no"})

    def test_results_of_the_graph_are_not_packed(self):
        module = Mixer()
        function = compiled(lambda x: (module.q(x), module.k(x).mT, module.v(x) * 2))
        assert_same(function(self.x), (module.q(self.x), module.k(self.x).mT, module.v(self.x) * 2))
        self.assertIn("it is a result of the graph", packing().refused.values())
        self.assertEqual(packing().calls, 0)

    def test_products_of_equal_values_in_several_modules_are_one_where_their_results_are_small(self):
        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.condition = nn.Linear(64, 16)

            def forward(self, x, c):
                return torch.tanh(x * self.condition(nn.functional.silu(c)).unsqueeze(1))

        blocks = nn.Sequential(*(Block() for _ in range(3)))
        x = randn(4, 5, 16)
        for rows, packed in ((4, (3, 1)), (5, (0, 0))):
            def apply(x, c):
                for block in blocks:
                    x = block(x, c)
                return x
            reset()
            x, c = randn(rows, 5, 16), randn(rows, 64)
            assert_same(compiled(apply)(x, c), apply(x, c))
            self.assertEqual((packing().products, packing().calls), packed)
        self.assertTrue(is_packed(blocks, *(f"{i}.condition.weight" for i in range(3))))

    def test_random_operands_are_not_equal(self):
        module = Mixer()
        dropped = nn.functional.dropout
        function = lambda x: module.q(dropped(x)).tanh() + torch.cat([module.k(dropped(x)).tanh()] * 2, -1)
        torch.manual_seed(0)
        result = compiled(function)(self.x)
        torch.manual_seed(0)
        assert_same(result, function(self.x))
        self.assertEqual(packing().calls, 0)

    def test_a_change_in_place_is_read_anew(self):
        function = self.pack()
        self.module.k.weight.mul_(2)
        self.module.v.bias.add_(1)
        self.assert_right(function)
        self.module.load_state_dict(Mixer().state_dict())
        self.assert_right(function)
        self.assertTrue(is_packed(self.module, "q.weight", "k.weight", "v.weight"))

    def test_parameters_that_moved_are_packed_again(self):
        function = self.pack()
        changes = (lambda: setattr(self.module.k.weight, "data", randn(8, 16)),
                   lambda: self.module.load_state_dict(Mixer().state_dict(), assign=True),
                   lambda: setattr(self.module, "v", nn.Linear(16, 8)))
        for change in changes:
            change()
            self.assertFalse(is_packed(self.module, "q.weight", "k.weight", "v.weight"))
            self.assert_right(function)
            self.assertTrue(is_packed(self.module, "q.weight", "k.weight", "v.weight"))

    def test_memory_that_others_share_is_not_packed(self):
        k = self.module.k
        shared = k.weight.detach()
        function = self.pack()
        self.assertEqual(packing().calls, 1)
        self.assertIn("not packed: qkv: another tensor shares the memory of a parameter",
                      str(sinter.explain(function)))
        self.assertEqual(k.weight.data_ptr(), shared.data_ptr())
        self.assert_right(function)
        k.weight.data = shared.clone()
        self.assert_right(function)
        self.assertIn("packed: 5 products as 2", str(sinter.explain(function)))
        self.assertTrue(is_packed(self.module, "q.weight", "k.weight", "v.weight"))

    def test_tied_parameters_are_not_packed(self):
        self.module.up.weight = self.module.gate.weight
        function = self.pack()
        self.assertIn("not packed: gate and 1 more: another op reads its parameter, too",
                      str(sinter.explain(function)))
        self.assert_right(function)
        tied = Mixer()
        tied.up.weight = nn.Parameter(tied.gate.weight.detach())
        function = self.pack(tied)
        self.assertIn("not packed: gate_up: another tensor shares", str(sinter.explain(function)))
        self.assert_right(function, tied)

    def test_parts_of_larger_tensors_and_inference_tensors_are_not_packed(self):
        whole = randn(2, 24, 8)
        self.module.gate.weight, self.module.up.weight = nn.Parameter(whole[1]), nn.Parameter(whole[0])
        with torch.inference_mode():
            self.module.q = nn.Linear(16, 16)
        function = self.pack()
        self.assertEqual(packing().refused, {
            "qkv": "a parameter was made in inference mode",
            "gate_up": "another tensor shares the memory of a parameter"})
        assert_same(function(self.x), self.module(self.x))

    def test_weights_that_are_no_parameters_or_unaligned_are_not_packed(self):
        function = compiled(lambda x, a, b: (x @ a.mT) * (x @ b.mT))
        a, b = randn(8, 16), randn(8, 16)
        assert_same(function(self.x, a, b), (self.x @ a.mT) * (self.x @ b.mT))
        self.assertEqual(set(packing().refused.values()), {"it reads a tensor that is no parameter"})
        module = nn.ModuleList([nn.Linear(16, 3), nn.Linear(16, 3)])
        function = compiled(lambda x: module[0](x) * module[1](x))
        assert_same(function(self.x), module[0](self.x) * module[1](self.x))
        self.assertEqual(set(packing().refused.values()),
                         {"its 3 columns are no multiple of 16 bytes"})

    def test_two_graphs_of_a_module_share_the_packed_parameters(self):
        function = self.pack(dynamic=False)
        addresses = [one.data_ptr() for one in self.module.parameters()]
        for length in (3, 9):
            self.x = randn(1, length, 16)
            function(self.x)
            self.assertEqual(packing().calls, 2)
            self.assertEqual([one.data_ptr() for one in self.module.parameters()], addresses)
            assert_same(function(self.x), self.module(self.x))
        self.assertEqual(len(sinter.explain(function).graphs), 3)

    def test_modules_of_one_class_are_packed_each(self):
        modules = [Mixer(), self.module, Mixer()]
        functions = [compiled(one) for one in modules]
        for _ in range(2):
            for module, function in zip(modules, functions):
                assert_same(function(self.x), module(self.x))
                self.assertTrue(is_packed(module, "q.weight", "k.weight", "v.weight"))

    def test_sizes_change_in_one_compilation(self):
        function = compiled(self.module, dynamic=True)
        shared = self.module.k.weight.detach()
        for length in (5, 7, 30):
            x = randn(2, length, 16)
            assert_same(function(x), self.module(x))
        del shared
        self.module.k.weight.data = self.module.k.weight.clone()
        for length in (6, 12):
            x = randn(3, length, 16)
            assert_same(function(x), self.module(x))
        self.assertEqual((len(report.REPORTS), packing().calls), (1, 2))

    def test_in_inference_mode_parameters_stay_parameters(self):
        with torch.inference_mode():
            function = self.pack()
        self.assertEqual(packing().calls, 2)
        self.assertFalse(any(one.is_inference() or one.data.is_inference()
                             for one in self.module.parameters()))
        with torch.inference_mode():
            assert_same(function(self.x), self.module(self.x))

    def test_16_bit_products_are_packed(self):
        self.module, self.x = self.module.bfloat16(), self.x.bfloat16()
        self.assert_right(self.pack())


class TestParametersAfterwards(unittest.TestCase):
    """A module whose parameters are packed may still be changed, moved and saved."""

    def setUp(self):
        reset()
        self.module, self.x = Mixer(), randn(2, 5, 16)
        self.original = copy.deepcopy(self.module)
        self.function = compiled(self.module)
        with torch.no_grad():
            self.function(self.x)
        self.assertTrue(is_packed(self.module, "q.weight", "k.weight", "v.weight"))

    def assert_equal(self, module):
        assert_same(dict(module.state_dict()), dict(self.original.state_dict()), 0)

    def test_training_goes_on(self):
        modules = (self.module, self.original)
        optimizers = [torch.optim.AdamW(one.parameters(), 0.1) for one in modules]
        for _ in range(2):
            for function, optimizer in zip((self.function, self.original), optimizers):
                optimizer.zero_grad()
                function(self.x).square().mean().backward()
                optimizer.step()
            for ours, eager in zip(*(one.parameters() for one in modules)):
                assert_same(ours.grad, eager.grad, 1e-4)
            assert_same(dict(self.module.state_dict()), dict(self.original.state_dict()), 1e-3)
            with torch.no_grad():
                assert_same(self.function(self.x), self.module(self.x))
        self.assertTrue(is_packed(self.module, "q.weight", "k.weight", "v.weight"))

    def test_a_compiled_step_changes_packed_parameters(self):
        def step(parameters):
            for parameter in parameters:
                parameter.sub_(parameter.sign() * 0.5)

        with torch.no_grad():
            compiled(step)(list(self.module.parameters()))
            step(self.original.parameters())
            self.assert_equal(self.module)
            assert_same(self.function(self.x), self.original(self.x))

    def test_copies_have_their_own_memory(self):
        twin = copy.deepcopy(self.module)
        self.assert_equal(twin)
        self.assertEqual(twin.k.weight.untyped_storage().nbytes(), twin.k.weight.nbytes)

    def test_pickles_and_files_of_torch_have_all_parameters(self):
        self.assert_equal(pickle.loads(pickle.dumps(self.module)))
        file = io.BytesIO()
        torch.save(self.module.state_dict(), file)
        file.seek(0)
        loaded = Mixer()
        loaded.load_state_dict(torch.load(file))
        self.assert_equal(loaded)

    def test_safetensors_takes_the_parameters(self):
        try:
            from safetensors.torch import load_file, save_file
        except ImportError:
            self.skipTest("safetensors is not installed")
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "model.safetensors")
            save_file(self.module.state_dict(), path)
            loaded = Mixer()
            loaded.load_state_dict(load_file(path))
        self.assert_equal(loaded)

    def test_another_type_is_packed_anew(self):
        self.module.bfloat16()
        self.assertFalse(is_packed(self.module, "q.weight", "k.weight", "v.weight"))
        with torch.no_grad():
            self.function(self.x.bfloat16())
        self.assertTrue(is_packed(self.module, "q.weight", "k.weight", "v.weight"))

    def test_the_memory_is_free_when_the_parameters_are(self):
        storage = StorageWeakRef(self.module.k.weight.untyped_storage())
        self.module.bfloat16()
        self.assertTrue(storage.expired())


if __name__ == "__main__":
    unittest.main()
