#!/usr/bin/env python3
"""Compares what the cost model says a refusal is worth with what lifting it saves.

    bench/worth.py PROGRAM [--board FILE] [--json FILE]

Each case is a module and an option that lifts a refusal of it. `PROGRAM explain` predicts the saving,
`PROGRAM bench` measures the module without the option and with it, in turns, --rounds times. The
measured saving is the median over the rounds: a board's clock changes with its load and its
temperature. --board: rates of this board, of `PROGRAM devices --measure`. Exits 1 if a run fails.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

LINEAR = """module @{name} {{
  symbol N in [16, 4096]
  weight %w : bf16[{rows}, {columns}] = file {{tensor = "w"}}
  entry @f(%x: bf16[N, {columns}]{more}) -> (%{last}) {{
    %y = linear %x, %w : bf16[N, {rows}]
{ops}
  }}
}}
"""
RESIDUAL = dict(more=", %r: bf16[N, {rows}]", ops="    %z = add %r, %y : bf16[N, {rows}]", last="z")
GELU = dict(more="", ops="    %z = gelu_tanh %y : bf16[N, {rows}]", last="z")
GATE = dict(more="", last="z", ops="""    %g = slice %y {{axis = 1, begin = 0, size = {half}}} : bf16[N, {half}]
    %u = slice %y {{axis = 1, begin = {half}, size = {half}}} : bf16[N, {half}]
    %s = silu %g : bf16[N, {half}]
    %z = mul %s, %u : bf16[N, {half}]""")
ROWS = """module @{name} {{
  symbol N in [16, 16384]
  weight %w : bf16[{rows}] = file {{tensor = "w"}}
  entry @f(%x: bf16[N, {rows}], %r: bf16[N, {rows}]) -> ({results}) {{
    {ops}
  }}
}}
"""


def linear(name, kind, rows, columns):
    sizes = dict(rows=rows, columns=columns, half=rows // 2)
    return LINEAR.format(name=name, last=kind["last"], more=kind["more"].format(**sizes), ops=kind["ops"].format(**sizes), **sizes)


def rows(name, width, results, *ops):
    return ROWS.format(name=name, rows=width, results=results, ops="\n    ".join(ops).format(t=f"bf16[N, {width}]"))


NORM = rows("add_norm", 4096, "%s, %n", "%s = add %x, %r : {t}", "%n = rms_norm %s, %w {{eps = 1e-5}} : {t}")
WIDE_NORM = rows("add_wide_norm", 8192, "%s, %n", "%s = add %x, %r : {t}", "%n = rms_norm %s, %w {{eps = 1e-5}} : {t}")
GATED = rows("gated", 8192, "%m", "%s = silu %x : {t}", "%m = mul %s, %r : {t}")
NORM_ADD = rows("norm_add", 4096, "%s", "%n = rms_norm %x, %w {{eps = 1e-5}} : {t}", "%s = add %n, %r : {t}")
FAST, OWN = ["--numerics", "fast"], ["--products", "own"]
# Name, module, tokens, options of the plan with the refusal, options that lift it, the two values.
CASES = [
    ("residual, 2,048 tokens, fast", linear("a", RESIDUAL, 4096, 4096), 2048, [], FAST, "y z"),
    ("residual, 512 tokens, fast", linear("b", RESIDUAL, 4096, 4096), 512, [], FAST, "y z"),
    ("residual of down, 2,048 tokens, fast", linear("c", RESIDUAL, 4096, 11008), 2048, [], FAST, "y z"),
    ("GELU, 2,048 tokens, fast", linear("d", GELU, 16384, 4096), 2048, [], FAST, "y z"),
    ("SiLU(gate) up, 2,048 tokens, own", linear("e", GATE, 22016, 4096), 2048, [], OWN, "y s"),
    ("SiLU(gate) up, 4,096 tokens, own", linear("f", GATE, 22016, 4096), 4096, [], OWN, "y s"),
    ("add and rms_norm", NORM, 16384, ["--forbid", "s,n"], [], "s n"),
    ("add and a wide rms_norm", WIDE_NORM, 8192, ["--forbid", "s,n"], [], "s n"),
    ("silu and mul", GATED, 8192, ["--forbid", "s,m"], [], "s m"),
    ("rms_norm and add", NORM_ADD, 16384, ["--forbid", "n,s"], [], "n s"),
]


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def predicted(program, file, size, options, pair, board):
    """The saving in seconds that `explain` gives for the option."""
    given = ["--board", board] if board else []
    entry = run(program, "explain", file, "--json", "--symbol", f"N={size}", *options, *given)["entries"][-1]
    own = [one for one in entry["worth"] if {one["a"], one["b"]} == set(pair.split()) and "option" in one]
    if not own:
        raise RuntimeError("explain names no option")
    return own[0]["option_s"]


def measured(program, file, size, options):
    report = run(program, "bench", file, "--json", "-q", "--random-weights", "1", "--symbol", f"N={size}", *options)
    return report["cases"][0]["fused"]["median_s"], report["machine"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--board", metavar="FILE")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", action="append", choices=[case[0] for case in CASES])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--predict-only", action="store_true", help="without a GPU")
    arguments = parser.parse_args()
    records, machine, failed = [], None, False
    print("| refusal | predicted saving | measured | ratio |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name, module, size, without, lifted, pair in CASES:
            if arguments.only and name not in arguments.only:
                continue
            file = str(pathlib.Path(folder) / "case.sir")
            pathlib.Path(file).write_text(module)
            try:
                worth = predicted(arguments.program, file, size, without, pair, arguments.board)
                if arguments.predict_only:
                    print(f"| {name} | {1e6 * worth:.1f} us |", flush=True)
                    continue
                rounds = []
                for _ in range(arguments.rounds):
                    before, machine = measured(arguments.program, file, size, without)
                    after, _ = measured(arguments.program, file, size, lifted)
                    rounds.append((before, after))
            except (RuntimeError, OSError, ValueError, KeyError, IndexError) as error:
                print(f"{name}: {error}", file=sys.stderr, flush=True)
                failed = True
                continue
            saved = statistics.median(before - after for before, after in rounds)
            before = statistics.median(before for before, _ in rounds)
            records.append({"name": name, "predicted_s": worth, "measured_s": saved, "before_s": before,
                            "rounds": rounds})
            print(f"| {name} | {1e6 * worth:.1f} us | {1e6 * saved:.1f} us of {1e6 * before:.0f} | "
                  f"{worth / saved if saved else float('inf'):.2f} |", flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"machine": machine, "records": records}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
