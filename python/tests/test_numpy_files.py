"""Files of NumPy as inputs and results of the program, beside NumPy itself."""

import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT


GOLDEN = ROOT / "tests" / "golden"

MODULE = """
module @m {
  symbol N in [1, 64]
  entry @main(%x: f32[N, 3], %h: f16[N], %ids: i32[N], %far: i64[N], %mask: i1[N])
      -> (%x2, %h2, %ids, %far, %mask2) {
    %x2 = add %x, %x : f32[N, 3]
    %h2 = add %h, %h : f16[N]
    %mask2 = logical_not %mask : i1[N]
  }
}
"""


def program(*arguments, code=0):
    run = subprocess.run([sys.executable, "-m", "sinter", *map(str, arguments), "--device", "cpu"],
                         capture_output=True, text=True)
    assert run.returncode == code, run.stderr
    return run.stderr if code else run.stdout


@pytest.fixture
def place(tmp_path):
    (tmp_path / "m.sir").write_text(MODULE)
    return tmp_path


def inputs(rows):
    generator = np.random.default_rng(3)
    return {
        "x": generator.standard_normal((rows, 3), dtype=np.float32),
        "h": generator.standard_normal(rows).astype(np.float16),
        "ids": np.arange(rows, dtype=np.int64),  # read as i32
        "far": np.arange(rows) + 2**40,
        "mask": np.arange(rows) % 3 == 0,
    }


@pytest.mark.parametrize("rows", [1, 2, 64])
def test_arrays_go_through_the_program(place, rows):
    given = inputs(rows)
    np.savez(place / "in.npz", **given)
    program("run", place / "m.sir", "--inputs", place / "in.npz", "--out", place / "out.npz")
    with np.load(place / "out.npz", allow_pickle=False) as out:
        assert sorted(out) == ["far", "h2", "ids", "mask2", "x2"]
        np.testing.assert_array_equal(out["x2"], given["x"] + given["x"])
        np.testing.assert_array_equal(out["h2"], given["h"] + given["h"])
        np.testing.assert_array_equal(out["ids"], given["ids"])
        np.testing.assert_array_equal(out["far"], given["far"])
        np.testing.assert_array_equal(out["mask2"], ~given["mask"])
        assert [out[name].dtype for name in ("x2", "h2", "ids", "far", "mask2")] == [
            np.float32, np.float16, np.int32, np.int64, np.bool_]


@pytest.mark.parametrize("change, message", [
    ({"x": np.zeros((2, 3), ">f4")}, "big-endian"),
    ({"x": np.zeros((2, 3), order="F", dtype=np.float32)}, "Fortran order, expected C order"),
    ({"x": np.zeros((2, 3))}, "tensor x is F64 [2, 3], the input is f32[N, 3]"),
    ({"x": np.zeros((2, 3), "U4")}, 'elements of type "<U4"'),
    ({"x": np.zeros(2, [("a", "f4")])}, "the elements have fields"),
    ({"h": np.zeros(2, np.uint8)}, "tensor h is U8 [2], the input is f16[N]"),
    ({"ids": np.full(2, 2**40)}, "element 0 of the I64 tensor"),
    ({"y": np.zeros(2)}, 'tensor "y" is called like no input'),
])
def test_arrays_that_do_not_fit_are_named(place, change, message):
    np.savez(place / "in.npz", **{**inputs(2), **change})
    assert message in program("run", place / "m.sir", "--inputs", place / "in.npz", code=4)


def test_compressed_archives_and_pickles_are_refused(place):
    np.savez_compressed(place / "in.npz", **inputs(2))
    error = program("run", place / "m.sir", "--inputs", place / "in.npz", code=4)
    assert "write it with numpy.savez, not numpy.savez_compressed" in error
    np.save(place / "in.npy", np.array([None, {}], dtype=object), allow_pickle=True)
    error = program("run", place / "m.sir", "--inputs", place / "in.npy", code=4)
    assert 'elements of type "|O"' in error


def test_one_array_is_the_only_input(place):
    (place / "one.sir").write_text("""
module @one {
  entry @main(%x: f32[2, 3]) -> (%y) {
    %y = neg %x : f32[2, 3]
  }
}
""")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(place / "anything.npy", x)
    program("run", place / "one.sir", "--inputs", place / "anything.npy", "--out",
            place / "y.npy")
    np.testing.assert_array_equal(np.load(place / "y.npy"), -x)
    program("verify", place / "one.sir", "--inputs", place / "anything.npy", "--reference",
            place / "y.npy")
    np.save(place / "y.npy", x)
    program("verify", place / "one.sir", "--inputs", place / "anything.npy", "--reference",
            place / "y.npy", code=3)


def test_vectors_of_texts(place):
    model = GOLDEN / "bert_post_ln"
    program("embed", model, "--tokens", "1,2,3", "--tokens", "4", "-o", place / "v.npy")
    vectors = np.load(place / "v.npy")
    assert vectors.shape == (2, 64) and vectors.dtype == np.float32
    lines = program("embed", model, "--tokens", "1,2,3", "--tokens", "4").splitlines()
    shown = np.array([[float(x) for x in line.split()] for line in lines])
    np.testing.assert_allclose(vectors, shown, rtol=1e-6)
