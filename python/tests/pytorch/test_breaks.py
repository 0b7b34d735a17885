"""sinter.explain tells graph breaks and recompilations; require_full refuses breaks."""

import unittest

import torch
from beside_eager import reset
from torch import nn

import sinter


class Announced(nn.Module):
    """Python runs its first part before any graph."""

    def __init__(self):
        super().__init__()
        self.first, self.out = Printing(), nn.Linear(4, 4)

    def forward(self, x):
        y = self.first(x)
        return self.out(y)


class Printing(nn.Module):
    @torch._dynamo.disable
    def forward(self, x):
        return x * 2


def printing(x):
    y = x + 1
    print("", end="")
    return y * 2


def other(x):
    return x * 3


class TestBreaks(unittest.TestCase):
    def setUp(self):
        reset()

    def compiled(self, function, *arguments, **options):
        compiled = torch.compile(function, backend="sinter", options=options)
        compiled(*arguments)
        return compiled

    def test_a_break_before_the_first_graph_is_told(self):
        text = str(sinter.explain(self.compiled(Announced(), torch.randn(3, 4))))
        self.assertRegex(text, r"^1 graph, 1 break, 0 ops in eager\n"
                               r"break at test_breaks\.py:20: .*disable")

    def test_a_break_between_graphs_is_told(self):
        text = str(sinter.explain(self.compiled(printing, torch.randn(3))))
        self.assertRegex(text, r"^2 graphs, 1 break, 0 ops in eager\nbreak at test_breaks\.py:32: .*`print`")

    def test_a_break_is_told_of_its_function_alone(self):
        self.compiled(printing, torch.randn(3))
        whole = self.compiled(other, torch.randn(3))
        self.assertEqual(sinter.explain(whole).breaks, [])
        self.assertRegex(str(sinter.explain(whole)), "^1 graph, 0 ops in eager\n")

    def test_breaks_of_another_instance_and_of_another_backend_are_not_told(self):
        self.compiled(Announced(), torch.randn(3, 4))
        torch.compile(printing, backend="eager")(torch.randn(3))
        whole = self.compiled(other, torch.randn(3))
        self.assertEqual(sinter.explain(whole).breaks, [])
        torch._dynamo.reset()
        self.assertEqual(sinter.explain(whole).breaks, [])

    def test_a_repaired_function_is_taken_after_a_reset(self):
        module = Announced()
        self.compiled(module, torch.randn(3, 4))
        torch._dynamo.reset()
        module.first = nn.Identity()
        self.compiled(module, torch.randn(3, 4), require_full=True)

    def test_a_break_is_refused_where_all_is_required(self):
        for function, x in ((printing, torch.randn(3)), (Announced(), torch.randn(3, 4))):
            with self.assertRaisesRegex(Exception, r"does not take the whole function:\n  break at test_breaks\.py:"):
                self.compiled(function, x, require_full=True)
            reset()

    def test_recompilations_are_told_with_the_guard(self):
        compiled = torch.compile(other, backend="sinter", dynamic=False)
        compiled(torch.randn(3))
        self.assertEqual(sinter.explain(compiled).recompilations, [])
        compiled(torch.randn(4))
        self.assertRegex(str(sinter.explain(compiled)),
                         r"compiled again, test_breaks\.py:36: tensor 'x' size mismatch at index 0. expected 3, actual 4\n")


if __name__ == "__main__":
    unittest.main()
