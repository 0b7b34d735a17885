"""Models of transformers through `sinter.from_torch`, beside eager and float64, on the CPU.

    python exported_models.py [NAME ...] [--dtypes float32,bfloat16] [--kinds KIND,KIND] [--parts]

A tiny model of random weights is saved, loaded again and exported with dynamic batch and length. Its results at several
sizes are compared with eager's, both by their distance from eager in float64. Kinds of calls: `forward`, with attention
masks that pad nothing, on the right and on the left; `unmasked`, without a mask; `prefill`, which returns a cache;
`cache`, which reads one. `--parts` also compiles the model with torch.compile and counts graph breaks, parts, and ops
in eager.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import inspect
import logging
import sys
import tempfile
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator

import torch
import torch._dynamo
from models import MODELS, VOCABULARY
from torch import nn

import sinter
from sinter.pytorch.tools import report
from sinter.pytorch.backend import compile_graph
from sinter.pytorch.tools.comparison import difference

NAMES = ("llama", "qwen3", "gemma2", "phi3", "gpt2", "gpt_neox", "opt", "bert", "distilbert", "t5", "vit",
         "whisper")
DECODERS = ("llama", "qwen3", "gemma2", "phi3", "gpt2", "gpt_neox", "opt")
# The cache that such a model makes drops tokens outside of the windows of its layers, which torch.export
# cannot follow. These get a DynamicCache that keeps all tokens.
WINDOWED = ("gemma2",)
KINDS = ("forward", "unmasked", "prefill", "cache")
UNMASKED = ("vit", "whisper")
PADDINGS = ("none", "right", "left")
MOST = 64  # positions of the models

Dim = torch.export.Dim
BATCH, LENGTH, TARGET, PAST = (Dim(name, min=1, max=most) for name, most in (
    ("batch", 8), ("length", MOST), ("target", MOST), ("past", MOST)))


@dataclass
class Sizes:
    batch: int
    length: int
    past: int = 0


EXAMPLE = Sizes(2, 5, 7)
RUNS = (Sizes(2, 5, 7), Sizes(3, 12, 4), Sizes(1, 1, 2))


@dataclass
class Outcome:
    """Largest distances from float64, relative to the largest number of each result."""

    ours: float = 0.0
    eager: float = 0.0
    launches: int = 0
    wrong: list[str] = field(default_factory=list)


def saved_and_loaded(name: str, dtype: torch.dtype, models: dict[str, Callable] = MODELS) -> nn.Module:
    from transformers.utils import logging as progress
    progress.disable_progress_bar()
    model, _ = models[name]()
    model = getattr(model, "encoder", model) if name == "whisper" else model
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return type(model).from_pretrained(folder, dtype=dtype).eval()


def attention_mask(batch: int, tokens: int, padding: str) -> torch.Tensor:
    """Sequence b lacks b + 1 tokens of this many, if it has more."""
    mask = torch.ones(batch, tokens, dtype=torch.long)
    for row in range(batch if padding != "none" else 0):
        gap = min(row + 1, tokens - 1)
        mask[row, slice(tokens - gap, tokens) if padding == "right" else slice(gap)] = 0
    return mask


class CachedAnswer(nn.Module):
    """The decoder of an encoder–decoder: an answer goes on, with the caches of its own tokens and of the
    encoder's as two arguments."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, decoder_input_ids, decoder_attention_mask, states, cache, cross):
        from transformers import EncoderDecoderCache
        past = cache.layers[0].keys.shape[2]
        torch._check(decoder_attention_mask.shape[1] == past + decoder_input_ids.shape[1])
        both = EncoderDecoderCache(cache, cross)
        given = {cache_argument(self.model): both, "use_cache": True}
        result = self.model(encoder_outputs=(states,), decoder_input_ids=decoder_input_ids,
                            decoder_attention_mask=decoder_attention_mask, **given)
        return result.logits, both.self_attention_cache


class Cached(nn.Module):
    """A decoder with its cache as an argument. The mask covers the cached and the new tokens, which
    torch.export cannot know by itself."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, cache):
        past = cache.layers[0].keys.shape[2]
        torch._check(attention_mask.shape[1] == past + input_ids.shape[1])
        given = {cache_argument(self.model): cache, "use_cache": True}
        return self.model(input_ids=input_ids, attention_mask=attention_mask, **given)


def cache_argument(model: nn.Module) -> str:
    """Its name, which changed between versions of transformers."""
    names = inspect.signature(model.forward).parameters
    return "cache" if "cache" in names else "past_key_values"


def new_cache(name: str, model: nn.Module, sizes: Sizes):
    """The cache after a prompt of random tokens."""
    from transformers import DynamicCache
    given = {cache_argument(model): DynamicCache()} if name in WINDOWED else {}
    with torch.no_grad():
        result = model(input_ids=tokens(sizes.batch, sizes.past), use_cache=True, **given)
    return result[cache_argument(model)]


def begun_answer(model: nn.Module, sizes: Sizes) -> dict[str, Any]:
    """The encoder's states of random tokens, and the caches after the first tokens of an answer."""
    with torch.no_grad():
        result = model(input_ids=tokens(sizes.batch, sizes.length + 2), use_cache=True,
                       decoder_input_ids=tokens(sizes.batch, sizes.past))
    cache = result[cache_argument(model)]
    return {"states": result.encoder_last_hidden_state, "cache": cache.self_attention_cache,
            "cross": cache.cross_attention_cache}


def tokens(batch: int, length: int) -> torch.Tensor:
    return torch.randint(2, VOCABULARY, (batch, length))


def inputs(name: str, model: nn.Module, kind: str, sizes: Sizes, padding: str) -> dict[str, Any]:
    dtype = next(model.parameters()).dtype
    if name == "vit":
        return {"pixel_values": torch.randn(sizes.batch, 3, 32, 32, dtype=dtype)}
    if name == "whisper":
        return {"input_features": torch.randn(sizes.batch, 16, 40, dtype=dtype)}
    past = sizes.past if kind == "cache" else 0
    if name == "t5" and kind == "cache":
        return {"decoder_input_ids": tokens(sizes.batch, sizes.length),
                "decoder_attention_mask": attention_mask(sizes.batch, past + sizes.length, padding),
                **begun_answer(model, sizes)}
    given: dict[str, Any] = {"input_ids": tokens(sizes.batch, sizes.length)}
    if kind != "unmasked":
        given["attention_mask"] = attention_mask(sizes.batch, past + sizes.length, padding)
    if kind == "cache":
        given["cache"] = new_cache(name, model, sizes)
    if name == "t5":
        given |= {"decoder_input_ids": tokens(sizes.batch, sizes.length + 2), "use_cache": False}
    elif name in DECODERS and kind != "cache":
        given["use_cache"] = kind == "prefill"
    return given


def dynamic_shapes(name: str, given: dict[str, Any]) -> dict[str, Any]:
    shapes: dict[str, Any] = {}
    for key, value in given.items():
        if key in ("cache", "cross"):
            axes = {0: BATCH, 2: PAST if key == "cache" else LENGTH}
            shapes[key] = [[axes for _ in value.layers] for _ in ("keys", "values")]
        elif key.endswith("attention_mask"):
            shapes[key] = {0: BATCH, 1: Dim.AUTO if "cache" in given else LENGTH}
        elif isinstance(value, torch.Tensor):
            length = {"input_ids": {1: LENGTH}, "states": {1: LENGTH},
                      "decoder_input_ids": {1: TARGET}}.get(key, {})
            shapes[key] = {0: BATCH, **length}
        else:
            shapes[key] = None
    return shapes


def flat(value: Any) -> list[torch.Tensor]:
    """The tensors of a result or of arguments, including caches' tensors, in the order of torch.export."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def copied(value: Any, dtype: torch.dtype | None = None) -> Any:
    """A copy, because a call grows its cache. dtype: of the floats."""
    convert = lambda x: x if not isinstance(x, torch.Tensor) else (
        x.to(dtype) if dtype is not None and x.is_floating_point() else x.clone())
    return torch.utils._pytree.tree_map(convert, value)


def eager(model: nn.Module, given: dict[str, Any], dtype: torch.dtype | None = None) -> list:
    with torch.no_grad():
        return flat(model(**copied(given, dtype)))


@contextlib.contextmanager
def exact_softmax() -> Iterator[None]:
    """transformers takes every softmax in float32. Of float64, the least number of a masked row becomes
    minus infinity there, and the row NaN."""
    plain = nn.functional.softmax
    nn.functional.softmax = lambda x, dim=None, dtype=None, **more: plain(
        x, dim, dtype=x.dtype if x.dtype == torch.float64 else dtype, **more)
    try:
        yield
    finally:
        nn.functional.softmax = plain


def visible(result: torch.Tensor, given: dict[str, Any]) -> torch.Tensor:
    """The rows of logits whose token is no padding: others depend on what attention makes of a row of
    which everything is masked."""
    prefix = "decoder_" if "states" in given else ""
    ids, mask = given.get(f"{prefix}input_ids"), given.get(f"{prefix}attention_mask")
    if mask is None or result.shape[:2] != ids.shape or result.dim() != 3:
        return result
    return result[mask[:, -ids.shape[1]:].bool()]


def cases(name: str, kind: str) -> Iterator[tuple[Sizes, str]]:
    for sizes in RUNS:
        has_mask = name not in UNMASKED and kind != "unmasked"
        for padding in PADDINGS if has_mask else PADDINGS[:1]:
            yield sizes, padding


def module_of(name: str, kind: str, model: nn.Module) -> nn.Module:
    """The module that is exported for calls of a kind."""
    if kind != "cache":
        return model
    return CachedAnswer(model) if name == "t5" else Cached(model)


def compare(name: str, dtype: torch.dtype, kind: str = "forward", most: int | None = None) -> Outcome:
    """Exports a model, and runs it beside eager: `most` calls, or all."""
    from transformers.integrations.executorch import register_dynamic_cache_export_support
    register_dynamic_cache_export_support()
    torch.manual_seed(1)
    model = saved_and_loaded(name, dtype)
    module = module_of(name, kind, model)
    given = inputs(name, model, kind, EXAMPLE, "none")
    exported = sinter.from_torch(module, (), given, dynamic_shapes=dynamic_shapes(name, given))
    compiled = exported.compile()
    outcome = Outcome(launches=compiled.entry().costs().launches)

    def run(given: dict[str, Any]) -> list[torch.Tensor]:
        tensors = dict(zip(exported.inputs, [x.contiguous() for x in flat(given)], strict=True))
        return list(as_dict(compiled.run("main", tensors)).values())
    measure(outcome, run, name, kind, model, module, most)
    return outcome


def measure(outcome: Outcome, run: Callable[[dict[str, Any]], list[torch.Tensor]], name: str, kind: str,
            model: nn.Module, module: nn.Module, most: int | None) -> None:
    """Compares results of `run` with those of a module in eager: `most` calls, or all."""
    exact_module = copy.deepcopy(module).double()
    for sizes, padding in list(cases(name, kind))[:most]:
        given = inputs(name, model, kind, sizes, padding)
        ours, wanted = run(given), eager(module, given)
        with exact_softmax():
            exact = eager(exact_module, given, torch.float64)
        for number, (a, b, c) in enumerate(zip(ours, wanted, exact, strict=True)):
            a, b, c = (visible(x, given).contiguous() for x in (a, b, c))
            mine, theirs, wrong = difference(a, b, c)
            outcome.ours, outcome.eager = max(outcome.ours, mine or 0), max(outcome.eager, theirs or 0)
            if wrong:
                outcome.wrong.append(f"{sizes}, padding {padding}, result {number}: {wrong}")


def as_dict(results: Any) -> dict[str, torch.Tensor]:
    return results if isinstance(results, dict) else {"result": results}


def parts(name: str, dtype: torch.dtype) -> tuple[int, int, list]:
    """(graph breaks, parts, ops in eager) of the model in torch.compile with dynamic sizes"""
    torch._dynamo.reset()
    report.reset()
    torch._dynamo.utils.counters.clear()
    model = saved_and_loaded(name, dtype)
    given = inputs(name, model, "forward", EXAMPLE, "right")
    for key, axes in dynamic_shapes(name, given).items():
        for axis in axes or ():
            torch._dynamo.maybe_mark_dynamic(given[key], axis)
    with torch.no_grad():
        torch.compile(model, backend=compile_graph)(**given)
    breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
    return breaks, sum(len(one.entries) for one in report.REPORTS), report.explain().eager


def has_kind(name: str, kind: str) -> bool:
    """Whether a model has calls of a kind."""
    if kind == "prefill":
        return name in DECODERS and name not in WINDOWED
    if kind == "cache":
        return name in DECODERS or name == "t5"
    return kind == "forward" or name not in UNMASKED


def line(name: str, dtype: torch.dtype, kind: str) -> tuple[str, bool]:
    """A line about a model, and whether it is right."""
    title = f"{name:11} {str(dtype).removeprefix('torch.'):9} {kind:8}"
    try:
        outcome = compare(name, dtype, kind)
    except Exception as error:
        return f"{title} FAILED {type(error).__name__}: {str(error)[:1000]}", False
    text = (f"{title} Sinter {outcome.ours:.1e}  eager {outcome.eager:.1e}  "
            f"{outcome.launches} launches")
    return "\n    ".join([text, *outcome.wrong]), not outcome.wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--parts", action="store_true", help="what torch.compile makes of each model")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    is_right = True
    for name in given.names or NAMES:
        for dtype in (getattr(torch, dtype) for dtype in given.dtypes.split(",")):
            for kind in given.kinds.split(","):
                if has_kind(name, kind):
                    text, right = line(name, dtype, kind)
                    is_right &= right
                    print(text, flush=True)
            if given.parts:
                breaks, count, ops = parts(name, dtype)
                print(f"{name:11} {str(dtype).removeprefix('torch.'):9} compiled: {breaks} breaks, "
                      f"{count} parts, {len(ops)} ops in eager", *ops, sep="\n    ", flush=True)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
