"""sinter.pytorch.from_torch: names, weights, symbols, files, and what is refused."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch
from torch import nn

import sinter
from sinter._library import find
from sinter.pytorch import from_torch

randn = torch.randn


class Net(nn.Module):
    """Tied weights, a buffer, a parameter that nothing reads."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(10, 8), nn.LayerNorm(8)
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        self.head = nn.Linear(8, 10)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.tensor(2.0))
        self.unused = nn.Linear(3, 3)

    def forward(self, tokens, *, shift):
        x = self.embedding(tokens) * self.scale + shift
        for block in self.blocks:
            x = x + torch.relu(block(self.norm(x)))
        return {"logits": self.head(x), "shift": shift}


def example():
    torch.manual_seed(0)
    net, tokens, shift = Net(), torch.randint(0, 10, (6,)), randn(8)
    return net, tokens, shift, from_torch(net, (tokens,), {"shift": shift})


class TestFromTorch(unittest.TestCase):
    def test_the_plan_computes_what_the_module_does(self):
        net, tokens, shift, model = example()
        results = model.compile().run(tokens=tokens, shift=shift)
        wanted = net(tokens, shift=shift)
        torch.testing.assert_close(results["head"], wanted["logits"].detach())
        torch.testing.assert_close(results["shift_1"], shift)

    def test_values_have_the_names_of_modules_and_weights_those_of_parameters(self):
        _, _, _, model = example()
        self.assertIn("%blocks.0 = linear", model.text)
        self.assertIn("weight %blocks.1.bias : f32[8]", model.text)
        self.assertEqual(list(model.inputs), ["tokens", "shift"])
        self.assertNotIn("unused", model.text)
        self.assertNotIn("unused.weight", model.weights)
        self.assertEqual(set(model.weights) & {"head.weight", "embedding.weight"}, {"head.weight"})

    def test_lines_of_the_module_end_with_the_users_line(self):
        _, _, _, model = example()
        (line,) = [line for line in model.annotated_text().splitlines() if "%blocks.0 =" in line]
        self.assertRegex(line, r"// test_export.py:\d+: x = x \+ torch.relu")

    def test_why_is_asked_in_those_names(self):
        _, _, _, model = example()
        decision = model.compile().why("norm", "blocks.0")
        self.assertEqual({decision.a, decision.b}, {"norm", "blocks.0"})

    def test_weights_are_the_modules_and_not_copies(self):
        net, tokens, shift, model = example()
        self.assertEqual(model.weights["norm.weight"].data_ptr(), net.norm.weight.data_ptr())

    def test_a_saved_model_is_one_of_the_program_sinter(self):
        program = find("sinter", "bin")
        if program is None:
            self.skipTest("the program sinter is not built")
        net, tokens, shift, model = example()
        with tempfile.TemporaryDirectory() as folder:
            path = model.save(folder)
            self.assertEqual(sorted(file.name for file in path.iterdir()),
                             ["model.safetensors", "model.sir"])
            done = subprocess.run([program, "verify", str(path)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("verified: every promise holds", done.stdout)
            results = sinter.compile(path).run(tokens=tokens, shift=shift)
        wanted = net(tokens, shift=shift)["logits"].detach()
        torch.testing.assert_close(torch.as_tensor(results["head"]), wanted)

    def test_saving_twice_replaces_the_files(self):
        _, _, _, model = example()
        with tempfile.TemporaryDirectory() as folder:
            model.save(folder)
            model.save(folder)
            self.assertEqual(len(list(Path(folder).iterdir())), 2)

    def test_saving_without_numpy_says_what_is_missing(self):
        _, _, _, model = example()
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(sys.modules, {"numpy": None}), \
                self.assertRaisesRegex(sinter.SinterError, r"^save: numpy is not installed; pip install 'numpy'$"):
            model.save(folder)

    def test_a_folder_of_foreign_files_is_no_place_for_a_module(self):
        _, _, _, model = example()
        for names in (["model.safetensors"], ["model.safetensors", "config.json"],
                      ["model.sir", "notes.txt"]):
            with self.subTest(names=names), tempfile.TemporaryDirectory() as folder:
                for name in names:
                    (Path(folder) / name).write_text("mine")
                with self.assertRaisesRegex(sinter.SinterError, "which is no part of a module"):
                    model.save(folder)
                self.assertEqual({path.name: path.read_text() for path in Path(folder).iterdir()},
                                 dict.fromkeys(names, "mine"))

    def test_inputs_and_outputs_have_torchs_shapes_however_they_lie_in_memory(self):
        class Turn(nn.Module):
            def forward(self, x):
                return x.t(), x * 2

        model = from_torch(Turn(), (randn(4, 3).t(),))
        self.assertIn("@main(%x: f32[3, 4])", model.text)
        x = randn(3, 4)
        turned, doubled = model.compile().run(x=x).values()
        torch.testing.assert_close((turned, doubled), (x.t(), x * 2))

    def test_transposed_weights(self):
        net = nn.Linear(4, 6)
        net.weight.data = randn(4, 6).t()
        x = randn(2, 4)
        result = from_torch(net, (x,)).compile().run(input=x)
        torch.testing.assert_close(result, net(x).detach())

    def test_a_dynamic_size_is_a_symbol_of_the_users_name(self):
        net = nn.Sequential(nn.Linear(4, 4), nn.GELU())
        batch = torch.export.Dim("Batch", max=64)
        model = from_torch(net, (randn(3, 4),), dynamic_shapes=({0: batch},))
        self.assertIn("symbol Batch in [", model.text)
        self.assertIn("%input: f32[Batch, 4]", model.text)
        compiled = model.compile()
        for count in (2, 5, 64):
            x = randn(count, 4)
            torch.testing.assert_close(compiled.run(input=x), net(x).detach())


class Attention(nn.Module):
    """A block of the README: a residual add behind a product with 3-D operands."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(8), nn.RMSNorm(8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8), nn.Dropout(0.5))

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (2, 4)).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class TestNames(unittest.TestCase):
    def setUp(self):
        self.model = from_torch(nn.Sequential(Attention(), Attention()).eval(), (randn(2, 3, 8),))

    def test_a_module_is_the_value_that_it_returns(self):
        compiled = self.model.compile()
        asked = [("0.norm1", "0.qkv"), ("0.norm2", "0.mlp"), ("0.mlp", "0"), ("0", "1.norm1")]
        found = [(one.a, one.b) for one in (compiled.why(a, b) for a, b in asked)]
        self.assertEqual(found, [("0.norm1", "0.qkv"), ("0.norm2", "0.mlp.2"), ("0.mlp.2", "0"),
                                 ("0", "1.norm1")])
        self.assertIn("%0.norm2 = mul", self.model.text)
        self.assertEqual(compiled.unfused().why("0.mlp", "0").a, "0.mlp.2")

    def test_the_program_knows_modules_by_the_same_names(self):
        program = find("sinter", "bin")
        if program is None:
            self.skipTest("the program sinter is not built")
        with tempfile.TemporaryDirectory() as folder:
            self.model.save(folder)
            done = subprocess.run([program, "explain", folder, "--why", "0.norm2", "0.mlp"],
                                  capture_output=True, text=True)
        self.assertIn("main: 0.norm2 and 0.mlp.2 do not share a kernel: ", done.stdout)
        self.assertIn("0.mlp is a module: it stands for its last value, 0.mlp.2", done.stdout)

    def test_a_residual_add_says_where_it_is(self):
        adds = [line.split()[0] for line in self.model.text.splitlines() if "= add %" in line]
        self.assertEqual([name for name in adds if "norm" not in name],
                         ["%0.add", "%0", "%1.add", "%1"])

    def test_pairs_of_options_are_modules_too(self):
        self.model.compile(forbid=[("0.mlp", "0")])
        with self.assertRaisesRegex(sinter.SinterError, "0.mlp.2"):
            self.model.compile(require=[("0.norm2", "0.mlp")])


class TestPrograms(unittest.TestCase):
    def test_an_exported_program_and_its_file(self):
        net, x = nn.Sequential(nn.Linear(4, 4), nn.GELU()), randn(3, 4)
        batch = torch.export.Dim("Batch", max=64)
        program = torch.export.export(net, (x,), dynamic_shapes=({0: batch},))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.pt2"
            torch.export.save(program, path)
            for source in (program, path, str(path)):
                model = from_torch(source)
                self.assertIn("module @Sequential", model.text)
                torch.testing.assert_close(model.compile().run(input=randn(5, 4) * 0 + x[0]),
                                           net(x[:1].expand(5, 4)).detach())
        with self.assertRaisesRegex(sinter.SinterError, "has arguments and sizes of its own"):
            from_torch(program, (x,))


class TestSizes(unittest.TestCase):
    def check(self, net, shapes, *calls):
        example = calls[0]
        compiled = from_torch(net, example, dynamic_shapes=shapes).compile()
        inputs = list(compiled.entry().inputs)
        for arguments in calls:
            ours = compiled.run("main", dict(zip(inputs, arguments)))
            ours = list(ours.values()) if isinstance(ours, dict) else [ours]
            wanted = net(*arguments)
            torch.testing.assert_close(ours, list(wanted) if isinstance(wanted, tuple) else [wanted])

    def test_bounds_of_a_size_are_the_users(self):
        size = torch.export.Dim("N", max=5000)
        model = from_torch(nn.GELU(), (randn(3, 4),), dynamic_shapes=({0: size},))
        self.assertIn("symbol N in [1, 5000]", model.text)
        self.assertEqual(model.compile().run(input=randn(1, 4)).shape, (1, 4))

    def test_a_slice_of_a_table_as_long_as_the_tokens(self):
        class Positions(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("ids", torch.arange(16)[None] * 3)
                self.table = nn.Parameter(randn(2, 16, 4))

            def forward(self, x):
                length = x.shape[1]
                return (x + self.ids[:, :length], self.table[:, 2:2 + length] * 2, x[:, -length:],
                        x[:, -100:length] * 2, self.ids[:, -100:length])

        size = torch.export.Dim("N", min=1, max=12)
        self.check(Positions(), ({1: size},), (randn(2, 5),), (randn(2, 12),), (randn(2, 1),))

    def test_a_concatenation_of_unknown_sizes(self):
        class Joined(nn.Module):
            def forward(self, past, new, mask):
                torch._check(mask.shape[1] == past.shape[1] + new.shape[1])
                both = torch.cat([past, new], 1)
                return both * mask[..., None], torch.cat([new, past], 1), \
                    torch.arange(past.shape[1], past.shape[1] + new.shape[1]) + mask.sum()

        past, new = (torch.export.Dim(name, min=1, max=32) for name in ("past", "new"))
        given = lambda p, n: (randn(2, p, 3), randn(2, n, 3), torch.ones(2, p + n, dtype=torch.long))
        self.check(Joined(), ({1: past}, {1: new}, {1: torch.export.Dim.AUTO}), given(4, 3),
                   given(7, 1), given(1, 9))

    def test_slices_of_a_concatenation_that_has_no_size_of_its_own(self):
        class Packed(nn.Module):
            def forward(self, x):
                steps = torch.diff(x, prepend=x[:, :1] - 1, dim=-1)
                return (steps != 1).cumsum(-1), torch.diff(x, append=x[:, -1:] + 2)

        size = torch.export.Dim("N", min=1, max=12)
        given = lambda n: (torch.randint(0, 9, (2, n)),)
        self.check(Packed(), ({1: size},), given(5), given(12), given(1))

    def test_names_of_sizes_in_arguments_of_arguments(self):
        class Sum(nn.Module):
            def forward(self, pair, *, named):
                return pair[0] + pair[1] + named["x"]

        rows, columns = (torch.export.Dim(name, max=9) for name in ("rows", "columns"))
        model = from_torch(Sum(), ((randn(3, 4), randn(4)),), {"named": {"x": randn(3, 1)}},
                           dynamic_shapes={"pair": ({0: rows, 1: columns}, {0: columns}),
                                           "named": {"x": {0: rows}}})
        self.assertIn("@main(%pair_0: f32[rows, columns], %pair_1: f32[columns], %named_x: f32[rows, 1])",
                      model.text)


class TestConvolutions(unittest.TestCase):
    def test_along_one_axis(self):
        for options in ({"padding": 1}, {"stride": 2, "padding": 1}, {"dilation": 2}, {"bias": False},
                        {"padding": "same"}, {"stride": 3}):
            net, x = nn.Conv1d(4, 6, 3, **options), randn(2, 4, 11)
            result = from_torch(net, (x,)).compile().run(input=x)
            torch.testing.assert_close(result, net(x).detach())


class TestRefusals(unittest.TestCase):
    def assert_refused(self, module, text, *arguments):
        with self.assertRaisesRegex(sinter.SinterError, text):
            from_torch(module, arguments or (randn(3, 4),))

    def test_all_ops_that_sinter_lacks_are_named_with_their_lines(self):
        class Module(nn.Module):
            def forward(self, x):
                x = x.cummax(0)[0]
                return torch.cummax(x, 0)[0]

        self.assert_refused(Module(), r"(?s)aten.cummax.default test_export.py:\d+: x = x.cummax.*"
                                      r"aten.cummax.default test_export.py:\d+")

    def test_a_module_that_changes_a_buffer_or_an_argument(self):
        class Count(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("calls", torch.zeros(()))

            def forward(self, x):
                self.calls.add_(1)
                return x * self.calls

        class Change(nn.Module):
            def forward(self, x):
                return x.add_(1)

        self.assert_refused(Count(), "Count: the module changes calls; return new values instead")
        self.assert_refused(Change(), "Change: the module changes x")

    def test_weights_of_a_type_that_sinter_lacks(self):
        self.assert_refused(nn.Linear(4, 4).double(), "Linear: .*elements of float64",
                            randn(3, 4).double())

    def test_dropout_that_is_on(self):
        self.assert_refused(nn.Dropout(0.5), "aten.native_dropout.default")


if __name__ == "__main__":
    unittest.main()
