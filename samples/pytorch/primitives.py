"""tanh-GELU and softmax written in primitives: eager runs a kernel for each op, Sinter one for all.

    python samples/pytorch/primitives.py [--rows 4096] [--columns 4096] [--dtype bfloat16]

Prints launches and bytes, fused and unfused, the largest error against float64, and on a GPU the
microseconds of eager, of torch.compile's default backend and of Sinter.
"""

from __future__ import annotations

import argparse
import math

import torch

import sinter.pytorch


def gelu(x: torch.Tensor) -> torch.Tensor:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + torch.tanh(inner))


def softmax(x: torch.Tensor) -> torch.Tensor:
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def microseconds(function, x: torch.Tensor, calls: int = 50) -> float:
    """The median time of a call, by events in the stream."""
    for _ in range(5):
        function(x)
    times = []
    for _ in range(calls):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function(x)
        end.record()
        end.synchronize()
        times.append(1e3 * begin.elapsed_time(end))
    return sorted(times)[calls // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    on_gpu = torch.cuda.is_available()
    parser.add_argument("--rows", type=int, default=4096 if on_gpu else 128)
    parser.add_argument("--columns", type=int, default=4096 if on_gpu else 512)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float16", "bfloat16"))
    given = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randn(given.rows, given.columns, device="cuda" if on_gpu else "cpu")
    x = x.to(getattr(torch, given.dtype))
    for function in (gelu, softmax):
        ours = torch.compile(function, backend=sinter.pytorch.compile_graph)
        exact = function(x.double())
        error = lambda result: (result.double() - exact).abs().max().item()
        print(f"{function.__name__}, {given.dtype}{list(x.shape)}: error against float64 "
              f"{error(ours(x)):.1e}, of eager {error(function(x)):.1e}")
        entry = sinter.pytorch.explain(ours).graphs[0].entries[0].compiled.entry()
        print(f"  fused    {entry.costs()}\n  unfused  {entry.unfused_costs()}")
        if on_gpu:
            default = torch.compile(function)
            for name, one in (("eager", function), ("torch.compile", default), ("sinter", ours)):
                print(f"  {name:14} {microseconds(one, x):8.1f} us")


if __name__ == "__main__":
    main()
