"""The node cases of onnx.backend.test through `sinter.from_onnx`, on the CPU.

    python node_cases.py [PART OF A NAME]

A case is a model of one op, or of the ops of its body, with inputs and results. Inputs that say a shape, axes or other
constants of an op become initializers. Results are compared within the case's own bounds, as the runner of
onnx.backend.test compares them. Prints how many cases of each op pass, and why the others do not.
"""

from __future__ import annotations

import collections
import sys
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np
import onnx
from onnx import numpy_helper

import sinter
from sinter.onnx.codes import CODES, RANGES
from sinter.onnx.registry import DTYPES

INT32 = onnx.TensorProto.INT32
CODED = {
    "QuantizeLinear",
    "DequantizeLinear",
    "DynamicQuantizeLinear",
    "MatMulInteger",
    "QLinearMatMul",
}

BF16_BOUND = 2**-6  # the runner's own for bfloat16
# The body in float16 rounds after each op, in another order than the case's results: two steps apart, as
# the runner allows of bfloat16.
ROUNDED = {"test_attention_4d_causal_fp16_expanded"}
FLOAT16_BOUND = 2**-9


@dataclass
class Outcome:
    """passed, refused (no conversion, and the error names why), other (elements of types that Sinter lacks), wrong."""

    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    by_op: dict[str, collections.Counter[str]] = field(
        default_factory=lambda: collections.defaultdict(collections.Counter)
    )
    wrong: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)


def cases() -> list[Any]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for case in collect_testcases(None) if case.model is not None]


def dtype_of(value: Any) -> str:
    try:
        number = value.type.tensor_type.elem_type
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number)).name
    except (KeyError, TypeError):
        return "no tensor"


def array_of(value: Any) -> np.ndarray:
    is_proto = isinstance(value, onnx.TensorProto)
    return numpy_helper.to_array(value) if is_proto else np.asarray(value, order="C")


def with_constants(case: Any) -> Any:
    """The case's model with integers and truths of one axis or none as initializers; of Range all inputs."""
    is_range, is_shape = "test_range" in case.name, "constantofshape" in case.name
    return with_initializers(
        case,
        lambda i, array: (
            (i or is_range or is_shape)
            and array.ndim < 2
            and (is_range or array.dtype.kind in "bi")
        ),
    )


def with_initializers(case: Any, is_one: Callable[[int, np.ndarray], Any]) -> Any:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for i, (value, given) in enumerate(zip(model.graph.input, case.data_sets[0][0])):
        array = array_of(given)
        if is_one(i, array):
            kind = value.type.tensor_type.elem_type
            name = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))
            model.graph.initializer.append(numpy_helper.from_array(array.astype(name), value.name))
    return model


def with_codes(case: Any) -> Any:
    """A case with inputs of codes, scales and zero points as initializers, and results of codes as i32."""
    model = with_initializers(case, lambda i, array: i or array.dtype.name not in DTYPES)
    for value in model.graph.output:
        if dtype_of(value) in RANGES:
            node = onnx.helper.make_node("Cast", [value.name], [f"{value.name} i32"], to=INT32)
            model.graph.node.append(node)
            value.name, value.type.tensor_type.elem_type = f"{value.name} i32", INT32
    return model


def imported(case: Any) -> Any:
    if has_codes(case):
        return sinter.from_onnx(with_codes(case))
    try:
        return sinter.from_onnx(case.model)
    except sinter.SinterError as error:
        if "a constant is wanted" not in error.what:
            raise
    return sinter.from_onnx(with_constants(case))


def difference(case: Any, model: Any, inputs: Any, wanted: Any) -> str:
    """A text that says where the results of a model are wrong; "" if nowhere."""
    names = [value.name for value in case.model.graph.input]
    feeds = {name: array_of(value) for name, value in zip(names, inputs) if name in model.inputs}
    for ours, theirs in zip(
        model.run(None, feeds, device="cpu"), map(array_of, wanted), strict=True
    ):
        rtol = max(case.rtol, BF16_BOUND) if theirs.dtype.name == "bfloat16" else case.rtol
        rtol = max(rtol, FLOAT16_BOUND) if case.name in ROUNDED else rtol
        theirs = theirs.astype(np.int32) if theirs.dtype.name in RANGES else theirs
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"{ours.dtype}{list(ours.shape)}, {theirs.dtype}{list(theirs.shape)} is wanted"
        wide = (x.astype(np.float32) if x.dtype.itemsize == 2 else x for x in (ours, theirs))
        try:
            np.testing.assert_allclose(*wide, rtol=rtol, atol=case.atol)
        except AssertionError as error:
            return " ".join(str(error).split())[:200]
    return ""


def run(part: str = "") -> Outcome:
    outcome = Outcome()
    for case in cases():
        if part in case.name:
            kind = run_case(case, outcome)
            outcome.counts[kind] += 1
            for op in {node.op_type for node in case.model.graph.node}:
                outcome.by_op[op][kind] += 1
    return outcome


def types_of(case: Any) -> set[str]:
    return {dtype_of(value) for value in (*case.model.graph.input, *case.model.graph.output)}


def has_codes(case: Any) -> bool:
    """Whether a case is of the ops whose codes may be constants or inside of a model."""
    is_one = bool(CODED & {node.op_type for node in case.model.graph.node})
    return is_one and not types_of(case) - {*DTYPES, *RANGES, *CODES}


def run_case(case: Any, outcome: Outcome) -> str:
    if not has_codes(case) and types_of(case) - set(DTYPES):
        return "other"
    try:
        model = imported(case)
    except sinter.SinterError as error:
        outcome.reasons[case.name] = str(error)
        return "refused"
    found = [difference(case, model, *data) for data in case.data_sets]
    outcome.wrong += [f"{case.name}: {text}" for text in found if text]
    return "wrong" if any(found) else "passed"


def main() -> None:
    outcome = run(*sys.argv[1:2])
    for op, counts in sorted(outcome.by_op.items()):
        print(f"{op:28}", "  ".join(f"{count:4} {kind}" for kind, count in sorted(counts.items())))
    for kind, count in collections.Counter(
        reason.split(": ", 1)[-1].split(";")[0] for reason in outcome.reasons.values()
    ).most_common():
        print(f"{count:4} refused: {' '.join(kind.split())}")
    print(*outcome.wrong, sep="\n")
    print(", ".join(f"{count} {kind}" for kind, count in sorted(outcome.counts.items())))


if __name__ == "__main__":
    main()
