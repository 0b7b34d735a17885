"""Writes docs/pytorch_ops.md: ops that Sinter takes, errors by op, models.

    python make_tables.py                                  writes the page
    python make_tables.py --check                          fails if the page is not fresh
    python make_tables.py --measure-ops [--part 1/4] [--dtypes float32] [NAME ...]
    python make_tables.py --measure-models [NAME ...]
    python make_tables.py --measure-exported [NAME ...]

The first part comes from the table of conversions, the others from measurements in bench/results/pytorch_ops.json and
pytorch_models.json. A measurement of some ops, types or a part of all of them replaces their rows in the file.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

from sinter.pytorch.graphs.foreach import foreach_decompositions
from sinter.pytorch.convert.ops import CONVERSIONS

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "pytorch_ops.md"
OPS, MODELS = (ROOT / "bench" / "results" / name for name in ("pytorch_ops.json",
                                                              "pytorch_models.json"))
DTYPES = ("float32", "float16", "bfloat16")

REWRITES = """# Rewrites of PyTorch's graphs

What happens to a graph of PyTorch before its ops are converted ([pytorch.md](pytorch.md)): a table of rewrites, `python/sinter/pytorch/rewrites/pipeline.py`, and one function that runs each. After a rewrite that changed a graph, the graph has a type for each node, the results that it had, and the same random numbers and changes of arguments in the same order; else the rewrite is at fault, and the error says so.

`sinter.explain(compiled).rewrites` is a table of what they did. `SINTER_SKIP=join_chunks,keep_roots` leaves out rewrites; those with an entry in the last column are needed. `SINTER_DUMP=folder` writes the graph before and after each rewrite that changes it. `sinter.bisect` leaves them out one after the other where neither a conversion nor a fusion is wrong.

| phase | graph |
| --- | --- |
| traced | Dynamo's, where a gradient is wanted and `attention` is `"relaxed"` |
| prepare | of ATen's ops, with a gradient before it is cut in two |
| joint, loss | forward and backward pass in one |
| pair | both passes, as torch's partitioner cut them |
| codes | the forward graph, or the one graph without a gradient, there before `prepare` |
| packed | without a gradient, with the option `pack` |
| compiled | each graph that becomes entries of a plan |

"""

FAMILIES = {
    "elementwise": "Element by element", "activations": "Activations, gradients of functions",
    "choice": "Comparisons, truth values, choices", "reductions": "Reductions, positions, running sums",
    "norms": "Softmax and normalizations", "products": "Products", "attention": "Attention",
    "indexing": "Rows and elements by index", "scatter": "Sums by index",
    "overwriting": "Writes by index",
    "sorting": "Sorting, largest elements", "experts": "Rows of experts",
    "movement": "Views, concatenations, padding", "generators": "Tensors made of no other",
}

HEAD = """# Ops of PyTorch that Sinter takes

What `torch.compile(backend="sinter")` and `sinter.pytorch.from_torch` compile ([pytorch.md](pytorch.md)). Written by `python/tests/pytorch/make_tables.py`, from the code and from measurements with torch {version}.

A graph reaches Sinter in the ops of core ATen: torch decomposes its other ops into them, and Sinter's own decompositions keep some whole (`gelu`, `silu`, the gradient of `gelu`) and bring all forms of `scaled_dot_product_attention` to one op with its gradient, packed sequences (`varlen_attn`) to another. Ops of complex64 between real tensors become ops of their parts ([pytorch.md](pytorch.md#what-runs-in-eager)). Ops on lists (`_foreach_*`, {lists} overloads) become ops for each tensor.

`sort` (stable or not) and `topk` along an axis of at most 256 elements, of float32, float16, bfloat16, int32 and int64, are comparisons of all pairs: the place of an element is the number of elements before it. Up to 64 largest floats of up to 1,024 have an op of their own, `top_k`. Values and indices are those of torch's stable sort: ties in the order of their indices, -0 equal to 0, NaN as the largest number. `topk` has the first of them, sorted, also with `sorted=False`; eager leaves the order of its ties open.

A sort of the experts that a `topk` chose for N tokens, of any number of tokens, is a counting sort, or none ([pytorch.md](pytorch.md#what-runs-in-eager)).

## Conversions

An op that is not here, and that torch does not decompose into those here, runs in eager, and so does one whose arguments ask for what the IR lacks; `sinter.pytorch.explain` names it with the reason.

Ops that refuse values are here with their check (indices, labels, integer divisors, `binary_cross_entropy`), or run in eager and say what eager says: `bernoulli`, `multinomial`, `normal`, `poisson`, `max_unpool2d`, `embedding_bag`, `repeat_interleave`, `searchsorted`, factorizations of `torch.linalg`, `torch._assert_async` with a message, which `one_hot` has too. `torch.compile` itself leaves out an assertion without a message.
"""

ERRORS = """
## Errors by op

torch's own samples of its operator tests (`op_db`), on the CPU. A sample passes if each result is as near to float64 as torch's tolerances for the type ask, or at most twice as far from it as eager's. *In eager* are samples that Sinter does not take. Differences are the largest over all samples that passed, each divided by the largest number of its result: of Sinter from float64, of eager from float64, of the two from each other. Samples of complex, sparse and float64 tensors, and ops that eager or torch's tracing refuses, are not counted; entries of which nothing remains are left out.
"""

MODELS_HEAD = """
## Models

Tiny configurations of models of transformers {transformers}, forward and backward on the CPU, beside eager: relative difference of the loss, difference of gradients relative to the largest one, graphs, graph breaks, parts that Sinter computes, and ops in eager.
"""


EXPORTED_HEAD = """
## Models of from_torch

The same configurations through `sinter.from_torch` at dynamic batch and length, on the CPU: the largest distance of Sinter's results from eager in float64 / that of eager, relative to the largest number of each result. *Forward*: attention masks that pad nothing, on the right and on the left; *cache*: with the keys and values of earlier tokens as arguments. *Breaks*, *parts* and *ops in eager* are those of `torch.compile` of the same model without gradients, with the same sizes marked dynamic.
"""


def conversions() -> str:
    families: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for op, function in CONVERSIONS.items():
        namespace, _, name = str(op).partition(".")
        packet, _, overload = name.rpartition(".")
        families[function.__module__.rsplit(".", 1)[-1]][f"{namespace}.{packet}"].append(overload)
    lines = ["| | ops |", "| --- | --- |"]
    for family, title in FAMILIES.items():
        ops = families.pop(family, {})
        names = [f"`{op.removeprefix('aten.')}`" for op in sorted(ops)]
        lines.append(f"| {title} ({len(names)}) | {', '.join(names)} |")
    if families:
        raise AssertionError(f"ops of unknown families {sorted(families)}")
    return "\n".join(lines) + "\n"


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.is_file() else {}


def errors_table(measured: dict[str, Any]) -> str:
    if not measured.get("ops"):
        return "\nNot measured yet: `python python/tests/pytorch/make_tables.py --measure-ops`.\n"
    rows, totals = [], defaultdict(int)
    for name, by_dtype in sorted(measured["ops"].items()):
        for dtype in DTYPES:
            one = by_dtype.get(dtype)
            if one is None or one["passed"] + one["refused"] + one["wrong"] == 0:
                continue
            for key in ("passed", "refused", "wrong"):
                totals[key] += one[key]
            numbers = [number(one[key]) if one["passed"] else ""
                       for key in ("ours", "eager", "apart")]
            why = one["reason"] if one["refused"] else ""
            rows.append(f"| `{name}` | {dtype} | {one['passed']} | {one['refused'] or ''} | "
                        + " | ".join(numbers) + f" | {why} |")
    return (f"\n{len(measured['ops'])} entries, {totals['passed']} samples pass, {totals['refused']} "
            f"run in eager, {totals['wrong']} are wrong.\n\n"
            "| entry | type | pass | in eager | Sinter | eager | apart | why in eager |\n"
            "| --- | --- | --- | --- | --- | --- | --- | --- |\n" + "\n".join(rows) + "\n")


def number(value: float) -> str:
    return f"{value:.1e}" if value else "0"


def models_table(measured: dict[str, Any]) -> str:
    head = MODELS_HEAD.format(transformers=measured.get("transformers", ""))
    if not measured.get("models"):
        return head + "\nNot measured yet: `make_tables.py --measure-models`.\n"
    lines = ["| model | loss | gradients | graphs | breaks | parts | in eager |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for name, one in measured["models"].items():
        ops = ", ".join(f"`{op}`" + (f" ×{count}" if count > 1 else "")
                        for op, count in one["eager"].items())
        lines.append(f"| {name} | {one['loss']:.1e} | {one['gradients']:.1e} | {one['graphs']} | "
                     f"{one['breaks']} | {one['parts']} | {ops or 'none'} |")
    return head + "\n" + "\n".join(lines) + "\n"


def exported_table(measured: dict[str, Any]) -> str:
    lines = ["| model | forward, float32 | forward, bfloat16 | cache, float32 | cache, bfloat16 | breaks | "
             "parts | ops in eager |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for name, one in measured.get("exported", {}).items():
        errors = [one["errors"].get(f"{kind} {dtype}") for kind in ("forward", "cache")
                  for dtype in ("float32", "bfloat16")]
        cells = [f"{pair[0]:.1e} / {pair[1]:.1e}" if pair else "" for pair in errors]
        lines.append(f"| {name} | {' | '.join(cells)} | {one['breaks']} | {one['parts']} | "
                     f"{one['eager']} |")
    return EXPORTED_HEAD + "\n" + "\n".join(lines) + "\n"


def rewrites_page() -> str:
    from sinter.pytorch.rewrites.pipeline import PIPELINE
    rows = [f"| `{one.name}` | {one.phase} | {one.why} | {one.needed} |" for one in PIPELINE]
    return REWRITES + "\n".join(["| rewrite | phase | what it does | why it is needed |", "| --- | --- | --- | --- |",
                                 *rows]) + "\n"


def page() -> str:
    ops, models = read(OPS), read(MODELS)
    head = HEAD.format(version=version(), lists=len(foreach_decompositions()))
    return head + "\n" + conversions() + models_table(models) + exported_table(models) + ERRORS \
        + errors_table(ops)


def version() -> str:
    return torch.__version__.split("+")[0]


def measure_ops(given: argparse.Namespace) -> None:
    import operators
    part, parts = (int(number) for number in given.part.split("/"))
    entries = [op for op in operators.op_db
               if not given.names or operators.name_of(op) in given.names]
    measured = read(OPS)
    ops = measured.setdefault("ops", {})
    for number, op in enumerate(entries):
        if number % parts != part - 1:
            continue
        name = operators.name_of(op)
        for dtype in given.dtypes.split(","):
            if getattr(torch, dtype) not in op.dtypes:
                continue
            one = operators.run_entry(op, getattr(torch, dtype), given.most)
            if one.passed or one.refused or one.wrong:
                ops.setdefault(name, {})[dtype] = entry_of(one)
                print(name, dtype, ops[name][dtype], flush=True)
    # Other parts may have been measured meanwhile.
    fresh = read(OPS).get("ops", {})
    for name, by_dtype in ops.items():
        fresh[name] = {**fresh.get(name, {}), **by_dtype}
    write(OPS, {"torch": version(), "ops": dict(sorted(fresh.items()))})


def entry_of(one) -> dict[str, Any]:
    reason = one.refused.most_common(1)[0][0] if one.refused else ""
    reason = reason.split("): ", 1)[-1].split("; leave out")[0]  # behind "aten.op (name): "
    return {"passed": one.passed, "refused": sum(one.refused.values()), "wrong": len(one.wrong),
            "ours": one.errors.ours, "eager": one.errors.eager, "apart": one.errors.apart,
            "reason": reason}


def measure_models(given: argparse.Namespace) -> None:
    import models
    from sinter.pytorch.tools import report
    results = {}
    for name in given.names or models.MODELS:
        loss, gradients, breaks = models.compare(name)
        eager: dict[str, int] = defaultdict(int)
        for one in report.REPORTS:
            for op in one.eager:
                eager[op.op.removesuffix(".default")] += 1
        results[name] = {"loss": loss, "gradients": gradients, "graphs": len(report.REPORTS),
                         "breaks": sum(breaks.values()),
                         "parts": sum(len(one.entries) for one in report.REPORTS),
                         "eager": dict(eager)}
        print(name, results[name], flush=True)
    add_models("models", results)


def measure_exported(given: argparse.Namespace) -> None:
    import exported_models as models
    results = {}
    for name in given.names or models.NAMES:
        breaks, parts, eager = models.parts(name, torch.float32)
        errors = {}
        for kind in ("forward", "cache"):
            for dtype in ("float32", "bfloat16"):
                if models.has_kind(name, kind):
                    outcome = models.compare(name, getattr(torch, dtype), kind)
                    errors[f"{kind} {dtype}"] = [outcome.ours, outcome.eager]
        results[name] = {"errors": errors, "breaks": breaks, "parts": parts, "eager": len(eager)}
        print(name, results[name], flush=True)
    add_models("exported", results)


def add_models(key: str, results: dict[str, Any]) -> None:
    """Replaces the measurements of these models."""
    import transformers
    known = read(MODELS)
    write(MODELS, {**known, "torch": version(), "transformers": transformers.__version__,
                   key: {**known.get(key, {}), **results}})


def write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for flag in ("--check", "--measure-ops", "--measure-models", "--measure-exported"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--part", default="1/1", help="K/N: each N-th op, beginning with the K-th")
    parser.add_argument("--most", type=int, help="samples of an op at most")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for is_wanted, measure in ((given.measure_ops, measure_ops), (given.measure_models, measure_models),
                               (given.measure_exported, measure_exported)):
        if is_wanted:
            measure(given)
    if given.check:
        return 0 if PAGE.is_file() and PAGE.read_text() == page() else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
