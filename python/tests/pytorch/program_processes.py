"""Random programs in several processes. One that dies, as torch itself or the time limit may end it, is reported with
the seed of its program, and its other seeds run in a new process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterator

LIMIT_S = 600  # of one program


@contextlib.contextmanager
def marked(seed: int, file: str | None) -> Iterator[None]:
    """Around the program of a seed: a file names the seed that a process runs, and the time limit ends the process.
    file: None: the program runs in the caller's own process, without a limit."""
    if file is None:
        yield
        return
    Path(file).write_text(str(seed))
    signal.alarm(LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)


def ending(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else f"exit code {status}"


def run_part(command: list[str], begin: int, end: int, file: Path) -> tuple[bool, list[int]]:
    """Whether a process found a failure, exit code 1, in the programs of seeds begin .. end - 1, and the seeds at which
    processes died."""
    failed, died = False, []
    # An unbuffered process writes each argument of a print by itself, and lines of two processes would mix.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    while begin < end:
        file.write_text(str(begin))
        seeds = ["--seed", str(begin), "--count", str(end - begin)]
        status = subprocess.run([*command, *seeds, "--mark", str(file)], env=environment).returncode
        failed |= status == 1
        if status in (0, 1):
            break
        died.append(int(file.read_text()))
        sys.stdout.write(f"seed {died[-1]}: the process died, {ending(status)}\n")
        sys.stdout.flush()
        begin = died[-1] + 1
    return failed, died


def run_in_processes(command: list[str], seed: int, count: int, processes: int) -> int:
    """The exit code: 1 if a program failed or a process died."""
    bounds = [seed + count * i // processes for i in range(processes + 1)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(processes) as pool:
        parts = list(pool.map(lambda i: run_part(command, bounds[i], bounds[i + 1], Path(folder, str(i))),
                              range(processes)))
    died = [seed for _, seeds in parts for seed in seeds]
    print(f"{processes} processes: {sum(failed for failed, _ in parts)} found failures; "
          f"seeds at which one died: {', '.join(map(str, died)) or 'none'}")
    return 1 if died or any(failed for failed, _ in parts) else 0
