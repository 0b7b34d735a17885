"""Runs torch's own operator tests (op_db) through the importer, without Dynamo.

    python operators.py [--dtypes float32,float16] [--most N] [--device cuda] [--part K/N] [NAME ...]

A sample passes if each result is as near to float64 as torch's tolerances of the type ask, or at
most twice as far from it as eager's, of the op or of the ops into which torch decomposed it (which
round in other places). Samples that are not run are counted with their reason.
"""

from __future__ import annotations

import argparse
import collections
import sys
import warnings
from dataclasses import dataclass, field

import torch
from torch._subclasses.functional_tensor import dispatch_functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo import core
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from sinter.errors import SinterError
from sinter.pytorch.graphs.attention_call import one_attention
from sinter.pytorch.backend import compile_aten, read_options
from sinter.pytorch.graphs.decompositions import decompositions

FULL = read_options({"require_full": True})

# torch looks for its own test on the stack, twice for each sample, in all loaded modules. There is none here.
common_utils.extract_test_fn = core.extract_test_fn = lambda: None


@dataclass
class Errors:
    """The largest differences of results, each divided by the largest number of its result."""

    ours: float = 0.0  # from float64
    eager: float = 0.0  # of eager from float64
    apart: float = 0.0  # of ours from eager

    def add(self, ours: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> None:
        if not eager.is_floating_point() or exact.shape != eager.shape:
            return
        a, b, x = ours.double(), eager.double(), exact.double()
        finite = a.isfinite() & b.isfinite() & x.isfinite()
        if not finite.any():
            return
        a, b, x = a[finite], b[finite], x[finite]
        scale = x.abs().max().item() or 1.0
        largest = lambda difference: difference.abs().max().item() / scale
        self.ours = max(self.ours, largest(a - x))
        self.eager = max(self.eager, largest(b - x))
        self.apart = max(self.apart, largest(a - b))


@dataclass
class Outcome:
    passed: int = 0
    skipped: collections.Counter = field(default_factory=collections.Counter)
    refused: collections.Counter = field(default_factory=collections.Counter)
    wrong: list = field(default_factory=list)
    errors: Errors = field(default_factory=Errors)


def is_tensor(value) -> bool:
    return isinstance(value, torch.Tensor)


def skip_reason(arguments, expected) -> str | None:
    """Why a sample is not one for Sinter."""
    for tensor in [x for x in arguments + expected if is_tensor(x)]:
        if tensor.layout != torch.strided:
            return "sparse"
        if tensor.dtype in (torch.complex32, torch.complex64, torch.complex128):
            return "complex"
        if tensor.dtype == torch.float64:
            return "float64"
    if not any(is_tensor(x) for x in expected):
        return "no tensor as its result"
    return None


def to_double(value):
    if is_tensor(value) and value.is_floating_point():
        return value.double()
    if isinstance(value, torch.dtype) and value.is_floating_point:
        return torch.float64
    return value


def close(ours: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> str | None:
    """None, or how a result is wrong."""
    if ours.dtype != eager.dtype or ours.shape != eager.shape:
        return f"{ours.dtype}{list(ours.shape)}, torch has {eager.dtype}{list(eager.shape)}"
    if not eager.is_floating_point():
        return None if torch.equal(ours, eager) else f"differs: {ours} and {eager}"
    reference = exact.to(eager.dtype) if exact.shape == eager.shape else eager
    try:
        torch.testing.assert_close(ours, reference, equal_nan=True)
        return None
    except AssertionError as error:
        message = str(error).split("\n")[0]
    a, b, x = ours.double(), eager.double(), exact.double()
    special = ~x.isfinite() | ~b.isfinite()
    if not torch.equal(torch.nan_to_num(a[special]), torch.nan_to_num(b[special])):
        return f"special values: {ours.flatten()[:6]} and {eager.flatten()[:6]}"
    error_ours = (a - x)[~special].abs()
    error_eager = (b - x)[~special].abs()
    if error_ours.numel() and error_ours.max() <= 2 * error_eager.max():
        return None
    return f"{message}: {error_ours.max():.2e} from float64, eager {error_eager.max():.2e}"


def run_sample(op, sample, errors: Errors) -> tuple[str, str | None]:
    """("passed" | "skipped" | "refused" | "wrong", detail). What passed is added to the errors."""
    inputs, spec = tree_flatten((sample.input, tuple(sample.args), sample.kwargs))
    places = [i for i, value in enumerate(inputs) if is_tensor(value)]

    def function(*tensors):
        values = list(inputs)
        for place, tensor in zip(places, tensors):
            values[place] = tensor
        first, args, kwargs = tree_unflatten(values, spec)
        return tree_flatten(op.op(first, *args, **kwargs))[0]

    tensors = [inputs[place].detach() for place in places]
    try:
        expected = function(*[tensor.clone() for tensor in tensors])
    except Exception as error:
        return "skipped", f"eager refuses it: {type(error).__name__}"
    reason = skip_reason(tensors, expected)
    if reason:
        return "skipped", reason
    first, args, kwargs = tree_map(to_double, (sample.input, tuple(sample.args), sample.kwargs))
    try:
        exact = tree_flatten(op.op(first, *args, **kwargs))[0]
    except Exception:
        exact = expected
    try:
        traced = one_attention()(dispatch_functionalize(function))
        graph = make_fx(traced, decomposition_table=decompositions(),
                        tracing_mode="fake")(*[tensor.clone() for tensor in tensors])
    except Exception as error:
        return "skipped", f"torch cannot trace it: {type(error).__name__}"
    graph.graph.eliminate_dead_code()
    try:
        results = compile_aten(graph, FULL, "op")(*tensors)
    except SinterError as error:
        return "refused", str(error)
    results = tree_flatten(results)[0]
    for place, (ours, eager, double) in enumerate(zip(results, expected, exact)):
        if is_tensor(eager):
            detail = close(ours, eager, double)
            if detail:
                decomposed = tree_flatten(graph(*tensors))[0][place]
                if close(ours, decomposed, double):
                    return "wrong", detail
            errors.add(ours, eager, double)
    return "passed", None


def run_entry(op, dtype: torch.dtype, most: int | None = None, device: str = "cpu") -> Outcome:
    """most: the largest number of samples that are run, from the first to the last at equal distances."""
    outcome = Outcome()
    samples = list(enumerate(op.sample_inputs(device, dtype)))
    for number, sample in samples[::-(-len(samples) // most) or 1] if most else samples:
        torch.manual_seed(number)
        try:
            status, detail = run_sample(op, sample, outcome.errors)
        except Exception as error:
            status, detail = "wrong", f"{type(error).__name__}: {error}"
        if status == "passed":
            outcome.passed += 1
        elif status == "skipped":
            outcome.skipped[detail] += 1
        elif status == "refused":
            outcome.refused[detail.split("\n")[1].strip() if "\n" in detail else detail] += 1
        else:
            outcome.wrong.append(f"sample {number}: {detail}")
    return outcome


def name_of(op) -> str:
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dtypes", default="float32,float16,bfloat16")
    parser.add_argument("--most", type=int, help="samples of an entry at most")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--part", default="0/1", help="K/N: each N-th entry, from the K-th on")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong = 0
    part, parts = map(int, given.part.split("/"))
    chosen = [op for op in op_db if not given.names or name_of(op) in given.names]
    for op in chosen[part::parts]:
        for dtype_name in given.dtypes.split(","):
            dtype = getattr(torch, dtype_name)
            if dtype not in op.supported_dtypes(given.device):
                continue
            outcome = run_entry(op, dtype, given.most, given.device)
            wrong += len(outcome.wrong)
            print(f"{name_of(op)} {dtype_name} passed={outcome.passed} "
                  f"refused={sum(outcome.refused.values())} skipped={dict(outcome.skipped)} "
                  f"wrong={len(outcome.wrong)}", flush=True)
            for reason, count in outcome.refused.most_common(2):
                print(f"    refused {count}: {reason[:200]}")
            for detail in outcome.wrong[:3]:
                print(f"    WRONG {detail[:300]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
