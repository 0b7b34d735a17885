"""Runs torch's own module tests (module_db) through torch.compile, forward and backward.

    python modules.py [--most 3] [NAME ...]

Prints for each module: samples that agree with eager, ops that run in eager, and what is wrong.
"""

from __future__ import annotations

import argparse
import copy
import sys
import warnings

import torch
from beside_eager import assert_same, compiled, eager_ops, reset, tensors_of
from torch.testing._internal.common_modules import module_db


def run_both(module, forward, tolerance: float) -> None:
    """Results and gradients of parameters and inputs, of the same seed."""
    eager = copy.deepcopy(module)
    sides = []
    for root, function in ((module, compiled(module)), (eager, eager)):
        args, kwargs = copy.deepcopy((forward.args, forward.kwargs))
        torch.manual_seed(7)
        results = function(*args, **kwargs)
        parts = [x for x in tensors_of(results) if x.requires_grad]
        if parts:
            sum(x.float().square().sum() for x in parts).backward()
        grads = [x.grad for x in [*root.parameters(), *tensors_of((args, kwargs))]]
        sides.append((results, grads))
    (ours, our_grads), (wanted, wanted_grads) = sides
    assert_same(ours, wanted, tolerance)
    for a, b in zip(our_grads, wanted_grads, strict=True):
        assert (a is None) == (b is None), "a gradient is missing"
        if a is not None:
            scale = max(1.0, b.abs().max().item() if b.numel() else 1.0)
            torch.testing.assert_close(a / scale, b / scale, rtol=10 * tolerance,
                                       atol=10 * tolerance, equal_nan=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=3, help="samples of a module at most")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong = 0
    for info in module_db:
        if given.names and info.name not in given.names or torch.float32 not in info.dtypes:
            continue
        passed, eager, failures = 0, set(), []
        for training in (False, True) if info.train_and_eval_differ else (True,):
            samples = info.module_inputs_func(info, device="cpu", dtype=torch.float32,
                                              requires_grad=True, training=training)
            for number, sample in enumerate(samples[:given.most]):
                reset()
                try:
                    first = sample.constructor_input
                    module = info.module_cls(*first.args, **first.kwargs).train(training)
                    expected = copy.deepcopy(module)
                    forward = sample.forward_input
                    args, kwargs = copy.deepcopy((forward.args, forward.kwargs))
                    expected(*args, **kwargs)
                except Exception:
                    continue  # eager refuses it
                try:
                    run_both(module, forward, 2e-5)
                    passed += 1
                except Exception as error:
                    failures.append(f"sample {number}: {type(error).__name__}: {str(error)[:300]}")
                eager.update(eager_ops())
        wrong += len(failures)
        print(f"{info.name} passed={passed} wrong={len(failures)} "
              f"eager={sorted(op.removeprefix('aten.') for op in eager)}", flush=True)
        for failure in failures[:2]:
            print("    WRONG " + failure.replace("\n", " | "))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
