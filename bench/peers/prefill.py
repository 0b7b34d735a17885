"""Prefill of whole models beside torch.compile and beside the sum of its parts.

    python3 bench/peers/prefill.py PROGRAM --json prefill.json [--row llama-2-7b:8x2048] [--peer sinter]

For each row (a model, sequences x tokens) and each peer:
  sinter   `PROGRAM bench`, products tuned: the fused and the unfused plan
  parts    the products by cuBLASLt through PyTorch and the causal attention by cuDNN, each alone in a
           recorded graph over operands in turns that runs as long as a prefill, so that the board's
           power bounds both; their sum is what a prefill takes at least
  compile  a lean prefill (lean_decoder.Prefill) by torch.compile

Random weights and tokens; milliseconds of device time, medians of samples that take a second
together: in the first tens of milliseconds of products a board's clocks are higher. Results go to
the file as they come. Run again on the same GPU, the script measures what the file lacks; another
GPU needs another file.
"""

import argparse
import json
import math
import pathlib
import subprocess
import tempfile
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import architectures
import gpu
import report
from lean_decoder import Prefill

ROWS = {"llama-2-7b": ((1, 512), (1, 2048), (8, 2048)),
        "pythia-2.8b": ((1, 512), (1, 2048), (8, 2048)), "llama-3.2-1b": ((1, 2048),)}
PEERS = ("sinter", "parts", "compile")
SUSTAINED_US = 40000  # of a part
SAMPLED_S = 1.0  # of a whole model
USUAL_RATE = 6e14  # FLOP/s


def products_of(spec: dict, sequences: int, tokens: int) -> dict[str, tuple]:
    """rows, outputs, inputs, bias, and how often each is computed. The last product has the last
    token of each sequence alone."""
    hidden, layers, rows = spec["hidden"], spec["layers"], sequences * tokens
    inner, kv = spec["heads"] * spec["head_dim"], spec["kv_heads"] * spec["head_dim"]
    up = (2 if spec["gated"] else 1) * spec["ffn"]
    return {"qkv": (rows, inner + 2 * kv, hidden, spec["qkv_bias"], layers),
            "out": (rows, hidden, inner, spec["attention_out_bias"], layers),
            "up": (rows, up, hidden, spec["mlp_bias"], layers),
            "down": (rows, hidden, spec["ffn"], spec["mlp_bias"], layers),
            "head": (sequences, spec["vocabulary"], hidden, False, 1)}


def samples_for(spec: dict, sequences: int, tokens: int, least: int) -> int:
    """Samples of a prefill that take about SAMPLED_S."""
    operations = sum(2 * rows * outputs * inputs * times for rows, outputs, inputs, _, times
                     in products_of(spec, sequences, tokens).values())
    return max(least, math.ceil(SAMPLED_S * USUAL_RATE / operations))


def sets_for(nbytes: int) -> int:
    return min(report.sets_past_cache(nbytes, torch.cuda.get_device_properties(0).L2_cache_size), 8)


def sustained_us(call, sets: int, samples: int) -> float:
    """Microseconds of a call, the median, in a graph that takes at least SUSTAINED_US."""
    short = gpu.capture(call, sets, sets)
    calls = sets * math.ceil(SUSTAINED_US / report.median(gpu.time_calls({"": short}, 3)[""]) / sets)
    del short
    return report.median(gpu.time_calls({"": gpu.capture(call, sets, calls)}, samples)[""])


def measure_product(rows, outputs, inputs, bias, dtype, samples) -> float:
    sets = sets_for(2 * (rows * inputs + outputs * inputs + rows * outputs))
    operands = [(torch.randn(rows, inputs, device="cuda", dtype=dtype),
                 torch.randn(outputs, inputs, device="cuda", dtype=dtype) / math.sqrt(inputs),
                 torch.randn(outputs, device="cuda", dtype=dtype) if bias else None)
                for _ in range(sets)]
    return sustained_us(lambda i: F.linear(*operands[i % sets]), sets, samples)


def measure_attention(spec, sequences, tokens, dtype, samples) -> float:
    def heads(count):
        return torch.randn(sequences, tokens, count, spec["head_dim"], device="cuda",
                           dtype=dtype).transpose(1, 2)

    kv = spec["kv_heads"]
    sets = sets_for(4 * sequences * tokens * spec["head_dim"] * (spec["heads"] + kv))
    operands = [(heads(spec["heads"]), heads(kv), heads(kv)) for _ in range(sets)]

    def call(i):
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(*operands[i % sets], is_causal=True,
                                                  enable_gqa=kv < spec["heads"])

    return sustained_us(call, sets, samples)


def measure_parts(spec, dtype, sequences, tokens, samples) -> dict:
    parts = {}
    for name, (rows, outputs, inputs, bias, times) in products_of(spec, sequences, tokens).items():
        microseconds = measure_product(rows, outputs, inputs, bias, dtype, samples)
        parts[name] = {"product": [rows, outputs, inputs], "times": times, "us": microseconds}
    microseconds = measure_attention(spec, sequences, tokens, dtype, samples)
    parts["attention"] = {"times": spec["layers"], "us": microseconds}
    return {"ms": sum(part["us"] * part["times"] for part in parts.values()) / 1000, "parts": parts}


def measure_compile(spec, dtype, sequences, tokens, samples) -> dict:
    default = torch.get_default_dtype()
    torch.manual_seed(0)
    try:
        torch.set_default_dtype(dtype)
        with torch.device("cuda"):
            model = Prefill(spec, sequences, tokens).eval()
    finally:
        torch.set_default_dtype(default)
    prompts = torch.randint(spec["vocabulary"], (sequences, tokens), device="cuda")
    compiled = torch.compile(model, fullgraph=True, dynamic=False)
    begin = time.perf_counter()
    compiled(prompts)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    captured = gpu.capture(lambda _: compiled(prompts), sets=1, calls=1)
    times = [us / 1000 for us in gpu.time_calls({"": captured}, samples)[""]]
    return {"ms": report.median(times), "samples_ms": times, "first_call_s": seconds}


def measure_sinter(program, name, sequences, tokens, samples, folder) -> dict:
    record = pathlib.Path(folder) / f"{name}.json"
    command = [program, "bench", str(architectures.SAMPLES / f"{name}.json"), "-p", str(tokens),
               "-n", "0", "--random-weights", "1", "--batch", str(sequences), "--repeat", str(samples), "--json", "--tune",
               "--dtype", {"float16": "fp16", "bfloat16": "bf16"}[architectures.MODELS[name]],
               "--save-record", str(record)]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    bench = json.loads(text)
    case = bench["cases"][0]
    return {"ms": 1000 * case["fused"]["median_s"], "unfused_ms": 1000 * case["unfused"]["median_s"],
            "of_gemm_ceiling": case["fused"]["of_ceiling"], "bench": bench}


def to_table(rows: dict) -> str:
    lines = []
    for row, peers in rows.items():
        ms = {peer: peers[peer]["ms"] if peer in peers else None for peer in PEERS}

        def ratio(a, b):
            return f"{ms[a] / ms[b]:.2f}" if ms[a] and ms[b] else "-"

        lines.append([row, *(f"{ms[peer]:.2f}" if ms[peer] else "-" for peer in PEERS),
                      ratio("sinter", "parts"), ratio("compile", "sinter")])
    return report.table(["prefill, ms", *PEERS, "over parts", "compile over"], lines)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--json", type=pathlib.Path, required=True)
    parser.add_argument("--row", action="append", metavar="MODEL:BxT", help="repeatable; all")
    parser.add_argument("--peer", action="append", choices=PEERS, help="repeatable; all")
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--again", action="store_true", help="measure what the file has, too")
    return parser.parse_args()


@torch.no_grad()
def main() -> None:
    arguments = parse_arguments()
    gpu.require_cuda()
    machine = gpu.machine() | {"uuid": str(torch.cuda.get_device_properties(0).uuid)}
    content = {"machine": machine, "rows": {}}
    if arguments.json.exists():
        content = json.loads(arguments.json.read_text())
        if content["machine"]["uuid"] != machine["uuid"]:
            raise SystemExit(f"{arguments.json} has figures of another GPU; name another file")
    names = arguments.row or [f"{model}:{sequences}x{tokens}" for model, sizes in ROWS.items()
                              for sequences, tokens in sizes]
    folder = tempfile.TemporaryDirectory()
    for peer in arguments.peer or PEERS:
        for row in names:
            model, sizes = row.split(":")
            sequences, tokens = map(int, sizes.split("x"))
            results = content["rows"].setdefault(row, {})
            if peer in results and not arguments.again:
                continue
            report.progress(f"{row}: {peer}")
            spec, dtype = architectures.read_spec(model), getattr(torch, architectures.MODELS[model])
            samples = samples_for(spec, sequences, tokens, arguments.samples)
            if peer == "sinter":
                results[peer] = measure_sinter(arguments.program, model, sequences, tokens, samples,
                                               folder.name)
            elif peer == "parts":
                results[peer] = measure_parts(spec, dtype, sequences, tokens, arguments.samples)
            else:
                results[peer] = measure_compile(spec, dtype, sequences, tokens, samples)
            gpu.free_memory()
            report.write_json(arguments.json, content)
    print(to_table(content["rows"]))


if __name__ == "__main__":
    main()
