"""Models of transformers, written by torch.onnx, through `sinter.from_onnx`, beside eager and float64, on the CPU.

    python exported_onnx.py [NAME ...] [--opsets 18,20,23]

A tiny model of random weights is exported with dynamic batch and length. Its results at several sizes are compared
with eager's, both by their distance from eager in float64, and its launches with those of `sinter.from_torch`.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import logging
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import torch
from models import MODELS, SMALL, VOCABULARY, language_model
from torch import nn

import sinter
from sinter.pytorch.tools.comparison import difference

NAMES = ("llama", "bert", "gpt2", "gemma3", "qwen3_moe")
OPSETS = (18, 20, 23)
SIZES = ((2, 12, 0), (3, 7, 2), (1, 30, 0))  # batch, tokens, and how many of them pad the first text
DIMS = {0: torch.export.Dim("batch", min=1, max=8), 1: torch.export.Dim("tokens", min=2, max=64)}


def gemma3() -> tuple[nn.Module, dict]:
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig
    config = Gemma3TextConfig(num_key_value_heads=2, head_dim=16, sliding_window=8,
                              layer_types=["sliding_attention", "full_attention"], **SMALL)
    return language_model(lambda: Gemma3ForCausalLM(config))


def qwen3_moe() -> tuple[nn.Module, dict]:
    """Experts as batched products: of grouped products torch.onnx makes sizes that depend on the data."""
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM
    config = Qwen3MoeConfig(num_key_value_heads=2, head_dim=16, num_experts=4, num_experts_per_tok=2,
                            moe_intermediate_size=32, experts_implementation="batched_mm", **SMALL)
    return language_model(lambda: Qwen3MoeForCausalLM(config))


OTHERS = {"gemma3": gemma3, "qwen3_moe": qwen3_moe}


class Logits(nn.Module):
    """The first result of a model of tokens and a mask."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=ids, attention_mask=mask, return_dict=True)[0]


@dataclass
class Outcome:
    """launches: of the ONNX file and of from_torch."""

    launches: tuple[int, int] = (0, 0)
    wrong: list[str] = field(default_factory=list)


def inputs(batch: int, tokens: int, padding: int) -> tuple[torch.Tensor, torch.Tensor]:
    mask = torch.ones(batch, tokens, dtype=torch.int64)
    mask[0, :padding] = 0
    return torch.randint(0, VOCABULARY, (batch, tokens)), mask


def made(name: str) -> nn.Module:
    model, _ = {**MODELS, **OTHERS}[name]()
    model.config.use_cache = False
    for parameter in model.parameters():  # the exporter joins parameters that are equal, such as zeros
        if parameter.dim() == 1:
            nn.init.normal_(parameter, 1.0, 0.1)
    return Logits(model.eval())


def launches(compiled: sinter.Compiled) -> int:
    return compiled.entry().costs(dict.fromkeys(compiled.symbols, 6)).launches


def written(model: nn.Module, opset: int, folder: str) -> Path:
    path = Path(folder) / "model.onnx"
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            torch.onnx.export(model, inputs(*SIZES[0]), path, dynamo=True, opset_version=opset, verbose=False,
                              dynamic_shapes=(DIMS, DIMS), input_names=["ids", "mask"],
                              output_names=["logits"], external_data=True)
        finally:
            logging.disable(logging.NOTSET)
    return path


def compare(name: str, opset: int) -> Outcome:
    torch.manual_seed(0)
    model, outcome = made(name), Outcome()
    exact = copy.deepcopy(model).double()
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        imported = sinter.from_onnx(written(model, opset, folder), sizes={"batch": (1, 8), "tokens": (2, 64)})
        theirs = sinter.from_torch(model, inputs(*SIZES[0]), dynamic_shapes=(DIMS, DIMS))
        outcome.launches = launches(imported.compile()), launches(theirs.compile())
        for sizes in SIZES:
            ids, mask = inputs(*sizes)
            ours, = imported.run(None, {"ids": ids, "mask": mask}, device="cpu")
            seen = mask.bool()
            _, _, wrong = difference(ours[seen], model(ids, mask)[seen], exact(ids, mask)[seen])
            outcome.wrong += [f"{name} of opset {opset}, sizes {sizes}: {wrong}"] if wrong else []
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--opsets", default=",".join(map(str, OPSETS)))
    given = parser.parse_args()
    for name in given.names:
        for opset in map(int, given.opsets.split(",")):
            outcome = compare(name, opset)
            print(f"{name:10} opset {opset}: {outcome.launches[0]} launches, {outcome.launches[1]} by from_torch",
                  *outcome.wrong, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
