"""Random torch programs beside eager and float64: each statement is an op or a block of a model.

`python random_programs.py --count 10000 --keep-going` runs more of them, `--faults` plants faults."""

from __future__ import annotations

import sys
import warnings

import pytest
import torch
from program_faults import FAULTS, found_after, planted
from program_generator import Generator
from program_processes import run_in_processes
from program_runs import run_program, script_of
from program_shrinking import shrink
from program_statements import KINDS
from programs import Program, Reference
from random_programs import program_of, smallest

GROUPS = 8  # programs of a group run in one test
EACH = 24  # each fault of program_faults.py is found in the first 192 programs, but not in the first 128
COMPILED = 6  # programs through torch.compile


def check(program: Program, route: str) -> None:
    outcome = run_program(program, route)
    if outcome.is_failure:
        small, last = smallest(program, outcome, route, "cpu")
        pytest.fail(f"{small.listing()}\n{script_of(small, route, last.cause)}\n{last.detail}")


@pytest.fixture(autouse=True)
def one_thread():
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_num_threads(count)


@pytest.mark.parametrize("group", range(GROUPS))
def test_programs(group: int) -> None:
    for seed in range(group * EACH, (group + 1) * EACH):
        check(program_of(seed), "record")


@pytest.mark.parametrize("seed", range(COMPILED))
def test_programs_through_compile(seed: int) -> None:
    check(program_of(seed + 10_000, dynamic=seed % 4 == 3), "compile")


def test_a_planted_fault_is_found() -> None:
    name = "softmax along the last axis"
    with planted(name):
        found = found_after(name, (program_of(seed, dynamic=False) for seed in range(60)))
    assert found


def test_a_failure_shrinks_to_what_fails() -> None:
    """Here a program fails if it has a softmax: nothing else is left of it."""
    program = next(program for program in map(program_of, range(200)) if has_softmax(program))
    small = shrink(program, has_softmax)
    assert [one.kind for one in small.statements] == ["softmax"]
    assert Reference.of(small, small.sizes).eager


def has_softmax(program: Program) -> bool:
    try:
        Reference.of(program, program.sizes)
    except Exception:
        return False
    return any(one.kind == "softmax" for one in program.statements)


def test_a_process_that_dies_is_reported_with_its_seed(tmp_path, capfd) -> None:
    """Seed 5 ends its process by a signal, seed 8 by an exit code; seeds 3 and 9 are failures."""
    script = tmp_path / "script.py"
    script.write_text("""import os, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
failed = 0
for seed in range(int(options["--seed"]), int(options["--seed"]) + int(options["--count"])):
    open(options["--mark"], "w").write(str(seed))
    print("ran", seed, flush=True)
    if seed == 5:
        os.kill(os.getpid(), 8)
    if seed == 8:
        os._exit(3)
    failed |= seed in (3, 9)
sys.exit(failed)
""")
    assert run_in_processes([sys.executable, str(script)], 2, 9, 2) == 1
    told = capfd.readouterr().out
    assert "seed 5: the process died, SIGFPE\n" in told and "seed 8: the process died, exit code 3\n" in told
    assert sorted(int(line[4:]) for line in told.splitlines() if line.startswith("ran ")) == list(range(2, 11))
    assert told.endswith("2 processes: 1 found failures; seeds at which one died: 5, 8\n")
    assert run_in_processes([sys.executable, str(script)], 0, 3, 2) == 0


def test_a_seed_gives_one_program() -> None:
    assert Generator(7).program(KINDS) == Generator(7).program(KINDS)
    assert len(FAULTS) >= 5
