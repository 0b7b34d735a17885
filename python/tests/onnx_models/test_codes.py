"""Quantized ONNX models, beside onnx.reference and the formulas of ONNX Runtime's documentation."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import sinter  # noqa: E402

Array = np.ndarray
N, K = 24, 72  # columns and rows of a matrix
RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15)}


def model(
    nodes: list[Any], weights: dict[str, Array], x: Array, opset: int = 21, kind: int = 0
) -> Any:
    of = helper.np_dtype_to_tensor_dtype(x.dtype)
    inputs = [helper.make_tensor_value_info("x", of, ["n", *x.shape[1:]])]
    outputs = [helper.make_tensor_value_info("y", kind or of, None)]
    stored = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, stored)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def compare(made: Any, x: Array, packed: int, bound: float = 2e-6) -> Any:
    """Runs a model beside the reference, which has these ops since opset 19 and as later ones. packed: how many
    matrices of it stay codes."""
    imported = sinter.from_onnx(made)
    made.opset_import[0].version = 21
    (wanted,) = ReferenceEvaluator(made).run(None, {"x": x})
    (ours,) = imported.run(None, {"x": x}, device="cpu")
    assert ours.shape == wanted.shape and ours.dtype == wanted.dtype
    wide = wanted.astype(np.float64)
    most = max(1.0, np.abs(wide).max())
    np.testing.assert_allclose(ours.astype(np.float64), wide, rtol=0, atol=bound * most)
    assert imported.text.count("= pack_codes ") == packed, imported.text
    return imported


def drawn(code: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    low, high = RANGES[code]
    numbers = np.random.default_rng(seed).integers(low, high + 1, shape)
    return numbers.astype(getattr(ml_dtypes, code, None) or np.dtype(code))


def scales(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    return (np.random.default_rng(sum(shape)).uniform(0.5, 2, shape) / 64).astype(dtype)


def rows(dtype: Any = np.float32, width: int = K) -> Array:
    return np.random.default_rng(1).standard_normal((5, width)).astype(dtype)


# By name: the shape of scales of a matrix [K, N], and the attributes of DequantizeLinear.
FORMS: dict[str, tuple[tuple[int, ...], dict[str, int]]] = {
    "tensor": ((), {}),
    "columns": ((N,), {"axis": 1}),
    "rows": ((K,), {"axis": 0}),
    "blocks": ((5, N), {"axis": 0, "block_size": 16}),
    "blocks of rows": ((K, 2), {"axis": 1, "block_size": 16}),
    "odd blocks": ((6, N), {"axis": 0, "block_size": 12}),
}


@pytest.mark.parametrize("code", RANGES)
@pytest.mark.parametrize("form", FORMS)
def test_matrices_of_codes(code: str, form: str) -> None:
    shape, attributes = FORMS[form]
    operands = ["w", "s", "z"]
    weights = {"w": drawn(code, (K, N)), "s": scales(shape), "z": drawn(code, shape, 2)}
    nodes = [
        helper.make_node("DequantizeLinear", operands, ["d"], **attributes),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    is_kept = form != "odd blocks"
    imported = compare(model(nodes, weights, rows()), rows(), int(is_kept))
    assert [note for note in imported.notes if "become float32" in note] == []
    if is_kept and form != "rows" and not form.endswith("of rows"):
        assert "transpose" not in imported.text


def test_half_and_older_opsets_and_other_readers(tmp_path: Any) -> None:
    weights = {"w": drawn("int8", (N, K)), "s": scales((N,))}
    turned = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0),
        helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
    ]
    imported = compare(model(turned, weights, rows(), 13), rows(), 1)
    compiled = sinter.compile(imported.save(tmp_path / "saved"))
    again = imported.run(None, {"x": rows()}, device="cpu")[0]
    np.testing.assert_array_equal(compiled.run(x=rows()), again)
    gemm = [turned[0], helper.make_node("Gemm", ["x", "d"], ["y"], transB=1)]
    compare(model(gemm, weights, rows(), 13), rows(), 1)
    weights["s"] = scales((N,), np.float16)
    compare(model(gemm, weights, rows(np.float16), 19), rows(np.float16), 1, 2e-3)
    ids = np.array([[3], [0], [-1]])
    table = [turned[0], helper.make_node("Gather", ["d", "x"], ["y"])]
    compare(model(table, weights, ids, 19, TensorProto.FLOAT16), ids, 1, 2e-3)
    one = {"w": drawn("uint8", (K, N)), "s": np.float32(0.03), "z": np.uint8(128)}
    old = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"]),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    kept = compare(model(old, one, rows(), 10), rows(), 1)
    assert 'codes = "int8 row f32"' in kept.text and kept.compile().verify("cpu", symbols={"n": 5})


def test_constants_that_are_quantized_here() -> None:
    weights = {
        "w": rows(width=N),
        "s": scales((N,)),
        "z": drawn("int8", (N,)),
        "b": drawn("int8", (N,)),
    }
    weights["c"] = np.arange(N, dtype=np.int32) - 9
    nodes = [
        helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"], axis=1),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=1),
        helper.make_node("MatMul", ["x", "d"], ["p"]),
        helper.make_node("DequantizeLinear", ["c", "s"], ["bias"], axis=0),
        helper.make_node("Add", ["p", "bias"], ["y"]),
    ]
    x = rows(width=5)
    compare(model(nodes, weights, x), x, 1)


@pytest.mark.parametrize("code", RANGES)
def test_activations_are_rounded(code: str) -> None:
    """Halves go to even, and what is outside of the codes' range becomes its end."""
    shape = (N,)
    x = np.concatenate(
        [rows(width=N) * 3, np.full((2, N), 1e6), np.arange(-60, 60).reshape(5, N) / 2]
    ).astype(np.float32)
    weights = {
        "s": np.where(np.arange(N) % 2, scales(shape) * 8, 1).astype(np.float32),
        "z": drawn(code, shape),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    compare(model(nodes, weights, x), x, 0, 0)


def test_products_of_integers_are_exact() -> None:
    """A dynamically quantized product of 600 terms, more than float32 adds exactly."""
    x = rows(width=600)
    for code in ("int8", "uint8"):
        weights = {"w": drawn(code, (600, N)), "z": drawn(code, (N,))}
        nodes = [
            helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
            helper.make_node("MatMulInteger", ["q", "w", "zero", "z"], ["y"]),
        ]
        compare(model(nodes, weights, x, kind=TensorProto.INT32), x, 0, 0)
    weights = {
        "s": np.float32(0.02),
        "z": np.uint8(120),
        "w": drawn("uint8", (600, N)),
        "o": np.float32(9),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("QLinearMatMul", ["q", "s", "z", "w", "s", "z", "o", "z"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "s", "z"], ["y"]),
    ]
    compare(model(nodes, weights, x), x, 0, 0)


def nbits(bits: int, block: int, length: int, zeros: str, dtype: Any) -> tuple[Any, Array, Array]:
    """A model of MatMulNBits, its input, and the matrix [N, K] that the documentation says."""
    random, blocks = np.random.default_rng(bits + block), -(-length // block)
    codes = random.integers(0, 2**bits, (N, blocks * block))
    packed = codes if bits == 8 else codes[:, 0::2] | codes[:, 1::2] << 4
    weights = {
        "w": packed.astype(np.uint8).reshape(N, blocks, -1),
        "s": scales((N * blocks,), dtype),
    }
    points = random.integers(0, 2**bits, (N, blocks + blocks % 2 * (bits == 4)))
    if zeros == "packed":
        rows_ = points if bits == 8 else points[:, 0::2] | points[:, 1::2] << 4
        weights["z"] = rows_.astype(np.uint8).reshape(-1)
    elif zeros:
        points = points + (0.25 if zeros == "fractions" else 0)
        weights["z"] = points[:, :blocks].astype(dtype).reshape(-1)
    spread = lambda x: np.repeat(x[:, :blocks], block, 1)[:, :length]
    middle = spread(points) if zeros else 2 ** (bits - 1)
    matrix = (codes[:, :length] - middle) * spread(weights["s"].reshape(N, -1).astype(np.float64))
    x = rows(dtype, length)
    node = helper.make_node(
        "MatMulNBits",
        ["x", *weights],
        ["y"],
        domain="com.microsoft",
        K=length,
        N=N,
        bits=bits,
        block_size=block,
    )
    return model([node], weights, x), x, matrix


@pytest.mark.parametrize("bits", (4, 8))
@pytest.mark.parametrize("zeros", ("", "packed", "whole", "fractions"))
@pytest.mark.parametrize("block", (16, 32, 64, 128, 256))
def test_products_of_runtime(bits: int, zeros: str, block: int) -> None:
    for length, dtype in ((256, np.float32), (block + 24, np.float16)):
        made, x, matrix = nbits(bits, block, length, zeros, dtype)
        imported = sinter.from_onnx(made)
        (y,) = imported.run(None, {"x": x}, device="cpu")
        wanted = x.astype(np.float64) @ matrix.T
        bound = (
            np.abs(x.astype(np.float64))
            @ np.abs(matrix.T)
            * (2e-6 if dtype is np.float32 else 1e-3)
        )
        assert y.dtype == dtype and (np.abs(y - wanted) <= bound).all()
        assert bool(imported.notes) == (zeros == "fractions")
        assert imported.text.count("= pack_codes") == (zeros != "fractions")


@pytest.mark.parametrize("bits", (4, 8))
@pytest.mark.parametrize("zeros", ("", "packed"))
def test_rows_of_tables_of_runtime(bits: int, zeros: str) -> None:
    made, _, matrix = nbits(bits, 32, 64, zeros, np.float16)
    table, scale = (numpy_helper.to_array(one) for one in made.graph.initializer[:2])
    weights = {"w": table.reshape(N, -1), "s": scale.reshape(N, 2)}
    if zeros:
        weights["z"] = numpy_helper.to_array(made.graph.initializer[2]).reshape(N, -1)
    node = helper.make_node(
        "GatherBlockQuantized",
        ["w", "x", *list(weights)[1:]],
        ["y"],
        domain="com.microsoft",
        bits=bits,
        block_size=32,
        gather_axis=0,
        quantize_axis=1,
    )
    ids = np.array([[3, 0], [N - 1, -2]])
    imported = sinter.from_onnx(model([node], weights, ids, kind=TensorProto.FLOAT16))
    (y,) = imported.run(None, {"x": ids}, device="cpu")
    np.testing.assert_array_equal(y, matrix[ids].astype(np.float16))
    assert imported.text.count("= pack_codes") == 1
    node.attribute.append(helper.make_attribute("gather_axis", 1))
    node.attribute.pop(2)
    with pytest.raises(sinter.SinterError, match="columns of a table"):
        sinter.from_onnx(model([node], weights, ids, kind=TensorProto.FLOAT16))


def test_what_is_refused() -> None:
    made, *_ = nbits(4, 32, 64, "", np.float32)
    node = made.graph.node[0]
    node.input.extend(["", "g"])
    made.graph.initializer.append(numpy_helper.from_array(np.zeros(64, np.int32), "g"))
    with pytest.raises(sinter.SinterError, match="MatMulNBits.*in another order"):
        sinter.from_onnx(made)
    made, *_ = nbits(4, 32, 64, "", np.float32)
    made.graph.node[0].attribute[0].i = 96
    with pytest.raises(sinter.SinterError, match="MatMulNBits.*do not fit"):
        sinter.from_onnx(made)
    made, *_ = nbits(4, 24, 72, "", np.float32)
    with pytest.raises(sinter.SinterError, match="blocks of 24 codes"):
        sinter.from_onnx(made)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"]),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    with pytest.raises(sinter.SinterError, match=r"DequantizeLinear.*scales \[7, 1\]"):
        sinter.from_onnx(model(nodes, {"w": drawn("int8", (K, N)), "s": scales((7,))}, rows()))
    nodes = [helper.make_node("QuantizeLinear", ["x", "s"], ["y"])]
    with pytest.raises(sinter.SinterError, match='output "y".*elements of uint8|elements of uint8'):
        sinter.from_onnx(model(nodes, {"s": np.float32(1)}, rows(), kind=TensorProto.UINT8))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"]),
        helper.make_node("Relu", ["q"], ["y"]),
    ]
    with pytest.raises(sinter.SinterError, match="Relu.*elements of uint8"):
        sinter.from_onnx(model(nodes, {"s": np.float32(1)}, rows(), kind=TensorProto.UINT8))
