"""Models in files: shapes that a call knows, weights beside the model, and files that are broken or hostile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import sinter  # noqa: E402
from sinter.onnx import nodes as onnx_nodes  # noqa: E402

MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)


def tensor(name: str, *dims: int | str, kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, dims)


def model(
    nodes: list[Any],
    inputs: list[Any],
    outputs: list[Any],
    weights: dict[str, np.ndarray] | None = None,
    opset: int = 20,
    functions: list[Any] | None = None,
) -> Any:
    initializers = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, initializers)
    imports = [
        helper.make_opsetid("", opset),
        helper.make_opsetid("own", 1),
        helper.make_opsetid("com.microsoft", 1),
    ]
    return helper.make_model(graph, opset_imports=imports, functions=functions or [], ir_version=10)


def product(external: bool = False) -> Any:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "times")]
    made = model(
        nodes,
        [tensor("x", "batch", "tokens", 4)],
        [tensor("y", "batch", "tokens", 3)],
        {"w": MATRIX},
    )
    if external:
        place(made, location="weights.bin")
    return made


def place(made: Any, **entries: object) -> None:
    """Moves the weight out of the file."""
    weight = made.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    del weight.external_data[:]
    for key, value in entries.items():
        weight.external_data.add(key=key, value=str(value))


def written(folder: Path, made: Any) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    (folder / "weights.bin").write_bytes(MATRIX.tobytes())
    return path


def refused(made: Any, *parts: str) -> None:
    with pytest.raises(sinter.SinterError) as raised:
        sinter.from_onnx(made)
    for part in parts:
        assert part in str(raised.value)


@pytest.mark.parametrize("external", (False, True))
def test_a_file_runs_is_asked_and_saved(tmp_path: Path, external: bool) -> None:
    imported = sinter.from_onnx(written(tmp_path, product(external)), sizes={"batch": (1, 4)})
    assert imported.inputs == {"x": "f32[batch, tokens, 4]"}
    assert imported.outputs == {"y": "f32[batch, tokens, 3]"}
    x = np.random.default_rng(0).standard_normal((2, 5, 4), dtype=np.float32)
    (y,) = imported.run(None, {"x": x}, device="cpu")
    np.testing.assert_allclose(y, x @ MATRIX, rtol=1e-5)
    assert imported.compile().verify("cpu", symbols={"batch": 2, "tokens": 3})
    compiled = sinter.compile(imported.save(tmp_path / "saved"))
    np.testing.assert_array_equal(compiled.run(x=x), y)
    with pytest.raises(sinter.SinterError, match='no input is called "z".*it has x'):
        imported.run(None, {"z": x})
    with pytest.raises(sinter.SinterError, match="it has other files"):
        imported.save(tmp_path)


def test_the_command_converts(tmp_path: Path) -> None:
    path = written(tmp_path, product())
    arguments = [sys.executable, "-m", "sinter", "convert", str(path), "-o", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [*arguments, "--size", "batch=2"], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stdout) == (0, "") and "→" in done.stderr
    assert "%x: f32[2, tokens, 4]" in (tmp_path / "out" / "model.sir").read_text()
    done = subprocess.run(
        [*arguments, "--size", "batch"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == sinter.Code.USAGE and "NAME=N" in done.stderr


def test_shape_arithmetic_is_of_symbols() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"], axis=0),
        helper.make_node("Gather", ["shape", "one"], ["tokens"], axis=0),
        helper.make_node("Mul", ["batch", "tokens"], ["rows"]),
        helper.make_node("Unsqueeze", ["rows", "axis"], ["rows1"]),
        helper.make_node("Concat", ["rows1", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["flat"]),
        helper.make_node("Range", ["zero", "tokens", "one"], ["places"]),
        helper.make_node("Cast", ["places"], ["numbers"], to=TensorProto.FLOAT),
    ]
    numbers = {
        "zero": np.int64(0),
        "one": np.int64(1),
        "axis": np.array([0]),
        "rest": np.array([-1]),
    }
    made = model(
        nodes,
        [tensor("x", "B", "S", 2, 3)],
        [tensor("flat", "R", 6), tensor("numbers", "S")],
        {name: np.asarray(value) for name, value in numbers.items()},
    )
    x = np.random.default_rng(0).standard_normal((2, 5, 2, 3), dtype=np.float32)
    flat, places = sinter.from_onnx(made).run(None, {"x": x}, device="cpu")
    np.testing.assert_array_equal(flat, x.reshape(10, 6))
    np.testing.assert_array_equal(places, np.arange(5, dtype=np.float32))


def test_functions_of_a_model_and_constant_branches_are_inlined() -> None:
    body = [
        helper.make_node("Mul", ["a", "a"], ["square"]),
        helper.make_node("Add", ["square", "b"], ["c"]),
    ]
    function = helper.make_function(
        "own", "square_plus", ["a", "b"], ["c"], body, [helper.make_opsetid("", 20)]
    )
    one, other = (
        helper.make_graph([helper.make_node(op, ["x"], [op])], op, [], [tensor(op, 3)])
        for op in ("Neg", "Abs")
    )
    nodes = [
        helper.make_node("If", ["yes"], ["z"], then_branch=one, else_branch=other),
        helper.make_node("square_plus", ["x", "z"], ["y"], domain="own"),
    ]
    made = model(
        nodes, [tensor("x", 3)], [tensor("y", 3)], {"yes": np.array(True)}, functions=[function]
    )
    x = np.array([1, -2, 3], np.float32)
    np.testing.assert_array_equal(
        sinter.from_onnx(made).run(["y"], {"x": x}, device="cpu")[0], x * x - x
    )
    del made.graph.initializer[:]
    made.graph.input.append(tensor("yes", kind=TensorProto.BOOL))
    refused(made, "(If, opset 20)", "known only when the model runs")


def test_refusals_say_what_to_do() -> None:
    x, y = [tensor("x", "N", 4)], [tensor("y", "N", 4)]
    made = lambda node, inputs=x: model([node], inputs, y)
    refused(
        made(helper.make_node("Hardmax", ["x"], ["y"], "h")),
        "Hardmax (opset 20)",
        'node "h"',
        "docs/onnx.md",
    )
    with pytest.raises(sinter.SinterError) as info:
        sinter.from_onnx(made(helper.make_node("Hardmax", ["x"], ["y"])), name="m")
    assert info.value.where == "m"
    refused(
        made(helper.make_node("Neg", ["x"], ["y"]), [tensor("x", 4, kind=TensorProto.DOUBLE)]),
        "float64",
        '"x"',
    )
    refused(made(helper.make_node("Neg", ["missing"], ["y"])), 'an input "missing"')
    refused(
        made(
            helper.make_node("Add", ["x", "z"], ["y"]), [tensor("x", "N", 4), tensor("z", "M", 4)]
        ),
        "(Add, opset 20)",
        "not known to be the same",
    )
    refused(
        made(helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E4M3FN)),
        "a cast to float8_e4m3fn",
    )
    loop = helper.make_graph([], "body", [], [])
    refused(made(helper.make_node("Loop", ["x"], ["y"], body=loop)), "a loop")


def test_dims_may_be_as_large_as_others() -> None:
    made = model(
        [helper.make_node("Add", ["x", "z"], ["y"])],
        [tensor("x", "N", 4), tensor("z", "M", 4)],
        [tensor("y", "N", 4)],
    )
    assert sinter.from_onnx(made, sizes={"M": "N", "N": (1, 8)}).inputs["z"] == "f32[N, 4]"
    with pytest.raises(sinter.SinterError, match="as large as another"):
        sinter.from_onnx(made, sizes={"M": "N", "N": "M"})
    with pytest.raises(sinter.SinterError, match="sizes 9 .. 8"):
        sinter.from_onnx(made, sizes={"N": (9, 8)})


HOSTILE = (
    {"location": "../weights.bin"},
    {"location": "/etc/passwd"},
    {"location": "link"},
    {"location": "hard"},
    {"location": "folder/weights.bin"},
    {"location": "fifo"},
    {"location": "missing"},
    {"location": ""},
    {"location": "weights.bin", "offset": 4},
    {"location": "weights.bin", "offset": -4},
    {"location": "weights.bin", "length": 47},
    {"location": "weights.bin", "length": 2**62},
    {"location": "weights.bin", "offset": 100},
    {"location": "weights.bin", "__class__": 1},
    {"length": 48},
)


@pytest.mark.parametrize("entries", HOSTILE, ids=str)
def test_data_beside_a_model_stays_in_its_folder_and_bounds(
    tmp_path: Path, entries: dict[str, object]
) -> None:
    folder, outside = tmp_path / "model", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    made = product(True)
    place(made, **entries)
    path = written(folder, made)
    for one in (outside, tmp_path):
        (one / "weights.bin").write_bytes(MATRIX.tobytes())
    (folder / "link").symlink_to(folder / "weights.bin")
    (folder / "folder").symlink_to(outside)
    os.link(outside / "weights.bin", folder / "hard")
    os.mkfifo(folder / "fifo")
    with pytest.raises(sinter.SinterError) as raised:
        sinter.from_onnx(path)
    assert 'tensor "w"' in str(raised.value) and raised.value.code == sinter.Code.BAD_INPUT


def test_broken_files_are_errors(tmp_path: Path) -> None:
    whole = product().SerializeToString()
    path = tmp_path / "model.onnx"
    for data in (b"", b"\xff" * 64, whole[:20], b"PK\x03\x04"):
        path.write_bytes(data)
        with pytest.raises(sinter.SinterError, match="not an ONNX model"):
            sinter.from_onnx(path)
    random = np.random.default_rng(0)
    for _ in range(200):  # whatever the bytes say, no other exception comes out
        data = bytearray(whole)
        for place_ in random.integers(0, len(data), 3):
            data[place_] = random.integers(0, 256)
        path.write_bytes(data)
        try:
            sinter.from_onnx(path)
        except sinter.SinterError:
            pass


def test_lengths_of_tensors_must_agree() -> None:
    for change in (
        lambda w: w.dims.append(2),
        lambda w: setattr(w, "raw_data", b"1234"),
        lambda w: w.dims.extend([2**40, 2**40]),
        lambda w: setattr(w, "data_type", 99),
    ):
        made = product()
        change(made.graph.initializer[0])
        refused(made, 'tensor "w"')
    made = product()
    made.graph.node.append(helper.make_node("Neg", ["x"], ["y"]))
    refused(made, "defined twice")


def test_a_range_has_all_its_numbers() -> None:
    ends = {"a": np.int64(0), "b": np.int64(20000), "c": np.int64(3)}
    nodes = [helper.make_node("Range", ["a", "b", "c"], ["r"]), helper.make_node("Add", ["r", "x"], ["y"])]
    made = model(nodes, [tensor("x", 1, kind=TensorProto.INT64)], [tensor("y", 6667, kind=TensorProto.INT64)], ends)
    (y,) = sinter.from_onnx(made).run(None, {"x": np.array([5])}, device="cpu")
    np.testing.assert_array_equal(y, np.arange(0, 20000, 3) + 5)


def test_dims_are_told_apart_by_their_whole_names() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    made = model(nodes, [tensor("x", "a.b", "a_b", 4)], [tensor("y", "a.b", "a_b", 3)], {"w": MATRIX})
    imported = sinter.from_onnx(made, sizes={"a.b": 4, "a_b": 8})
    assert imported.inputs == {"x": "f32[4, 8, 4]"}
    assert sinter.from_onnx(made).inputs == {"x": "f32[a_b, a_b_1, 4]"}
    with pytest.raises(sinter.SinterError, match='no dim is called "typo".*a.b, a_b'):
        sinter.from_onnx(made, sizes={"typo": 4})


def test_what_takes_more_than_its_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    older = helper.make_node("Add", ["x", "x"], ["y"], broadcast=1, axis=0)
    refused(model([older], [tensor("x", 2)], [tensor("y", 2)], opset=6), "broadcasting by attributes")
    squared = [helper.make_node("Shape", ["x"], ["s0"])]
    squared += [helper.make_node("Mul", [f"s{i}", f"s{i}"], [f"s{i + 1}"]) for i in range(40)]
    squared.append(helper.make_node("Expand", ["x", "s40"], ["y"]))
    refused(model(squared, [tensor("x", "n")], [tensor("y", "m")]), "node \"y\" (Expand")
    numbers = {"a": np.float32(0), "b": np.float32(1e15), "c": np.float32(1)}
    refused(model([helper.make_node("Range", ["a", "b", "c"], ["r"]), helper.make_node("Add", ["r", "x"], ["y"])],
                  [tensor("x", 1)], [tensor("y", 1)], numbers), "a range of")
    wide = {f"w{i}": np.zeros([4096 if i == j else 1 for j in range(3)], np.int64) for i in range(3)}
    nodes = [helper.make_node("Add", ["w0", "w1"], ["s"]), helper.make_node("Add", ["s", "w2"], ["t"]),
             helper.make_node("Add", ["t", "x"], ["y"])]
    inputs, outputs = ([tensor(name, 1, kind=TensorProto.INT64)] for name in "xy")
    sinter_or_error(model(nodes, inputs, outputs, wide))
    monkeypatch.setattr(onnx_nodes, "MAX_NODES", 1000)
    functions = []
    for i in range(6):
        call = helper.make_node(f"f{i + 1}" if i < 5 else "Relu", ["x"], ["x1"], domain="own" if i < 5 else "")
        nodes = [helper.make_node(call.op_type, [f"x{k or ''}"], [f"x{k + 1}"], domain=call.domain) for k in range(60)]
        functions.append(helper.make_function("own", f"f{i}", ["x"], ["x60"], nodes,
                                              [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]))
    refused(model([helper.make_node("f0", ["x"], ["y"], domain="own")], [tensor("x", 2)], [tensor("y", 2)],
                  functions=functions), "nodes with those of functions")


def sinter_or_error(made: Any) -> None:
    """A model that may be imported or refused, in little memory."""
    try:
        sinter.from_onnx(made)
    except sinter.SinterError:
        pass


def test_nodes_that_no_output_needs_are_left_out() -> None:
    nodes = [
        helper.make_node("Hardmax", ["x"], ["unread"]),
        helper.make_node("MatMul", ["x", "other"], ["unread too"]),
        helper.make_node("Gemm", ["x", "w", "column"], ["y"], alpha=0.5),
    ]
    weights = {"w": MATRIX, "other": MATRIX, "column": np.ones((2, 1), np.float32)}
    imported = sinter.from_onnx(model(nodes, [tensor("x", 2, 4)], [tensor("y", 2, 3)], weights))
    (y,) = imported.run(None, {"x": np.ones((2, 4), np.float32)}, device="cpu")
    np.testing.assert_allclose(y, np.ones((2, 4)) @ MATRIX / 2 + 1)
    assert len(imported.weights) == 2


def test_bodies_are_those_of_an_older_opset() -> None:
    node = helper.make_node("Attention", ["x", "x", "x"], ["y", "", "", "scores"], scale=0.25)
    outputs = [tensor("y", 1, 2, 5, 4), tensor("scores", 1, 2, 5, 5)]
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 4), dtype=np.float32)
    imported = sinter.from_onnx(model([node], [tensor("x", 1, 2, 5, 4)], outputs, opset=26))
    y, scores = imported.run(None, {"x": x}, device="cpu")
    np.testing.assert_allclose(scores, x @ x.swapaxes(2, 3) / 4, rtol=1e-5, atol=1e-6)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(y, weights @ x, rtol=1e-5, atol=1e-6)


def test_a_number_stays_without_axes() -> None:
    node = helper.make_node("Celu", ["x"], ["y"], alpha=2.0)
    imported = sinter.from_onnx(model([node], [tensor("x")], [tensor("y")]))
    for x in (-1.5, 0.0, 2.5):
        (y,) = imported.run(None, {"x": np.array(x, np.float32)}, device="cpu")
        assert y.shape == () and abs(y - (x if x > 0 else 2 * np.expm1(x / 2))) < 1e-6


def test_results_that_nobody_reads_are_not_computed() -> None:
    node = helper.make_node(
        "SkipSimplifiedLayerNormalization",
        ["x", "x", "w"],
        ["y", "mean", "deviation", "sum"],
        domain="com.microsoft",
    )
    outputs = [tensor(name, 2, 3) for name in ("y", "sum")]
    made = model([node], [tensor("x", "2", "3")], outputs, {"w": np.ones(3, np.float32)})
    imported = sinter.from_onnx(made)
    assert imported.inputs == {"x": "f32[2, 3]"}  # names that are numbers are sizes
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(imported.run(["sum"], {"x": x}, device="cpu")[0], 2 * x)
    made.graph.output.append(tensor("mean", 2, 1))
    refused(made, "the mean or the inverse deviation")


def test_dynamic_dims_are_padded_and_turned_around() -> None:
    nodes = [
        helper.make_node("Pad", ["x", "pads"], ["p"], mode="constant"),
        helper.make_node("Slice", ["p", "last", "first", "axis", "last"], ["y"]),
    ]
    numbers = {"pads": [1, 0, 2, 0], "last": [-1], "first": [-(2**63)], "axis": [0]}
    constants = {name: np.array(given) for name, given in numbers.items()}
    imported = sinter.from_onnx(model(nodes, [tensor("x", "n", 2)], [tensor("y", "m", 2)], constants))
    for count in (1, 4):
        x = np.arange(2.0 * count, dtype=np.float32).reshape(count, 2)
        (y,) = imported.run(None, {"x": x}, device="cpu")
        np.testing.assert_array_equal(y, np.pad(x, ((1, 2), (0, 0)))[::-1])


def test_a_convolution_has_a_dynamic_batch() -> None:
    conv = helper.make_node("Conv", ["x", "w"], ["y"], strides=[2], pads=[1, 1], dilations=[2])
    weight = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    made = sinter.from_onnx(model([conv], [tensor("x", "n", 2, 8)], [tensor("y", "n", 2, 3)], {"w": weight}))
    x = np.arange(48, dtype=np.float32).reshape(3, 2, 8) - 20
    inside = np.pad(x, ((0, 0), (0, 0), (1, 1)))
    expected = sum(np.einsum("ncl,mc->nml", inside[:, :, 2 * k:2 * k + 5:2], weight[:, :, k]) for k in range(3))
    np.testing.assert_array_equal(made.run(None, {"x": x}, device="cpu")[0], expected)
