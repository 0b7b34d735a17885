"""Arguments of every kind that torch has: taken, or refused by name."""

import unittest

import torch
import torch._dynamo
from beside_eager import assert_same, compiled, eager_ops, reset, run_beside_eager
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor

import sinter
from sinter.pytorch.convert.partition import SupportedOps

randn = torch.randn


def scaled(x):
    return x * 2 + 1


class TestBits(unittest.TestCase):
    def test_the_negative_bit(self):
        run_beside_eager(scaled, torch._neg_view(randn(4, 5)))
        run_beside_eager(scaled, randn(4, dtype=torch.complex64).conj().imag)
        run_beside_eager(lambda x: x.imag * 2 + x.real, randn(4, dtype=torch.complex64).conj())
        # A call of which torch's guards let any bit through.
        reset()
        function = compiled(scaled)
        for x in (randn(4, 5), torch._neg_view(randn(4, 5)), randn(4, 5)):
            assert_same(function(x), scaled(x))

    def test_the_negative_bit_of_a_gradient(self):
        reset()
        x = randn(4, 5).requires_grad_()
        compiled(torch.tanh)(x).backward(torch._neg_view(torch.ones(4, 5)))
        assert_same(x.grad, torch.tanh(x).square().detach() - 1)

    def test_a_conjugate_runs_in_eager(self):
        run_beside_eager(lambda x: (x * 2, x.abs() * 3), randn(4, dtype=torch.complex64).conj())
        self.assertIn("aten.mul.Tensor", eager_ops())

    def test_a_float64_of_no_axis_is_not_rounded_before_it_is_an_integer_or_a_truth(self):
        tensor = lambda number: torch.tensor(number, dtype=torch.float64)
        run_beside_eager(lambda x, whole, tiny, huge: (
            whole.to(torch.int64) + torch.arange(3), tiny.to(torch.bool), x * tiny.bool(),
            torch.logical_and(tiny, x), huge.isinf(), x > whole, x * whole), randn(3), tensor(2.0**24 + 1),
            tensor(1e-60), tensor(1e60))

    def test_a_zero_tensor(self):
        reset()
        zeros = torch._efficientzerotensor(3)
        assert_same(compiled(lambda t: t[-1] + 10)(zeros), torch.tensor(10.0))
        x = randn(4, 5).requires_grad_()
        compiled(scaled)(x).backward(torch._efficientzerotensor((4, 5)))
        assert_same(x.grad, torch.zeros(4, 5))


class TestClasses(unittest.TestCase):
    def test_subclasses_that_torch_takes_apart(self):
        reset()
        x = TwoTensor(randn(3, 4), randn(3, 4))
        ours, wanted = compiled(scaled)(x), scaled(x)
        self.assertIsInstance(ours, TwoTensor)
        assert_same((ours.a, ours.b), (wanted.a, wanted.b))

    def test_a_users_subclass_and_a_subclass_of_parameter(self):
        class Named(torch.Tensor):
            pass

        class Weight(nn.Parameter):
            pass

        reset()
        x = randn(3)
        ours = compiled(scaled)(x.as_subclass(Named))
        self.assertIsInstance(ours, Named)
        assert_same(ours.as_subclass(torch.Tensor), scaled(x))
        assert_same(compiled(scaled)(Weight(x)).detach(), scaled(x))

    def test_tensors_of_inference_mode(self):
        with torch.inference_mode():
            run_beside_eager(scaled, randn(3, 4))
            x = randn(3, 4)
        run_beside_eager(scaled, x)

    def test_a_tensor_of_another_device_is_named(self):
        reset()
        function = compiled(lambda x, y: (x * 2, y + 1))
        a, b = function(randn(3), torch.empty(3, device="meta"))
        self.assertEqual((a.device.type, b.device.type), ("cpu", "meta"))
        (op,) = sinter.explain(function).eager
        self.assertIn("a tensor on meta beside those on cpu", op.reason)

    def test_a_number_in_host_memory_is_converted_for_ops_of_a_device_alone(self):
        def is_taken(to: torch.dtype, is_returned: bool = False) -> bool:
            graph = torch.fx.Graph()
            number, x = graph.placeholder("number"), graph.placeholder("x")
            converted = graph.call_function(torch.ops.prims.convert_element_type.default, (number, to))
            total = graph.call_function(torch.ops.aten.add.Tensor, (x, converted))
            graph.output((total, converted) if is_returned else total)
            number.meta["val"] = torch.tensor(0.5, dtype=torch.float64)
            converted.meta["val"] = number.meta["val"].to(to)
            x.meta["val"] = total.meta["val"] = torch.empty(3, device="meta")
            ops = SupportedOps({}, torch.device("meta"))
            self.assertTrue(ops.is_node_supported(None, total))
            return ops.is_node_supported(None, converted)

        self.assertTrue(is_taken(torch.float32))
        self.assertFalse(is_taken(torch.bfloat16))  # rounded once, not twice
        self.assertFalse(is_taken(torch.float32, is_returned=True))


class TestTransforms(unittest.TestCase):
    def setUp(self):
        reset()

    def test_autocast(self):
        module = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 4))
        function, x = compiled(module), randn(3, 8)
        for enabled in (True, False):
            grads = []
            for one in (function, module):
                module.zero_grad()
                with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                    result = one(x)
                result.float().square().sum().backward()
                grads.append([result, *[parameter.grad for parameter in module.parameters()]])
            assert_same(*grads, tolerance=5e-2 if enabled else 1e-4)

    def test_vmap_and_grad_inside(self):
        loss = lambda w, x: torch.tanh(x @ w).square().sum()
        run_beside_eager(lambda w, x: torch.func.vmap(torch.func.grad(loss), (None, 0))(w, x),
                         randn(4, 4), randn(3, 4))

    def test_vmap_and_grad_outside(self):
        function = compiled(scaled)
        x = randn(3, 4)
        assert_same(torch.func.vmap(function)(x), scaled(x))
        total = compiled(lambda x: torch.tanh(x).sum())
        assert_same(torch.func.grad(total)(x), 1 - torch.tanh(x).square())

    def test_compiled_autograd(self):
        module, x = nn.Linear(4, 4), randn(3, 4)
        function = compiled(module)
        with torch._dynamo.compiled_autograd._enable(
                lambda graph: compiled(graph, dynamic=True)):
            function(x).square().sum().backward()
        ours = [parameter.grad.clone() for parameter in module.parameters()]
        module.zero_grad()
        module(x).square().sum().backward()
        assert_same(ours, [parameter.grad for parameter in module.parameters()], 1e-4)


if __name__ == "__main__":
    unittest.main()
