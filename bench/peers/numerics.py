"""Errors of Sinter's fused LayerNorm beside PyTorch's, both against float64.

    python3 bench/peers/numerics.py --sinter build/release/bin/sinter --json numerics.json

Two patterns, `LayerNorm(x) + r` and `LayerNorm(x + r)`, on seeded random inputs. PyTorch computes
each op by itself in the storage type, so x + r is rounded before the norm, as in a model; float64
computes the whole from the stored inputs and rounds nothing. Sinter runs the same inputs through
one fused kernel. A case holds if, of the results y,

  * the RMS error is at most 1.05 times PyTorch's,
  * the largest error is at most PyTorch's plus one ulp of the value where it occurs,
  * the largest error is at most 9.6e-7 (float32) or 4e-3 (float16).

Exits 1 if a case does not hold.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import gpu
import report

EPS = 1e-5
MODULES = pathlib.Path(__file__).parent.parent / "cases" / "numerics"
SHORT_NAMES = {torch.float32: "f32", torch.float16: "f16"}
LARGEST_ERROR = {torch.float32: 9.6e-7, torch.float16: 4e-3}
SHAPES = [(torch.float32, (2, 128, 2560)), (torch.float16, (2, 128, 2560)),
          (torch.float16, (1, 1, 2560)), (torch.float16, (4, 256, 2560)),
          (torch.float16, (1, 2048, 2560))]


def layer_norm_add(x, r, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias, EPS) + r


def add_layer_norm(x, r, weight, bias):
    return F.layer_norm(x + r, x.shape[-1:], weight, bias, EPS)


PATTERNS = {"layer_norm_add": layer_norm_add, "add_layer_norm": add_layer_norm}


def make_inputs(dtype: torch.dtype, shape: tuple[int, ...], seed: int) -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    width = shape[-1]
    return {name: value.to(dtype) for name, value in {
        "x": torch.randn(shape, generator=draw),
        "r": torch.randn(shape, generator=draw),
        "weight": 1 + 0.02 * torch.randn(width, generator=draw),
        "bias": 0.02 * torch.randn(width, generator=draw)}.items()}


def ulp(value: float, dtype: torch.dtype) -> float:
    """The step between neighbours of `dtype` at the size of `value`."""
    facts = torch.finfo(dtype)
    exponent = torch.frexp(torch.tensor(max(abs(value), facts.tiny), dtype=torch.float64)).exponent
    return facts.eps * 2.0 ** (int(exponent) - 1)


def errors(result: torch.Tensor, truth: torch.Tensor) -> dict:
    difference = (result.to("cpu", torch.float64) - truth).abs().flatten()
    worst = int(difference.argmax())  # a NaN is the largest of all
    return {"rms": difference.square().mean().sqrt().item(), "max": difference[worst].item(),
            "value_at_max": truth.flatten()[worst].item()}


def run_sinter(program: str, module: pathlib.Path, inputs: dict[str, torch.Tensor], device: str,
               folder: pathlib.Path) -> torch.Tensor:
    """The module's result y, as rows."""
    given, result = folder / "inputs.safetensors", folder / "outputs.safetensors"
    rows = {name: value.flatten(0, -2).contiguous() if value.dim() > 1 else value
            for name, value in inputs.items()}
    save_file(rows, given)
    subprocess.run([program, "run", str(module), "--inputs", str(given), "--out", str(result),
                    "--device", device], check=True, stdout=subprocess.DEVNULL)
    return load_file(result)["y"]


def compare(pattern: str, dtype: torch.dtype, shape: tuple[int, ...], arguments,
            folder: pathlib.Path) -> dict:
    inputs = make_inputs(dtype, shape, arguments.seed)
    function = PATTERNS[pattern]
    truth = function(*(value.double() for value in inputs.values()))  # on the CPU
    theirs = function(*(value.to(arguments.device) for value in inputs.values()))
    module = MODULES / f"{pattern}.{shape[-1]}.{SHORT_NAMES[dtype]}.sir"
    folder = folder / f"{pattern}.{SHORT_NAMES[dtype]}.{'x'.join(map(str, shape))}"
    folder.mkdir(parents=True, exist_ok=True)
    ours = run_sinter(arguments.sinter, module, inputs, arguments.device, folder)
    torch_errors = errors(theirs, truth)
    sinter_errors = errors(ours.reshape(shape), truth)
    step = ulp(sinter_errors["value_at_max"], dtype)
    checks = {"rms": sinter_errors["rms"] <= 1.05 * torch_errors["rms"],
              "max": sinter_errors["max"] <= torch_errors["max"] + step,
              "limit": sinter_errors["max"] <= LARGEST_ERROR[dtype]}
    equal = (ours.reshape(shape) == theirs.cpu()).double().mean().item()
    return {"pattern": pattern, "dtype": SHORT_NAMES[dtype], "shape": list(shape),
            "torch": torch_errors, "sinter": sinter_errors, "ulp": step,
            "share_equal_to_torch": equal, "checks": checks}


def to_table(cases: list[dict]) -> str:
    rows = [[f"{case['pattern']} {case['dtype']} {case['shape']}",
             *(f"{case[side][kind]:.3e}" for kind in ("rms", "max")
               for side in ("sinter", "torch")),
             ", ".join(name for name, held in case["checks"].items() if not held) or "holds"]
            for case in cases]
    return report.table(["case", "RMS", "torch's", "max", "torch's", "verdict"], rows)


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sinter", required=True, metavar="PATH", help="the program")
    parser.add_argument("--json", type=pathlib.Path, required=True, metavar="OUT")
    parser.add_argument("--folder", type=pathlib.Path, help="keep the tensors here")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="of both sides")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(argv)


@torch.no_grad()
def main() -> int:
    arguments = parse_arguments()
    if arguments.device == "cuda":
        gpu.require_cuda()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or pathlib.Path(temporary)
        cases = [compare(pattern, dtype, shape, arguments, folder)
                 for pattern in PATTERNS for dtype, shape in SHAPES]
    report.write_json(arguments.json, {"machine": gpu.machine(), "seed": arguments.seed,
                                       "cases": cases})
    print(to_table(cases))
    return 0 if all(all(case["checks"].values()) for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
