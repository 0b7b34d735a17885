"""Programs that end at odd moments: with open generations, with daemon threads in the library, in
callbacks, by exceptions. None may end with a signal.

    python endings.py [--times N] [--jobs N] [--host build/release/tests/api/test_endings]

runs each program N times (once), and N times each program of the C++ test that --host names.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 120  # more: the program hangs

# Each program begins with this text. `wait` ends at another moment in each run.
BEGIN = f"""
import atexit, os, signal, sys, tempfile, threading, time
import sinter

FOLDER = tempfile.mkdtemp()
MODEL = {str(ROOT / "samples" / "tiny-llama")!r}
PRODUCTS = '''module @products {{
  entry @main(%a: f32[512, 512], %b: f32[512, 512]) -> (%c) {{
    %c = linear %a, %b : f32[512, 512]
  }}
}}'''

def wait(seconds=0.05):
    time.sleep(seconds + os.getpid() % 50 / 1000)

def again_and_again(work, threads=2, daemon=True):
    def run():
        while True:
            work()
    for _ in range(threads):
        threading.Thread(target=run, daemon=daemon).start()

def compile(*_, **options):
    return sinter.compile(MODEL, **options)

def open_model():
    return sinter.LanguageModel(MODEL, "cpu")

def begun(model, count=400):
    pieces = iter(model.generate("Long ago", count=count))
    next(pieces)
    return pieces
"""

# They end with exit code 0 and no word on stderr.
PROGRAMS = {
    "an open generation": "pieces = begun(open_model())",
    "an open generation of a model that is gone": """
def pieces_of_a_model():
    model = open_model()
    return begun(model)
pieces = pieces_of_a_model()
wait(0)
""",
    "three open generations": """
models = [open_model() for _ in range(3)]
pieces = [begun(model) for model in models]
wait(0)
""",
    "an open generation in a cycle": """
class Holder: pass
holder = Holder()
holder.self, holder.model = holder, open_model()
holder.pieces = begun(holder.model)
del holder
""",
    "a generation that is closed at exit": """
pieces = begun(open_model())
atexit.register(pieces.close)
""",
    "a daemon thread compiles": "again_and_again(compile)\nwait()",
    "a daemon thread asks why": """
compiled = sinter.compile(MODEL)
again_and_again(lambda: compiled.why("l0.norm1", "l0.res1", "decode"))
wait()
""",
    "a daemon thread reads a plan": """
compiled = sinter.compile(MODEL)
again_and_again(lambda: (str(compiled), [kernel.name for kernel in compiled.kernels]))
wait()
""",
    "a daemon thread saves plans": """
compiled = sinter.compile(PRODUCTS)
again_and_again(lambda: compiled.save(FOLDER + "/plan"))
wait()
""",
    "a daemon thread opens models": "again_and_again(open_model)\nwait()",
    "a daemon thread generates": """
again_and_again(lambda: open_model().generate("Long ago", count=400).text)
wait(0.1)
""",
    "a daemon thread generates beside an open generation": """
again_and_again(lambda: open_model().generate("Long ago", count=400).text)
pieces = begun(open_model())
wait(0)
""",
    "a daemon thread's progress": """
again_and_again(lambda: compile(progress=lambda *_: time.sleep(0.001)))
wait()
""",
    # Calls of progress are further apart than the interpreter takes to end, and the C library's exit
    # functions, which run after it, take longer than that.
    "a daemon thread's progress after the interpreter's end": """
import ctypes
chain = ["%v1 = add %v0, %v0 : f32[512]"]
chain += [f"%v{i} = mul %v{i - 1}, %v{i - 2} : f32[512]" for i in range(2, 1000)]
text = "module @m { entry @main(%v0: f32[512]) -> (%v999) {" + "\\n".join(chain) + "}}"
again_and_again(lambda: sinter.compile(text, progress=lambda *_: None))
c_library = ctypes.CDLL(None)
c_library.__cxa_atexit(c_library.usleep, ctypes.c_void_p(300_000), None)
wait()
""",
    "a daemon thread's progress is called for a long time": """
again_and_again(lambda: compile(progress=lambda *_: time.sleep(5)))
wait()
""",
    "callbacks of functions of atexit": """
called = []
atexit.register(lambda: called or os._exit(2))
atexit.register(lambda: compile(progress=lambda *_: called.append(1)))
""",
    "a daemon thread's progress raises": """
threading.excepthook = lambda _: None
def work():
    def progress(*_):
        raise RuntimeError("ends")
    try:
        compile(progress=progress)
    except RuntimeError:
        pass
again_and_again(work)
wait()
""",
    "a daemon thread runs sessions": """
import numpy as np
def work():
    compiled = sinter.compile(PRODUCTS)
    a = np.ones((512, 512), np.float32)
    for _ in range(20):
        compiled.run(a=a, b=a)
again_and_again(work)
wait(0.1)
""",
    "a thread runs while main ends": """
import numpy as np
def work():
    compiled = sinter.compile(PRODUCTS)
    a = np.ones((512, 512), np.float32)
    for _ in range(20):
        compiled.run(a=a, b=a)
threading.Thread(target=work).start()
""",
    "a daemon thread verifies": """
again_and_again(lambda: sinter.compile(PRODUCTS).verify("cpu"))
wait(0.1)
""",
    "sys.exit in a thread's progress": """
thread = threading.Thread(target=lambda: compile(progress=lambda *_: sys.exit(1)))
thread.start()
thread.join()
""",
    "the library at exit": """
again_and_again(compile)
atexit.register(lambda: compile().why("l0.norm1", "l0.res1", "decode"))
atexit.register(lambda: open_model().generate("Long ago", count=3).text)
wait()
""",
    "a fork with an open generation": """
pieces = begun(open_model())
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0)
""",
    "a handle in a module that is torn down": """
sinter.kept = [open_model(), compile()]
again_and_again(lambda: sinter.kept[1].why("l0.norm1", "l0.res1", "decode"))
wait()
""",
}

# They end with exit code 1.
FAILING_PROGRAMS = {
    "an open generation and sys.exit": "pieces = begun(open_model())\nsys.exit(1)",
    "an open generation and an exception": """
pieces = begun(open_model())
raise RuntimeError("ends")
""",
    "an exception in the loop": """
for piece in open_model().generate("Long ago", count=400):
    raise RuntimeError("ends")
""",
    "a daemon thread compiles and main raises": """
again_and_again(compile)
wait()
raise RuntimeError("ends")
""",
    "sys.exit in progress": """
again_and_again(compile)
compile(progress=lambda *_: sys.exit(1))
""",
    "a pool of threads and an exception": """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
futures = [pool.submit(compile) for _ in range(4)]
raise RuntimeError("ends")
""",
    "Ctrl-C in a generation": """
model = open_model()
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        for piece in model.generate("Long ago", count=400):
            pass
except KeyboardInterrupt:
    sys.exit(1)
""",
}


def ended(command: list[str], folder: str, code: int | None, quiet: bool) -> str:
    """How the program ended, "" if with `code`; None: with 0 or 1. A quiet one prints no error."""
    try:
        run = subprocess.run(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            env={**os.environ, "TMPDIR": folder},
        )
    except subprocess.TimeoutExpired:
        return f"ran for more than {SECONDS} s"
    good = run.returncode in (0, 1) if code is None else run.returncode == code
    if good and not (quiet and run.stderr):
        return ""
    how = "signal" if run.returncode < 0 else "exit code"
    return f"{how} {abs(run.returncode)}: {run.stderr[-500:]}"


def host_programs(host: str) -> list[str]:
    listed = subprocess.run([host, "--list"], capture_output=True, text=True, check=True)
    return listed.stdout.split()


def run_all(times: int = 1, jobs: int = 4, host: str | None = None) -> tuple[int, list[str]]:
    """How many programs ran, and how each ended that did not end as it should."""
    python = [sys.executable, "-c"]
    programs = {name: ([*python, BEGIN + text], 0, True) for name, text in PROGRAMS.items()}
    for name, text in FAILING_PROGRAMS.items():
        programs[name] = ([*python, BEGIN + text], 1, False)
    for name in host_programs(host) if host else ():
        programs[f"{host} --program={name}"] = ([host, f"--program={name}"], None, False)
    names = [name for _ in range(times) for name in programs]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:

        def run(name: str) -> str:
            command, code, quiet = programs[name]
            return ended(command, folder, code, quiet)

        outcomes = list(pool.map(run, names))
    return len(names), [f"{name}: {how}" for name, how in zip(names, outcomes) if how]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--host")
    arguments = parser.parse_args()
    count, failed = run_all(arguments.times, arguments.jobs, arguments.host)
    print("\n".join(failed))
    print(f"{count} programs, {len(failed)} ended in another way than they should")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
