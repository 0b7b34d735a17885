"""Quantized checkpoints beside the same models with float32 weights: every layout, four families.

The float32 model has the weights that the codes and scales mean. A quantized one rounds activations
to its own type, and nothing else differs.
"""

import json

import numpy as np
import pytest
import quantized_models

import sinter

TOKENS = np.array([1, 5, 9, 2, 7, 3, 11, 4, 8, 6, 10, 12], np.int32)
ROWS = 16  # of a cache
DECODED = 4  # of them, one at a time: products of one token read the packed matrices
# A value is rounded some 20 times on its way through a layer of activations, errors independent:
# the root of that many times half a unit in the last place.
ROUNDINGS = 60
HALF_ULP = {"f16": 2.0**-11, "bf16": 2.0**-8}


def logits_of(folder, fuse: bool = True) -> tuple[str, np.ndarray]:
    """The type of the logits, and the logits of all tokens as float64."""
    compiled = sinter.compile(folder)
    plan = compiled if fuse else compiled.unfused()
    session = plan.session(device="cpu", symbols={"R": ROWS})
    first = len(TOKENS) - DECODED

    def call(entry: str, begin: int, end: int, **more: object) -> np.ndarray:
        rows = np.arange(begin, end, dtype=np.int32)
        given = {"tokens": TOKENS[begin:end], "pos": rows, "slot": rows, "first": 0 * rows}
        return np.asarray(session.run(entry, **given, **more)).astype(np.float64)

    parts = [call("prefill", 0, first, symbols={"K": ROWS}, wanted=np.arange(first, dtype=np.int32))]
    parts += [call("decode", at, at + 1) for at in range(first, len(TOKENS))]
    dtype = compiled.entries["decode"].outputs["logits"].split("[")[0]
    return dtype, np.concatenate(parts)


# Two families of each layout, by turns.
CASES = [(name, quantized_models.FAMILIES[(number + turn) % 4])
         for number, name in enumerate(quantized_models.FORMATS) for turn in range(2)]


@pytest.mark.parametrize("name, family", CASES)
def test_a_quantized_model_is_its_float32_model(tmp_path, name, family):
    model = quantized_models.draw_model(family, name)
    folder = quantized_models.write_model(tmp_path / "model", model)
    dtype, fused = logits_of(folder)
    assert np.array_equal(fused, logits_of(folder, fuse=False)[1])
    _, wanted = logits_of(quantized_models.write_plain(tmp_path / "plain", model))
    error = np.linalg.norm(fused - wanted) / np.linalg.norm(wanted)
    assert 0 < error < HALF_ULP[dtype] * np.sqrt(ROUNDINGS)


@pytest.mark.parametrize("family, name, table", [
    ("llama", "packed", "float8"), ("llama", "float8", "packed"), ("gemma2", "packed", "packed")])
def test_an_embedding_of_codes(tmp_path, family, name, table):
    """The table of gemma2, which is tied, is the output projection, too. A group of its own says its scheme."""
    model = quantized_models.draw_model(family, name)
    quantized_models.quantize_table(model, table)
    folder = quantized_models.write_model(tmp_path / "model", model)
    dtype, fused = logits_of(folder)
    assert np.array_equal(fused, logits_of(folder, fuse=False)[1])
    _, wanted = logits_of(quantized_models.write_plain(tmp_path / "plain", model))
    error = np.linalg.norm(fused - wanted) / np.linalg.norm(wanted)
    assert 0 < error < HALF_ULP[dtype] * np.sqrt(ROUNDINGS)
    sinter.compile(folder).save(tmp_path / "plan")
    sinter.open_plan(tmp_path / "plan").session(device="cpu", symbols={"R": ROWS})


def test_a_head_beside_a_table_of_codes_that_it_is(tmp_path):
    model = quantized_models.draw_model("gemma2", "packed")
    model.stored["lm_head.weight"] = model.stored["model.embed_tokens.weight"]
    quantized_models.quantize_table(model, "packed")
    folder = quantized_models.write_model(tmp_path / "model", model)
    with pytest.raises(sinter.SinterError, match="the config says that they are one"):
        sinter.compile(folder)


def test_a_table_of_codes_that_the_config_does_not_quantize(tmp_path):
    model = quantized_models.draw_model("llama", "packed")
    quantized_models.quantize_table(model, "packed")
    del model.config["quantization_config"]["config_groups"]["table"]
    folder = quantized_models.write_model(tmp_path / "model", model)
    with pytest.raises(sinter.SinterError, match="the config does not quantize model.embed_tokens"):
        sinter.compile(folder)


def test_a_plan_keeps_how_weights_are_stored(tmp_path):
    model = quantized_models.draw_model("llama", "gptq-act-order-zeros")
    folder = quantized_models.write_model(tmp_path / "model", model)
    wanted = logits_of(folder)[1]
    sinter.compile(folder).save(tmp_path / "plan")
    plan = sinter.open_plan(tmp_path / "plan")
    rows = np.arange(len(TOKENS), dtype=np.int32)
    given = {"tokens": TOKENS, "pos": rows, "slot": rows, "first": 0 * rows, "wanted": rows}
    session = plan.session(device="cpu", symbols={"R": ROWS})
    logits = session.run("prefill", symbols={"K": ROWS}, **given)
    logits = np.asarray(logits).astype(np.float64)
    assert np.array_equal(logits[: len(TOKENS) - DECODED], wanted[: len(TOKENS) - DECODED])


def test_a_plan_keeps_no_key_that_was_ignored(tmp_path):
    model = quantized_models.draw_model("llama", "packed")
    model.config["quantization_config"]["colour"] = {"of": "no meaning"}
    folder = quantized_models.write_model(tmp_path / "model", model)
    with pytest.raises(sinter.SinterError, match="colour"):
        sinter.compile(folder)
    sinter.compile(folder, ignore_keys=["colour"]).save(tmp_path / "plan")
    session = sinter.open_plan(tmp_path / "plan").session(device="cpu", symbols={"R": ROWS})
    assert session is not None


def test_a_bias_that_the_config_does_not_have_must_be_zeros(tmp_path):
    """AutoGPTQ writes a bias beside each linear."""
    model = quantized_models.draw_model("llama", "gptq")
    wanted = logits_of(quantized_models.write_model(tmp_path / "model", model))[1]
    for name in [name for name in model.stored if name.endswith(".scales")]:
        bias = np.zeros(model.stored[name].shape[1], np.float16)
        model.stored[name.replace(".scales", ".bias")] = bias
    folder = quantized_models.write_model(tmp_path / "biased", model)
    assert np.array_equal(logits_of(folder)[1], wanted)
    bias[-1] = 1e-3
    quantized_models.write_model(tmp_path / "biased", model)
    with pytest.raises(sinter.SinterError, match="bias is no part of the model"):
        sinter.compile(folder)


def test_quantization_beside_the_config(tmp_path):
    """Older folders of modelopt: hf_quant_config.json."""
    model = quantized_models.draw_model("llama", "nvfp4-modelopt")
    wanted = logits_of(quantized_models.write_model(tmp_path / "model", model))[1]
    quantization = model.config.pop("quantization_config")
    del quantization["quant_method"]
    folder = quantized_models.write_model(tmp_path / "beside", model)
    text = json.dumps({"producer": {"name": "modelopt"}, "quantization": quantization})
    (folder / "hf_quant_config.json").write_text(text)
    assert np.array_equal(logits_of(folder)[1], wanted)
    sinter.compile(folder).save(tmp_path / "plan")
    sinter.open_plan(tmp_path / "plan").session(device="cpu", symbols={"R": ROWS})


def test_a_lora_adapter_is_refused(tmp_path):
    model = quantized_models.draw_model("llama", "packed")
    folder = quantized_models.write_model(tmp_path / "model", model)
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(sinter.SinterError, match="a LoRA adapter, which is not supported"):
        sinter.compile(folder)
