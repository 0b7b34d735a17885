"""Memory of a GPU over many recorded calls whose inputs move: exit code 1 if it grows.

    python memory_of_calls.py [--calls 2000]
"""

from __future__ import annotations

import argparse
import sys

import torch
from torch import nn

import sinter.pytorch


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=2000)
    count = parser.parse_args().calls
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Dropout(0.1), nn.Linear(256, 64)).cuda()
    compiled = torch.compile(model, backend=sinter.pytorch.compile_graph, mode="reduce-overhead",
                             dynamic=False)
    batches = (8, 32, 128)

    def step(i: int) -> None:
        x = torch.randn(batches[i % len(batches)], 64, device="cuda", requires_grad=i % 2 == 0)
        compiled(x).square().mean().backward()
        model.zero_grad(set_to_none=i % 5 == 0)

    def held() -> tuple[int, int]:
        """Bytes of tensors, and of torch's allocator."""
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated(), torch.cuda.memory_reserved()

    for i in range(count // 10):
        step(i)
    before = held()
    for i in range(count):
        step(i)
    after = held()
    print(f"{count} calls: allocated {before[0]:,} bytes before, {after[0]:,} after; "
          f"reserved {before[1]:,} and {after[1]:,}")
    print(sinter.explain())
    return 1 if after[0] > before[0] or after[1] > before[1] else 0


if __name__ == "__main__":
    sys.exit(main())
