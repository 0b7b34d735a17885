"""Models of transformers, written by torch.onnx, through `sinter.from_onnx`, beside eager and float64, on the CPU.

    python exported_onnx.py [NAME ...] [--opsets 17,18,20,23,24] [--kinds forward,cache] [--runtime]

A tiny model of random weights is exported with dynamic batch and length; opset 17 is TorchScript's exporter. Its results
at several sizes are compared with eager's, both by their distance from eager in float64 (exported_models.py), and its
launches with those of `sinter.from_torch`. --runtime: its results with those of onnxruntime, too, which must be
installed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch
from exported_models import (BATCH, EXAMPLE, LENGTH, MOST, Outcome, dynamic_shapes, flat, has_kind, inputs, measure,
                             module_of, saved_and_loaded)
from models import MODELS, SMALL, VOCABULARY, language_model
from torch import nn

import sinter

NAMES = ("llama", "qwen3", "gpt2", "bert", "gemma3", "t5", "vit", "whisper", "modernbert", "clip_text", "qwen3_moe")
OPSETS = (17, 18, 20, 23, 24)
TORCHSCRIPT = 17
SIZES = {"batch": (1, 8), "length": (1, MOST), "target": (1, MOST), "past": (0, MOST)}


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


def modernbert() -> tuple[nn.Module, dict]:
    from transformers import ModernBertConfig, ModernBertForMaskedLM
    config = ModernBertConfig(**SMALL, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
                              local_attention=8, global_attn_every_n_layers=2)
    return language_model(lambda: ModernBertForMaskedLM(config))


def clip_text() -> tuple[nn.Module, dict]:
    from transformers import CLIPTextConfig, CLIPTextModel
    return language_model(lambda: CLIPTextModel(CLIPTextConfig(**SMALL, eos_token_id=2)))


OTHERS = {function.__name__: function for function in (gemma3, qwen3_moe, modernbert, clip_text)}


def made(name: str) -> nn.Module:
    model = saved_and_loaded(name, torch.float32, {**MODELS, **OTHERS})
    model.config.use_cache = False  # unless a call asks for one
    model.config._experts_implementation = "batched_mm"  # grouped products would have sizes that depend on the data
    for parameter in model.parameters():  # the exporter joins parameters that are equal, such as zeros
        if parameter.dim() == 1:
            nn.init.normal_(parameter, 1.0, 0.1)
    return model


class Runtime:
    """onnxruntime's session of a file. farthest: the largest difference of results from its own, in parts of the
    largest number of a result. refused: why it does not run the file itself."""

    def __init__(self, path: Path) -> None:
        import onnxruntime
        onnxruntime.set_default_logger_severity(4)
        self._session, self.farthest, self.refused = onnxruntime.InferenceSession(path), 0.0, ""

    def __str__(self) -> str:
        return f"onnxruntime refuses: {self.refused[:120]}" if self.refused else f"onnxruntime {self.farthest:.1e} away"

    def compare(self, ours: list[torch.Tensor], given: dict[str, torch.Tensor]) -> None:
        names = [one.name for one in self._session.get_inputs()]
        try:
            theirs = self._session.run(None, {name: given[name].numpy() for name in names})
        except Exception as error:  # of a kernel of its own
            self.refused = str(error)
            return
        for own, other in zip(ours, map(torch.from_numpy, theirs), strict=True):
            if own.shape != other.shape:
                raise ValueError(f"{list(own.shape)} for onnxruntime's {list(other.shape)}")
            if own.numel():
                scale = other.abs().max().clamp(min=1e-30)
                self.farthest = max(self.farthest, ((own - other).abs().max() / scale).item())


def launches(compiled: sinter.Compiled) -> int:
    return compiled.entry("main").costs().launches


class Positional(nn.Module):
    """A model whose arguments are tensors alone: TorchScript's exporter makes inputs of numbers, too."""

    def __init__(self, module: nn.Module, given: dict[str, Any]) -> None:
        super().__init__()
        self.module, self.names = module, [key for key, value in given.items() if isinstance(value, torch.Tensor)]
        self.others = {key: value for key, value in given.items() if key not in self.names}

    def forward(self, *tensors):
        return tuple(flat(self.module(**dict(zip(self.names, tensors)), **self.others)))


def written(module: nn.Module, given: dict[str, Any], shapes: dict[str, Any], opset: int, folder: str) -> Path:
    path = Path(folder) / "model.onnx"
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            if opset == TORCHSCRIPT:
                axes = {key: {axis: getattr(dim, "__name__", "all") for axis, dim in one.items()} for key, one in shapes.items() if one}
                wrapped = Positional(module, given).eval()
                torch.onnx.export(wrapped, tuple(given[name] for name in wrapped.names), path, dynamo=False,
                                  opset_version=opset, input_names=wrapped.names, dynamic_axes=axes)
            else:
                torch.onnx.export(module, (), path, kwargs=given, dynamo=True, opset_version=opset, verbose=False,
                                  dynamic_shapes=shapes, external_data=True)
        finally:
            logging.disable(logging.NOTSET)
    return path


def compare(name: str, opset: int, kind: str = "forward", most: int | None = None,
            with_runtime: bool = False) -> tuple[Outcome, int, Runtime | None]:
    """The outcome; the launches of the same model through from_torch, 0: it is refused there; and onnxruntime's session
    with which results were compared."""
    from transformers.integrations.executorch import register_dynamic_cache_export_support
    register_dynamic_cache_export_support()
    torch.manual_seed(0)
    model = made(name)
    module = module_of(name, kind, model)
    given = inputs(name, model, kind, EXAMPLE, "none")
    shapes = dynamic_shapes(name, given)
    try:
        theirs = launches(sinter.from_torch(module, (), given, dynamic_shapes=shapes).compile())
    except sinter.SinterError:
        theirs = 0
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = written(module, inputs(name, model, kind, EXAMPLE, "none"), shapes, opset, folder)
        imported = imported_from(path)
        outcome = Outcome(launches=launches(imported.compile()))
        runtime = Runtime(path) if with_runtime else None

        def run(given: dict[str, Any]) -> list[torch.Tensor]:
            named = dict(zip(imported.inputs, flat(given), strict=True))
            results = imported.run(None, named, device="cpu")
            if runtime is not None:
                runtime.compare(results, named)
            return results
        measure(outcome, run, name, kind, model, module, most)
    return outcome, theirs, runtime


def imported_from(path: Path) -> Any:
    """The model, with the sizes of those dims that the file has. Beside a past the only other dim is all tokens of a
    mask."""
    import onnx
    dims = {dim.dim_param for value in onnx.load(path, load_external_data=False).graph.input
            for dim in value.type.tensor_type.shape.dim}
    new = "target" if "target" in dims else "length"
    sizes = {dim: SIZES.get(dim, f"past + {new}" if "past" in dims else (1, MOST)) for dim in dims - {""}}
    return sinter.from_onnx(path, sizes=sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--opsets", default=",".join(map(str, OPSETS)))
    parser.add_argument("--kinds", default="forward,cache")
    parser.add_argument("--runtime", action="store_true")
    given = parser.parse_args()
    for name in given.names:
        for kind in given.kinds.split(","):
            opsets = [int(opset) for opset in given.opsets.split(",") if kind != "cache" or int(opset) != TORCHSCRIPT]
            for opset in opsets if has_kind(name, kind) else ():
                title = f"{name:10} {kind:8} opset {opset}:"
                try:
                    outcome, theirs, runtime = compare(name, opset, kind, with_runtime=given.runtime)
                except Exception as error:
                    print(f"{title} FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)
                    continue
                print(f"{title} {outcome.launches} launches, {theirs} by from_torch, Sinter {outcome.ours:.1e}, "
                      f"eager {outcome.eager:.1e}"
                      + ("" if runtime is None else f", {runtime}"), *outcome.wrong, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
