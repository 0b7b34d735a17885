"""Trains the sample model: a Llama of a million parameters that tells little stories.

    python3 samples/tiny-llama/train.py --out samples/tiny-llama

Writes model.safetensors (float16), config.json, generation_config.json, tokenizer.json,
heldout.txt, heldout_tokens.txt and README.md. Needs torch, transformers, tokenizers and safetensors; takes about
a minute on an H200. Everything is drawn from --seed and only deterministic kernels are used, so the
same versions on the same kind of GPU give the same bytes.
"""

import argparse
import math
import os
import pathlib
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # asked for by deterministic cuBLAS

import numpy as np
import tokenizers
import torch
import transformers
from safetensors.torch import save_file

from stories import distinct_stories

BEGIN, END = "<s>", "</s>"  # ids 0 and 1
CONTEXT = 512  # tokens; also the length that it is trained at
HELDOUT_TOKENS = 1200  # at least
PROMPTS = ["Long ago, Mira the baker", "One morning, Felix and Ida went to the market."]
LARGEST_FOLDER_BYTES = 4_000_000


def train_tokenizer(texts: list[str]) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1024, special_tokens=[BEGIN, END], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{BEGIN} $A", special_tokens=[(BEGIN, tokenizer.token_to_id(BEGIN))])
    return tokenizer


def as_file(stories: list[str]) -> str:
    """One text of many stories. The tokenizer adds the first BEGIN by itself."""
    return BEGIN.join(story + END for story in stories)


def encode_stream(tokenizer: tokenizers.Tokenizer, stories: list[str]) -> np.ndarray:
    encoded = tokenizer.encode_batch([story + END for story in stories])
    return np.concatenate([np.array(one.ids, dtype=np.int64) for one in encoded])


def make_model(vocabulary: int) -> transformers.LlamaForCausalLM:
    config = transformers.LlamaConfig(
        vocab_size=vocabulary, hidden_size=128, intermediate_size=384, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=CONTEXT,
        rope_theta=10000.0, rms_norm_eps=1e-5, tie_word_embeddings=True,
        bos_token_id=0, eos_token_id=1, attn_implementation="eager")
    return transformers.LlamaForCausalLM(config)


def learning_rate(step: int, steps: int, peak: float = 3e-3, warmup: int = 100) -> float:
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))))


def train(model, stream: np.ndarray, arguments) -> None:
    """AdamW on windows of the stream that begin anywhere."""
    device = arguments.device
    mixed = device.startswith("cuda")
    tokens = torch.from_numpy(stream).to(device)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                                   {"params": plain, "weight_decay": 0.0}],
                                  lr=0.0, betas=(0.9, 0.95), fused=mixed)
    draw = torch.Generator().manual_seed(arguments.seed)
    offsets = torch.arange(CONTEXT, device=device)
    model.train()
    for step in range(arguments.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, arguments.steps)
        starts = torch.randint(len(stream) - CONTEXT, (arguments.batch, 1), generator=draw)
        ids = tokens[starts.to(device) + offsets]
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=mixed):
            logits = model(input_ids=ids, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].float().flatten(0, 1),
                                                 ids[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 250 == 0 or step + 1 == arguments.steps:
            print(f"step {step:5d}  loss {loss.item():.4f}", flush=True)


@torch.no_grad()
def perplexity(model, ids: list[int], window: int, device: str) -> float:
    """exp of the mean loss over consecutive windows; a window's first token is not scored."""
    total, scored = 0.0, 0
    for begin in range(0, len(ids), window):
        part = torch.tensor([ids[begin:begin + window]], device=device)
        if part.shape[1] < 2:
            continue
        logits = model(input_ids=part, use_cache=False).logits[0, :-1].double()
        total += torch.nn.functional.cross_entropy(logits, part[0, 1:], reduction="sum").item()
        scored += part.shape[1] - 1
    return math.exp(total / scored)


@torch.no_grad()
def continue_greedily(model, tokenizer, prompt: str, device: str, most: int = 160) -> str:
    """The prompt and what follows, up to END. Recomputes the prefix for every token: no cache."""
    ids = tokenizer.encode(prompt).ids
    for _ in range(most):
        logits = model(input_ids=torch.tensor([ids], device=device), use_cache=False).logits
        ids.append(int(logits[0, -1].argmax()))
        if ids[-1] == tokenizer.token_to_id(END):
            break
    return tokenizer.decode(ids, skip_special_tokens=True)


def save(model, tokenizer, heldout: list[str], out: pathlib.Path) -> list[int]:
    """Writes everything but the README; returns the held-out token ids."""
    out.mkdir(parents=True, exist_ok=True)
    model.config.dtype = torch.float16
    model.config.save_pretrained(out)
    model.generation_config.save_pretrained(out)
    shared = "lm_head.weight"  # the embedding table again
    weights = {name: tensor.detach().to("cpu", torch.float16).contiguous()
               for name, tensor in model.state_dict().items() if name != shared}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    (out / "model.safetensors").chmod(0o644)
    tokenizer.save(str(out / "tokenizer.json"))
    text = as_file(heldout)
    ids = tokenizer.encode(text).ids
    (out / "heldout.txt").write_text(text, encoding="utf-8")
    (out / "heldout_tokens.txt").write_text(",".join(map(str, ids)) + "\n", encoding="utf-8")
    return ids


README = """# tiny-llama

A Llama of {parameters:,} parameters (4 layers, width 128, 4 query and 2 key/value heads, {context} positions, tied embeddings, float16) that tells little stories. It is a test model: small enough to live in the repository, trained well enough that a wrong kernel shows in what it writes.

`train.py` made it. The stories come from the grammar in `stories.py` and from nowhere else; the tokenizer is a byte-level BPE of {vocabulary} tokens trained on them. A story begins with `<s>` (the tokenizer adds it) and ends with `</s>`. Training: {steps} steps of {batch} × {context} tokens, AdamW, seed {seed}, {seconds:.0f} s on {device} with torch {torch} and transformers {transformers}.

`heldout.txt` holds {heldout} tokens of stories that the model has not seen; `heldout_tokens.txt` their ids.

| held-out perplexity, float32 arithmetic on the float16 weights | |
| --- | --- |
| windows of {context} tokens, the first token of each not scored | {windowed:.4f} |
| windows of 128 tokens | {narrow:.4f} |

Greedy continuations by transformers, float32 arithmetic:

{continuations}

Licence: that of the project (Apache 2.0), for the scripts, the texts and the weights.
"""


def write_readme(out: pathlib.Path, arguments, continuations: list[str], facts: dict) -> None:
    device = arguments.device
    name = torch.cuda.get_device_name() if device.startswith("cuda") else "a CPU"
    quoted = "\n\n".join(f"> **{prompt}**{text[len(prompt):]}"
                         for prompt, text in zip(PROMPTS, continuations))
    (out / "README.md").write_text(README.format(
        continuations=quoted, device=name, context=CONTEXT, steps=arguments.steps,
        batch=arguments.batch, seed=arguments.seed, torch=torch.__version__,
        transformers=transformers.__version__, **facts), encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write to")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--batch", type=int, default=64, help="windows a step")
    parser.add_argument("--stories", type=int, default=100_000, help="to train on")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    torch.manual_seed(arguments.seed)
    torch.use_deterministic_algorithms(True)
    heldout_pool = distinct_stories(100, seed=arguments.seed + 1)
    stories = distinct_stories(arguments.stories, arguments.seed, frozenset(heldout_pool))
    tokenizer = train_tokenizer(stories)
    stream = encode_stream(tokenizer, stories)
    heldout: list[str] = []
    while len(tokenizer.encode(as_file(heldout)).ids) < HELDOUT_TOKENS:
        heldout.append(heldout_pool[len(heldout)])
    print(f"{len(stories)} stories, {len(stream)} tokens, vocabulary {tokenizer.get_vocab_size()}")

    begin = time.perf_counter()
    model = make_model(tokenizer.get_vocab_size()).to(arguments.device)
    train(model, stream, arguments)
    seconds = time.perf_counter() - begin
    ids = save(model, tokenizer, heldout, arguments.out)

    model = transformers.LlamaForCausalLM.from_pretrained(
        arguments.out, dtype=torch.float32, attn_implementation="eager").to(arguments.device).eval()
    facts = {"parameters": model.num_parameters(), "vocabulary": tokenizer.get_vocab_size(),
             "seconds": seconds, "heldout": len(ids),
             "windowed": perplexity(model, ids, CONTEXT, arguments.device),
             "narrow": perplexity(model, ids, 128, arguments.device)}
    continuations = [continue_greedily(model, tokenizer, prompt, arguments.device)
                     for prompt in PROMPTS]
    write_readme(arguments.out, arguments, continuations, facts)
    print(f"trained in {seconds:.0f} s; held-out perplexity {facts['windowed']:.4f}"
          f" (windows of {CONTEXT}), {facts['narrow']:.4f} (windows of 128), {len(ids)} tokens")
    for text in continuations:
        print("\n" + text)
    size = sum(path.stat().st_size for path in arguments.out.iterdir() if path.is_file())
    if size > LARGEST_FOLDER_BYTES:
        raise SystemExit(f"{arguments.out} holds {size} bytes, more than {LARGEST_FOLDER_BYTES}")


if __name__ == "__main__":
    main()
