"""Python's numbers that change from call to call: each number of an op may be one, and so may a size."""

import types
import unittest

import torch
from beside_eager import assert_same, compiled, eager_ops, reset
from test_overwriting import Function
from torch._dynamo.source import ConstantSource
from torch._dynamo.utils import counters
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from torch.nn import functional as F

import sinter.pytorch
from sinter.pytorch.backend import compile_aten, read_options
from sinter.pytorch.convert.ops import CONVERSIONS
from sinter.pytorch.graphs.decompositions import decompositions

aten = torch.ops.aten

VALUES = (7, 0, -3, 1, 2**31, 2**40 + 1)

# A call for each number of each op, of tensors t and a number v. An odd number is no divisor of zero.
CALLS = [
    lambda t, v: aten.add.Tensor(t.x, t.y, alpha=v), lambda t, v: aten.add.Tensor(t.i, t.j, alpha=v),
    lambda t, v: aten.mul.Scalar(t.h, v % 64), lambda t, v: aten.add.Scalar(t.x, v, v),
    lambda t, v: aten.add.Scalar(t.i, v, 3), lambda t, v: aten.add.Scalar(t.x, 0.5, v),
    lambda t, v: aten.sub.Tensor(t.x, t.y, alpha=v), lambda t, v: aten.sub.Scalar(t.i, v, v),
    lambda t, v: aten.rsub.Tensor(t.x, t.y, alpha=v), lambda t, v: aten.rsub.Scalar(t.i, v, v),
    lambda t, v: aten.mul.Scalar(t.x, v), lambda t, v: aten.mul.Scalar(t.i, v), lambda t, v: aten.mul.Tensor(t.m, v),
    lambda t, v: aten.div.Scalar(t.x, v), lambda t, v: aten.div.Scalar(t.i, v),
    lambda t, v: aten.div.Scalar_mode(t.i, 2 * v + 1, rounding_mode="floor"),
    lambda t, v: aten.div.Scalar_mode(t.i, 2 * v + 1, rounding_mode="trunc"),
    lambda t, v: aten.div.Scalar_mode(t.x, v, rounding_mode="trunc"),
    lambda t, v: aten.remainder.Scalar(t.i, 2 * v + 1), lambda t, v: aten.fmod.Scalar(t.i, 2 * v + 1),
    lambda t, v: aten.__lshift__.Scalar(t.i, v % 8), lambda t, v: aten.__rshift__.Scalar(t.i, v % 8),
    lambda t, v: aten.bitwise_left_shift.Tensor_Scalar(t.i, v % 8),
    lambda t, v: aten.bitwise_right_shift.Tensor_Scalar(t.i, v % 8),
    lambda t, v: aten.bitwise_left_shift.Scalar_Tensor(v, t.i % 8),
    lambda t, v: aten.bitwise_right_shift.Scalar_Tensor(v, t.i % 8),
    *[lambda t, v, op=op, x=x: getattr(aten, op).Scalar(getattr(t, x), v)
      for op in ("lt", "le", "gt", "ge", "eq", "ne") for x in "xihm"],
    *[lambda t, v, op=op: getattr(aten, op).Scalar(t.m, v) for op in ("bitwise_and", "bitwise_or", "bitwise_xor")],
    lambda t, v: aten.where.ScalarOther(t.m, t.x, v), lambda t, v: aten.where.ScalarSelf(t.m, v, t.i),
    lambda t, v: aten.masked_fill.Scalar(t.x, t.m, v), lambda t, v: aten.masked_fill.Scalar(t.i, t.m, v),
    lambda t, v: aten.clamp(t.x, v), lambda t, v: aten.clamp(t.i, None, v), lambda t, v: aten.clamp_min(t.i, v),
    lambda t, v: aten.clamp_max(t.x, v), lambda t, v: aten.pow.Tensor_Scalar(t.x.abs(), v),
    lambda t, v: aten.pow.Tensor_Scalar(t.x, v % 8),
    lambda t, v: aten.pow.Scalar(v, t.x), lambda t, v: aten.lerp.Scalar(t.x, t.y, v),
    lambda t, v: aten.addcmul(t.x, t.y, t.y, value=v), lambda t, v: aten.addcdiv(t.x, t.y, t.y, value=v),
    lambda t, v: aten.threshold_backward(t.x, t.y, v), lambda t, v: aten.leaky_relu(t.x, v),
    lambda t, v: aten.elu(t.x, v, v), lambda t, v: aten.elu(t.x, 1, 1, v), lambda t, v: aten.hardtanh(t.x, v, 5),
    lambda t, v: aten.hardtanh(t.x, -5, v), lambda t, v: aten.softplus(t.x, v, 20),
    lambda t, v: aten.softplus(t.x, 2, v), lambda t, v: aten.constant_pad_nd(t.x, [1, 2], v),
    lambda t, v: aten.full([2, 3], v), lambda t, v: aten.full([3], v, dtype=torch.float32),
    lambda t, v: aten.full([2], v / 2, dtype=torch.int64), lambda t, v: aten.mul.Scalar(t.i, v / 4),
    lambda t, v: aten.ge.Scalar(t.x, v / 4), lambda t, v: aten.full([3], v, dtype=torch.bool), lambda t, v: aten.full_like(t.i, v),
    lambda t, v: aten.new_full(t.x, [4], v), lambda t, v: aten.scalar_tensor(v),
    lambda t, v: aten.arange.start_step(v, v + 12, 3), lambda t, v: aten.arange.start(v, v + 5),
    lambda t, v: torch.ops.prims.iota(4, start=v, step=2 * v + 1, dtype=torch.int64, device=torch.device("cpu"),
                                      requires_grad=False),
    lambda t, v: aten.index_fill.int_Scalar(t.i, 1, t.k, v), lambda t, v: aten.scatter.value(t.x, 0, t.i[:2] % 3, v),
    lambda t, v: aten.addmm(t.z, t.x, t.y.t(), beta=v, alpha=v), lambda t, v: aten.addmm(t.b, t.x, t.y.t(), alpha=v),
    lambda t, v: aten.baddbmm(t.z[None], t.x[None], t.y.t()[None], beta=v, alpha=v),
    lambda t, v: aten.var.correction(t.x, [1], correction=v), lambda t, v: aten.std.correction(t.x, correction=v),
    lambda t, v: aten.var_mean.correction(t.x, [0], correction=v)[0],
    lambda t, v: aten.index_add(t.x, 1, t.k, t.y[:, :2], alpha=v),
    lambda t, v: aten.roll(t.x, [v], [1]), lambda t, v: aten.roll(t.i, [v]), lambda t, v: aten.tril(t.x, v),
    lambda t, v: aten.triu(t.x, v),
]
IN_EAGER = {"aten.full.default"}
# A number is a size here, or torch takes the op apart or has a guard for each value.
NOT_ALONE = {(aten.arange.start_step, "step")}


def tensors() -> types.SimpleNamespace:
    x = torch.linspace(-2, 2, 15).reshape(3, 5)
    i = torch.arange(-7, 8).reshape(3, 5)
    z = torch.ones(3, 3)
    z[0, 0], z[1, 1] = torch.inf, torch.nan
    return types.SimpleNamespace(x=x, y=x.sin() + 0.1, h=x.half(), i=i, j=i * i - 3, m=i % 3 == 1, z=z,
                                 b=torch.ones(3), k=torch.tensor([3, 1]))


class TestOps(unittest.TestCase):
    def test_each_number_of_an_op_may_change(self):
        given = vars(tensors())

        def every(*values):
            *values, v = values
            t = types.SimpleNamespace(**dict(zip(given, values)))
            return [call(t, v) for call in CALLS]

        environment = ShapeEnv()
        mode = FakeTensorMode(shape_env=environment)
        static = lambda x: StatelessSymbolicContext(dynamic_sizes=[DimDynamic.STATIC] * x.dim())
        fakes = [mode.from_tensor(x, source=ConstantSource(name), symbolic_context=static(x))
                 for name, x in given.items()]
        source = ConstantSource("v")
        symbol = environment.create_unspecified_symbol(VALUES[0], source, DimDynamic.DYNAMIC)
        number = environment.create_symintnode(symbol, hint=VALUES[0], source=source)
        graph = make_fx(every, decompositions(), tracing_mode="symbolic")(*fakes, number)
        numbers = {(node.target, argument.name) for node in graph.graph.nodes if node.op == "call_function"
                   for argument, value in arguments_of(node) if is_symbolic(value)}
        wanted = {(op, argument.name) for op in CONVERSIONS if hasattr(op, "_schema")
                  for argument in op._schema.arguments if "number" in str(argument.real_type)}
        self.assertEqual(wanted - numbers - NOT_ALONE, set())
        reset()
        guards = len(environment.guards)  # torch's own
        function = compile_aten(graph, read_options({}), "program")
        self.assertEqual(set(eager_ops()), IN_EAGER)
        self.assertEqual(len(environment.guards), guards)
        for v in VALUES:
            with self.subTest(v):
                assert_same([*function(*given.values(), v)], every(*given.values(), v))


def arithmetic(x, i, v):
    """Ops of a model with their gradients; x [3, 5]."""
    product = torch.baddbmm(x[None], x[None, :, :3], x[None, :3], beta=v, alpha=v + 1)
    y = torch.add(x, x.sin(), alpha=v) - torch.sub(3, x, alpha=v) + torch.addcmul(x, x.sin(), x.cos(), value=v)
    y = y + x.abs().add(0.5) ** v + torch.rsub(x, x * v, alpha=v) + torch.addmm(x, x[:, :3], x[:3], alpha=v)
    return (y, product, F.leaky_relu(x, v), F.elu(x, v), F.softplus(x, v, 20), F.threshold(x, v, v),
            F.hardtanh(x, -abs(v) - 1, abs(v) + 1), x.clamp(min=v), x * (i // (2 * v + 1)) + i % (2 * v + 1),
            torch.where(x > v, x, v), x.masked_fill(x > 1, v), x * torch.full((5,), v) + x.new_full((5,), v + 1),
            torch.linspace(0, v, 5) * x, (x / (v * v + 1)).roll(v, 1), x * torch.arange(v, v + 5), x.tril(v),
            i * v + (i == v) + i.clamp(max=v), x * (v / 3), F.embedding(i % 3, x, padding_idx=2) * v)


def places(x, v):
    """Numbers that are indices, ends and sizes."""
    return x[:, v:] + 1, x[:, :v].sum(), x.roll((v, -v), (0, 1)) * v, x.narrow(1, v, 2) * 2


def grid(x):
    b, h, w, d = x.shape
    i = torch.arange(h * w)
    rows = x.flatten(1, 2) * (i // w)[:, None] + (i % w)[:, None] + (h * w // 3) * x.shape[1]
    return torch.add(rows, rows.sin(), alpha=w) * ((i + 3) % (h + w))[:, None] / (h - w) ** 2


def ratios(x):
    b, h, w, d = x.shape
    return x * (h / w) + (h * w) ** 0.5 - (h + 0.5) * torch.sym_max(h, w) * x.numel()


class TestCompiled(unittest.TestCase):
    def check(self, function, calls, compilations, **options):
        """Beside eager, with gradients of the first argument."""
        reset()
        ours = compiled(function, fullgraph=True, **options)
        for arguments in calls:
            sides = []
            for run in (function, ours):
                x = arguments[0].clone().requires_grad_()
                results = run(x, *arguments[1:])
                sum(y.double().square().sum() for y in results if y.requires_grad).backward()
                sides.append((results, x.grad))
            with self.subTest(arguments[1:]):
                assert_same(sides[1], sides[0], 1e-4)
        self.assertLessEqual(counters["stats"]["unique_graphs"], compilations)

    def test_numbers_that_change_need_three_compilations(self):
        x, i = torch.linspace(-2, 2, 15).reshape(3, 5), torch.arange(-7, 8).reshape(3, 5)
        self.check(arithmetic, [(x, i, v) for v in (2, 3, -4, 0, 5, 2**31)], 3)
        self.check(lambda x, v: (x * v, i * v), [(x, v) for v in (2**28, -2**40, 2**62 + 1)], 1, dynamic=True)

    def test_numbers_that_are_places(self):
        x = torch.linspace(-2, 2, 24).reshape(3, 8)
        self.check(places, [(x, v) for v in (2, 3, 4, 5, -3, -4, -5)], 3)

    def test_sizes_are_numbers(self):
        reset()
        ours = compiled(grid, fullgraph=True, dynamic=True)
        for n in range(3, 12):
            x = torch.linspace(-2, 2, 2 * n * (2 * n + 1) * 5).view(2, n, 2 * n + 1, 5)
            assert_same(ours(x), grid(x), 1e-4)
        self.assertEqual(counters["stats"]["unique_graphs"], 1)
        self.assertEqual(eager_ops(), [])

    def test_sizes_are_numbers_of_an_exported_module(self):
        module = Function(lambda x: (grid(x), ratios(x)))
        x = torch.linspace(-2, 2, 2 * 4 * 7 * 5).view(2, 4, 7, 5)
        auto = torch.export.Dim.AUTO
        model = sinter.from_torch(module, (x,), dynamic_shapes=(({1: auto, 2: auto},),)).compile()
        for h, w in ((4, 7), (6, 5)):
            x = torch.linspace(-2, 2, 2 * h * w * 5).view(2, h, w, 5)
            assert_same([*model.run(arguments_0=x).values()], [grid(x).view(x.shape), ratios(x)], 1e-4)


    def exported(self, function, value: int):
        """Runs a function of a tensor of ones and a number that may change, exported with a value."""
        class Exported(torch.nn.Module):
            def forward(self, x, n):
                return function(x, n)
        x = torch.ones(3)
        model = sinter.from_torch(Exported(), (x, value), dynamic_shapes=(None, torch.export.Dim.DYNAMIC)).compile()
        return lambda n, fuse=True: (model if fuse else model.unfused()).run(x=x, n=torch.tensor(n))

    def test_a_number_of_an_exported_module_is_an_input_that_keeps_its_range(self):
        run = self.exported(lambda x, n: x * n + 3 * n, 5)
        for n in (-3, 100, 2**40):
            assert_same([run(n)], [torch.ones(3) * n + 3 * n], 1e-6)
        run = self.exported(lambda x, n: x * (n if n > 2 else -n), 5)
        assert_same([run(7)], [torch.full((3,), 7.0)], 1e-6)
        for n in (-4, 2, -2**63, 3 - 2**33):
            value = n if n >= -2**31 else f"{3 - 2**31} or less"
            with self.assertRaisesRegex(sinter.SinterError, f"^entry main: n is {value}; the module was exported for "
                                        "n at least 3; check the inputs$"):
                run(n)

    def test_a_number_outside_of_a_range_with_two_ends_is_an_error_that_tells_both(self):
        run = self.exported(lambda x, n: x * (n if 2 < n < 6 else -n), 5)
        with self.assertRaisesRegex(sinter.SinterError, "n is 7; the module was exported for n in 3 .. 5"):
            run(7, fuse=False)
        assert_same([run(3), run(5)], [torch.full((3,), 3.0), torch.full((3,), 5.0)], 1e-6)
        for n, value in ((2, 2), (7, 7), (-9, -9), (2**40, f"{5 + 2**31 - 1} or more"), (2**63 - 1, f"{5 + 2**31 - 1} or more"),
                         (-2**63, f"{3 - 2**31} or less")):
            with self.assertRaisesRegex(sinter.SinterError, f"n is {value}; the module was exported for n in 3 .. 5"):
                run(n)

    def test_a_number_beyond_float32_is_infinity(self):
        self.check(lambda x, n: (x.sign() * (n / 3) ** 60.0,), [(torch.ones(2), n) for n in (3, 6, 300)], 3)


def arguments_of(node):
    arguments = node.target._schema.arguments if hasattr(node.target, "_schema") else []
    return [(argument, node.args[i] if i < len(node.args) else node.kwargs.get(argument.name))
            for i, argument in enumerate(arguments)]


def is_symbolic(value) -> bool:
    return isinstance(value, torch.fx.Node) and isinstance(value.meta["val"], torch.SymInt)


if __name__ == "__main__":
    unittest.main()
