"""Dynamic sizes: one compilation for few and for many tokens, each with kernels of its own."""

import torch
import torch._dynamo
from torch import nn
from torch.nn import functional as F

import sinter
from sinter.pytorch import from_torch

MOST = 2000


class Layer(nn.Module):
    """Attention of 2 heads over the tokens of a call, with products around it."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (2, 16)).transpose(0, 1) for part in self.qkv(x).chunk(3, -1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(attended.transpose(0, 1).flatten(1))


def compiled_layer(layer, **options):
    torch._dynamo.reset()
    function = torch.compile(layer, backend="sinter", options=options)
    x = torch.randn(3, 32)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=MOST)
    with torch.no_grad():
        function(x)
    return function


def test_one_compilation_serves_calls_of_all_sizes():
    torch.manual_seed(1)
    layer = Layer().eval()
    fused = compiled_layer(layer)
    graphs = len(sinter.explain(fused).graphs)
    results = {}
    with torch.no_grad():
        for tokens in (2, 7, 8, 9, 300, MOST):
            x = torch.randn(tokens, 32)
            results[tokens] = x, fused(x)
            assert torch.allclose(results[tokens][1], layer(x), atol=1e-5)
    explanation = sinter.explain(fused)
    assert len(explanation.graphs) == graphs == 1
    text = str(explanation)
    assert text.count("inference, ") == 2 or text.count(" in [") == 2, text
    unfused = compiled_layer(layer, fuse=False)
    with torch.no_grad():
        for x, result in results.values():
            assert torch.equal(unfused(x), result)


def test_an_exported_module_has_variants_from_one_token_on():
    torch.manual_seed(2)
    layer = Layer().eval()
    tokens = torch.export.Dim("tokens", min=1, max=MOST)
    model = from_torch(layer, (torch.randn(20, 32),), dynamic_shapes=({0: tokens},))
    compiled = model.compile()
    assert [(entry.range.low, entry.range.high) for entry in compiled.entries.values()] == \
        [(1, 1), (2, 8), (9, MOST)]
    one, few, many = compiled.entries.values()
    assert one.costs().products == few.costs().products == 0 and many.costs().products > 0
    for count in (1, 8, 9, 40):
        x = torch.randn(count, 32)
        with torch.no_grad():
            assert torch.allclose(compiled.run(x=x), layer(x), atol=1e-5)
