"""The models that the peers run: Sinter's own specs, as transformers' configurations."""

import json
import pathlib

SAMPLES = pathlib.Path(__file__).parent.parent.parent / "samples"
DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
# The spec, and the element type to measure in.
MODELS = {"pythia-2.8b": "float16", "gpt-neox-2.8b-sequential": "float16",
          "llama-2-7b": "bfloat16", "llama-3.2-1b": "bfloat16"}


def read_spec(name: str) -> dict:
    """The spec with its defaults filled in."""
    spec = json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    spec.setdefault("kv_heads", spec["heads"])
    spec.setdefault("head_dim", spec["hidden"] // spec["heads"])
    spec["rope"].setdefault("rotary", spec["head_dim"])
    for key in ("gated", "tied", "qkv_bias", "attention_out_bias", "mlp_bias"):
        spec.setdefault(key, False)
    spec.setdefault("residual", "sequential")
    return spec


def rope_parameters(spec: dict) -> dict:
    rope = spec["rope"]
    parameters = {"rope_type": "default", "rope_theta": float(rope["theta"])}
    if rope.get("scaling") == "llama3":
        parameters |= {"rope_type": "llama3", "factor": float(rope["factor"]),
                       "low_freq_factor": float(rope["low_freq_factor"]),
                       "high_freq_factor": float(rope["high_freq_factor"]),
                       "original_max_position_embeddings": rope["original_max_positions"]}
    if rope["rotary"] != spec["head_dim"]:
        parameters["partial_rotary_factor"] = rope["rotary"] / spec["head_dim"]
    return parameters


def to_transformers(spec: dict):
    """A LlamaConfig for RMSNorm specs, a GPTNeoXConfig for LayerNorm specs."""
    import transformers

    common = dict(vocab_size=spec["vocabulary"], hidden_size=spec["hidden"],
                  num_hidden_layers=spec["layers"], num_attention_heads=spec["heads"],
                  intermediate_size=spec["ffn"], max_position_embeddings=spec["max_positions"],
                  hidden_act=spec["activation"], tie_word_embeddings=spec["tied"],
                  rope_parameters=rope_parameters(spec), bos_token_id=None, eos_token_id=None)
    if spec["norm"] == "rms_norm":
        return transformers.LlamaConfig(num_key_value_heads=spec["kv_heads"],
                                        head_dim=spec["head_dim"], rms_norm_eps=spec["norm_eps"],
                                        **common)
    return transformers.GPTNeoXConfig(layer_norm_eps=spec["norm_eps"],
                                      attention_bias=spec["qkv_bias"],
                                      use_parallel_residual=spec["residual"] == "parallel",
                                      **common)
