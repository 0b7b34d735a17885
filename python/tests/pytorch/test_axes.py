"""Axes: a torch axis that is held as several axes of the IR stays one axis for every op."""

import ast
import itertools
import unittest
from pathlib import Path

import torch
from beside_eager import run_beside_eager, train_beside_eager
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

import sinter.pytorch.convert.ops
from sinter.pytorch.graphs.decompositions import decompositions

randn = torch.randn


def breaches(source: str) -> list[str]:
    """Lines of a module of conversions that reach around torch's axes: private names of other objects,
    tensors made by hand, and the modules that know axes of the IR."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            is_torchs = ast.unparse(node).startswith(("torch.", "inductor_prims."))
            if not is_torchs and not node.attr.startswith("__"):
                found.append(ast.unparse(node))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Tensor", "getattr"):
            if node.args and ast.unparse(node.args[0]) not in ("a", "inductor_prims", "torch.ops.aten"):
                found.append(ast.unparse(node))
        if isinstance(node, (ast.ImportFrom, ast.Import)):
            names = [getattr(node, "module", None) or "", *[alias.name for alias in node.names]]
            found += [name for name in names if name.split(".")[-1] in ("axes", "emitter", "module", "Value")]
    return found


class TestConversions(unittest.TestCase):
    FOLDER = Path(sinter.pytorch.convert.ops.__file__).parent
    OWN = {"registry.py"}  # holds the emitter for the conversions

    def test_no_conversion_names_an_axis_of_the_ir(self):
        files = sorted(self.FOLDER.glob("*.py"))
        self.assertGreater(len(files), 10)
        for file in files:
            if file.name not in self.OWN:
                self.assertEqual(breaches(file.read_text()), [], file.name)

    def test_ways_around_torchs_axes_are_found(self):
        for source in ('c.g._add("softmax", [x._value])', "Tensor(c.g, value, x._groups)",
                       "from ....importing.axes import regroup", 'getattr(x, "_value")', "x._axes(-1)",
                       "from ...module import Value"):
            self.assertTrue(breaches(source), source)


def ops_of_axes() -> dict:
    """The ops with a conversion that take a list of axes, and the name of that argument."""
    found = {}
    for op in sinter.pytorch.convert.ops.CONVERSIONS:
        for argument in op._schema.arguments if hasattr(op, "_schema") else ():
            if argument.name in ("dim", "dims") and "List[int]" in str(argument.type):
                found[op] = argument.name
    return found


def shapes_of(call) -> list | None:
    """The sizes of the results; None: the call is refused."""
    try:
        results = call()
    except Exception:
        return None
    return [result.shape for result in (results if isinstance(results, (list, tuple)) else [results])]


class TestListsOfAxes(unittest.TestCase):
    """torch's trace, below the backend's decompositions, has eager's sizes for each list of axes."""

    # Eager ends with an error of its own for no axes and keepdim = False, for which it traces sizes.
    LEFT = {(torch.ops.aten.logsumexp.default, 0)}

    def differences(self, op, name: str, x: torch.Tensor) -> list:
        found = []
        names = [argument.name for argument in op._schema.arguments]
        axes_of = itertools.chain.from_iterable(
            itertools.product(range(-x.dim(), x.dim()), repeat=count) for count in range(3))
        for axes in axes_of:
            given = {name: list(axes), **({"shifts": [1] * len(axes)} if "shifts" in names else {})}
            for keep in ({"keepdim": False}, {"keepdim": True}) if "keepdim" in names else ({},):
                run = lambda x: op(x, **given, **keep)
                wanted = shapes_of(lambda: run(x))
                if shapes_of(lambda: run(x.to("meta"))) == wanted or (op, len(axes)) in self.LEFT:
                    continue  # torch's own kernel for the trace is right
                traced = shapes_of(lambda: [node.meta["val"] for node in make_fx(
                    run, decompositions(), "fake")(x).graph.find_nodes(op="output")[0].all_input_nodes])
                if traced != wanted:
                    found.append((str(op), list(x.shape), axes, keep))
        return found

    def test_negative_mixed_repeated_and_no_axes(self):
        ops = ops_of_axes()
        self.assertGreater(len(ops), 12)
        found = [one for op, name in ops.items() for x in (randn(1, 1, 3), randn(2, 1))
                 for one in self.differences(op, name, x)]
        self.assertEqual(found, [])


class TestCoincidingSizes(unittest.TestCase):
    """Sizes where batch times heads is the number of tokens, so that products coincide."""

    def test_gradients_of_attention_where_tokens_are_batch_times_heads(self):
        class Attention(nn.Module):
            def __init__(self, mask=None):
                super().__init__()
                self.inner = nn.MultiheadAttention(8, 4, batch_first=True)
                self.mask = mask

            def forward(self, x):
                return self.inner(x, x, x, need_weights=False, attn_mask=self.mask)[0]

        causal = nn.Transformer.generate_square_subsequent_mask(8)  # of -inf
        for mask, dynamic in ((None, False), (causal, True)):
            train_beside_eager(Attention(mask), randn(2, 8, 8).requires_grad_(),
                               tolerance=1e-4, dynamic=dynamic)

    def test_ops_of_one_axis_after_flatten_and_permute(self):
        tokens = lambda x: (x * 2).flatten(0, 1).permute(1, 0)  # [D, B * S], held as [D, B, S]
        weight, bias = randn(8), randn(8)
        run_beside_eager(lambda x: tokens(x).softmax(-1), randn(2, 4, 8))
        run_beside_eager(lambda x: tokens(x).cumsum(-1), randn(2, 4, 8))
        run_beside_eager(lambda x: F.layer_norm(tokens(x), (8,), weight, bias), randn(2, 4, 3))
        run_beside_eager(lambda x: F.linear(tokens(x), randn(3, 8) * 0 + 1), randn(2, 4, 8))
        run_beside_eager(lambda x, i: tokens(x).gather(-1, i), randn(2, 4, 3),
                         torch.arange(24).reshape(3, 8) % 8)
        run_beside_eager(lambda x: F.scaled_dot_product_attention(
            *[tokens(x).reshape(1, 1, 8, 8)] * 3), randn(2, 4, 8))

    def test_attention_of_flattened_tokens(self):
        def attend(x):
            q = x.flatten(0, 1).permute(1, 0).unflatten(0, (2, 2, 4)).transpose(-1, -2)
            return F.scaled_dot_product_attention(q, q, q)

        run_beside_eager(attend, randn(2, 4, 16))
        run_beside_eager(attend, randn(2, 4, 16), dynamic=True)


if __name__ == "__main__":
    unittest.main()
