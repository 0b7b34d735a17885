#!/usr/bin/env python3
"""Compares the cost model's times with measured ones.

    bench/predicted.py PROGRAM [--only NAME ...] [--json FILE]

Runs `PROGRAM bench` on models (a prefill of 512 tokens, a token at context 1,024) and on modules,
and prints a table for bench/README.md: the predicted and the measured time of the fused and of the
unfused plan, each with predicted / measured. --json keeps these numbers and the machine.

Exits 1 if a run fails, 2 on bad arguments.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = ["llama-2-7b", "pythia-2.8b", "gpt-neox-2.8b-sequential", "llama-3.2-1b"]
MODEL_ARGUMENTS = ["--random-weights", "1", "-p", "512", "-n", "128", "-d", "1024", "--repeat", "5"]
# Module and further arguments; the largest sizes of the table of kernels in bench/README.md, and small ones.
MODULES = {
    "add_layer_norm.4096.bf16": ["--symbol", "N=16384", "--random-weights", "1"],
    "add_layer_norm.16384.bf16": ["--symbol", "N=8192", "--random-weights", "1"],
    "silu_mul.4096.bf16": ["--symbol", "N=16384"],
    "gelu_tanh.16384.f32": ["--symbol", "N=8192"],
    "softmax.4096.bf16": ["--symbol", "N=8192"],
    "softmax.1024.bf16": ["--symbol", "N=512"],
    "column_sum.16384x4096.bf16": [],
    "cumulative_sum.4096.bf16": ["--symbol", "N=8192"],
    "attention.32x128.32.1024x1.bf16": [],
}


def path_of(name):
    return ROOT / "samples" / f"{name}.json" if name in MODELS else ROOT / "bench/cases" / f"{name}.sir"


def bench(program, name):
    """The machine, and a record for each case of `program bench --json`."""
    arguments = MODEL_ARGUMENTS if name in MODELS else MODULES[name]
    done = subprocess.run([program, "bench", str(path_of(name)), *arguments, "--json", "-q"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()}")
    report = json.loads(done.stdout)
    records = []
    for case in report["cases"]:
        record = {"model": name, "case": case["name"], "sizes": case["sizes"]}
        for plan in ("fused", "unfused"):
            times = case[plan]
            if times["predicted_s"] is None:
                raise RuntimeError(f"{case['name']}: no predicted time")
            record[plan] = {"predicted_s": times["predicted_s"], "measured_s": times["median_s"]}
        records.append(record)
    return report["machine"], records


def ratio(times):
    return times["predicted_s"] / times["measured_s"]


def microseconds(times):
    return f"{1e6 * times['predicted_s']:.4g} us | {1e6 * times['measured_s']:.4g} us | {ratio(times):.2f}"


def summary(records, plan):
    logs = [math.log(ratio(record[plan])) for record in records]
    mean = math.exp(sum(logs) / len(logs))
    return f"{plan}: predicted / measured is {mean:.2f} in the geometric mean, " \
           f"{math.exp(min(logs)):.2f} to {math.exp(max(logs)):.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    names = MODELS + list(MODULES)
    parser.add_argument("--only", action="append", choices=names)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    records, machine, failed = [], None, False
    print("| model or module | case | predicted, fused | measured | ratio | predicted, unfused | measured | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in arguments.only or names:
        try:
            machine, cases = bench(arguments.program, name)
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            failed = True
            continue
        for record in cases:
            sizes = ", ".join(f"{key} {value}" for key, value in record["sizes"].items()
                              if key not in ("batch", "sets", "calls"))
            print(f"| {name} | {record['case']}{', ' if sizes else ''}{sizes} | {microseconds(record['fused'])} | "
                  f"{microseconds(record['unfused'])} |", flush=True)
        records += cases
    if records:
        print()
        for plan in ("fused", "unfused"):
            print(summary(records, plan))
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"machine": machine, "records": records}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
