"""Steps of optimizers, which write parameters and moments in place: beside eager, on the CPU and, where
there is one, on a GPU."""

import unittest
from unittest import mock

import sinter.pytorch
import torch
from torch import nn

import fake_recorder

STEPS = 5
DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["moment"] = torch.zeros_like(p)
                moment = state["moment"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(torch.sign(moment * first + p.grad * (1 - first)), alpha=-group["lr"])
                moment.mul_(second).add_(p.grad, alpha=1 - second)


class InFloat32(torch.optim.Optimizer):
    """SGD of bf16 parameters with a moment in f32."""

    def __init__(self, params, lr=1e-2):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["moment"] = torch.zeros_like(p, dtype=torch.float32)
                moment = state["moment"]
                moment.mul_(0.9).add_(p.grad.float())
                p.copy_(p.float() - group["lr"] * moment)


def rate(device):
    return torch.tensor(1e-2, device=device)


CASES = {
    "AdamW": lambda p, d: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
    "AdamW amsgrad": lambda p, d: torch.optim.AdamW(p, lr=1e-2, amsgrad=True),
    "AdamW maximize": lambda p, d: torch.optim.AdamW(p, lr=1e-2, maximize=True),
    "AdamW capturable": lambda p, d: torch.optim.AdamW(p, lr=rate(d), capturable=d != "cpu"),
    "Adam": lambda p, d: torch.optim.Adam(p, lr=1e-2, weight_decay=0.1),
    "SGD": lambda p, d: torch.optim.SGD(p, lr=1e-2),
    "SGD momentum": lambda p, d: torch.optim.SGD(p, lr=1e-2, momentum=0.9, nesterov=True),
    "Lion": lambda p, d: Lion(p),
}


def parameters(device, dtype=torch.float32):
    torch.manual_seed(3)
    sizes = [(64, 96), (96,), (7, 5), (3,), (64, 96)]
    return [nn.Parameter(torch.randn(size).to(device, dtype)) for size in sizes]


def views_of_one_buffer(device):
    torch.manual_seed(4)
    buffer = torch.randn(4, 64).to(device)
    return [nn.Parameter(buffer[i]) for i in range(4)]


def tensors_of(optimizer):
    """Parameters, then what the optimizer keeps for each."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    kept = [value for p in params for value in optimizer.state[p].values()]
    return params + [value for value in kept if isinstance(value, torch.Tensor)]


def steps(params, make, device, compiled, before=None, **options):
    """The optimizer after its steps, and the elements that copies behind the last call have moved."""
    optimizer = make(params, device)

    def function():
        if before is not None:
            before(params)
        optimizer.step()

    step = torch.compile(function, backend="sinter", **options) if compiled else function
    draw = torch.Generator().manual_seed(5)
    moved, places = 0, None
    copy = torch._foreach_copy_

    def counting(targets, values, *arguments, **named):
        nonlocal moved
        moved += sum(target.numel() for target in targets)
        return copy(targets, values, *arguments, **named)

    for number in range(STEPS):
        if number == 1:
            places = [tensor.data_ptr() for tensor in tensors_of(optimizer)]
        for p in params:
            p.grad = torch.randn(p.shape, generator=draw).to(device, p.dtype)
        moved = 0
        with mock.patch.object(torch, "_foreach_copy_", counting):
            step()
    assert places == [tensor.data_ptr() for tensor in tensors_of(optimizer)]
    return optimizer, moved


class TestOverwrittenParameters(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def assert_like_eager(self, make_params, make, device, rtol=2e-6, **named):
        ours, moved = steps(make_params(device), make, device, True, **named)
        again, _ = steps(make_params(device), make, device, True, **named)
        named = {key: value for key, value in named.items() if key == "before"}
        eager, _ = steps(make_params(device), make, device, False, **named)
        for one, other, wanted in zip(tensors_of(ours), tensors_of(again), tensors_of(eager)):
            self.assertTrue(torch.equal(one, other))
            # Eager counts steps in host memory.
            torch.testing.assert_close(one, wanted.to(one.device), rtol=rtol, atol=rtol)
        return moved

    def test_optimizers(self):
        for device in DEVICES:
            for name, make in CASES.items():
                with self.subTest(device=device, optimizer=name):
                    torch._dynamo.reset()
                    moved = self.assert_like_eager(parameters, make, device)
                    # Numbers of steps; Lion's moment, which the parameter's formula reads as well.
                    limit = sum(p.numel() for p in parameters("cpu")) if name == "Lion" else 5
                    self.assertLessEqual(moved, limit)

    def test_another_dtype_of_the_moment(self):
        for device in DEVICES:
            make = lambda p, d: InFloat32(p)
            moved = self.assert_like_eager(lambda d: parameters(d, torch.bfloat16), make, device, 8e-3)
            self.assertEqual(moved, 0)

    def test_parameters_that_are_views_of_one_buffer(self):
        for device in DEVICES:
            self.assert_like_eager(views_of_one_buffer, CASES["AdamW"], device)

    def test_clipping_before_the_step(self):
        for device in DEVICES:
            clip = lambda params: torch.nn.utils.clip_grad_norm_(params, 1.0, foreach=True)
            self.assert_like_eager(parameters, CASES["AdamW"], device, 5e-6, before=clip)

    def test_versions_grow(self):
        params = parameters("cpu")
        before = [p._version for p in params]
        steps(params, CASES["SGD momentum"], "cpu", True)
        for p, version in zip(params, before):
            self.assertGreaterEqual(p._version, version + STEPS)

    def test_an_argument_that_shares_memory_with_another(self):
        """x += y where both are parts of one buffer that overlap: Sinter cannot write x in its place."""
        def grow(x, y):
            x.add_(y)

        step = torch.compile(grow, backend="sinter", dynamic=False)
        for _ in range(2):
            buffer = torch.arange(96.0)
            wanted = buffer.clone()
            grow(wanted[:64], wanted[32:].clone())
            step(buffer[:64], buffer[32:])
            self.assertTrue(torch.equal(buffer, wanted))

    def test_an_argument_that_is_given_twice(self):
        def grow(x, y):
            x.add_(y)

        step = torch.compile(grow, backend="sinter", dynamic=False)
        x, y = torch.ones(64), torch.full((64,), 2.0)
        step(x, y)
        step(x, x)
        self.assertTrue(torch.equal(x, torch.full((64,), 6.0)))

    def test_recorded_steps(self):
        with fake_recorder.recorded_on_cpu():
            self.assert_like_eager(parameters, CASES["AdamW capturable"], "cpu", options={"graphs": True})
            torch._dynamo.reset()
            self.assert_like_eager(parameters, CASES["SGD momentum"], "cpu", options={"graphs": True})


@unittest.skipUnless(torch.cuda.is_available(), "needs a GPU")
class TestOnCuda(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def test_recorded_steps(self):
        for name in ("AdamW capturable", "SGD momentum"):
            torch._dynamo.reset()
            TestOverwrittenParameters.assert_like_eager(
                self, parameters, CASES[name], "cuda", mode="reduce-overhead")

    def test_memory(self):
        """Results take no memory beside parameters and moments."""
        p = nn.Parameter(torch.randn(1 << 24, device="cuda"))
        optimizer = torch.optim.AdamW([p], lr=1e-3)
        step = torch.compile(optimizer.step, backend="sinter")
        for _ in range(3):
            p.grad = torch.randn_like(p)
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            step()
        self.assertLess(torch.cuda.max_memory_allocated() - before, p.nbytes // 4)


if __name__ == "__main__":
    unittest.main()
