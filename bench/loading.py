#!/usr/bin/env python3
"""Time from the start of the program to the first token: from a model's folder, and from its plan.

    python3 bench/loading.py PROGRAM --model llama-2-7b --work DIR [--json FILE] [--repeat N]

Makes the model with random weights as a Hugging Face folder in DIR (transformers, on the GPU), and
compiles two plans of it: one that refers to the model's weights, and one that has them embedded. Each
of the three then generates one token, in turns; the files are in the page cache, and the kernels of
the model's folder in the kernel cache. Says the median of the seconds and the bytes that the program
read. Needs a GPU, and disk space for two copies of the weights.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
PROMPT = ",".join(str(i) for i in range(1, 17))


def make_model(name: str, folder: pathlib.Path) -> None:
    import torch
    import architectures, models  # of bench/peers
    model = models.make_hf_model(architectures.read_spec(name), torch.float16, "cuda:0")
    model.save_pretrained(folder, max_shard_size="4GB")


def bytes_read(pid: int) -> int:
    lines = pathlib.Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("rchar")).split()[1])


def first_token(program: str, model: pathlib.Path) -> tuple[float, int, str]:
    """Seconds, bytes and the token."""
    begin = time.perf_counter()
    # A shell waits for the program, so that its counters include the program's.
    shell = subprocess.Popen(
        ["bash", "-c", '"$@" && echo && cat /proc/self/io >/dev/null && read', "sh", program,
         "generate", str(model), "--tokens", PROMPT, "-n", "1", "--device", "cuda", "-q"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    token = shell.stdout.readline().strip()
    seconds = time.perf_counter() - begin
    shell.stdout.readline()  # the program has ended
    read = bytes_read(shell.pid)
    shell.communicate("\n")
    if not token:
        sys.exit(f"{model}: no token")
    return seconds, read, token


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--model", required=True, help="a name of samples/*.json")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)
    folders = {name: arguments.work / name for name in ("model", "plan", "embedded")}
    make_model(arguments.model, folders["model"])
    for name, weights in (("plan", []), ("embedded", ["--weights", "embed"])):
        begin = time.perf_counter()
        subprocess.run([program, "compile", folders["model"], "-o", folders[name], "-q", *weights],
                       check=True, stdout=subprocess.DEVNULL)
        print(f"compiled {name}: {time.perf_counter() - begin:.1f} s", flush=True)
    samples: dict[str, list[tuple[float, int, str]]] = {name: [] for name in folders}
    for _ in range(arguments.repeat + 1):
        for name, folder in folders.items():
            samples[name].append(first_token(program, folder))
    if len({token for runs in samples.values() for _, _, token in runs}) != 1:
        sys.exit("the tokens differ")
    results = {}
    for name, runs in samples.items():
        runs = runs[1:]  # the first fills caches
        results[name] = {"seconds": statistics.median(s for s, _, _ in runs),
                         "all_seconds": [round(s, 3) for s, _, _ in runs], "bytes": runs[0][1]}
        print(f"{name:9} {results[name]['seconds']:6.2f} s to the first token, "
              f"{runs[0][1] / 1e9:.2f} GB read")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
