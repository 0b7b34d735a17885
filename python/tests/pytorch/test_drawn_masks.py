"""Dropouts beside eager under the same seed, and that they do not cut a graph."""

import copy
import unittest

import torch
from beside_eager import assert_same, compiled, eager_ops, reset
from torch import nn
from torch.nn import functional as F

import sinter.pytorch


class Layers(nn.Module):
    """Dropouts between products. `draws`: another random op between them."""

    def __init__(self, draws: bool = False) -> None:
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(24, 24) for _ in range(3))
        self.draws = draws

    def forward(self, x):
        x = F.dropout(x, 0.1)
        for i, linear in enumerate(self.linears):
            x = x + F.dropout(torch.tanh(linear(x)), 0.3 * (i + 1))
            if self.draws and i == 1:
                x = x + torch.rand_like(x)
        return x


def results(function, module, x):
    x = x.detach().requires_grad_()
    torch.manual_seed(5)
    y = function(x)
    y.square().mean().backward()
    return [y.detach(), x.grad, *[parameter.grad for parameter in module.parameters()]]


class TestDrawnMasks(unittest.TestCase):
    def assert_as_eager(self, draws, dtype, tolerance):
        reset()
        torch.manual_seed(1)
        ours = Layers(draws).to(dtype)
        theirs, x = copy.deepcopy(ours), torch.randn(7, 24, dtype=dtype)
        assert_same(results(compiled(ours, dynamic=False), ours, x), results(theirs, theirs, x), tolerance)

    def test_the_numbers_are_eagers_and_the_graph_is_one_part(self):
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
            self.assert_as_eager(False, dtype, tolerance)
            report = sinter.pytorch.explain()  # of a forward and a backward graph
            self.assertEqual([len(graph.entries) for graph in report.graphs], [1, 1], str(report))
            self.assertEqual({*eager_ops()}, {"aten.native_dropout.default"})

    def test_other_random_ops_keep_their_place(self):
        self.assert_as_eager(True, torch.float32, 1e-5)

    def test_an_op_that_torch_does_not_know_as_random_keeps_its_place(self):
        @torch.library.custom_op("sinter_test::noise_like", mutates_args=())
        def noise_like(x: torch.Tensor) -> torch.Tensor:
            return torch.rand_like(x)

        noise_like.register_fake(torch.empty_like)
        noise_like.register_autograd(lambda ctx, grad: torch.zeros_like(grad))
        function = lambda x: F.dropout(torch.ops.sinter_test.noise_like(x.sin()) * x, 0.5)
        x = torch.randn(7, 24)
        reset()
        ours = results(compiled(function, dynamic=False), nn.Identity(), x)
        assert_same(ours, results(function, nn.Identity(), x))

    def test_dropouts_that_stay(self):
        for function, x in ((lambda x: F.dropout(x.T, 0.5), torch.randn(5, 6)), (lambda x: F.dropout(x, 1.0), torch.randn(5)),
                            (lambda x: F.dropout(x, 0.5), torch.randn(0, 3)), (lambda x: F.dropout(x, 0.5), torch.randn(5).double())):
            reset()
            torch.manual_seed(2)
            ours = compiled(lambda x: function(x) + 1)(x)
            torch.manual_seed(2)
            assert_same(ours, function(x) + 1)


if __name__ == "__main__":
    unittest.main()
