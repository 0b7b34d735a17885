"""sinter.bisect: planted faults of conversions and fusions are named, with the user's line."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch
from beside_eager import reset
from torch import nn
from torch.nn import functional as F

import sinter
import sinter.pytorch
from sinter._library import find
from sinter.pytorch.convert.ops import CONVERSIONS
from sinter.pytorch.tools.output_folder import check_module_folder, check_reproducer_folder

aten = torch.ops.aten
randn = torch.randn


def scaled(c, result):
    """A result with a wrong factor, or another number where it is no float."""
    return result * 1.01 if result.dtype in ("f32", "f16", "bf16") else result


def planted(op, change):
    """Within it the conversion of an op is wrong. change: of the conversion, its operands, keywords."""
    right = CONVERSIONS[op]
    return mock.patch.dict(CONVERSIONS, {op: lambda c, *args, **kwargs: change(right, c, *args, **kwargs)})


def wrong_factor(right, c, *args, **kwargs):
    result = right(c, *args, **kwargs)
    return tuple(scaled(c, one) if one is not None else None for one in result) \
        if isinstance(result, (tuple, list)) else scaled(c, result)


def exchanged(right, c, a, b, *others, **kwargs):
    return right(c, b, a, *others, **kwargs)


def other_axis(right, c, x, axis, *others, **kwargs):
    return right(c, x, 0 if axis in (-1, 1, [1], [-1]) else 1, *others, **kwargs)


class Layers(nn.Module):
    """Ops in lines of their own, so that a line tells the op."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x, index):
        a = self.linear(x)
        a = torch.tanh(a)
        a = a - x
        a = torch.sigmoid(a)
        a = a / (x * x + 1.0)
        a = torch.exp(a)
        a = F.softmax(a, -1)
        a = a + x.mean(0, keepdim=True)
        a = F.relu(a)
        a = a @ x.mT
        a = torch.where(a > 0.1, a, -a)
        a = torch.cat([a, a.abs()], 1)
        a = torch.sqrt(a + 1.0)
        a = torch.cumsum(a, 0)
        a = a.index_select(0, index)
        a = a.sum(1)
        a = torch.maximum(a, a.flip(0))
        a = torch.sin(a)
        return torch.log(a + 3.0)


# Each fault is a search of a second: all of them by SINTER_BISECT_FAULTS=all.
TRIES_ALL = os.environ.get("SINTER_BISECT_FAULTS") == "all"

# (the op, the fault, a part of the user's line)
FAULTS = [
    (aten.addmm.default, wrong_factor, "self.linear(x)"),
    (aten.tanh.default, wrong_factor, "torch.tanh(a)"),
    (aten.sub.Tensor, exchanged, "a - x"),
    (aten.sigmoid.default, wrong_factor, "torch.sigmoid(a)"),
    (aten.div.Tensor, exchanged, "a / (x * x + 1.0)"),
    (aten.div.Tensor, wrong_factor, "a / (x * x + 1.0)"),
    (aten.exp.default, wrong_factor, "torch.exp(a)"),
    (aten._softmax.default, wrong_factor, "F.softmax(a, -1)"),
    (aten._softmax.default, other_axis, "F.softmax(a, -1)"),
    (aten.mean.dim, wrong_factor, "x.mean(0"),
    (aten.relu.default, lambda right, c, x: x, "F.relu(a)"),
    (aten.mm.default, wrong_factor, "a @ x.mT"),
    (aten.where.self, lambda right, c, mask, a, b: right(c, mask, b, a), "torch.where("),
    (aten.abs.default, lambda right, c, x: x, "a.abs()"),
    (aten.cat.default, lambda right, c, items, *axis: right(c, [items[1], items[1]], *axis), "torch.cat("),
    (aten.sqrt.default, wrong_factor, "torch.sqrt("),
    (aten.cumsum.default, wrong_factor, "torch.cumsum("),
    (aten.sin.default, wrong_factor, "torch.sin(a)"),
    (aten.log.default, wrong_factor, "torch.log(a"),
    (aten.maximum.default, lambda right, c, a, b: a, "torch.maximum("),
]


def examples(rows=6):
    torch.manual_seed(0)
    return Layers(), (randn(rows, 6), torch.arange(rows).flip(0) % 5)


def make_folder(folder: Path, layout: dict, target: Path) -> None:
    """Files with their texts, folders with theirs; None: a link to `target`."""
    folder.mkdir()
    for name, content in layout.items():
        if content is None:
            (folder / name).symlink_to(target)
        elif isinstance(content, dict):
            make_folder(folder / name, content, target)
        else:
            (folder / name).write_text(content)


class TestConversions(unittest.TestCase):
    def setUp(self):
        reset()

    def test_faults_are_named_with_the_users_line(self):
        module, args = examples()
        for op, change, line in FAULTS[:: 1 if TRIES_ALL else 4]:
            with self.subTest(op=str(op)), planted(op, change):
                found = sinter.bisect(module, args, backward=False, output=None)
                self.assertEqual(found.verdict, "op", str(found))
                self.assertEqual({one.op for one in found.ops}, {str(op)}, str(found))
                self.assertIn(line, found.ops[0].location, str(found))
                self.assertIn("test_bisect.py:", found.ops[0].location)
                self.assertIn(str(op), str(found))

    def test_a_fault_of_a_gradient_is_found_in_the_backward_graph(self):
        def scaled_sine(x):
            return torch.sin(x) * 2.0

        with planted(aten.cos.default, wrong_factor):
            found = sinter.bisect(scaled_sine, (randn(8, requires_grad=True),), output=None)
        self.assertEqual(found.verdict, "op", str(found))
        self.assertEqual([(one.phase, one.op) for one in found.ops], [("backward", "aten.cos.default")])
        self.assertTrue(any(one.startswith("gradient of argument 0") for one in found.problems))
        right = sinter.bisect(scaled_sine, (randn(8, requires_grad=True),), backward=False, output=None)
        self.assertEqual(right.verdict, "right", str(right))

    def test_a_fault_in_a_layer_of_torch_is_named_by_the_path_of_the_module(self):
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

            def forward(self, x):
                return self.layers(x)

        with planted(aten.tanh.default, wrong_factor):
            found = sinter.bisect(Block(), (randn(3, 4),), backward=False, output=None)
        self.assertEqual([one.op for one in found.ops], ["aten.tanh.default"])
        self.assertRegex(found.ops[0].location, r"module layers\.1$|self\.layers\(x\)")

    def test_a_folder_of_foreign_files_is_no_place_for_what_fails(self):
        module, args = examples()
        for names in (["model.sir"], ["model.sir", "model.safetensors"], ["program.py"], ["op1", "x"]):
            with self.subTest(names=names), tempfile.TemporaryDirectory() as folder:
                for name in names:
                    (Path(folder) / name).write_text("mine")
                with self.assertRaisesRegex(sinter.SinterError, "which is no part of a reproducer"):
                    sinter.bisect(module, args, backward=False, output=folder)

    def test_a_link_or_a_folder_in_the_place_of_a_file_is_foreign(self):
        for link in (False, True):
            with self.subTest(link=link), tempfile.TemporaryDirectory() as folder:
                made = Path(folder, "made")
                made.mkdir()
                (made / "about.json").write_text('{"sinter": "1", "fails_alone": true}')
                check_reproducer_folder(made)
                Path(folder, "mine").mkdir()
                (made / "model.sir").symlink_to(Path(folder, "mine")) if link else (made / "model.sir").mkdir()
                for check in (check_reproducer_folder, check_module_folder):
                    with self.assertRaisesRegex(sinter.SinterError, "which is no part of a"):
                        check(made)

    def test_python_and_the_program_allow_the_same_folders(self):
        about = '{"sinter": "1", "fails_alone": true}'
        parts = {"about.json": about, "model.sir": "", "inputs.safetensors": ""}
        program = {"program.py": "", "operands.pt": ""}
        layouts = [{}, parts, program, {**parts, **program}, {"about.json": about}, {"model.sir": ""},
                   {"about.json": "{}", "model.sir": ""}, {"about.json": "[", "model.sir": ""}, {"program.py": ""},
                   {**parts, "x": ""}, {"op1": parts, "fusion12": program}, {"op1": {"x": ""}}, {"op": parts},
                   {"op1": {"op1": parts}}, {**parts, "model.sir": {}}, {"about.json": about, "op1": ""},
                   {"about.json": about, "model.sir": None}, {"op1": None}, {**program, "operands.pt": None}]
        model = "module @m {\n  entry @main(%x: f32[8]) -> (%y) {\n    %y = exp %x\n  }\n}\n"
        allowed = []
        with tempfile.TemporaryDirectory() as place:
            Path(place, "m.sir").write_text(model)
            Path(place, "mine").mkdir()
            for i, layout in enumerate(layouts):
                folder = Path(place, str(i))
                make_folder(folder, layout, Path(place, "mine"))
                done = subprocess.run([find("sinter", "bin"), "bisect", "m.sir", "-o", str(i), "--device", "cpu"],
                                      cwd=place, capture_output=True, text=True)
                refused = "which is no part of a reproducer" in done.stderr
                self.assertEqual(done.returncode, 4 if refused else 0, done.stderr)
                try:
                    check_reproducer_folder(folder)
                    allowed.append(layout)
                    self.assertFalse(refused, layout)
                except sinter.SinterError as error:
                    self.assertTrue(refused, f"{layout}: {error}")
        self.assertEqual(allowed, [layouts[i] for i in (0, 1, 2, 3, 4, 10)])

    def test_the_program_of_a_wrong_op_shows_it(self):
        module, args = examples()
        with tempfile.TemporaryDirectory() as folder, planted(aten.tanh.default, wrong_factor):
            found = sinter.bisect(module, args, backward=False, output=Path(folder) / "found")
            program = Path(found.ops[0].program)
            text = program.read_text()
            self.assertIn("torch.ops.aten.tanh.default(x0)", text)
            self.assertLessEqual(len(text.splitlines()), 16)
            done = subprocess.run([sys.executable, program.name], cwd=program.parent, capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("eager  tensor(", done.stdout)
            self.assertIn("Sinter tensor(", done.stdout)


class TestPlans(unittest.TestCase):
    def setUp(self):
        reset()

    def test_a_right_module_is_right_and_a_compiled_one_is_taken(self):
        module, args = examples()
        found = sinter.bisect(torch.compile(module, backend="sinter"), args, output=None, repeats=3)
        self.assertTrue(found, str(found))
        self.assertEqual(found.verdict, "right")
        self.assertIn("nothing is wrong", str(found))
        self.assertIsInstance(module.linear.weight.grad, type(None))

    def test_a_fusion_that_changes_bits_is_named_and_fails_alone(self):
        # With fast numerics a fused kernel leaves out the rounding that adding a large number means.
        def rounded(x):
            y = torch.tanh(x * 3.0)
            big = y + 1024.0
            return big - 1024.0

        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "reproducer"
            found = sinter.bisect(rounded, (randn(4, 8).half(),), backward=False, numerics="fast",
                                  output=output, repeats=3)
            self.assertEqual(found.verdict, "fusion", str(found))
            made = found.fusions[0].found["reproducer"]
            self.assertTrue(made["fails_alone"])
            self.assertTrue(any("big" in place for one in found.fusions for place in one.locations), str(found))
            files = {path.name for path in output.iterdir()}
            self.assertEqual(files, {"model.sir", "inputs.safetensors", "reproduce.sh", "about.json"})

    def test_what_is_no_function_is_refused(self):
        with self.assertRaisesRegex(sinter.SinterError, "neither a module nor a function"):
            sinter.bisect(3)
        with self.assertRaisesRegex(sinter.SinterError, "no option 'zzz'"):
            sinter.bisect(torch.tanh, (randn(3),), zzz=1)


if __name__ == "__main__":
    unittest.main()
