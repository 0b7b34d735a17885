"""Compares random configurations of model families with transformers, in `sinter verify`.

    python tests/golden/compare_families.py --sinter build/release/bin/sinter --count 4 [FAMILY ...]

Each configuration is drawn from its family's settings; the model has random weights, is saved by
save_pretrained, and `verify --reference` holds every layer's hidden states and the result to what
transformers computes in float32. Prints a line for each configuration; fails if one does not hold.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import torch
import transformers

from make_goldens import ENCODERS, GREEDY, continuation, randomize, save_file


def sizes(draw, **names):
    """The values that every family has, under the family's names."""
    heads = draw.choice([1, 2, 4])
    facts = {"vocab_size": draw.choice([61, 97]), "hidden_size": 16 * heads,
             "num_hidden_layers": draw.choice([1, 2, 3, 5]), "num_attention_heads": heads,
             "intermediate_size": draw.choice([24, 40, 72]),
             "max_position_embeddings": draw.choice([64, 96])}
    return {names.get(key, key): value for key, value in facts.items()}


def activation(draw):
    return draw.choice(["gelu", "gelu_new", "relu", "silu"])


def grouped(draw):
    facts = sizes(draw)
    divisors = [n for n in (1, 2, 4) if facts["num_attention_heads"] % n == 0]
    return facts | {"num_key_value_heads": draw.choice(divisors), "pad_token_id": None,
                    "tie_word_embeddings": draw.random() < 0.5,
                    "attention_bias": draw.random() < 0.5, "bos_token_id": 1, "eos_token_id": 2}


def theta(draw, usual):
    return {"rope_parameters": {"rope_type": "default",
                                "rope_theta": draw.choice([usual, 500.0, 1e5])}}


def gemma(draw):
    return grouped(draw) | theta(draw, 10000.0) | {
        "head_dim": draw.choice([8, 16, 32]),
        "hidden_act": draw.choice(["gelu_pytorch_tanh", "relu", "silu"])}


def granite(draw):
    return grouped(draw) | theta(draw, 10000.0) | {
        "embedding_multiplier": draw.choice([1.0, 3.0, 12.0]),
        "residual_multiplier": draw.choice([1.0, 0.22, 0.5]),
        "attention_multiplier": draw.choice([0.0625, 0.3]),
        "logits_scaling": draw.choice([1.0, 8.0, 5.0]), "mlp_bias": draw.random() < 0.5}


def smollm3(draw):
    facts = grouped(draw) | theta(draw, 2e6) | {"mlp_bias": draw.random() < 0.5}
    if draw.random() < 0.5:
        facts["no_rope_layer_interval"] = draw.choice([1, 2, 3])
    else:
        facts["no_rope_layers"] = [draw.randrange(2) for _ in range(facts["num_hidden_layers"])]
    if draw.random() < 0.5:
        facts |= {"use_sliding_window": True, "sliding_window": draw.choice([3, 9])}
    return facts


def experts(draw, count="num_local_experts"):
    facts = grouped(draw) | theta(draw, 10000.0)
    experts = draw.choice([1, 5, 8])
    return facts | {count: experts, "num_experts_per_tok": draw.randint(1, min(4, experts))}


def mixtral(draw):
    facts = experts(draw) | {"sliding_window": draw.choice([None, 5])}
    del facts["attention_bias"]
    return facts


def olmoe(draw):
    return experts(draw, "num_experts") | {"norm_topk_prob": draw.random() < 0.5}


def granitemoe(draw):
    facts = granite(draw) | experts(draw)
    del facts["mlp_bias"]
    return facts


def qwen_moe(draw, count):
    facts = experts(draw, count)
    return facts | {
        "norm_topk_prob": draw.random() < 0.5, "moe_intermediate_size": draw.choice([8, 24]),
        "decoder_sparse_step": draw.choice([1, 1, 2]), "use_sliding_window": draw.random() < 0.5,
        "mlp_only_layers": draw.choice([[], [0]]), "sliding_window": draw.choice([3, 9])}


def qwen2_moe(draw):
    facts = qwen_moe(draw, "num_experts")
    del facts["attention_bias"]
    return facts | {"shared_expert_intermediate_size": draw.choice([8, 40]),
                    "qkv_bias": draw.random() < 0.5, "max_window_layers": draw.choice([1, 3, 28])}


def qwen3_moe(draw):
    return qwen_moe(draw, "num_local_experts") | {"head_dim": draw.choice([8, 16])}


def roberta(draw):
    return sizes(draw) | {"type_vocab_size": draw.choice([1, 2]), "hidden_act": activation(draw),
                          "pad_token_id": draw.choice([0, 1, 2]), "bos_token_id": 1,
                          "eos_token_id": 2, "layer_norm_eps": draw.choice([1e-12, 1e-5])}


def distilbert(draw):
    return sizes(draw, hidden_size="dim", num_hidden_layers="n_layers",
                 num_attention_heads="n_heads", intermediate_size="hidden_dim") | {
        "activation": draw.choice(["gelu", "relu"]), "sinusoidal_pos_embds": draw.random() < 0.5}


def mpnet(draw):
    facts = sizes(draw) | {"hidden_act": activation(draw)}
    if draw.random() < 0.5:
        facts["max_position_embeddings"] = 320
    return facts


def modernbert(draw):
    facts = sizes(draw) | {
        "local_attention": draw.choice([2, 7, 16]), "pad_token_id": 0, "bos_token_id": 1,
        "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2,
        "hidden_activation": activation(draw), "norm_bias": draw.random() < 0.3,
        "attention_bias": draw.random() < 0.3, "mlp_bias": draw.random() < 0.3}
    facts["layer_types"] = [draw.choice(["sliding_attention", "full_attention"])
                            for _ in range(facts["num_hidden_layers"])]
    facts["rope_parameters"] = {
        kind: {"rope_type": "default", "rope_theta": draw.choice([1e4, 1.6e5, 100.0])}
        for kind in ("sliding_attention", "full_attention")}
    return facts


FAMILIES = {
    "gemma": ("Gemma", gemma), "granite": ("Granite", granite), "smollm3": ("SmolLM3", smollm3),
    "roberta": ("Roberta", roberta), "xlm-roberta": ("XLMRoberta", roberta),
    "camembert": ("Camembert", roberta), "distilbert": ("DistilBert", distilbert),
    "mixtral": ("Mixtral", mixtral), "olmoe": ("Olmoe", olmoe),
    "granitemoe": ("GraniteMoe", granitemoe), "qwen2_moe": ("Qwen2Moe", qwen2_moe),
    "qwen3_moe": ("Qwen3Moe", qwen3_moe),
    "mpnet": ("MPNet", mpnet), "modernbert": ("ModernBert", modernbert),
}


@torch.no_grad()
def save(folder, family, facts, draw):
    """Writes the model and its reference; encoders also as the masked language model they are in."""
    encoder = family in ENCODERS or family == "Camembert"
    head = draw.choice(["Model", "ForMaskedLM"]) if encoder else "ForCausalLM"
    config = getattr(transformers, family + "Config")(**facts)
    config._attn_implementation = "eager"
    model = getattr(transformers, family + head)(config).eval()
    generator = torch.Generator().manual_seed(draw.randrange(1 << 30))
    randomize(model, generator)
    longest = config.max_position_embeddings // 2 - 4
    ids = torch.randint(3, config.vocab_size, (2, draw.randint(2, min(150, longest - GREEDY))),
                        generator=generator)
    base = model.base_model if encoder else model
    out = base(ids, output_hidden_states=True)
    if encoder:
        reference = {"last_hidden_state": out.last_hidden_state}
    else:
        reference = {"logits": out.logits} | continuation(model, ids, out.logits)
    reference |= {"input_ids": ids} | {f"hidden_{i}": x for i, x in enumerate(out.hidden_states)}
    model.save_pretrained(folder)
    save_file({name: tensor.contiguous().clone() for name, tensor in reference.items()},
              folder / "reference.safetensors")
    return head


def compare(sinter, family, facts, draw):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        head = save(folder, family, facts, draw)
        run = subprocess.run(
            [sinter, "verify", folder, "--reference", folder / "reference.safetensors", "--device",
             "cpu", "--json"], capture_output=True, text=True)
        print(family + head, json.dumps(facts), "ok" if run.returncode == 0 else run.stderr, flush=True)
        if run.returncode != 0:
            print(run.stdout)
        return run.returncode == 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--sinter", default="build/release/bin/sinter")
    arguments.add_argument("--count", type=int, default=4, help="configurations of each family")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("family", nargs="*", metavar="FAMILY")
    options = arguments.parse_args()
    transformers.logging.set_verbosity_error()
    held = total = 0
    for name in options.family or FAMILIES:
        family, settings = FAMILIES[name]
        draw = random.Random(f"{name} {options.seed}")
        for _ in range(options.count):
            held += compare(options.sinter, family, settings(draw), draw)
            total += 1
    print(f"{held} of {total} configurations hold")
    return 0 if held == total else 1


if __name__ == "__main__":
    sys.exit(main())
