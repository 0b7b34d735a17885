"""Runs random torch programs through Sinter, beside eager and float64.

    python random_programs.py --seed 0 --count 1000 [--route record|fx|compile|graphs] [--dynamic|--fixed]
                              [--backward|--forward] [--numbers] [--device cpu|cuda] [--minutes M] [--keep-going]
                              [--without KINDS] [--often KINDS] [--ignore-strides] [--processes N]
    python random_programs.py --faults

Prints each failure as the smallest program that still fails, a script that runs alone. Exit code 1
if any program is wrong or crashes.
"""

from __future__ import annotations

import argparse
import collections
import logging
import os
import sys
import time
import traceback
import warnings

import program_runs
import torch
from program_faults import FAULTS, found_after, planted
from program_generator import Generator
from program_processes import marked, run_in_processes
from program_runs import ROUTES, Outcome, is_valid, run_program, script_of
from program_shrinking import needed, shrink
from program_statements import KINDS, KINDS_OF_NUMBERS
from programs import Program


def program_of(seed: int, dynamic: bool | None = None, backward: bool | None = None,
               kinds: dict = KINDS, numbers: bool | None = None,
               kinds_of_numbers: dict = KINDS_OF_NUMBERS) -> Program:
    """The program of a seed. None: of two programs one has gradients, of nine one dynamic sizes, of eighteen one
    numbers that change from call to call."""
    is_backward = seed % 2 == 1 if backward is None else backward
    is_dynamic = seed % 9 == 4 if dynamic is None else dynamic
    has_numbers = seed % 18 == 7 if numbers is None else numbers
    generator = Generator(seed, is_backward, is_dynamic, has_numbers=has_numbers)
    return needed(generator.program({**kinds, **kinds_of_numbers} if has_numbers else kinds))


def smallest(program: Program, outcome: Outcome, route: str, device: str) -> tuple[Program, Outcome]:
    last = outcome

    def fails(candidate: Program) -> bool:
        nonlocal last
        if not candidate.statements or not is_valid(candidate):
            return False
        now = run_program(candidate, route, device)
        if now.status == outcome.status and now.cause == outcome.cause:
            last = now
            return True
        return False

    return shrink(program, fails), last


class Tally:
    """Counts of the programs by outcome."""

    def __init__(self) -> None:
        self.statuses: collections.Counter = collections.Counter()
        self.kinds: collections.Counter = collections.Counter()
        self.skipped: collections.Counter = collections.Counter()
        self.eager: collections.Counter = collections.Counter()
        self.causes: collections.Counter = collections.Counter()
        self.whole = 0  # programs without an op in eager

    def add(self, program: Program, outcome: Outcome) -> None:
        self.statuses[outcome.status] += 1
        self.eager.update(outcome.eager_ops)
        if outcome.status == "skipped":
            self.skipped[outcome.cause] += 1
        else:
            self.kinds.update(one.kind for one in program.statements)
            self.whole += not outcome.eager_ops

    def add_failure(self, small: Program, outcome: Outcome) -> int:
        """Counts failures that are alike: of one cause in the same statements."""
        kinds = ", ".join(sorted({one.kind for one in small.statements}))
        key = f"{outcome.status}: {outcome.cause}: {kinds}"
        self.causes[key] += 1
        return self.causes[key]

    @property
    def failures(self) -> int:
        return self.statuses["wrong"] + self.statuses["crashed"]

    def summary(self) -> str:
        reasons = ", ".join(f"{op}: {reason} ({count})"
                            for (op, reason), count in self.eager.most_common(12))
        return (f"{sum(self.statuses.values())} programs: {self.statuses['wrong']} wrong, "
                f"{self.statuses['crashed']} crashed, {sum(self.eager.values())} refused ops "
                f"({reasons})")

    def print_details(self) -> None:
        print("statements: " + ", ".join(f"{name} {self.kinds[name]}" for name in {**KINDS, **KINDS_OF_NUMBERS}))
        print(f"{self.whole} programs without an op in eager, {self.statuses['skipped']} skipped")
        for reason, count in self.skipped.most_common(8):
            print(f"    {count} {reason}")
        for cause, count in self.causes.most_common():
            print(f"    {count} {cause}")


def run_many(given: argparse.Namespace) -> int:
    tally, start = Tally(), time.perf_counter()
    without, often = (given.without or "").split(","), (given.often or "").split(",")
    kinds, kinds_of_numbers = ({name: (function, 60.0 if name in often else weight)
                                for name, (function, weight) in all_kinds.items() if name not in without}
                               for all_kinds in (KINDS, KINDS_OF_NUMBERS))
    for seed in range(given.seed, given.seed + given.count):
        if given.minutes and time.perf_counter() - start > 60 * given.minutes:
            break
        with marked(seed, given.mark):
            program = program_of(seed, given.dynamic, given.backward, kinds, given.numbers, kinds_of_numbers)
            outcome = run_program(program, given.route, given.device)
        tally.add(program, outcome)
        if outcome.is_failure:
            with marked(seed, given.mark):
                small, last = smallest(program, outcome, given.route, given.device)
            title = f"seed {seed}: {last.status}, {last.cause}: {last.detail}"
            if tally.add_failure(small, last) <= given.each:
                print("=" * 80)
                print(small.listing())
                print(script_of(small, given.route, title.replace("\\", "/")), flush=True)
            else:
                print(title.split("\n")[0], flush=True)
            if not given.keep_going:
                break
        done = seed - given.seed + 1
        if done % 100 == 0:
            print(f"{done} programs, {done / (time.perf_counter() - start):.1f} a second, "
                  f"{tally.failures} failures", flush=True)
    tally.print_details()
    print(tally.summary())
    return 1 if tally.failures else 0


def run_faults(seed: int, count: int) -> int:
    """Plants each fault in turn; every one must be found."""
    missed = 0
    for fault in FAULTS:
        with planted(fault):
            found = found_after(fault, (program_of(seed + i) for i in range(count)))
        print(f"{fault}: " + (f"found after {found} programs" if found else "NOT FOUND"), flush=True)
        missed += found is None
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--route", choices=tuple(ROUTES), default="record")
    parser.add_argument("--dynamic", action="store_true", default=None)
    parser.add_argument("--fixed", dest="dynamic", action="store_false")
    parser.add_argument("--backward", action="store_true", default=None)
    parser.add_argument("--forward", dest="backward", action="store_false")
    parser.add_argument("--numbers", action="store_true", default=None, help="ints that change are arguments")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--minutes", type=float, help="ends after this time")
    parser.add_argument("--keep-going", action="store_true", help="goes on after a failure")
    parser.add_argument("--each", type=int, default=2, help="failures of one kind that are printed whole")
    parser.add_argument("--without", help="kinds of statements that are left out: pad,roll")
    parser.add_argument("--often", help="kinds of statements that are drawn often: complex_numbers")
    parser.add_argument("--ignore-strides", action="store_true")
    parser.add_argument("--processes", type=int, default=0, help="parts of the seeds, each in a process of its own")
    parser.add_argument("--mark", help="a file that names the seed under way, as --processes reads it")
    parser.add_argument("--faults", action="store_true", help="plants faults, which must be found")
    given = parser.parse_args()
    if given.processes:
        command = [sys.executable, __file__, *sys.argv[1:], "--processes", "0"]
        return run_in_processes(command, given.seed, given.count, given.processes)
    warnings.simplefilter("ignore")
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
    program_runs.COMPARES_STRIDES = not given.ignore_strides
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    try:
        return run_faults(given.seed, 500) if given.faults else run_many(given)
    except Exception:  # exit code 1 means that a program failed
        traceback.print_exc()
        return 3


if __name__ == "__main__":
    sys.exit(main())
