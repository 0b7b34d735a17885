"""Makes tests/golden/gguf: tiny models as folders and as the GGUF files that llama.cpp's converter
would make of them, GGUF files of the golden tokenizers, and blocks of all quantized types.

    pip install torch transformers safetensors gguf
    python tests/golden/make_gguf.py

Weights are random and float32. The tests compare both forms bit for bit.
"""

import base64
import json
import pathlib
import re
import shutil

import gguf
import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file

HERE = pathlib.Path(__file__).parent
OUT = HERE / "gguf"

SIZES = dict(vocab_size=61, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
             pad_token_id=None, bos_token_id=1, eos_token_id=2)
EQUAL_HEADS = {key: size for key, size in SIZES.items() if key != "num_key_value_heads"}
FALCON = {key: size for key, size in EQUAL_HEADS.items() if key != "intermediate_size"}

# The name, its class in transformers, its architecture in GGUF, and its settings.
MODELS = {
    "bert": ("BertModel", "bert", EQUAL_HEADS),
    "falcon": ("FalconForCausalLM", "falcon", dict(FALCON, multi_query=True, bias=False)),
    "falcon_two_norms": ("FalconForCausalLM", "falcon", dict(
        FALCON, new_decoder_architecture=True, num_kv_heads=2, bias=True, ffn_hidden_size=24)),
    "gemma": ("GemmaForCausalLM", "gemma", dict(SIZES, head_dim=8)),
    "gemma2": ("Gemma2ForCausalLM", "gemma2", dict(
        SIZES, head_dim=8, query_pre_attn_scalar=8, sliding_window=5)),
    "gemma3": ("Gemma3ForCausalLM", "gemma3", dict(
        SIZES, head_dim=8, query_pre_attn_scalar=8, sliding_window=5, num_hidden_layers=6,
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})),
    "gpt2": ("GPT2LMHeadModel", "gpt2", dict(
        vocab_size=61, n_embd=16, n_layer=2, n_head=4, n_positions=64, n_inner=24, bos_token_id=1,
        eos_token_id=2)),
    "gpt_neox": ("GPTNeoXForCausalLM", "gptneox", dict(
        EQUAL_HEADS, rope_parameters={
            "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5})),
    "granite": ("GraniteForCausalLM", "granite", dict(
        SIZES, embedding_multiplier=6.0, residual_multiplier=0.25, attention_multiplier=0.5,
        logits_scaling=3.0, attention_bias=True)),
    "granitemoe": ("GraniteMoeForCausalLM", "granitemoe", dict(
        SIZES, embedding_multiplier=6.0, residual_multiplier=0.25, attention_multiplier=0.5,
        logits_scaling=3.0, num_local_experts=4, num_experts_per_tok=2)),
    "llama": ("LlamaForCausalLM", "llama", dict(
        SIZES, attention_bias=True, tie_word_embeddings=True, rope_parameters={
            "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 16})),
    "llama_blocks": ("LlamaForCausalLM", "llama", dict(SIZES, hidden_size=32)),
    "llama_yarn": ("LlamaForCausalLM", "llama", dict(
        SIZES, head_dim=8, mlp_bias=True, rope_parameters={
            "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
            "original_max_position_embeddings": 16})),
    "mixtral": ("MixtralForCausalLM", "llama", dict(
        SIZES, num_local_experts=4, num_experts_per_tok=2, sliding_window=None)),
    "olmo2": ("Olmo2ForCausalLM", "olmo2", SIZES),
    "phi": ("PhiForCausalLM", "phi2", dict(EQUAL_HEADS, rope_parameters={
        "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5})),
    "phi3": ("Phi3ForCausalLM", "phi3", dict(
        SIZES, sliding_window=9, original_max_position_embeddings=16, rope_parameters={
            "rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0, 1.25],
            "long_factor": [1.5, 4.0]})),
    "qwen2": ("Qwen2ForCausalLM", "qwen2", SIZES),
    "qwen2_moe": ("Qwen2MoeForCausalLM", "qwen2moe", dict(
        SIZES, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12,
        shared_expert_intermediate_size=20)),
    "qwen3": ("Qwen3ForCausalLM", "qwen3", dict(SIZES, head_dim=8)),
    "qwen3_moe": ("Qwen3MoeForCausalLM", "qwen3moe", dict(
        SIZES, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12,
        norm_topk_prob=True)),
    "smollm3": ("SmolLM3ForCausalLM", "smollm3", dict(SIZES, num_hidden_layers=4)),
}

BLOCKS = ("llama_blocks",)  # models of quantized types

LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.dense": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.qkv_proj": "attn_qkv",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.fc1": "ffn_up",
    "mlp.fc2": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "block_sparse_moe.gate": "ffn_gate_inp",
    "block_sparse_moe.router.layer": "ffn_gate_inp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    # GPT-NeoX and Falcon
    "attention.query_key_value": "attn_qkv",
    "self_attention.query_key_value": "attn_qkv",
    "attention.dense": "attn_output",
    "self_attention.dense": "attn_output",
    "mlp.dense_h_to_4h": "ffn_up",
    "mlp.dense_4h_to_h": "ffn_down",
    "ln_mlp": "attn_norm",
    "ln_attn": "attn_norm_2",
    # GPT-2
    "ln_1": "attn_norm",
    "ln_2": "ffn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
    # BERT
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
BRANCH_NORMS = {  # of Gemma 2 and 3 and OLMo 2
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
TABLES = {
    "embed_tokens": "token_embd", "word_embeddings": "token_embd", "embed_in": "token_embd",
    "wte": "token_embd", "wpe": "position_embd", "position_embeddings": "position_embd",
    "token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm",
    "norm": "output_norm", "ln_f": "output_norm", "final_layer_norm": "output_norm",
    "final_layernorm": "output_norm", "lm_head": "output", "embed_out": "output",
}
EXPERTS = {"gate_proj": "gate", "up_proj": "up", "down_proj": "down",
           "w1": "gate", "w3": "up", "w2": "down"}
TURNED = ("llama", "granite", "granitemoe", "smollm3")
PLUS_ONE = ("gemma", "gemma2", "gemma3")


def turned(tensor, heads):
    """Rows of q or k with the halves of a head as neighbours."""
    shape = tensor.shape
    split = tensor.reshape(heads, 2, shape[0] // heads // 2, *shape[1:])
    return split.swapaxes(1, 2).reshape(shape)


def sections(tensor, groups, sizes):
    """Rows of q, k and v that follow one another in each group, as q, then k, then v."""
    split = tensor.reshape(groups, sum(sizes), *tensor.shape[1:])
    parts = np.split(split, np.cumsum(sizes)[:-1], axis=1)
    return np.concatenate([part.reshape(-1, *tensor.shape[1:]) for part in parts])


def changed(name, tensor, arch, config):
    heads = config.num_attention_heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    if arch in TURNED and re.search(r"attn_[qk]\.(weight|bias)$", name):
        return turned(tensor, heads if "attn_q" in name else kv_heads)
    if arch in PLUS_ONE and name.endswith("norm.weight"):
        return tensor + np.float32(1)
    if arch == "gpt2" and tensor.ndim == 2 and ("ffn" in name or "attn" in name):
        return tensor.T
    width = config.hidden_size // heads
    if arch == "gptneox" and "attn_qkv" in name:
        return sections(tensor, heads, [width] * 3)
    if arch == "falcon" and "attn_qkv" in name:
        groups = config.num_kv_heads if config.new_decoder_architecture else 1
        return sections(tensor, groups, [heads // groups * width, width, width])
    if name.endswith("ffn_gate_inp_shexp.weight"):
        return tensor.squeeze()
    return tensor


def converted(tensors, arch, config):
    """Tensors by their names in GGUF."""
    names = LAYER | (BRANCH_NORMS if arch in ("gemma2", "gemma3", "olmo2") else {})
    result, experts = {}, {}
    for name, tensor in tensors.items():
        stem, end = name.rsplit(".", 1)
        layer = re.search(r"(?:layers|h|layer)\.(\d+)\.(.*)$", stem)
        if not layer:
            known = [key for key in TABLES if stem == key or stem.endswith("." + key)]
            if known:
                result[f"{TABLES[max(known, key=len)]}.{end}"] = tensor
            continue  # a pooler
        number, part = layer.groups()
        expert = re.match(r".*experts\.(\d+)\.(\w+)$", part)
        if expert:
            experts.setdefault((number, EXPERTS[expert[2]]), {})[int(expert[1])] = tensor
        elif part.endswith("input_linear"):
            for which, half in zip(("gate", "up"), np.split(tensor, 2, axis=1)):
                result[f"blk.{number}.ffn_{which}_exps.weight"] = half
        elif part.endswith("output_linear"):
            result[f"blk.{number}.ffn_down_exps.weight"] = tensor
        else:
            result[f"blk.{number}.{names[part]}.{end}"] = tensor
    for (number, which), parts in experts.items():
        stacked = np.stack([parts[expert] for expert in range(len(parts))])
        result[f"blk.{number}.ffn_{which}_exps.weight"] = stacked
    return {name: changed(name, tensor, arch, config) for name, tensor in result.items()}


def add_rope(writer, arch, config):
    rope = getattr(config, "rope_parameters", None) or {}
    rope = rope.get("full_attention", rope)
    if rope.get("rope_theta"):
        writer.add_rope_freq_base(rope["rope_theta"])
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if arch not in ("gpt2", "bert", "falcon"):
        writer.add_rope_dimension_count(int(width * rope.get("partial_rotary_factor", 1.0)))
    kind = rope.get("rope_type")
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(rope["factor"])
        if kind == "yarn":
            writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    elif kind == "llama3":
        writer.add_tensor("rope_freqs.weight", divisors(rope, width))
    elif kind == "longrope":
        original = config.original_max_position_embeddings
        scale = config.max_position_embeddings / original
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors(float(np.sqrt(1 + np.log(scale) / np.log(original))))
        for key in ("long", "short"):
            factors = np.array(rope[f"{key}_factor"], dtype=np.float32)
            writer.add_tensor(f"rope_factors_{key}.weight", factors)


def divisors(rope, width):
    """The divisor of each frequency of Llama 3."""
    factor, old = rope["factor"], rope["original_max_position_embeddings"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    values = []
    for i in range(0, width, 2):
        length = 2 * np.pi * rope["rope_theta"] ** (i / width)
        if length < old / high:
            values.append(1)
        elif length > old / low:
            values.append(factor)
        else:
            smooth = (old / length - low) / (high - low)
            values.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(values, dtype=np.float32)


def add_metadata(writer, arch, config):
    heads = config.num_attention_heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    if arch == "falcon":
        kv_heads = config.num_kv_heads if config.new_decoder_architecture else 1
        writer.add_tensor_data_layout("jploski")
    writer.add_context_length(2048 if arch == "falcon" else config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    ffn = getattr(config, "intermediate_size", None) or getattr(config, "ffn_hidden_size", None)
    writer.add_feed_forward_length(ffn or 4 * config.hidden_size)
    writer.add_head_count(heads)
    if arch not in ("gpt2", "bert", "gptneox"):
        writer.add_head_count_kv(kv_heads)
    if getattr(config, "rms_norm_eps", None):
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    else:
        eps = getattr(config, "layer_norm_epsilon", None) or config.layer_norm_eps
        writer.add_layer_norm_eps(eps)
    if getattr(config, "head_dim", None) and arch != "falcon":
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    if getattr(config, "sliding_window", None) and arch in ("gemma2", "gemma3", "phi3"):
        writer.add_sliding_window(config.sliding_window)
    if arch == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if arch.startswith("granite"):
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    experts = getattr(config, "num_local_experts", None) or getattr(config, "num_experts", None)
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
    if arch in ("qwen2moe", "qwen3moe"):
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if arch == "qwen2moe":
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    if arch == "gptneox":
        writer.add_parallel_residual(config.use_parallel_residual)
    if arch == "bert":
        writer.add_causal_attention(False)
        writer.add_pooling_type(gguf.PoolingType.CLS)
    else:
        writer.add_eos_token_id(config.eos_token_id)


@torch.no_grad()
def randomize(model, seed):
    draw = torch.Generator().manual_seed(seed)
    for name, tensor in model.named_parameters():
        one = "norm" in name.lower() or "ln_" in name
        values = 0.3 * torch.randn(tensor.shape, generator=draw)
        if one and "Gemma" in type(model).__name__:
            values = values.clamp(min=-0.5)  # from where 1 + w - 1 is w without an error
        elif one:
            values += 1
        tensor.copy_(values)


def make_model(name):
    class_name, arch, settings = MODELS[name]
    model_class = getattr(transformers, class_name)
    config = model_class.config_class(**settings)
    model = model_class(config).float().eval()
    randomize(model, sum(map(ord, name)))
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    writer = gguf.GGUFWriter(folder / "model.gguf", arch)
    add_metadata(writer, arch, config)
    add_rope(writer, arch, config)
    tensors = load_file(folder / "model.safetensors")
    if name in BLOCKS:
        tensors = {key: rounded(key, tensor)[0] for key, tensor in tensors.items()}
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    for key, tensor in converted(tensors, arch, config).items():
        tensor = np.ascontiguousarray(tensor)
        kind = rounded(key, tensor)[1] if name in BLOCKS else gguf.GGMLQuantizationType.F32
        if kind == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(key, tensor)
        else:
            writer.add_tensor(key, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
    finish(writer)


def rounded(name, tensor):
    """The tensor rounded to the type that it has in GGUF, and the type."""
    kind = gguf.GGMLQuantizationType.F32
    for part, type_name in (("q_proj", "Q8_0"), ("attn_q.", "Q8_0"), ("k_proj", "Q4_0"),
                            ("attn_k.", "Q4_0"), ("v_proj", "Q4_1"), ("attn_v", "Q4_1"),
                            ("gate_proj", "Q5_0"), ("ffn_gate", "Q5_0"), ("up_proj", "Q5_1"),
                            ("ffn_up", "Q5_1"), ("embed", "Q8_0"), ("token_embd", "Q8_0")):
        if part in name:
            kind = gguf.GGMLQuantizationType[type_name]
    if kind == gguf.GGMLQuantizationType.F32:
        return tensor, kind
    blocks = gguf.quants.quantize(tensor, kind)
    return gguf.quants.dequantize(blocks, kind).astype(np.float32).reshape(tensor.shape), kind


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


KINDS = {"bytelevel_gpt2": ("gpt2", "gpt-2"), "split_llama3": ("gpt2", "llama-bpe"),
         "bytefallback_llama2": ("llama", "default"), "wordpiece_bert": ("bert", "default"),
         "unigram_t5": ("t5", "default")}


def token_type(text, added, kind):
    if text in added:
        return gguf.TokenType.CONTROL if added[text]["special"] else gguf.TokenType.USER_DEFINED
    if kind == "llama" and re.fullmatch("<0x[0-9A-F]{2}>", text):
        return gguf.TokenType.BYTE
    return gguf.TokenType.NORMAL


def make_tokenizer(name):
    kind, pre = KINDS[name]
    source = json.loads((HERE / "tokenizers" / name / "tokenizer.json").read_text())
    added = {token["content"]: token for token in source["added_tokens"]}
    vocabulary = source["model"]["vocab"]
    if kind == "t5":
        vocabulary = {text: id for id, (text, _) in enumerate(vocabulary)}
    vocabulary = vocabulary | {text: token["id"] for text, token in added.items()}
    texts = sorted(vocabulary, key=vocabulary.get)
    assert [vocabulary[text] for text in texts] == list(range(len(texts))), name
    types = [token_type(text, added, kind) for text in texts]
    writer = gguf.GGUFWriter(OUT / f"{name}.gguf", "llama")
    writer.add_tokenizer_model(kind)
    writer.add_tokenizer_pre(pre)
    if kind == "bert":
        texts = [text if text in added else text[2:] if text.startswith("##") else "\u2581" + text
                 for text in texts]
        for key, text in (("bos", "[CLS]"), ("sep", "[SEP]"), ("unk", "[UNK]")):
            getattr(writer, f"add_{key}_token_id")(vocabulary[text])
    writer.add_token_list(texts)
    writer.add_token_types(types)
    merges = [merge if isinstance(merge, str) else " ".join(merge)
              for merge in source["model"].get("merges", [])]
    if kind == "gpt2":
        writer.add_token_merges(merges)
    if kind == "llama":  # SentencePiece's score of a piece that is the result of merge i is -i
        scores = {merge.replace(" ", ""): -float(i) for i, merge in reversed(list(enumerate(merges)))}
        writer.add_token_scores([scores.get(text, -1e6) for text in texts])
        writer.add_unk_token_id(vocabulary["<unk>"])
    if kind == "t5":
        writer.add_token_scores([score for _, score in source["model"]["vocab"]])
        writer.add_unk_token_id(source["model"]["unk_id"])
        writer.add_add_space_prefix(True)
        writer.add_remove_extra_whitespaces(True)
        writer.add_precompiled_charsmap(
            base64.b64decode(source["normalizer"]["normalizers"][0]["precompiled_charsmap"]))
    bos = next((text for text in ("<s>", "<|begin_of_text|>", "<|endoftext|>") if text in vocabulary), None)
    if bos:
        writer.add_bos_token_id(vocabulary[bos])
    eos = next((text for text in ("</s>", "<|end_of_text|>", "<|endoftext|>") if text in vocabulary), None)
    if eos:
        writer.add_eos_token_id(vocabulary[eos])
    finish(writer)


def make_blocks():
    """Random blocks with usual scales, and their values."""
    draw = np.random.default_rng(1)
    tensors = {}
    for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
                 "IQ4_NL", "IQ4_XS", "MXFP4"):
        kind = gguf.GGMLQuantizationType[name]
        size = gguf.GGML_QUANT_SIZES[kind][1]
        blocks = draw.integers(0, 256, (4, size), dtype=np.uint8)
        halves = {"Q4_1": 0, "Q5_1": 0, "Q2_K": 80, "Q3_K": 108, "Q4_K": 0, "Q5_K": 0, "Q6_K": 208}
        if name == "MXFP4":
            blocks[:, 0] = [0, 1, 2, 130]
        else:
            count = 2 if name in ("Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K") else 1
            at = halves.get(name, 0)
            scales = draw.normal(size=(4, count)).astype(np.float16)
            blocks[:, at:at + 2 * count] = scales.view(np.uint8)
        tensors[f"{name}.blocks"] = blocks
        tensors[f"{name}.values"] = gguf.quants.dequantize(blocks, kind).astype(np.float32)
    save_file(tensors, OUT / "blocks.safetensors")


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for model in MODELS:
        make_model(model)
    for tokenizer in KINDS:
        make_tokenizer(tokenizer)
    make_blocks()
