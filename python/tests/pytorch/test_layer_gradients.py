"""Results and gradients of every layer of torch.nn that has parameters, beside float64.

    python test_layer_gradients.py --all [NAME ...]      prints a line for each layer and size

Sizes coincide (as many tokens as heads of the batch, as many features as tokens), so that an axis
that is taken for another of the same size changes numbers and not shapes. The tests run a selection.
"""

from __future__ import annotations

import argparse
import copy
import inspect
import re
import sys
import time
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Iterator

import pytest
import torch
import torch._dynamo
from beside_eager import compiled, reset, tensors_of
from torch import nn
from torch.utils._pytree import tree_map

# A result is right if its largest error is at most FACTOR times eager's, or at most ROUNDINGS
# roundings of its largest element. Sums in these layers have at most TERMS terms, and the error of
# such a sum grows with the root of their number.
TERMS = 64
ROUNDINGS = TERMS**0.5
FACTOR = 3.0
# A gradient below this part of the layer's largest one is zero but for roundings, such as the gradient of a bias which
# softmax cancels; it is compared with the largest one.
ZERO = 1e-5

DTYPES = (torch.float32, torch.bfloat16)


@dataclass
class Case:
    """A layer and what it is called with. label: what is odd about it."""

    label: str
    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple]  # positional arguments, and a dict of named ones as the last one

    def arguments(self, dtype: torch.dtype) -> tuple[tuple, dict]:
        torch.manual_seed(1)
        given = self.inputs()
        args, kwargs = (given[:-1], given[-1]) if isinstance(given[-1], dict) else (given, {})
        return tree_map(lambda x: x.to(dtype) if is_real(x) else x, (args, kwargs))


@dataclass(frozen=True)
class Sizes:
    """batch, tokens of the query, tokens of the keys, features, heads."""

    batch: int
    tokens: int
    keys: int
    width: int
    heads: int

    def __str__(self) -> str:
        return f"B{self.batch} S{self.tokens} T{self.keys} E{self.width} H{self.heads}"


SIZES = (
    Sizes(2, 8, 8, 16, 4),  # tokens = batch * heads
    Sizes(4, 4, 4, 16, 4),  # batch = tokens = heads = width of a head
    Sizes(2, 16, 16, 16, 2),  # features = tokens
    Sizes(3, 5, 7, 24, 4),  # all differ
    Sizes(2, 3, 8, 8, 4),  # keys = batch * heads = features
    Sizes(4, 4, 6, 16, 2),  # features = batch * tokens
    Sizes(1, 1, 1, 4, 1),
    Sizes(1, 6, 4, 12, 6),
    Sizes(5, 1, 3, 8, 2),
    Sizes(2, 4, 2, 8, 2),
)
# Pairs of sizes for one compilation with sizes that change.
DYNAMIC_SIZES = (
    (Sizes(2, 8, 8, 16, 4), Sizes(3, 5, 7, 16, 4)),
    (Sizes(4, 4, 4, 16, 4), Sizes(4, 16, 16, 16, 4)),
    (Sizes(3, 5, 7, 16, 4), Sizes(2, 6, 16, 16, 4)),
)


def is_real(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.is_floating_point()


def randn(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


def causal(tokens: int, keys: int | None = None) -> torch.Tensor:
    """A mask of -inf above the diagonal."""
    return torch.full((tokens, keys or tokens), -torch.inf).triu(1)


def padding(batch: int, keys: int) -> torch.Tensor:
    """bool [batch, keys]: True at the end of each row but the first, never at its first key."""
    return torch.arange(keys) >= torch.clamp(keys - torch.arange(batch), min=1).unsqueeze(1)


# ---- layers with the sizes of attention

def attention(s: Sizes) -> Iterator[Case]:
    b, t, k, e, h = s.batch, s.tokens, s.keys, s.width, s.heads
    make = lambda *args, **kwargs: lambda: nn.MultiheadAttention(e, h, *args, **kwargs)
    same = lambda x: (x, x, x)
    first = make(batch_first=True)
    for needed in (False, True):
        yield Case(f"self, need_weights={needed}", first,
                   lambda n=needed: (*same(randn(b, t, e)), dict(need_weights=n)))
        yield Case(f"causal -inf, need_weights={needed}", first,
                   lambda n=needed: (*same(randn(b, t, e)), dict(need_weights=n, attn_mask=causal(t))))
    yield Case("weights of each head", first,
               lambda: (*same(randn(b, t, e)), dict(average_attn_weights=False)))
    yield Case("is_causal", first, lambda: (*same(randn(b, t, e)), dict(
        need_weights=False, attn_mask=causal(t), is_causal=True)))
    yield Case("bool mask", first, lambda: (*same(randn(b, t, e)), dict(
        need_weights=False, attn_mask=causal(t) < 0)))
    yield Case("padding", first, lambda: (*same(randn(b, t, e)), dict(
        need_weights=False, key_padding_mask=padding(b, t))))
    yield Case("causal and padding, float", first, lambda: (*same(randn(b, t, e)), dict(
        attn_mask=causal(t), key_padding_mask=torch.where(padding(b, t), -torch.inf, 0.0))))
    yield Case("mask of each head", first, lambda: (*same(randn(b, t, e)), dict(
        need_weights=False, attn_mask=randn(b * h, t, t))))
    yield Case("cross", first, lambda: (randn(b, t, e), *[randn(b, k, e)] * 2,
                                        dict(need_weights=False)))
    yield Case("cross, weights, mask", first, lambda: (
        randn(b, t, e), randn(b, k, e), randn(b, k, e), dict(attn_mask=randn(t, k))))
    yield Case("tokens first", make(), lambda: same(randn(t, b, e)))
    yield Case("tokens first, causal -inf", make(), lambda: (*same(randn(t, b, e)), dict(
        need_weights=False, attn_mask=causal(t))))
    yield Case("tokens first, cross, padding", make(), lambda: (
        randn(t, b, e), *[randn(k, b, e)] * 2, dict(key_padding_mask=padding(b, k))))
    yield Case("kdim, vdim", make(kdim=e + 2, vdim=t, batch_first=True), lambda: (
        randn(b, t, e), randn(b, k, e + 2), randn(b, k, t), dict(need_weights=False)))
    yield Case("add_bias_kv", make(add_bias_kv=True), lambda: (
        randn(t, b, e), *[randn(k, b, e)] * 2, dict(need_weights=False)))
    yield Case("add_bias_kv, mask", make(add_bias_kv=True, batch_first=True), lambda: (
        *same(randn(b, t, e)), dict(attn_mask=causal(t), key_padding_mask=padding(b, t).float())))
    yield Case("add_zero_attn", make(add_zero_attn=True, batch_first=True), lambda: (
        *same(randn(b, t, e)), dict(need_weights=False)))
    yield Case("no bias", make(bias=False, batch_first=True), lambda: same(randn(b, t, e)))
    yield Case("no batch", make(), lambda: (*same(randn(t, e)), dict(need_weights=False)))
    yield Case("no batch, mask", make(), lambda: (*same(randn(t, e)), dict(attn_mask=causal(t))))


def encoder_layers(s: Sizes) -> Iterator[Case]:
    make = lambda **kwargs: lambda: nn.TransformerEncoderLayer(s.width, s.heads, 2 * s.width, 0.0,
                                                               **kwargs)
    x = lambda: randn(s.batch, s.tokens, s.width)
    yield Case("plain", make(batch_first=True), lambda: (x(),))
    yield Case("causal -inf", make(batch_first=True), lambda: (x(), dict(
        src_mask=causal(s.tokens), is_causal=True)))
    yield Case("padding", make(batch_first=True), lambda: (x(), dict(
        src_key_padding_mask=padding(s.batch, s.tokens))))
    yield Case("norm first, gelu, causal", make(batch_first=True, norm_first=True, activation="gelu"),
               lambda: (x(), dict(src_mask=causal(s.tokens))))
    yield Case("tokens first", make(), lambda: (randn(s.tokens, s.batch, s.width),))
    yield Case("tokens first, causal -inf, no bias", make(bias=False), lambda: (
        randn(s.tokens, s.batch, s.width), dict(src_mask=causal(s.tokens))))


def decoder_layers(s: Sizes) -> Iterator[Case]:
    make = lambda **kwargs: lambda: nn.TransformerDecoderLayer(s.width, s.heads, 2 * s.width, 0.0,
                                                               **kwargs)
    x = lambda: (randn(s.batch, s.tokens, s.width), randn(s.batch, s.keys, s.width))
    yield Case("plain", make(batch_first=True), x)
    yield Case("causal -inf", make(batch_first=True), lambda: (*x(), dict(
        tgt_mask=causal(s.tokens), tgt_is_causal=True)))
    yield Case("padding", make(batch_first=True, norm_first=True), lambda: (*x(), dict(
        tgt_mask=causal(s.tokens), memory_key_padding_mask=padding(s.batch, s.keys),
        memory_mask=randn(s.tokens, s.keys))))
    yield Case("tokens first", make(), lambda: (randn(s.tokens, s.batch, s.width),
                                                randn(s.keys, s.batch, s.width)))


def encoders(s: Sizes) -> Iterator[Case]:
    make = lambda first: lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(
        s.width, s.heads, s.width, 0.0, batch_first=first), 2, enable_nested_tensor=False)
    yield Case("causal", make(True), lambda: (randn(s.batch, s.tokens, s.width), dict(
        mask=causal(s.tokens))))
    yield Case("tokens first", make(False), lambda: (randn(s.tokens, s.batch, s.width),))


def decoders(s: Sizes) -> Iterator[Case]:
    make = lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(
        s.width, s.heads, s.width, 0.0, batch_first=True), 2, nn.LayerNorm(s.width))
    yield Case("causal", make, lambda: (randn(s.batch, s.tokens, s.width), randn(
        s.batch, s.keys, s.width), dict(tgt_mask=causal(s.tokens))))


def transformers(s: Sizes) -> Iterator[Case]:
    make = lambda: nn.Transformer(s.width, s.heads, 1, 1, s.width, 0.0, batch_first=True)
    yield Case("causal", make, lambda: (randn(s.batch, s.keys, s.width), randn(
        s.batch, s.tokens, s.width), dict(tgt_mask=causal(s.tokens))))


def recurrent(kind: type) -> Callable[[Sizes], Iterator[Case]]:
    def cases(s: Sizes) -> Iterator[Case]:
        count = 2 if kind is nn.LSTM else 1
        state = lambda *sizes: tuple(randn(*sizes) for _ in range(count))
        packed = lambda values: values if count == 2 else values[0]
        x = lambda: randn(s.tokens, s.batch, s.heads)
        yield Case("plain", lambda: kind(s.heads, s.tokens), lambda: (x(),))
        yield Case("two layers, both directions, batch first, state", lambda: kind(
            s.heads, s.batch, 2, batch_first=True, bidirectional=True), lambda: (
            randn(s.batch, s.tokens, s.heads), packed(state(4, s.batch, s.batch))))
    return cases


def cells(kind: type) -> Callable[[Sizes], Iterator[Case]]:
    def cases(s: Sizes) -> Iterator[Case]:
        state = lambda: (randn(s.batch, s.tokens),) * 2
        yield Case("plain", lambda: kind(s.heads, s.tokens), lambda: (randn(s.batch, s.heads),))
        yield Case("state, no bias", lambda: kind(s.heads, s.tokens, bias=False), lambda: (
            randn(s.batch, s.heads), state() if kind is nn.LSTMCell else state()[0]))
    return cases


# ---- other layers

def linear(s: Sizes) -> Iterator[Case]:
    yield Case("batch", lambda: nn.Linear(s.width, s.tokens), lambda: (
        randn(s.batch, s.tokens, s.width),))
    yield Case("square, no bias", lambda: nn.Linear(s.width, s.width, bias=False), lambda: (
        randn(s.width, s.width),))
    yield Case("one feature", lambda: nn.Linear(s.width, 1), lambda: (
        randn(s.batch, s.heads, s.tokens, s.width),))
    yield Case("no batch", lambda: nn.Linear(s.width, s.heads), lambda: (randn(s.width),))


def bilinear(s: Sizes) -> Iterator[Case]:
    yield Case("plain", lambda: nn.Bilinear(s.tokens, s.keys, s.batch), lambda: (
        randn(s.batch, s.tokens), randn(s.batch, s.keys)))
    yield Case("batch, no bias", lambda: nn.Bilinear(s.keys, s.heads, 3, bias=False), lambda: (
        randn(s.batch, s.tokens, s.keys), randn(s.batch, s.tokens, s.heads)))


def convolutions(kind: type, axes: int) -> Callable[[Sizes], Iterator[Case]]:
    is_transposed = "Transpose" in kind.__name__

    def cases(s: Sizes) -> Iterator[Case]:
        image = lambda channels, size: randn(s.batch, channels, *[size] * axes)
        yield Case("patches", lambda: kind(3, s.heads, 2, 2), lambda: (image(3, 4),))
        yield Case("kernel 1", lambda: kind(s.tokens, s.batch, 1), lambda: (image(s.tokens, 3),))
        yield Case("overlap, padding", lambda: kind(4, 4, 3, padding=1), lambda: (image(4, 4),))
        yield Case("groups, no bias", lambda: kind(4, 4, 2, 2, groups=2, bias=False),
                   lambda: (image(4, 4),))
        yield Case("a kernel for each channel", lambda: kind(4, 4, 4, padding=3, groups=4),
                   lambda: (image(4, 5),))
        if not is_transposed:
            yield Case("rest of an image", lambda: kind(2, 4, 2, 2), lambda: (image(2, 5),))
            yield Case("padding of zeros kept", lambda: kind(2, 4, 3, padding="same",
                                                             padding_mode="circular"),
                       lambda: (image(2, 4),))
    return cases


def channel_norms(kind: type, axes: int) -> Callable[[Sizes], Iterator[Case]]:
    def cases(s: Sizes) -> Iterator[Case]:
        channels = s.batch if s.batch > 1 else 3
        x = lambda: randn(max(s.batch, 2), channels, *[s.tokens + 1] * axes)
        yield Case("affine", lambda: kind(channels, affine=True), lambda: (x(),))
        yield Case("eval, running", lambda: kind(channels, affine=True, track_running_stats=True).eval(),
                   lambda: (x(),))
        yield Case("not affine", lambda: kind(channels, affine=False), lambda: (x(),))
    return cases


def group_norm(s: Sizes) -> Iterator[Case]:
    for groups in (1, 2, 4):
        yield Case(f"{groups} groups", lambda g=groups: nn.GroupNorm(g, 4), lambda: (
            randn(s.batch, 4, s.tokens, s.heads),))
    yield Case("no places", lambda: nn.GroupNorm(2, 4), lambda: (randn(s.batch, 4),))
    yield Case("not affine", lambda: nn.GroupNorm(2, 4, affine=False), lambda: (randn(s.batch, 4, 3),))


def row_norms(kind: type) -> Callable[[Sizes], Iterator[Case]]:
    def cases(s: Sizes) -> Iterator[Case]:
        x = lambda: randn(s.batch, s.tokens, s.width)
        yield Case("rows", lambda: kind(s.width), lambda: (x(),))
        yield Case("two axes", lambda: kind((s.tokens, s.width)), lambda: (x(),))
        yield Case("no weights", lambda: kind(s.width, elementwise_affine=False), lambda: (x(),))
        yield Case("all axes", lambda: kind(s.width), lambda: (randn(s.width),))
        if kind is nn.LayerNorm:
            yield Case("no bias", lambda: kind(s.width, bias=False), lambda: (x(),))
    return cases


def embedding(s: Sizes) -> Iterator[Case]:
    tokens = lambda rows: torch.randint(0, rows, (s.batch, s.tokens))
    yield Case("plain", lambda: nn.Embedding(s.tokens, s.width), lambda: (tokens(s.tokens),))
    yield Case("padding", lambda: nn.Embedding(9, s.batch, padding_idx=2), lambda: (tokens(9),))
    yield Case("one number", lambda: nn.Embedding(5, s.width), lambda: (torch.tensor(3),))
    yield Case("most norm", lambda: nn.Embedding(5, s.width, max_norm=1.0), lambda: (tokens(5),))
    yield Case("by frequency", lambda: nn.Embedding(5, s.width, scale_grad_by_freq=True), lambda: (
        tokens(5),))


def embedding_bag(s: Sizes) -> Iterator[Case]:
    tokens = lambda: torch.randint(0, 7, (s.batch, s.tokens))
    for mode in ("sum", "mean", "max"):
        yield Case(mode, lambda m=mode: nn.EmbeddingBag(7, s.width, mode=m), lambda: (tokens(),))
    yield Case("offsets", lambda: nn.EmbeddingBag(7, s.width), lambda: (
        tokens().flatten(), torch.arange(0, s.batch * s.tokens, s.tokens)))
    yield Case("weights", lambda: nn.EmbeddingBag(7, s.width, mode="sum", padding_idx=1), lambda: (
        tokens(), dict(per_sample_weights=randn(s.batch, s.tokens))))


def prelu(s: Sizes) -> Iterator[Case]:
    yield Case("one", nn.PReLU, lambda: (randn(s.batch, s.tokens, s.width),))
    yield Case("channels", lambda: nn.PReLU(s.tokens), lambda: (randn(s.batch, s.tokens, s.width),))
    yield Case("two axes", lambda: nn.PReLU(s.width), lambda: (randn(s.width, s.width),))
    yield Case("no axes", nn.PReLU, lambda: (torch.randn(()),))


def adaptive_softmax(s: Sizes) -> Iterator[Case]:
    yield Case("plain", lambda: nn.AdaptiveLogSoftmaxWithLoss(s.width, 12, [3, 7], head_bias=True),
               lambda: (randn(s.tokens, s.width), torch.randint(0, 12, (s.tokens,))))


def linear_cross_entropy(s: Sizes) -> Iterator[Case]:
    labels = lambda *sizes: torch.randint(0, s.heads + 1, sizes)
    kind = getattr(nn, "LinearCrossEntropyLoss", None)  # this torch may lack it
    yield Case("plain", lambda: kind(s.width, s.heads + 1), lambda: (
        randn(s.tokens, s.width), labels(s.tokens)))
    yield Case("bias, sum, smoothing", lambda: kind(
        s.width, s.tokens, bias=True, reduction="sum", label_smoothing=0.1), lambda: (
        randn(s.tokens, s.width), torch.randint(0, s.tokens, (s.tokens,))))


LAYERS: dict[type, Callable[[Sizes], Iterator[Case]]] = {
    nn.MultiheadAttention: attention, nn.TransformerEncoderLayer: encoder_layers,
    nn.TransformerDecoderLayer: decoder_layers, nn.TransformerEncoder: encoders,
    nn.TransformerDecoder: decoders, nn.Transformer: transformers,
    **{kind: recurrent(kind) for kind in (nn.RNN, nn.LSTM, nn.GRU)},
    **{kind: cells(kind) for kind in (nn.RNNCell, nn.LSTMCell, nn.GRUCell)},
    nn.Linear: linear, nn.Bilinear: bilinear, nn.GroupNorm: group_norm, nn.Embedding: embedding,
    nn.EmbeddingBag: embedding_bag, nn.PReLU: prelu,
    nn.AdaptiveLogSoftmaxWithLoss: adaptive_softmax,
    **{kind: linear_cross_entropy for kind in [getattr(nn, "LinearCrossEntropyLoss", None)] if kind},
    nn.LayerNorm: row_norms(nn.LayerNorm), nn.RMSNorm: row_norms(nn.RMSNorm),
    **{kind: convolutions(kind, axes) for name in ("Conv", "ConvTranspose") for axes in (1, 2, 3)
       for kind in [getattr(nn, f"{name}{axes}d")]},
    **{kind: channel_norms(kind, axes) for name in ("BatchNorm", "InstanceNorm") for axes in (1, 2, 3)
       for kind in [getattr(nn, f"{name}{axes}d")]},
}
OF_ATTENTION = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer,
                nn.TransformerEncoder, nn.TransformerDecoder, nn.Transformer)
RECURRENT = (nn.RNN, nn.LSTM, nn.GRU)
# Containers hold what they are given; base classes have no forward function; the last one runs on
# several GPUs only.
OTHERS = {"Container", "Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList",
          "Sequential", "DataParallel", "RNNBase", "RNNCellBase", "SyncBatchNorm"}


def layers_with_parameters() -> set[type]:
    """The classes of torch.nn whose source makes parameters, or layers that have some."""
    kinds = {kind for _, kind in inspect.getmembers(nn, inspect.isclass)
             if issubclass(kind, nn.Module) and kind.__name__ not in OTHERS
             and not kind.__name__.startswith("Lazy")}
    source = {kind: "\n".join(inspect.getsource(base) for base in kind.__mro__
                              if base not in (object, nn.Module) and issubclass(base, nn.Module))
              for kind in kinds}
    found: set[type] = set()
    while True:
        makes = re.compile("|".join([r"(?<!Uninitialized)Parameter\(", r"register_parameter\(",
                                     *[rf"= {kind.__name__}\(" for kind in found]]))
        more = {kind for kind in kinds if makes.search(source[kind])}
        if more <= found:
            return found
        found |= more


# ---- running

def results_of(function: Callable, root: nn.Module, arguments: tuple[tuple, dict],
               seed: int = 3) -> tuple[list, list, list]:
    """(results, gradients of parameters and inputs, buffers)"""
    args, kwargs = copy.deepcopy(arguments)
    given = [x for x in tensors_of(args) if is_real(x)]
    for x in given:
        x.requires_grad_(True)
    root.zero_grad()
    torch.manual_seed(seed)
    results = [x for x in tensors_of(function(*args, **kwargs)) if is_real(x)]
    outs = [x for x in results if x.requires_grad]
    torch.manual_seed(seed)
    torch.autograd.backward(outs, [torch.randn(x.shape).to(x.dtype) for x in outs])
    grads = [x.grad for x in [*root.parameters(), *given]]
    return [x.detach() for x in results], grads, [x for x in root.buffers() if is_real(x)]


def results_without_gradients(function: Callable, root: nn.Module, arguments: tuple[tuple, dict]):
    args, kwargs = copy.deepcopy(arguments)
    with torch.no_grad():
        return [x for x in tensors_of(function(*args, **kwargs)) if is_real(x)], [], []


class Wrong(AssertionError):
    """A result or a gradient is further from float64 than it may be."""


def strides_of(x: torch.Tensor) -> list[int]:
    """The strides of the axes of more than one element."""
    return [stride for stride, size in zip(x.stride(), x.shape) if size != 1]


def compare(ours: tuple, eager: tuple, exact: tuple, names: list[str], dtype: torch.dtype) -> float:
    """Raises Wrong; returns the largest error as a part of the bound."""
    least = ZERO * max([x.abs().max().item() for x in exact[1] if x is not None and x.numel()],
                       default=0.0)
    worst, strides = 0.0, []
    for part, what in enumerate(("result", "gradient", "buffer")):
        for number, (a, b, x) in enumerate(zip(ours[part], eager[part], exact[part], strict=True)):
            name = f"{what} {names[number] if part == 1 else number}"
            if (a is None) != (b is None):
                raise Wrong(f"{name}: {'no tensor' if a is None else 'a tensor'}, unlike eager")
            if a is None or not b.numel():
                continue
            if (a.dtype, a.shape) != (b.dtype, b.shape):
                raise Wrong(f"{name}: {a.dtype}{list(a.shape)}, eager has {b.dtype}{list(b.shape)}")
            if part == 0 and strides_of(a) != strides_of(b):
                strides.append(f"{name}: strides {a.stride()}, eager has {b.stride()}")
            a, b, x = a.double(), b.double(), x.double()
            special = ~(b.isfinite() & x.isfinite())
            if not torch.equal(a[special].nan_to_num(), b[special].nan_to_num()):
                raise Wrong(f"{name}: NaN or infinity where eager has none, or the reverse")
            a, b, x = (y[~special] for y in (a, b, x))
            if not x.numel():
                continue
            scale = x.abs().max().item()
            scale = scale if scale > least else least / ZERO
            error, eagers = (a - x).abs().max().item(), (b - x).abs().max().item()
            if not error <= torch.inf:
                raise Wrong(f"{name}: NaN or infinity")
            bound = max(FACTOR * eagers, ROUNDINGS * torch.finfo(dtype).eps * scale)
            if error > bound:
                raise Wrong(f"{name} {list(b.shape) or ''}: {error:.1e} from float64, eager "
                            f"{eagers:.1e}, largest number {scale:.1e}")
            worst = max(worst, error / bound if bound else 0.0)
    if strides:
        raise Wrong(strides[0])
    return worst


def run_cases(cases: list[Case], dtype: torch.dtype, grads: bool = True, **options: Any) -> float:
    """Compiles the first case's layer and calls it with the arguments of all cases, each twice."""
    reset()
    worst, run = 0.0, results_of if grads else results_without_gradients
    torch.manual_seed(0)
    module = cases[0].make().to(dtype)
    if not grads:
        module.eval()
    eager, exact, ours = copy.deepcopy(module), copy.deepcopy(module).double(), compiled(module, **options)
    for case in cases:
        arguments = case.arguments(dtype)
        doubles = tree_map(lambda x: x.double() if is_real(x) else x, arguments)
        for _ in range(2):
            wanted = run(eager, eager, arguments)
            got = run(ours, module, arguments)
            try:
                true = run(exact, exact, doubles)
            except (RuntimeError, NotImplementedError):  # no float64 of this layer
                true = wanted
            names = [name for name, _ in module.named_parameters()] + [
                f"input {i}" for i in range(len(got[1]))]
            worst = max(worst, compare(got, wanted, true, names, dtype))
    return worst


def cases_of(kind: type, sizes: Sizes) -> list[Case]:
    return list(LAYERS[kind](sizes))


def dynamic_cases(kind: type, pair: tuple[Sizes, Sizes]) -> list[list[Case]]:
    """The same layer at two sizes, where its constructor does not use the sizes that change."""
    cases = [list(both) for both in zip(cases_of(kind, pair[0]), cases_of(kind, pair[1]))]
    return [both for both in cases if "vdim" not in both[0].label]


# ---- tests

def test_every_layer_with_parameters_is_in_the_table() -> None:
    assert {kind.__name__ for kind in layers_with_parameters() - set(LAYERS)} == set()


def named(cases: list[Case], *labels: str) -> list[Case]:
    return [case for case in cases if case.label in labels]


CHOSEN = [(nn.MultiheadAttention, size, label, dtype) for size, label, dtype in (
    (0, "self, need_weights=False", torch.float32), (0, "causal -inf, need_weights=False", torch.bfloat16),
    (1, "causal and padding, float", torch.float32), (1, "tokens first, causal -inf", torch.float32),
    (3, "kdim, vdim", torch.bfloat16), (3, "add_bias_kv, mask", torch.float32))]
CHOSEN += [(nn.TransformerEncoderLayer, 0, "causal -inf", torch.bfloat16),
           (nn.TransformerDecoderLayer, 3, "padding", torch.float32),
           (nn.GroupNorm, 1, "2 groups", torch.float32), (nn.LayerNorm, 1, "two axes", torch.bfloat16),
           (nn.RMSNorm, 1, "no weights", torch.float32), (nn.Bilinear, 1, "plain", torch.float32),
           (nn.PReLU, 1, "channels", torch.bfloat16), (nn.Conv2d, 1, "kernel 1", torch.float32),
           (nn.Embedding, 1, "padding", torch.bfloat16), (nn.BatchNorm2d, 3, "affine", torch.bfloat16), (nn.GRUCell, 1, "plain", torch.float32)]


@pytest.mark.parametrize("kind, size, label, dtype", [
    pytest.param(*one, id=f"{one[0].__name__}-{one[2]}-{str(one[3])[6:]}") for one in CHOSEN])
def test_layer(kind: type, size: int, label: str, dtype: torch.dtype) -> None:
    case, = named(cases_of(kind, SIZES[size]), label)
    run_cases([case], dtype)


@pytest.mark.parametrize("kind, pair, label, dtype", [
    pytest.param(nn.MultiheadAttention, 0, "self, need_weights=False", torch.float32, id="self")])
def test_attention_with_sizes_that_change(kind: type, pair: int, label: str, dtype: torch.dtype) -> None:
    cases, = [both for both in dynamic_cases(kind, DYNAMIC_SIZES[pair]) if both[0].label == label]
    run_cases(cases, dtype, dynamic=True)


# ---- all of them

def jobs(kinds: list[type]) -> Iterator[tuple[str, list[Case], dict]]:
    for kind in kinds:
        sizes = SIZES if kind in OF_ATTENTION else SIZES[:4]
        for size in sizes:
            for case in cases_of(kind, size):
                yield f"{kind.__name__} [{case.label}] {size}", [case], {}
                if kind in OF_ATTENTION and size in SIZES[:4]:
                    yield f"{kind.__name__} [{case.label}] {size} no_grad", [case], {"grads": False}
        for pair in DYNAMIC_SIZES:
            if kind in RECURRENT or kind in (nn.Bilinear,):
                continue
            for both in dynamic_cases(kind, pair):
                if state_shapes(both[0]) == state_shapes(both[1]):
                    yield (f"{kind.__name__} [{both[0].label}] {pair[0]} -> {pair[1]}", both,
                           {"dynamic": True})


def state_shapes(case: Case) -> list:
    return [x.shape for x in case.make().state_dict().values()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--all", action="store_true", help="all layers, sizes and types")
    parser.add_argument("--part", default="0/1", help="K/N: each N-th job from the K-th")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch._dynamo.config.allow_rnn = True
    part, count = map(int, given.part.split("/"))
    kinds = [kind for kind in LAYERS if not given.names or kind.__name__ in given.names]
    status = 0
    for number, (title, cases, options) in enumerate(jobs(kinds)):
        if number % count != part or not given.all and number % 10:
            continue
        for dtype in DTYPES:
            start = time.perf_counter()
            try:
                verdict = f"{run_cases(cases, dtype, **options):.2f} of the bound"
            except Exception as error:
                try:  # whether eager takes the case
                    module = cases[0].make().to(dtype)
                    run = results_of if options.get("grads", True) else results_without_gradients
                    run(module, module, cases[0].arguments(dtype))
                    message = str(error).strip().replace("\n", " | ")[:400]
                    verdict = f"WRONG {type(error).__name__}: {message}"
                    status = 1
                except Exception as refusal:
                    verdict = f"eager refuses it: {str(refusal)[:80]}"
            print(f"{title} {str(dtype)[6:]}: {verdict} ({time.perf_counter() - start:.1f} s)",
                  flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
