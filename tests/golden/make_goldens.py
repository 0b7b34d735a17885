"""Makes the golden models that README.md lists as made by this script.

    pip install torch transformers safetensors
    python tests/golden/make_goldens.py [NAME ...]

Weights are random, with no bias zero and no norm weight one, so that a dropped term shows.
transformers computes the outputs in float32 on the CPU with eager attention.
"""

import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
SEQUENCES, LENGTH, GREEDY = 2, 23, 16
MARGIN = 1e-4  # of router logits: a sum in another order must not choose another expert

COMMON = dict(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
              max_position_embeddings=64, pad_token_id=None)
PAIRS = 4  # of rotating elements, where heads have 8 elements

MODELS = {
    "phi3": ("Phi3", dict(COMMON, intermediate_size=48, num_key_value_heads=2, sliding_window=9)),
    "phi3_longrope_short": ("Phi3", dict(
        COMMON, intermediate_size=48, num_key_value_heads=2, original_max_position_embeddings=48,
        rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0,
                         "short_factor": [1.0, 1.1, 1.3, 1.7], "long_factor": [1.2, 2.0, 3.5, 6.0]})),
    "phi3_longrope_long": ("Phi3", dict(
        COMMON, intermediate_size=48, num_key_value_heads=2, original_max_position_embeddings=16,
        rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 0.75,
                         "short_factor": [1.0, 1.1, 1.3], "long_factor": [1.2, 2.0, 3.5]})),
    "gemma3_text": ("Gemma3", dict(
        COMMON, intermediate_size=48, num_key_value_heads=2, head_dim=16, num_hidden_layers=4,
        sliding_window=7, sliding_window_pattern=3, query_pre_attn_scalar=20,
        rope_parameters={"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e6},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})),
    "falcon_new_two_norms": ("Falcon", dict(
        COMMON, new_decoder_architecture=True, num_kv_heads=2, bias=True, ffn_hidden_size=96)),
    "falcon_multi_query": ("Falcon", dict(COMMON, multi_query=True, parallel_attn=True)),
    "falcon_sequential": ("Falcon", dict(
        COMMON, multi_query=False, parallel_attn=False, bias=True, tie_word_embeddings=False)),
    "olmo2": ("Olmo2", dict(COMMON, intermediate_size=48, num_key_value_heads=2)),
    "opt_post_norm_projected": ("OPT", dict(
        COMMON, ffn_dim=64, do_layer_norm_before=False, word_embed_proj_dim=24, pad_token_id=1)),
    "opt_no_bias_no_final_norm": ("OPT", dict(
        COMMON, ffn_dim=64, enable_bias=False, _remove_final_layer_norm=True, pad_token_id=1,
        activation_function="gelu")),
    "qwen2_mixed_windows": ("Qwen2", dict(
        COMMON, num_hidden_layers=3, intermediate_size=48, num_key_value_heads=2,
        use_sliding_window=True, sliding_window=6, max_window_layers=1)),
    "qwen3_bias_windows": ("Qwen3", dict(
        COMMON, num_hidden_layers=3, intermediate_size=48, num_key_value_heads=2, head_dim=16,
        attention_bias=True, use_sliding_window=True, sliding_window=5,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
    "llama_bias_yarn": ("Llama", dict(
        COMMON, intermediate_size=48, num_key_value_heads=1, head_dim=16, attention_bias=True,
        mlp_bias=True, rope_parameters={
            "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
            "original_max_position_embeddings": 16})),
    "llama_linear_gelu": ("Llama", dict(
        COMMON, intermediate_size=48, hidden_act="gelu", rope_parameters={
            "rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0})),
    "phi_qk_norm_grouped": ("Phi", dict(
        COMMON, intermediate_size=48, num_key_value_heads=2, qk_layernorm=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5})),
    "gpt2_switches": ("GPT2", dict(
        vocab_size=97, n_embd=32, n_layer=3, n_head=4, n_positions=64, n_inner=80,
        activation_function="gelu", scale_attn_by_inverse_layer_idx=True, scale_attn_weights=False)),
    "gpt_neox_no_bias_full_rotary": ("GPTNeoX", dict(
        COMMON, intermediate_size=64, attention_bias=False, hidden_act="relu",
        rope_parameters={"rope_type": "default", "rope_theta": 5000.0, "partial_rotary_factor": 1.0})),
    "gemma": ("Gemma", dict(COMMON, intermediate_size=48, num_key_value_heads=1, head_dim=16)),
    "granite": ("Granite", dict(
        COMMON, intermediate_size=48, num_key_value_heads=2, embedding_multiplier=6.0,
        residual_multiplier=0.22, attention_multiplier=0.2, logits_scaling=3.0,
        tie_word_embeddings=True)),
    "qwen2_moe": ("Qwen2Moe", dict(
        COMMON, hidden_size=16, intermediate_size=24, num_key_value_heads=2, num_experts=8,
        num_experts_per_tok=3, moe_intermediate_size=12, shared_expert_intermediate_size=20,
        tie_word_embeddings=True)),
    "qwen3_moe": ("Qwen3Moe", dict(
        COMMON, hidden_size=16, num_hidden_layers=3, intermediate_size=24,
        num_key_value_heads=2, head_dim=8, num_local_experts=8, num_experts_per_tok=3,
        moe_intermediate_size=12, norm_topk_prob=True, mlp_only_layers=[1])),
    "mixtral": ("Mixtral", dict(
        COMMON, hidden_size=16, intermediate_size=12, num_key_value_heads=2,
        num_local_experts=8, num_experts_per_tok=2, sliding_window=9)),
    "olmoe": ("Olmoe", dict(
        COMMON, hidden_size=16, intermediate_size=12, num_key_value_heads=2, num_experts=8,
        num_experts_per_tok=2)),
    "granitemoe": ("GraniteMoe", dict(
        COMMON, hidden_size=16, intermediate_size=12, num_key_value_heads=2,
        embedding_multiplier=6.0, residual_multiplier=0.22, attention_multiplier=0.2,
        logits_scaling=3.0, tie_word_embeddings=True, num_local_experts=8, num_experts_per_tok=2)),
    "smollm3": ("SmolLM3", dict(
        COMMON, intermediate_size=48, num_key_value_heads=2, num_hidden_layers=4,
        no_rope_layer_interval=2)),
    "roberta": ("Roberta", dict(
        COMMON, intermediate_size=48, type_vocab_size=1, pad_token_id=1)),
    "xlm_roberta": ("XLMRoberta", dict(
        COMMON, intermediate_size=48, type_vocab_size=2, pad_token_id=2, hidden_act="gelu_new")),
    "distilbert": ("DistilBert", dict(
        vocab_size=97, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64)),
    "mpnet": ("MPNet", dict(
        COMMON, intermediate_size=48, max_position_embeddings=320, pad_token_id=1)),
    "modernbert": ("ModernBert", dict(
        COMMON, intermediate_size=48, num_hidden_layers=4, local_attention=8,
        global_attn_every_n_layers=3, pad_token_id=0)),
}
ENCODERS = ("Roberta", "XLMRoberta", "DistilBert", "MPNet", "ModernBert")
# Saved with the names that transformers has in memory: the experts of a layer in one tensor.
STACKED = ("olmoe",)
# Longer texts for what depends on distances.
LENGTHS = {"mpnet": 150}


def classes(family):
    text = family + "Text" if family == "Gemma3" else family
    head = {"GPT2": "GPT2LMHeadModel"}.get(
        family, family + ("Model" if family in ENCODERS else "ForCausalLM"))
    return getattr(transformers, text + "Config"), getattr(transformers, head)


def randomize(model, generator):
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        if weight.dim() == 1 and name.endswith("weight"):  # of a norm
            center = 0.2 if "gemma" in type(model).__name__.lower() else 1.0
            weight.data = center + 0.2 * noise
        elif weight.dim() == 1:
            weight.data = 0.1 * noise
        else:
            weight.data = 1.3 * noise / weight.shape[-1] ** 0.5


def continuation(model, ids, logits):
    losses = torch.nn.functional.cross_entropy(
        logits.double()[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    tokens = ids[:1]
    for _ in range(GREEDY):  # without a cache, whose positions may have been scaled otherwise
        tokens = torch.cat([tokens, model(tokens, use_cache=False).logits[:, -1:].argmax(-1)], 1)
    return {"greedy": tokens[:, ids.shape[1]:].contiguous(), "nll_mean": losses.reshape(1).float()}


def smallest_margin(model, ids):
    """The smallest difference of the last chosen and the first other router logit of a token."""
    chosen = getattr(model.config, "num_experts_per_tok", None)
    if chosen is None:
        return None
    logits = model(ids, output_router_logits=True, use_cache=False).router_logits
    best = torch.cat([layer.float().topk(chosen + 1, -1).values for layer in logits])
    return (best[:, -2] - best[:, -1]).min().item()


@torch.no_grad()
def make(name):
    family, settings = MODELS[name]
    config_class, model_class = classes(family)
    config = config_class(**settings)
    config._attn_implementation = "eager"
    seed = sum(map(ord, name))
    model = model_class(config).eval()
    randomize(model, torch.Generator().manual_seed(seed))
    ids = torch.randint(3, config.vocab_size, (SEQUENCES, LENGTHS.get(name, LENGTH)),
                        generator=torch.Generator().manual_seed(seed + 1))
    if family in ENCODERS:
        out = model(ids, output_hidden_states=True)
        reference = {"input_ids": ids, "last_hidden_state": out.last_hidden_state}
    else:
        out = model(ids, output_hidden_states=True, use_cache=False)
        reference = {"input_ids": ids, "logits": out.logits} | continuation(model, ids, out.logits)
    texts = [ids, torch.cat([ids[:1], reference["greedy"]], 1)] if "greedy" in reference else []
    for text in texts:
        margin = smallest_margin(model, text)
        assert margin is None or margin > MARGIN, f"{name}: a margin of {margin}: draw others"
    for i, hidden in enumerate(out.hidden_states):
        reference[f"hidden_{i}"] = hidden.contiguous()

    folder = HERE / name
    folder.mkdir(exist_ok=True)
    model.save_pretrained(folder)
    if name in STACKED:
        save_file({key: value.contiguous() for key, value in model.state_dict().items()},
                  folder / "model.safetensors", {"format": "pt"})
    for extra in ("generation_config.json",):
        (folder / extra).unlink(missing_ok=True)
    save_file({key: value.contiguous().clone() for key, value in reference.items()},
              folder / "reference.safetensors")
    stored = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(stored, indent=2, sort_keys=True) + "\n")
    print(name, sum(f.stat().st_size for f in folder.iterdir()) // 1024, "KiB")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or MODELS:
        make(wanted)
