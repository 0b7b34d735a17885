#!/usr/bin/env python3
"""A step of many sequences beside the step of one.

    bench/many_sequences.py PROGRAM --json FILE [--models A,B] [--sequences 8,32,64] [--seconds 450] [--peers]

Specifications of samples/, bf16, weights made from a seed, 256 tokens in the caches of each sequence. For
each number of sequences a step of the fused plan with the library's products and with Sinter's own, and of
the unfused plan with the library's, each as the graph that `generate` launches. `floor`: the step of one
sequence, and the bytes that the other sequences' caches add, at the read ceiling of that run; `ratio`: the
fused plan's step, by its own products, to it. With --peers also a step by torch.compile
(peers/sequences.py), which takes PyTorch. FILE has a row for each model and number of sequences; rows, and
parts of them, that it has are kept, and none begins after --seconds.

Exits 1 if a run fails, 2 on bad arguments.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

CONTEXT, STEPS = 256, 32
SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"


def bench(program, model, sequences, *options):
    command = [program, "bench", str(SAMPLES / f"{model}.json"), "--dtype", "bf16", "--random-weights", "1", "-p", "0",
               "-d", str(CONTEXT), "-n", str(STEPS), "--repeat", "4", "--batch", str(sequences), "--json", "-q",
               *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def step(result, plan):
    (case,) = result["cases"]
    return {"seconds": case[plan]["median_s"], "bytes": case["amount"], "launches": case[plan]["launches"]}


def ceiling(result):
    """Bytes a second that a kernel reads in this run."""
    return result["cases"][0]["ceiling"]["per_s"]


def row(program, model, sequences, one):
    own = bench(program, model, sequences, "--products", "own")
    library = bench(program, model, sequences, "--products", "library")
    fused = step(own, "fused")
    floor = one["seconds"] + (fused["bytes"] - one["bytes"]) / ceiling(own)
    return {"own": fused, "library": step(library, "fused"), "unfused": step(library, "unfused"),
            "read_bytes_per_s": ceiling(own), "floor_s": floor, "ratio": fused["seconds"] / floor,
            "device": own["machine"]["device"]}


def compiled(model, sequences):
    """A step by torch.compile."""
    script = SAMPLES.parent / "bench" / "peers" / "sequences.py"
    done = subprocess.run([sys.executable, str(script), model, str(sequences), str(CONTEXT)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{script.name} {model} {sequences}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    result = json.loads(done.stdout.splitlines()[-1])
    return {"seconds": result["decode_ms"]["median"] / 1e3, "mode": result["mode"], "torch": result["machine"]["torch"],
            "device": result["machine"]["device"]}


def shown(name, found):
    plans = [plan for plan in ("own", "library", "unfused", "compiled") if plan in found]
    times = "  ".join(f"{plan} {1e3 * found[plan]['seconds']:7.3f} ms" for plan in plans)
    return f"{name:18} {times}  floor {1e3 * found['floor_s']:7.3f} ms  ratio {found['ratio']:.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--json", type=pathlib.Path, required=True)
    parser.add_argument("--models", default="llama-3.2-1b,llama-2-7b")
    parser.add_argument("--sequences", default="8,32,64")
    parser.add_argument("--seconds", type=float, default=450)
    parser.add_argument("--peers", action="store_true", help="torch.compile too")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    kept = json.loads(given.json.read_text()) if given.json.exists() else {"one": {}, "rows": {}}
    for model in given.models.split(","):
        if model not in kept["one"]:
            kept["one"][model] = step(bench(given.program, model, 1, "--products", "own"), "fused")
        for sequences in map(int, given.sequences.split(",")):
            name = f"{model} {sequences}"
            found = kept["rows"].get(name, {})
            for part, make in (
                    ("own", lambda: row(given.program, model, sequences, kept["one"][model])),
                    ("compiled", lambda: {"compiled": compiled(model, sequences)})):
                if part in found or part == "compiled" and not given.peers:
                    continue
                if time.monotonic() > end:
                    print(f"{name}: no time left")
                    continue
                found |= make()
                kept["rows"][name] = found
                given.json.write_text(json.dumps(kept, indent=1) + "\n")
            if "own" in found:
                print(shown(name, found), flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:
        sys.exit(f"{error}")
