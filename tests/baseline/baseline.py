#!/usr/bin/env python3
"""Shows whether two builds of Sinter make the same plans and the same machine code.

    baseline.py record PROGRAM OUT.json    compiles every case with a build's program
    baseline.py compare OLD.json NEW.json  lists what differs; exit status 1 if anything does

A case is a model or a module (golden folders, samples, bench cases) in one element type, for one
device, in one mode of numerics. Of each case the record holds a digest of the plan and the keys of
its kernels. A kernel's key is a digest of what it computes: its IR, its symbols, its launch and its
device. Under the key stand a digest of its machine code (section .text of the cubin), registers,
shared memory and constants. Kernels' names are left out everywhere: they hold a hash of the text.

`--renames FILE` of `compare` gives names (whole words) that are applied to the old record's plans, as
rows "| `OLD` | `NEW` |" of Markdown tables (docs/renames.md); `record --keep-plans` stores the plans that it needs.

Machine code needs NVRTC. Compiled kernels come from the program's cache, so that a second record
takes minutes where the first takes half an hour on two cores.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPES = {"f32": "fp32", "f16": "fp16", "bf16": "bf16"}
TARGETS = [("sm_80", "strict"), ("sm_90a", "strict"), ("sm_100", "strict"), ("sm_90a", "fast")]


def digest(value):
    text = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()[:32]


def sections(cubin):
    """Name, sh_flags, sh_info and content of each section of a 64-bit little-endian ELF file."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + i * size) for i in range(count)]
    strings = headers[names][4]
    for name, kind, flags, _, offset, length, _, info, _, _ in headers:
        end = cubin.index(b"\0", strings + name)
        content = b"" if kind == 8 else cubin[offset:offset + length]  # 8: NOBITS
        yield cubin[strings + name:end].decode(), flags, info, length, content


def machine_code(path):
    """The machine code of one kernel, without any name."""
    code = {"text": [], "registers": [], "shared_bytes": 0, "constants": []}
    for name, _, info, length, content in sections(path.read_bytes()):
        if name.startswith(".text."):
            code["text"].append(digest(content))
            code["registers"].append(info >> 24)
        elif name.startswith(".nv.shared."):
            code["shared_bytes"] += length
        elif name.startswith(".nv.constant") and not name.startswith(".nv.constant0"):
            code["constants"].append(digest(content))
    code["constants"].sort()
    return code


def cases():
    """Path, whether it is a module, and the element types to compile it in, for every model and module. A
    bench case has its type in its name and its text; a sample module is compiled as it is, in its own types."""
    for folder in sorted((ROOT / "tests/golden").iterdir()):
        if (folder / "config.json").exists():
            yield folder, False, TYPES
    for path in sorted((ROOT / "samples").iterdir()):
        if path.suffix == ".json" or (path / "config.json").exists():
            yield path, False, TYPES
        elif path.suffix == ".sir":
            yield path, True, ["own"]
    for path in sorted((ROOT / "bench/cases").glob("*.sir")):
        yield path, True, TYPES


def normal_plan(plan, names):
    """The plan without what depends on kernels' names or on the version."""
    for key in ("sinter", "weights_fingerprint"):
        plan.pop(key, None)
    for key in ("name", "major"):
        plan["format"].pop(key, None)
    for kernel in plan["kernels"]:
        for key in ("name", "file", "hash"):
            kernel.pop(key, None)
    for entry in plan["entries"]:
        for step in entry["steps"]:
            if "kernel" in step:
                step["kernel"] = names[step["kernel"]]
    return plan


def compile_case(program, path, is_module, dtype, target, numerics, keep_plans):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        source = path
        command = [program, "compile", "-q", "-o", scratch / "plan", "--arch", target, "--numerics", numerics]
        if is_module:
            if dtype != "own":
                stated = path.name.split(".")[-2]
                source = scratch / path.name
                source.write_text(re.sub(rf"\b{stated}\b", dtype, path.read_text()))
        else:
            command += ["--dtype", TYPES[dtype]]
            if path.suffix == ".json":
                command += ["--random-weights", "1"]
        done = subprocess.run([*command, source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            return {"error": done.stderr.replace(str(scratch), "").strip(), "status": done.returncode}, {}
        plan = json.loads((scratch / "plan/plan.json").read_text())
        kernels, keys, names = {}, [], {}
        for index, kernel in enumerate(plan["kernels"]):
            name = kernel["name"]
            names[name] = index
            stated = {k: v for k, v in kernel.items() if k not in ("name", "file", "hash")}
            key = digest([stated, plan["target"], numerics])
            cubins = list((scratch / "plan/kernels").glob(f"{name}.*.cubin"))
            if len(cubins) != 1:
                sys.exit(f"baseline: {path}: {len(cubins)} files of machine code for {name}; is NVRTC there?")
            kernels[key] = machine_code(cubins[0])
            keys.append(key)
        plan = normal_plan(plan, names)
        result = {"plan": digest(plan), "kernels": keys}
        if keep_plans:
            result["text"] = plan
        return result, kernels


def record(arguments):
    program = pathlib.Path(arguments.program).resolve()
    jobs = [(path, is_module, dtype, target, numerics)
            for path, is_module, types in cases() for dtype in types for target, numerics in TARGETS
            if arguments.only in str(path)]
    result = {"cases": {}, "kernels": {}}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = {}
        for path, is_module, dtype, target, numerics in jobs:
            name = f"{path.relative_to(ROOT)} {dtype} {target} {numerics}"
            runs[name] = pool.submit(compile_case, program, path, is_module, dtype, target, numerics,
                                     arguments.keep_plans)
        for name, run in runs.items():
            result["cases"][name], kernels = run.result()
            result["kernels"].update(kernels)
    if not jobs:
        sys.exit("baseline: no case")
    pathlib.Path(arguments.out).write_text(json.dumps(result, indent=1, sort_keys=True))
    failed = sum("error" in case for case in result["cases"].values())
    print(f"{len(jobs)} cases, {len(result['kernels'])} kernels, {failed} cases refused by the program")


def renamed(text, renames):
    for old, new in renames:
        text = re.sub(rf"\b{re.escape(old)}\b", new, text)
    return text


def compare(arguments):
    old, new = (json.loads(pathlib.Path(path).read_text()) for path in (arguments.old, arguments.new))
    renames = []
    if arguments.renames:
        renames = re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|$", pathlib.Path(arguments.renames).read_text(), re.MULTILINE)
    differ = []
    for name in sorted(old["cases"].keys() | new["cases"].keys()):
        a, b = old["cases"].get(name), new["cases"].get(name)
        if a is None or b is None:
            differ.append(f"{name}: only in the {'old' if b is None else 'new'} record")
        elif "error" in a or "error" in b:
            if a != b:
                differ.append(f"{name}: {a.get('error', 'compiles')} against {b.get('error', 'compiles')}")
        else:
            plan = digest(json.loads(renamed(json.dumps(a["text"]), renames))) if renames else a["plan"]
            if plan != b["plan"]:
                differ.append(f"{name}: the plan differs")
            if len(a["kernels"]) != len(b["kernels"]):
                differ.append(f"{name}: {len(a['kernels'])} kernels against {len(b['kernels'])}")
                continue
            for index, (x, y) in enumerate(zip(a["kernels"], b["kernels"])):
                for field in ("text", "registers", "shared_bytes", "constants"):
                    if old["kernels"][x][field] != new["kernels"][y][field]:
                        differ.append(f"{name}: kernel {index}: {field} differ")
    for line in differ[:arguments.most]:
        print(line)
    if len(differ) > arguments.most:
        print(f"... and {len(differ) - arguments.most} more")
    print(f"{len(old['cases'])} cases, {len(old['kernels'])} kernels: "
          + (f"{len(differ)} differences" if differ else "nothing differs"))
    return 1 if differ else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    recorder = commands.add_parser("record")
    recorder.add_argument("program")
    recorder.add_argument("out")
    recorder.add_argument("--only", default="", help="cases whose path holds this text")
    recorder.add_argument("--jobs", type=int, default=os.cpu_count())
    recorder.add_argument("--keep-plans", action="store_true")
    recorder.set_defaults(run=record)
    comparer = commands.add_parser("compare")
    comparer.add_argument("old")
    comparer.add_argument("new")
    comparer.add_argument("--renames")
    comparer.add_argument("--most", type=int, default=40, help="lines printed")
    comparer.set_defaults(run=compare)
    arguments = parser.parse_args()
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
