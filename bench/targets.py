#!/usr/bin/env python3
"""Measures the figures that the project promises, and says which are reached.

    bench/targets.py PROGRAM [--against OLD_PROGRAM] [--only NAME ...] [--json FILE]

Modules: the fused plan's share of the copy ceiling of the same run, beside its target. Models: the
time of a token of the four benchmark models; with `--against`, beside another build's time on the
same device, in turns; it may be at most 1 % longer.

Exits 1 if a target is missed or a run fails, 2 on bad arguments.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Name, module, further arguments, least share of the copy ceiling.
MODULES = [
    ("column_sum", "column_sum.16384x4096.bf16.sir", [], 0.85),
    ("weight_gradient", "weight_gradient.16384x4096.bf16.sir", ["--random-weights", "1"], 0.85),
    ("cumulative_sum", "cumulative_sum.4096.bf16.sir", ["--symbol", "N=8192"], 0.70),
]
MODELS = ["llama-2-7b", "pythia-2.8b", "gpt-neox-2.8b-sequential", "llama-3.2-1b"]
MAX_RATIO = 1.01
TURNS = 2


def bench(program, arguments):
    """The first case of `program bench ARGUMENTS --json`."""
    done = subprocess.run([program, "bench", *arguments, "--json", "-q"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{program} bench {' '.join(arguments)}: exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)["cases"][0]


def module_result(program, name, module, more, target):
    share = bench(program, [str(ROOT / "bench/cases" / module), *more])["fused"]["of_ceiling"]
    return {"name": name, "share": share, "target": target, "reached": share >= target}


def model_result(program, against, name):
    arguments = [str(ROOT / "samples" / f"{name}.json"), "--random-weights", "1", "-p", "0", "-n", "128", "-d", "1024",
                 "--repeat", "5"]
    seconds = {program: []} | ({against: []} if against else {})
    for _ in range(TURNS if against else 1):
        for which, times in seconds.items():
            times.append(bench(which, arguments)["fused"]["median_s"])
    result = {"name": name, "seconds": statistics.median(seconds[program]), "reached": True}
    if against:
        result["before"] = statistics.median(seconds[against])
        result["ratio"] = result["seconds"] / result["before"]
        result["reached"] = result["ratio"] <= MAX_RATIO
    return result


def line(result):
    if "error" in result:
        text = result["error"]
    elif "share" in result:
        text = f"{100 * result['share']:.1f} % of the copy ceiling, target {100 * result['target']:.0f} %"
    else:
        text = f"{1e3 * result['seconds']:.4g} ms a token"
        if "ratio" in result:
            text += f", before {1e3 * result['before']:.4g} ms: {result['ratio']:.3f}, target {MAX_RATIO}"
    return f"{'ok    ' if result['reached'] else 'MISSED'}  {result['name']:<26} {text}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--against", metavar="OLD_PROGRAM")
    names = [module[0] for module in MODULES] + MODELS
    parser.add_argument("--only", action="append", choices=names)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    runs = {name: (module_result, (arguments.program, name, *rest)) for name, *rest in MODULES}
    runs |= {name: (model_result, (arguments.program, arguments.against, name)) for name in MODELS}
    results = []
    for name in arguments.only or names:
        run, values = runs[name]
        try:
            results.append(run(*values))
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            results.append({"name": name, "reached": False, "error": str(error)})
        print(line(results[-1]), flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"results": results}, indent=1))
    return 0 if all(result["reached"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
