"""A language model and its optimizer's step, as a course writes them: RMSNorm, rotary positions,
attention and its softmax in primitives, SwiGLU, cross-entropy; clipping, AdamW with decay, a cosine
schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    vocabulary: int = 128
    width: int = 64
    layers: int = 2
    heads: int = 4
    hidden: int = 192
    context: int = 64


class RMSNorm(nn.Module):
    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + self.eps)
        return (x.float() * scale * self.weight).to(x.dtype)


class Rotary(nn.Module):
    """Rotates each pair of neighbouring features by an angle that grows with the position."""

    def __init__(self, width: int, context: int, theta: float = 10000.0) -> None:
        super().__init__()
        steps = theta ** (-torch.arange(0, width, 2) / width)
        angles = torch.outer(torch.arange(context), steps)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        cos, sin = self.cos[: x.shape[-2]], self.sin[: x.shape[-2]]
        even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
        turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1)
        return turned.flatten(-2).to(x.dtype)


def softmax(x: Tensor) -> Tensor:
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


class Attention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.rotary = Rotary(config.width // config.heads, config.context)
        seen = torch.ones(config.context, config.context, dtype=torch.bool).tril()
        self.register_buffer("seen", seen, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        q, k = self.rotary(q), self.rotary(k)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        scores = scores.float().masked_fill(~self.seen[:length, :length], -math.inf)
        return self.out((softmax(scores).to(v.dtype) @ v).transpose(1, 2).flatten(-2))


class SwiGLU(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.gate(x)
        return self.down(gate * torch.sigmoid(gate) * self.up(x))


class Block(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm1, self.norm2 = RMSNorm(config.width), RMSNorm(config.width)
        self.attention = Attention(config)
        self.mlp = SwiGLU(config.width, config.hidden)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """tokens [B, S], targets [B, S] -> the mean cross-entropy."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.05)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return cross_entropy(self.head(self.norm(x)).float(), targets)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    shifted = logits - logits.amax(-1, keepdim=True)
    chosen = shifted.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return (torch.log(torch.exp(shifted).sum(-1)) - chosen).mean()


class AdamW:
    """Clipping and AdamW: `update` is a function of tensors that changes parameters and moments,
    which torch.compile takes whole. Rate and step are tensors: their values compile nothing."""

    def __init__(self, parameters, betas=(0.9, 0.95), eps=1e-8, decay=0.1, clip=1.0,
                 compile=None) -> None:
        self.parameters = list(parameters)
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        device = self.parameters[0].device
        self.rate = torch.zeros((), device=device)
        self.count = torch.zeros((), device=device)
        self.betas, self.eps, self.decay, self.clip = betas, eps, decay, clip
        self.update = compile(self._update) if compile else self._update

    @torch.no_grad()
    def step(self, rate: float) -> None:
        self.rate.fill_(rate)
        self.count += 1
        grads = [p.grad for p in self.parameters]
        self.update(self.parameters, grads, self.first, self.second, self.rate, self.count)

    def _update(self, parameters, grads, first, second, rate, count) -> None:
        total = sum(g.float().square().sum() for g in grads).sqrt()
        scale = torch.clamp(self.clip / (total + 1e-6), max=1.0)
        beta1, beta2 = self.betas
        rate1 = rate / (1 - beta1**count)
        root2 = torch.sqrt(1 - beta2**count)
        for p, g, m, v in zip(parameters, grads, first, second):
            g = g * scale
            m.mul_(beta1).add_(g, alpha=1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            p.mul_(1 - rate * self.decay if p.dim() > 1 else 1.0)
            p.sub_(rate1 * m / (v.sqrt() / root2 + self.eps))


def cosine(step: int, steps: int, peak: float = 3e-3, warmup: int = 20) -> float:
    if step < warmup:
        return peak * (step + 1) / warmup
    along = (step - warmup) / max(1, steps - warmup)
    return peak * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * along)))
