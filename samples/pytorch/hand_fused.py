"""A hand-written kernel for LayerNorm(x) + residual, and the block that cannot use it.

    python samples/pytorch/hand_fused.py

The kernel is easy to write and fast on its own. In a pre-LN block attention and the MLP stand
between a norm and the residual add, so that there is nothing to call it for. In a post-LN block the
add feeds the norm directly. Sinter is asked about both, in the names of the module's attributes.
"""

import torch
from torch import nn

import sinter.pytorch

WIDTH, HEADS, TOKENS = 256, 4, 128


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(-2))


class Add(nn.Module):
    """The residual add as a module, so that its result has a name."""

    def forward(self, x, y):
        return x + y


class Block(nn.Module):
    def __init__(self, post_norm: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.add1, self.add2 = Attention(), Add(), Add()
        up, down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.mlp, self.post_norm = nn.Sequential(up, nn.GELU(), down), post_norm

    def forward(self, x):
        if self.post_norm:
            x = self.norm1(self.add1(x, self.attention(x)))
            return self.norm2(self.add2(x, self.mlp(x)))
        x = self.add1(x, self.attention(self.norm1(x)))
        return self.add2(x, self.mlp(self.norm2(x)))


class Alone(nn.Module):
    """The norm and the addition that the hand-written kernel computes."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.add = nn.LayerNorm(WIDTH), Add()

    def forward(self, x, residual):
        return self.add(self.norm(x), residual)


def ask(title: str, module: nn.Module, arguments: tuple, pairs: list[tuple[str, str]]) -> None:
    compiled = sinter.pytorch.from_torch(module, arguments).compile()
    print(f"{title}: {compiled.entry().costs()}; unfused {compiled.entry().unfused_costs()}")
    for a, b in pairs:
        print("  " + str(compiled.why(a, b)).replace("\n", "\n    "))
    print()


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(1, TOKENS, WIDTH)
    ask("LayerNorm(x) + residual alone", Alone(), (x, torch.randn_like(x)), [("norm", "add")])
    ask("pre-LN block", Block(post_norm=False), (x,),
        [("norm1", "add1"), ("norm2", "add2"), ("add1", "norm2")])
    ask("post-LN block", Block(post_norm=True), (x,),
        [("add1", "norm1"), ("add2", "norm2"), ("norm1", "add2")])
