"""Mixtures of experts whose matrices are codes, beside the same models with float32 weights.

Both compute in float32, so that they choose the same experts."""

import json
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import quantized_models
from test_quantized import logits_of

import sinter

TOLERANCE = 2e-5  # of logits in float32, whose sums two plans add in other orders
SIZES = quantized_models.Sizes(hidden=64, heads=4, kv_heads=2, head_dim=16, ffn=96, layers=1)
# The layouts of each family's files: per expert, per expert with a shared one, and all in a tensor.
CASES = [("mixtral", name) for name in ("gptq", "gptq-zeros", "awq", "packed-8-zeros", "fp8", "nvfp4")]
CASES += [("qwen2_moe", name) for name in ("gptq-8", "packed-zeros", "int8", "float8", "mxfp4")]
CASES += [("granitemoe", name) for name in ("packed", "packed-8-channel", "int8", "float8")]


def draw(family, name, sizes=None):
    model = quantized_models.draw_model(family, name, sizes)
    model.config["dtype"] = "float32"
    return model


def difference(folder, plain) -> float:
    _, wanted = logits_of(plain)
    _, fused = logits_of(folder)
    assert np.array_equal(fused, logits_of(folder, fuse=False)[1])
    return np.linalg.norm(fused - wanted) / np.linalg.norm(wanted)


@pytest.mark.parametrize("family, name", CASES)
def test_a_mixture_of_codes_is_its_float32_model(tmp_path, family, name):
    model = draw(family, name)
    folder = quantized_models.write_model(tmp_path / "model", model)
    assert difference(folder, quantized_models.write_plain(tmp_path / "plain", model)) < TOLERANCE


@pytest.mark.parametrize("name", ["gptq", "packed"])
def test_experts_that_are_exchanged_are_noticed(tmp_path, name):
    model = draw("mixtral", name)
    plain = quantized_models.write_plain(tmp_path / "plain", model)
    first, second = ("block_sparse_moe.experts.0.w3.", "block_sparse_moe.experts.3.w3.")
    for one in [tensor for tensor in model.stored if first in tensor]:
        other = one.replace(first, second)
        model.stored[one], model.stored[other] = model.stored[other], model.stored[one]
    folder = quantized_models.write_model(tmp_path / "model", model)
    assert difference(folder, plain) > 100 * TOLERANCE


EXPERT = "model.layers.1.block_sparse_moe.experts.4.w2"


def refused(tmp_path, model, words) -> None:
    with pytest.raises(sinter.SinterError, match=words):
        sinter.compile(quantized_models.write_model(tmp_path / "model", model))


@pytest.mark.parametrize("end, words", [
    ("scale", f'no tensor named "{EXPERT}.weight_scale"'),
    ("shape", f'no tensor named "{EXPERT}.weight_shape"'),
    ("packed", f"tensor {EXPERT}.weight_scale is no part of the model"),
])
def test_a_part_of_an_expert_is_missing(tmp_path, end, words):
    model = draw("mixtral", "packed")
    del model.stored[f"{EXPERT}.weight_{end}"]
    refused(tmp_path, model, words)


def test_experts_of_two_formats(tmp_path):
    model = draw("mixtral", "packed")
    for end in ("packed", "scale", "shape"):
        del model.stored[f"{EXPERT}.weight_{end}"]
    model.stored[f"{EXPERT}.weight"] = model.plain[f"{EXPERT}.weight"]
    refused(tmp_path, model, f"experts.0.w2.weight has codes int4 g32 f16 and tensor {EXPERT}.weight elements")


def test_an_expert_of_another_size(tmp_path):
    model = draw("mixtral", "packed")
    tensors, _ = quantized_models.FORMATS["packed"].draw(np.random.default_rng(1), 8, 32)
    model.stored |= {f"{EXPERT}.{end}": array for end, array in tensors.items()}
    refused(tmp_path, model, rf"the codes of tensor {EXPERT}.weight are \[8, 32\], but .* ask for \[37, 53\]")


def test_experts_whose_inputs_are_sorted(tmp_path):
    refused(tmp_path, draw("mixtral", "gptq-act-order"), "sorted by group, which those of experts cannot be")


def program(*arguments) -> str:
    command = [sys.executable, "-m", "sinter", *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    return run.stdout


def dequantized(tensors, name) -> np.ndarray:
    """A weight that `sinter quantize` rounded, in float64."""
    scales = tensors[f"{name}.weight_scale"].astype(np.float64)
    if f"{name}.weight" in tensors:
        codes = tensors[f"{name}.weight"].astype(np.float64)
    else:
        shape = tensors[f"{name}.weight_shape"]
        codes = np.ascontiguousarray(tensors[f"{name}.weight_packed"]).view(np.uint8).astype(int)
        if codes.shape[-1] == shape[-1]:
            codes = codes - 128
        else:
            codes = np.stack([codes % 16, codes // 16], -1).reshape(shape) - 8
    return codes * np.repeat(scales, codes.shape[-1] // scales.shape[-1], -1)


@pytest.mark.parametrize("family, to", [
    ("mixtral", "int4-g32"), ("qwen2_moe", "int8"), ("granitemoe", "int4-g32"), ("granitemoe", "fp8")])
def test_quantize_rounds_experts(tmp_path, family, to):
    model = draw(family, "int8", SIZES)
    plain = quantized_models.write_plain(tmp_path / "plain", model)
    program("quantize", plain, "--to", to, "-o", tmp_path / "model", "--no-text")
    stored = quantized_models.read_safetensors(tmp_path / "model" / "model.safetensors")
    rounded = dict(model.plain)
    for name in model.exact:
        module = name.removesuffix(".weight")
        rounded[name] = dequantized(stored, module).astype(np.float32)
        steps = stored[f"{module}.weight_scale"].max() * (16 if to == "fp8" else 0.5)
        assert np.abs(rounded[name] - model.plain[name]).max() <= steps * (1 + 1e-4)
    for router, _ in quantized_models.routers_of(family):
        name = f"model.layers.0.{router}.weight"
        assert np.array_equal(stored[name], model.plain[name])
    model.plain = rounded
    exact = quantized_models.write_plain(tmp_path / "exact", model)
    assert difference(tmp_path / "model", exact) < TOLERANCE
