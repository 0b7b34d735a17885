"""Decoding and prefill of whole models by PyTorch, batch 1, random weights.

    python3 bench/peers/models.py --json models.json [--only llama-2-7b] [--compile]

Hugging Face transformers, eager: time per output token of `generate` (greedy, with its cache) after
a prompt of 1,024 tokens, as the interval between tokens that reach the host; and one forward pass
over the prompt. With --compile also a lean decoder (lean_decoder.py) by torch.compile in a CUDA
graph; compiling takes minutes.
"""

import argparse
import functools
import math
import pathlib
import time

import torch
import transformers

import architectures
import gpu
import report
from lean_decoder import Block, Decoder

CONTEXT = 1024  # tokens of the prompt
PREFILLS, PREFILL_WARM_UP = 10, 2


def synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


class TokenTimes:
    """A streamer that notes when each token is on the host. The prompt comes first."""

    def __init__(self):
        self.times: list[float] = []

    def put(self, tokens) -> None:
        self.times.append(time.perf_counter())

    def end(self) -> None:
        pass

    def intervals_ms(self) -> list[float]:
        """Between generated tokens: without the prompt's mark and the prefill that follows it."""
        return [1000 * (b - a) for a, b in zip(self.times[1:], self.times[2:])]


def make_hf_model(spec: dict, dtype: torch.dtype, device: str):
    """Random weights, made on the device in `dtype`."""
    config = architectures.to_transformers(spec)
    torch.manual_seed(0)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    return model.to(device).eval()


def measure_hf(model, device: str, tokens: int, repeats: int) -> dict:
    vocabulary = model.config.vocab_size
    draw = torch.Generator().manual_seed(0)
    prompt = torch.randint(vocabulary, (1, CONTEXT), generator=draw).to(device)
    mask = torch.ones_like(prompt)
    decode: list[float] = []
    for repeat in range(repeats + 1):
        clock = TokenTimes()
        model.generate(prompt, attention_mask=mask, max_new_tokens=tokens + 1, do_sample=False,
                       use_cache=True, pad_token_id=0, streamer=clock)
        if repeat > 0:  # the first one warms up
            decode += clock.intervals_ms()
    prefill: list[float] = []
    for repeat in range(PREFILL_WARM_UP + PREFILLS):
        synchronize(device)
        begin = time.perf_counter()
        model(prompt, use_cache=True, logits_to_keep=1)
        synchronize(device)
        if repeat >= PREFILL_WARM_UP:
            prefill.append(1000 * (time.perf_counter() - begin))
    return {"decode_ms": report.summary(decode), "prefill_ms": report.summary(prefill)}


def make_lean_decoder(spec: dict, dtype: torch.dtype, device: str, length: int,
                      sequences: int = 1) -> Decoder:
    default = torch.get_default_dtype()
    torch.manual_seed(0)
    try:
        torch.set_default_dtype(dtype)
        with torch.device(device):
            block = functools.partial(Block, sequences=sequences)
            return Decoder(spec, length, block).eval()
    finally:
        torch.set_default_dtype(default)


def measure_compiled(spec: dict, dtype: torch.dtype, tokens: int, repeats: int, mode: str,
                     sequences: int = 1, context: int = CONTEXT) -> dict:
    """A step in one CUDA graph, which feeds its tokens back and moves the position on."""
    length = 64 * math.ceil((context + tokens + 2 * gpu.WARM_UP) / 64)
    decoder = make_lean_decoder(spec, dtype, "cuda", length, sequences)
    token = torch.zeros(sequences, dtype=torch.int64, device="cuda")
    position = torch.full((1,), context, device="cuda")
    step = torch.compile(decoder, fullgraph=True, dynamic=False, mode=mode)

    def advance(_):
        token.copy_(step(token, position))
        position.add_(1)

    begin = time.perf_counter()
    captured = gpu.capture(advance, sets=1, calls=1)
    seconds = time.perf_counter() - begin
    samples: list[float] = []
    for _ in range(repeats):
        position.fill_(context)
        samples += [us / 1000 for us in gpu.time_calls({"step": captured}, tokens)["step"]]
    return {"decode_ms": report.summary(samples), "compile_s": seconds, "mode": mode}


def to_table(models: list[dict]) -> str:
    rows = []
    for model in models:
        for by in ("eager", "compile"):
            if by not in model:
                continue
            prefill = model[by].get("prefill_ms")
            decode = model[by]["decode_ms"]
            rows.append([f"{model['name']} {model['dtype']}", by, f"{decode['median']:.2f}",
                         f"{decode['p95']:.2f}",
                         f"{prefill['median']:.2f}" if prefill else "-",
                         f"{prefill['p95']:.2f}" if prefill else "-"])
    return report.table(["model", "by", "TPOT ms", "p95", f"prefill {CONTEXT} ms", "p95"], rows)


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=pathlib.Path, required=True, metavar="OUT")
    parser.add_argument("--only", action="append", choices=list(architectures.MODELS),
                        help="repeatable")
    parser.add_argument("--tokens", type=int, default=32, help="decoded in each repeat")
    parser.add_argument("--repeats", type=int, default=2, help="of the decoding, after one more")
    parser.add_argument("--device", default="cuda", help="of the eager runs")
    parser.add_argument("--compile", action="store_true", help="the lean decoder too, on CUDA")
    parser.add_argument("--mode", default="max-autotune-no-cudagraphs", help="of torch.compile")
    return parser.parse_args(argv)


@torch.no_grad()
def main() -> None:
    arguments = parse_arguments()
    if arguments.compile or arguments.device.startswith("cuda"):
        gpu.require_cuda()
    gpu.lift_recompile_limits()
    models = []
    for name in arguments.only or architectures.MODELS:
        spec, dtype_name = architectures.read_spec(name), architectures.MODELS[name]
        dtype = getattr(torch, dtype_name)
        report.progress(name)
        model = make_hf_model(spec, dtype, arguments.device)
        result = {"name": name, "dtype": dtype_name, "context": CONTEXT,
                  "parameters": model.num_parameters(),
                  "eager": measure_hf(model, arguments.device, arguments.tokens, arguments.repeats)}
        del model
        gpu.free_memory()
        if arguments.compile:
            result["compile"] = measure_compiled(spec, dtype, arguments.tokens, arguments.repeats,
                                                 arguments.mode)
            gpu.free_memory()
        models.append(result)
        report.write_json(arguments.json, {"machine": gpu.machine(), "models": models})
    print(to_table(models))


if __name__ == "__main__":
    main()
