"""Values that an op of eager refuses are refused by the compiled function too."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from beside_eager import assert_same, compiled, eager_ops, reset
from torch import tensor

p, y = torch.rand(3, 4), torch.rand(3, 4)
logits, labels = torch.randn(3, 4), tensor([0, 3, 2])
planes, places = torch.randn(1, 2, 2, 2), tensor([[[[0, 3], [9, 15]], [[1, 2], [8, 14]]]])


def with_element(x: torch.Tensor, value: float) -> torch.Tensor:
    """A copy with a value in the place of its second element."""
    x = x.clone()
    x.view(-1)[1] = value
    return x


# torch or Sinter decomposes these: a function, arguments, which of them is wrong, and wrong elements of it.
CALLS = {
    "probability of a loss": (lambda p, y: F.binary_cross_entropy(p * 1, y), (p, y), 0, (1.5, -0.1, float("nan"))),
    "target of a loss": (lambda p, y: F.binary_cross_entropy(p, y, p, reduction="none") * 1, (p, y), 1, (-1.0, 1.5)),
    "probability": (lambda p: torch.bernoulli(p * 1) + 1, (p,), 0, (1.5, -0.1)),
    "place in a plane": (lambda x, i: F.max_unpool2d(x * 1, i, 2), (planes, places), 1, (16, -1)),
    "label of a margin": (lambda x, t: F.multi_margin_loss(x * 2, t), (logits, labels), 1, (4, -1)),
    "labels of a margin": (lambda x, t: F.multilabel_margin_loss(x * 2, t),
                           (logits, tensor([[0, 1, -1, 2]] * 3)), 1, (4, -2)),
    "label of a plane": (lambda x, t: F.cross_entropy(x.unsqueeze(2) * 2, t.unsqueeze(1)), (logits, labels), 1, (4, -1)),
    "class": (lambda t: F.one_hot(t, 4) * 2, (labels,), 0, (4, -1)),
    "element": (lambda x, i: x.take(i) * 2, (logits, labels), 1, (12, -13)),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_eager_refuses_is_an_error(name: str) -> None:
    function, arguments, position, wrong = CALLS[name]
    reset()
    ours = compiled(function)
    results = []
    for one in (ours, function):
        torch.manual_seed(0)
        results.append(one(*arguments))
    assert_same(*results)
    for value in wrong:
        given = [with_element(x, value) if i == position else x for i, x in enumerate(arguments)]
        for one in (ours, function):
            with pytest.raises((RuntimeError, IndexError)):
                one(*given)


def test_the_error_of_a_loss_names_the_line_in_training_too() -> None:
    """The ends of the range are right, and a loss without elements is."""
    reset()
    function = compiled(lambda p, y: F.binary_cross_entropy(p * 1, y, reduction="sum"))
    for rows in (3, 0):
        ends = torch.linspace(0, 1, 3).expand(rows, 3).clone().requires_grad_()
        function(ends, ends.detach()).backward()
        assert ends.grad.isfinite().all()
    assert not eager_ops()
    for name, given in (("input", (p + 1, y)), ("target", (p, y + 1))):
        with pytest.raises(RuntimeError, match=rf"all elements of {name} should be between 0 and 1 "
                                               r"\(test_refused_values.py:\d+: "):
            function(given[0].requires_grad_(), given[1])
