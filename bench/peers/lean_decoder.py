"""A decoder of the same architectures with nothing in the compiler's way: static caches, merged
projections, no framework around it; one token a call, or whole prompts. For torch.compile."""

import functools
import math

import torch
import torch.nn.functional as F
from torch import nn


def frequencies(rope: dict) -> torch.Tensor:
    """theta^(-2i/rotary), scaled as Llama 3 does where the spec says so. float32, [rotary / 2]."""
    base = rope["theta"] ** (-torch.arange(0, rope["rotary"], 2, dtype=torch.float64)
                             / rope["rotary"])
    if rope.get("scaling") == "llama3":
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        wavelength = 2 * math.pi / base
        blend = ((rope["original_max_positions"] / wavelength - low) / (high - low)).clamp(0, 1)
        base = base * ((1 - blend) / rope["factor"] + blend)
    return base.float()


class Block(nn.Module):
    def __init__(self, spec: dict, cache_length: int, sequences: int = 1):
        super().__init__()
        self.heads, self.kv_heads = spec["heads"], spec["kv_heads"]
        self.head_dim, self.rotary = spec["head_dim"], spec["rope"]["rotary"]
        self.parallel, self.gated = spec["residual"] == "parallel", spec["gated"]
        self.activation = {"gelu": F.gelu, "silu": F.silu}[spec["activation"]]
        norm = nn.RMSNorm if spec["norm"] == "rms_norm" else nn.LayerNorm
        hidden, inner = spec["hidden"], self.heads * self.head_dim
        self.norm1 = norm(hidden, eps=spec["norm_eps"])
        self.norm2 = norm(hidden, eps=spec["norm_eps"])
        self.qkv = nn.Linear(hidden, inner + 2 * self.kv_heads * self.head_dim,
                             bias=spec["qkv_bias"])
        self.out = nn.Linear(inner, hidden, bias=spec["attention_out_bias"])
        self.up = nn.Linear(hidden, (2 if self.gated else 1) * spec["ffn"], bias=spec["mlp_bias"])
        self.down = nn.Linear(spec["ffn"], hidden, bias=spec["mlp_bias"])
        shape = (sequences, self.kv_heads, cache_length, self.head_dim)
        self.register_buffer("keys", torch.randn(shape))
        self.register_buffer("values", torch.randn(shape))

    def rotate(self, x, cos, sin):
        turned, rest = x[..., :self.rotary], x[..., self.rotary:]
        first, second = turned.chunk(2, -1)
        turned = turned * cos + torch.cat((-second, first), -1) * sin
        return torch.cat((turned, rest), -1)

    def attention(self, x, position, cos, sin, visible):
        sequences = x.shape[0]
        heads = self.qkv(x).view(sequences, 1, self.heads + 2 * self.kv_heads, self.head_dim)
        q, k, v = heads.transpose(1, 2).split([self.heads, self.kv_heads, self.kv_heads], 1)
        self.keys.index_copy_(2, position, self.rotate(k, cos, sin))
        self.values.index_copy_(2, position, v)
        # The query heads of a key head stand where several tokens would.
        grouped = self.rotate(q, cos, sin).view(sequences, self.kv_heads, -1, self.head_dim)
        result = F.scaled_dot_product_attention(grouped, self.keys, self.values,
                                                attn_mask=visible)
        return self.out(result.reshape(sequences, 1, -1))

    def mlp(self, x):
        up = self.up(x)
        if not self.gated:
            return self.down(self.activation(up))
        gate, linear = up.chunk(2, -1)
        return self.down(self.activation(gate) * linear)

    def forward(self, x, *where):
        attended = x + self.attention(self.norm1(x), *where)
        if self.parallel:
            return attended + self.mlp(self.norm2(x))
        return attended + self.mlp(self.norm2(attended))


class PromptBlock(Block):
    """A block for whole prompts [sequences, tokens, hidden], which fill the caches from position 0 on."""

    def attention(self, x, cos, sin):
        sequences, tokens, _ = x.shape
        heads = self.qkv(x).view(sequences, tokens, self.heads + 2 * self.kv_heads, self.head_dim)
        q, k, v = heads.transpose(1, 2).split([self.heads, self.kv_heads, self.kv_heads], 1)
        q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        self.keys[:, :, :tokens] = k
        self.values[:, :, :tokens] = v
        result = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                enable_gqa=self.kv_heads < self.heads)
        return self.out(result.transpose(1, 2).reshape(sequences, tokens, -1))


class Decoder(nn.Module):
    """One greedy step of sequences of the same length. The caches hold `cache_length` positions of
    each."""

    def __init__(self, spec: dict, cache_length: int, make_block=Block):
        super().__init__()
        self.embedding = nn.Embedding(spec["vocabulary"], spec["hidden"])
        self.blocks = nn.ModuleList(make_block(spec, cache_length) for _ in range(spec["layers"]))
        norm = nn.RMSNorm if spec["norm"] == "rms_norm" else nn.LayerNorm
        self.norm = norm(spec["hidden"], eps=spec["norm_eps"])
        self.head = nn.Linear(spec["hidden"], spec["vocabulary"], bias=False)
        if spec["tied"]:
            self.head.weight = self.embedding.weight
        angles = torch.outer(torch.arange(cache_length, dtype=torch.float32),
                             frequencies(spec["rope"])).repeat(1, 2)
        self.register_buffer("cos", angles.cos().to(torch.get_default_dtype()))
        self.register_buffer("sin", angles.sin().to(torch.get_default_dtype()))
        self.register_buffer("positions", torch.arange(cache_length))

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        """token: int64 [sequences], position: int64 [1]; returns the next tokens."""
        return self.logits(token, position).argmax(-1)

    def logits(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        """[sequences, vocabulary]"""
        visible = (self.positions <= position)[None, None, None, :]
        x = self.embedding(token)[:, None]
        cos, sin = self.cos[position], self.sin[position]
        for block in self.blocks:
            x = block(x, position, cos, sin, visible)
        return self.head(self.norm(x))[:, 0]


class Prefill(Decoder):
    """Prompts of the same length, whose last tokens' logits are computed."""

    def __init__(self, spec: dict, sequences: int, tokens: int):
        super().__init__(spec, tokens, functools.partial(PromptBlock, sequences=sequences))

    def forward(self, prompts: torch.Tensor) -> torch.Tensor:
        """prompts: int64 [sequences, tokens]; returns the logits, [sequences, vocabulary]."""
        x = self.embedding(prompts)
        tokens = prompts.shape[1]
        for block in self.blocks:
            x = block(x, self.cos[:tokens], self.sin[:tokens])
        return self.head(self.norm(x[:, -1]))
