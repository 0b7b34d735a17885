"""Memory-bound kernels by PyTorch: eager, torch.compile and the copy of as many bytes.

    python3 bench/peers/kernels.py --json kernels.json [--only add_layer_norm] [--samples 30]

Every call reads another set of inputs; all sets together take more than four times the L2 cache.
The calls are captured in one CUDA graph, events around its replay give the time. Bytes are what a
call must move once: each input and each result that is kept. Shares are of the better of two
copies.
"""

import argparse
import dataclasses
import math
import pathlib
from collections.abc import Callable

import torch
import torch.nn.functional as F

import gpu
import report

EPS = 1e-5
NORM_SHAPES = [(1, 2560), (256, 2560), (2048, 2560), (16384, 4096), (65536, 4096), (8192, 16384)]


def gelu_tanh(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x))))


def add_layer_norm(x, r, weight, bias):
    total = x + r
    return total, F.layer_norm(total, total.shape[-1:], weight, bias, EPS)


def layer_norm_add(x, r, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias, EPS) + r


def add_rms_norm(x, r, weight):
    total = x + r
    return total, F.rms_norm(total, total.shape[-1:], weight, EPS)


def weight_gradient(dy, x, before):
    return (dy * x).sum(0) + before


@dataclasses.dataclass(frozen=True)
class Pattern:
    function: Callable
    inputs: int  # matrices
    parameters: int  # vectors as long as a row
    results: int  # matrices
    shapes: list[tuple[int, int]]
    dtype: torch.dtype = torch.bfloat16
    composite: Callable | None = None  # PyTorch's one kernel for what `function` writes out
    vector_results: int = 0  # as long as a row


PATTERNS = {
    "gelu_tanh": Pattern(gelu_tanh, 1, 0, 1, [(16384, 16384), (16384, 4096), (8192, 16384)],
                         torch.float32, lambda x: F.gelu(x, approximate="tanh")),
    "add_layer_norm": Pattern(add_layer_norm, 2, 2, 2, NORM_SHAPES),
    "layer_norm_add": Pattern(layer_norm_add, 2, 2, 1, NORM_SHAPES),
    "add_rms_norm": Pattern(add_rms_norm, 2, 1, 2, NORM_SHAPES),
    "silu_mul": Pattern(lambda x, y: F.silu(x) * y, 2, 0, 1,
                        [(1, 2560), (2048, 2560), (16384, 4096), (65536, 4096), (8192, 16384)]),
    "softmax": Pattern(lambda x: torch.softmax(x, -1), 1, 0, 1,
                       [(8192, 4096), (32768, 1024), (4096, 32768), (16384, 4096), (8192, 16384)]),
    "cumulative_sum": Pattern(lambda x: torch.cumsum(x, -1), 1, 0, 1, [(8192, 4096), (1, 2**20)]),
    "cumulative_sum_column": Pattern(lambda x: torch.cumsum(x, 0), 1, 0, 1, [(4096, 8192)]),
    "column_sum": Pattern(lambda x: torch.sum(x, 0), 1, 0, 0, [(16384, 4096)], vector_results=1),
    "weight_gradient": Pattern(weight_gradient, 2, 1, 0, [(16384, 4096)], vector_results=1),
}


def capture_copies(moved_bytes: int, l2_bytes: int) -> dict[str, gpu.Captured]:
    """Half of `moved_bytes` read and half written, by the driver's copy and by a kernel."""
    half = moved_bytes // 2
    sets = report.sets_past_cache(half, l2_bytes)
    calls = report.calls_in_graph(sets)
    source = torch.ones(sets, half // 4, dtype=torch.int32, device="cuda")
    target = torch.empty_like(source)
    return {"copy_": gpu.capture(lambda i: target[i].copy_(source[i]), sets, calls),
            "copy kernel": gpu.capture(lambda i: torch.neg(source[i], out=target[i]), sets, calls)}


def measure(name: str, rows: int, width: int, samples: int) -> dict:
    pattern = PATTERNS[name]
    size = pattern.dtype.itemsize
    matrix_bytes, vector_bytes = rows * width * size, width * size
    moved_bytes = (pattern.inputs + pattern.results) * matrix_bytes \
        + (pattern.parameters + pattern.vector_results) * vector_bytes
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    sets = report.sets_past_cache(pattern.inputs * matrix_bytes, l2_bytes)
    calls = report.calls_in_graph(sets)

    torch.manual_seed(0)
    inputs = [torch.randn(sets, rows, width, device="cuda", dtype=pattern.dtype)
              for _ in range(pattern.inputs)]
    parameters = [torch.randn(width, device="cuda", dtype=pattern.dtype)
                  for _ in range(pattern.parameters)]
    functions = {"eager": pattern.function,
                 "compile": torch.compile(pattern.function, dynamic=False, fullgraph=True)}
    if pattern.composite:
        functions["composite"] = pattern.composite

    def on_set(function):
        return lambda i: function(*(matrix[i] for matrix in inputs), *parameters)

    captured = {variant: gpu.capture(on_set(function), sets, calls)
                for variant, function in functions.items()}
    captured |= capture_copies(moved_bytes, l2_bytes)

    variants = {}
    for variant, times in gpu.time_calls(captured, samples).items():
        result = report.summary(times)
        result["tb_per_s"] = report.terabytes_per_second(moved_bytes, result["median"])
        variants[variant] = result
    ceiling = min(variants[name]["median"] for name in ("copy_", "copy kernel"))
    for result in variants.values():
        result["share_of_copy"] = ceiling / result["median"]
    return {"pattern": name, "rows": rows, "width": width,
            "dtype": str(pattern.dtype).removeprefix("torch."), "bytes": moved_bytes,
            "sets": sets, "calls": calls, "unit": "us", "variants": variants}


def to_table(cases: list[dict]) -> str:
    rows = []
    for case in cases:
        for variant, result in case["variants"].items():
            rows.append([f"{case['pattern']} {case['dtype']} [{case['rows']}, {case['width']}]",
                         variant, f"{result['median']:.2f}", f"{result['p95']:.2f}",
                         f"{result['tb_per_s']:.2f}", f"{100 * result['share_of_copy']:.0f} %"])
    return report.table(["case", "by", "median us", "p95 us", "TB/s", "of copy"], rows)


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=pathlib.Path, required=True, metavar="OUT")
    parser.add_argument("--only", action="append", choices=list(PATTERNS), help="repeatable")
    parser.add_argument("--samples", type=int, default=30, help="replays of each graph")
    return parser.parse_args(argv)


@torch.no_grad()
def main() -> None:
    arguments = parse_arguments()
    gpu.require_cuda()
    gpu.lift_recompile_limits()
    cases = []
    for name in arguments.only or PATTERNS:
        for rows, width in PATTERNS[name].shapes:
            report.progress(f"{name} [{rows}, {width}]")
            cases.append(measure(name, rows, width, arguments.samples))
            gpu.free_memory()
            report.write_json(arguments.json, {"machine": gpu.machine(), "cases": cases})
    print(to_table(cases))


if __name__ == "__main__":
    main()
