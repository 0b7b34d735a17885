#!/usr/bin/env python3
"""One entry for 1 to 2,048 tokens beside entries that are compiled for a single number of tokens.

    bench/variants.py PROGRAM [--json FILE]

The module is a layer of a transformer: a norm, queries, keys and values of 16 heads of 64, attention,
residuals and a gated product of 1,024 columns by 4,096. The entry of all numbers has a variant for at most
8 tokens and one for more (docs/design/running.md). A line for each number of tokens: the time of a call of
both, and their ratio, which may be at most 1.03; several turns, their median.

Exits 1 if a ratio is above that or a run fails, 2 on bad arguments.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

TOKENS = (1, 7, 8, 9, 300, 2048)
MAX_RATIO = 1.03
TURNS = 2
WIDTH, HEADS, HIDDEN = 1024, 16, 4096


def module(low, high):
    weights = {"norm1": f"[{WIDTH}]", "norm2": f"[{WIDTH}]", "out": f"[{WIDTH}, {WIDTH}]",
               "gate": f"[{HIDDEN}, {WIDTH}]", "up": f"[{HIDDEN}, {WIDTH}]", "down": f"[{WIDTH}, {HIDDEN}]",
               **{name: f"[{WIDTH}, {WIDTH}]" for name in "qkv"}}
    declared = "".join(f'  weight %{name} : bf16{dims} = file {{tensor = "{name}"}}\n' for name, dims in weights.items())
    return f"""module @layer {{
  symbol N in [{low}, {high}]
{declared}  entry @main(%x: bf16[N, {WIDTH}], %first: i32[N], %last: i32[N]) -> (%y) {{
    %n1 = rms_norm %x, %norm1 {{eps = 1e-5}}
    %queries = linear %n1, %q
    %keys = linear %n1, %k
    %values = linear %n1, %v
    %a = attention %queries, %keys, %values, %first, %last {{heads = {HEADS}, kv_heads = {HEADS}, scale = 0.125}}
    %o = linear %a, %out
    %r = add %x, %o
    %n2 = rms_norm %r, %norm2 {{eps = 1e-5}}
    %g = linear %n2, %gate
    %u = linear %n2, %up
    %s = silu %g
    %h = mul %s, %u
    %d = linear %h, %down
    %y = add %r, %d
  }}
}}
"""


def seconds(program, path, tokens):
    command = [program, "bench", path, "--random-weights", "1", "--symbol", f"N={tokens}", "--json", "-q"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    return result["cases"][0]["fused"]["median_s"], result.get("device")


def measure(program, folder):
    def write(low, high):
        path = pathlib.Path(folder) / f"{low}_{high}.sir"
        path.write_text(module(low, high))
        return str(path)

    every = write(1, 2048)
    for tokens in TOKENS:
        alone = write(tokens, tokens)
        times = {every: [], alone: []}
        for _ in range(TURNS):
            for path, samples in times.items():
                one, device = seconds(program, path, tokens)
                samples.append(one)
        a, b = (statistics.median(samples) for samples in times.values())
        yield {"tokens": tokens, "seconds": a, "alone_seconds": b, "ratio": a / b, "device": device}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for one in measure(arguments.program, folder):
            print(f"{one['tokens']:5} tokens  {1e6 * one['seconds']:9.2f} µs  alone {1e6 * one['alone_seconds']:9.2f} µs"
                  f"  {one['ratio']:.3f}", flush=True)
            results.append(one)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")
    sys.exit(any(one["ratio"] > MAX_RATIO for one in results))


if __name__ == "__main__":
    main()
