"""Random histories of threads that share objects of the package: they ask, step, run and close, also
in progress functions. Each call ends with an error or with what it gives alone, and no process with
a signal.

    python histories.py [--count N] [--seed S] [--jobs N] [--kind batch]

runs histories S .. S + N - 1, `CHUNK` of them in a process.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from history_kinds import KINDS

from sinter import SinterError

SECONDS = 200  # more: a process hangs, and says where
CHUNK = 6


class Stop(Exception):
    """Raised by progress functions."""


class History:
    """Threads that each do some acts, drawn from the acts of a kind. `wrong` lists what no call may
    give."""

    def __init__(self, seed: int) -> None:
        self.seed, self.wrong = seed, []

    def expect(self, what: str, given, wanted) -> None:
        if given != wanted:
            self.wrong.append(f"{what}: {given!r}, wanted {wanted!r}")

    def run(self, acts, closes, threads: int, steps: int) -> None:
        """`closes` are drawn seldom, since little follows them."""

        def work(draw: random.Random) -> None:
            for _ in range(steps):
                act = draw.choice(closes if draw.random() < 0.04 else acts)
                try:
                    act(draw)
                except (SinterError, Stop):
                    pass
                except ValueError as error:  # of a generator that another thread is in
                    if "already executing" not in str(error):
                        self.wrong.append(repr(error))
                except BaseException as error:
                    self.wrong.append(f"{act.__name__}: {error!r}")

        draws = [random.Random(f"{self.seed}.{i}") for i in range(threads)]
        running = [threading.Thread(target=work, args=(draw,)) for draw in draws]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    def progress(self, draw: random.Random, acts):
        """A progress function: None, or one that goes on, asks, ends or raises."""
        way = draw.choice([None, "go on", "act", "act", "end", "raise"])

        def step(*told):
            if way == "act":
                try:
                    draw.choice(acts)(draw)
                except SinterError:
                    pass
            if way == "raise":
                raise Stop
            return way != "end"

        return step if way else None


def run_history(seed: int, kind: str | None) -> list[str]:
    draw = random.Random(seed)
    kinds = [one for one in KINDS if kind in (None, one.__name__)]
    history, play = History(seed), kinds[seed % len(kinds)]
    sys.setswitchinterval(draw.choice([1e-6, 1e-5, 1e-4, 5e-3]))
    play(history, draw)
    return [f"history {seed}, {play.__name__}: {what}" for what in history.wrong]


def chunk_in_a_process(first: int, count: int, kind: str | None) -> list[str]:
    command = [sys.executable, __file__, "--here", "--seed", str(first), "--count", str(count)]
    command += ["--kind", kind] if kind else []
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS + 30)
    except subprocess.TimeoutExpired:
        return [f"histories from {first}: still running after {SECONDS + 30} s"]
    said = run.stdout.splitlines()
    if run.returncode != 0 or run.stderr:
        said.append(f"histories from {first}: exit code {run.returncode}: {run.stderr[-3000:]}")
    return said


def run_all(count: int, seed: int = 0, jobs: int = 2, kind: str | None = None) -> list[str]:
    """Plays `count` histories: a line for each thing that went wrong."""
    firsts = range(seed, seed + count, CHUNK)

    def run(first: int) -> list[str]:
        return chunk_in_a_process(first, min(CHUNK, seed + count - first), kind)

    with ThreadPoolExecutor(jobs) as pool:
        return [line for said in pool.map(run, firsts) for line in said]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kind", choices=[one.__name__ for one in KINDS[1:]])
    parser.add_argument("--here", action="store_true", help="in this process, one after the other")
    options = parser.parse_args()
    if options.here:
        import faulthandler

        faulthandler.enable()
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        for seed in range(options.seed, options.seed + options.count):
            for line in run_history(seed, options.kind):
                print(line, flush=True)
        return 0
    wrong = run_all(options.count, options.seed, options.jobs, options.kind)
    print("\n".join(wrong))
    print(f"{options.count} histories, {len(wrong)} lines of what went wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
