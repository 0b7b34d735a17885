"""A decode step of many sequences by torch.compile: lean_decoder.py in a CUDA graph.

    python3 bench/peers/sequences.py MODEL SEQUENCES CONTEXT [--mode default]

All sequences have the same length. Prints milliseconds of a step as JSON; needs CUDA.
"""

import argparse
import json

import torch

import architectures
import gpu
from models import measure_compiled

STEPS, REPEATS = 32, 2


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", choices=list(architectures.MODELS))
    parser.add_argument("sequences", type=int)
    parser.add_argument("context", type=int)
    parser.add_argument("--mode", default="default", help="of torch.compile")
    given = parser.parse_args()
    gpu.require_cuda()
    result = measure_compiled(architectures.read_spec(given.model), torch.bfloat16, STEPS, REPEATS,
                              given.mode, given.sequences, given.context)
    print(json.dumps(result | {"machine": gpu.machine()}))


if __name__ == "__main__":
    main()
