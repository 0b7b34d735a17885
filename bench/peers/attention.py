"""Causal attention: errors and times of Sinter's kernel beside PyTorch's.

    python3 bench/peers/attention.py PROGRAM [--json attention.json] [--only causal.32x128] [--samples 20]

For every module cases/causal.*.sir: the same random inputs go through `PROGRAM run`, PyTorch's
FlashAttention 2 and cuDNN, and attention in float64; an error is the norm of the difference to
float64 over its norm, of the first two heads of the first text. PyTorch's times come from a
recorded graph of many calls with inputs in turns, as `PROGRAM bench` measures Sinter, tiled and
composed. TFLOP/s count the keys that a token sees: 4 * width a head and key. PyTorch gives cuDNN no
window.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import tempfile

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch.nn.attention import SDPBackend, sdpa_kernel

CASES = pathlib.Path(__file__).parent.parent / "cases"
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
PEERS = {"FlashAttention 2": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}


def exact(q, keys, values, scale, window):
    """[length, width] each, in float64."""
    scores = q.double() @ keys.double().T * scale
    seen = torch.ones_like(scores, dtype=torch.bool).tril()
    if window:
        seen = seen.triu(1 - window)
    return torch.softmax(scores.masked_fill(~seen, -torch.inf), -1) @ values.double()


def median_us(calls, samples, together):
    """The median time of a call: `together` calls, in turns, are recorded in a graph; a sample is one launch."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for i in range(together):
            calls[i % len(calls)]()
    times = []
    for sample in range(samples + 1):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if sample > 0:
            times.append(begin.elapsed_time(end) * 1e3 / together)
    return statistics.median(times)


def bench_us(program, case, samples, *options):
    text = subprocess.run([program, "bench", str(case), "--repeat", str(samples), "--json", *options], check=True,
                          capture_output=True, text=True).stdout
    return json.loads(text)["cases"][0]["fused"]["median_s"] * 1e6


def measure(program, case, samples):
    heads, width, kv_heads, texts, length, dtype, window = re.fullmatch(
        r"causal\.(\d+)x(\d+)\.(\d+)\.(\d+)x(\d+)\.(\w+?)(?:\.w(\d+))?", case.stem).groups()
    heads, width, kv_heads, texts, length, window = map(int, (heads, width, kv_heads, texts, length, window or 0))
    tokens, scale = texts * length, width ** -0.5
    torch.manual_seed(1)
    q = torch.randn(tokens, heads * width, device="cuda").to(TYPES[dtype])
    keys, values = (torch.randn(tokens, kv_heads * width, device="cuda").to(TYPES[dtype]) for _ in range(2))
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = f"{folder}/in.safetensors", f"{folder}/out.safetensors"
        save_file({"q": q, "keys": keys, "values": values}, inputs)
        subprocess.run([program, "run", str(case), "--inputs", inputs, "--device", "cuda", "--out", outputs],
                       check=True, capture_output=True)
        ours = load_file(outputs)["y"].cuda()
    group = heads // kv_heads
    reference = torch.cat([exact(q[:length, h * width:(h + 1) * width],
                                 keys[:length, h // group * width:(h // group + 1) * width],
                                 values[:length, h // group * width:(h // group + 1) * width], scale, window)
                           for h in range(2)], -1)

    def error(result):
        part = result[:length, :2 * width].double()
        return float((part - reference).norm() / reference.norm())

    def heads_of(x, count):
        return x.view(texts, length, count, width).transpose(1, 2)

    seen = length * (length + 1) / 2
    if window:
        seen = window * (window + 1) / 2 + (length - window) * window
    operations = 4 * width * heads * texts * seen
    sets = max(2, int(4e8 / (tokens * width * (2 * heads + 2 * kv_heads) * 2)))
    together = max(4, min(40, int(4e12 / operations)))
    result = {"case": case.stem, "error": {"Sinter": error(ours)}, "us": {}}

    def call_of(backend, q, keys, values):
        q, keys, values = heads_of(q, heads), heads_of(keys, kv_heads), heads_of(values, kv_heads)
        if window:
            def call():
                return torch.ops.aten._flash_attention_forward(
                    q.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2), None, None, length, length, 0.0,
                    True, False, scale=scale, window_size_left=window - 1, window_size_right=0)[0].transpose(1, 2)
        else:
            def call():
                with sdpa_kernel(backend):
                    return F.scaled_dot_product_attention(q, keys, values, is_causal=True, enable_gqa=group > 1)
        return call

    inputs = [(q, keys, values)] + [tuple(torch.randn_like(x) for x in (q, keys, values)) for _ in range(sets - 1)]
    for name, backend in PEERS.items():
        if window and name != "FlashAttention 2":
            continue
        try:
            calls = [call_of(backend, *one) for one in inputs]
            result["error"][name] = error(calls[0]().transpose(1, 2).reshape(tokens, heads * width))
            result["us"][name] = median_us(calls, samples, together)
        except RuntimeError as refusal:
            print(f"{case.stem}: {name}: {str(refusal).splitlines()[0]}")
    result["us"]["Sinter"] = bench_us(program, case, samples)
    try:
        result["us"]["composed"] = bench_us(program, case, samples, "--attention", "composed")
    except subprocess.CalledProcessError as refusal:  # its scores do not fit the device
        print(f"{case.stem}: composed: {refusal.stderr.splitlines()[0]}")
    result["tflops"] = {name: operations / us / 1e6 for name, us in result["us"].items()}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--json")
    parser.add_argument("--only", default="causal.")
    parser.add_argument("--samples", type=int, default=20)
    options = parser.parse_args()
    results = []
    for case in sorted(CASES.glob("causal.*.sir")):
        if not case.stem.startswith(options.only):
            continue
        results.append(measure(options.program, case, options.samples))
        one = results[-1]
        print(one["case"])
        for name, us in one["us"].items():
            error = one["error"].get(name)
            print(f"  {name:18} {us:9.1f} us  {one['tflops'][name]:6.0f} TFLOP/s"
                  + (f"  error {error:.3e}" if error is not None else ""))
    if options.json:
        machine = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
        pathlib.Path(options.json).write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
