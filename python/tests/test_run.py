"""Plans on the CPU: tensors of every kind, states, prebound calls, and what is refused."""

import re
import sys
import threading
import time
import warnings

import ml_dtypes
import numpy as np
import pytest
from conftest import ADD, BLOCK, CACHE, SAMPLES, block_in_float64

import sinter
from sinter import tensors

HALVES = """
module @halves {
  symbol N in [1, 64]
  entry @main(%x: bf16[N, 4]) -> (%y) {
    %y = add %x, %x : bf16[N, 4]
  }
}
"""

MASKS = """
module @masks {
  weight %w : i1[4] = file {tensor = "w"}
  entry @main(%m: i1[4]) -> (%y) {
    %y = logical_and %m, %w : i1[4]
  }
}
"""


def random(*shape):
    return np.random.default_rng(7).standard_normal(shape, dtype=np.float32)


def test_a_run_gives_what_float64_gives(block, weights):
    ids, r = np.array([3, 0, 9, 3], np.int32), random(4, 8)
    outputs = block.run(ids=ids, r=r)
    assert list(outputs) == ["y", "n"]
    y, n = block_in_float64(weights, ids, r)
    np.testing.assert_allclose(outputs["n"], n, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(outputs["y"], y, rtol=1e-5, atol=1e-5)


def test_one_output_is_given_as_itself():
    x, y = random(3, 4), random(3, 4)
    result = sinter.compile(ADD).run(x=x, y=y)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, x * y + y)


def test_runs_of_different_sizes_follow_one_another():
    add = sinter.compile(ADD)
    for rows in (3, 64, 1, 0, 5):
        x, y = random(rows, 4), random(rows, 4)
        np.testing.assert_array_equal(add.run(x=x, y=y), x * y + y)


def test_names_that_are_no_words_come_in_a_dict(block):
    ids, r = np.array([1], np.int32), random(1, 8)
    np.testing.assert_array_equal(
        block.run("main", {"ids": ids}, r=r)["y"], block.run("main", {"ids": ids, "r": r})["y"]
    )


def test_strides_are_followed_and_nothing_is_copied():
    x = random(6, 8)[::2, ::-2]
    y = np.broadcast_to(random(1, 4), (3, 4))
    out = np.zeros((4, 3), np.float32)
    result = sinter.compile(ADD).run(x=x, y=y, out={"z": out.T})
    np.testing.assert_array_equal(out.T, x * y + y)
    assert np.shares_memory(result, out)
    assert tensors.borrow(x, "x").address == x.ctypes.data
    assert tensors.borrow(x, "x").strides == (16, -2)


class Exporter:
    """A tensor that speaks DLPack and nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_dlpack_tensors_are_taken_where_they_are():
    x, y = random(6, 4)[::2], random(3, 4)
    add = sinter.compile(ADD)
    np.testing.assert_array_equal(add.run(x=Exporter(x), y=Exporter(y)), x * y + y)
    borrowed = tensors.borrow(Exporter(x), "x")
    assert (borrowed.address, borrowed.dims, borrowed.strides) == (x.ctypes.data, (3, 4), (8, 1))
    assert (borrowed.dtype, borrowed.device, borrowed.kind) == ("f32", "cpu", "dlpack")
    out = np.empty((3, 4), np.float32)
    add.run(x=x, y=y, out={"z": Exporter(out)})
    np.testing.assert_array_equal(out, x * y + y)


def test_bf16_is_ml_dtypes_or_bits(monkeypatch):
    halves = sinter.compile(HALVES)
    x = np.arange(8).reshape(2, 4).astype(ml_dtypes.bfloat16)
    result = halves.run(x=x)
    assert result.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(result, x + x)
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    with pytest.warns(UserWarning, match="NumPy has no bfloat16"):
        bits = halves.run(x=x)
    assert bits.dtype == np.uint16
    np.testing.assert_array_equal(bits.view(ml_dtypes.bfloat16), x + x)
    out = np.empty((2, 4), np.uint16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        halves.run(x=x, out={"y": out})
    np.testing.assert_array_equal(out, bits)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"x": np.zeros((3, 5), np.float32)},
            r"input x: f32\[3, 5\] is given, f32\[N, 4\] is wanted",
        ),
        ({"x": np.zeros((3, 4))}, r"input x: elements of NumPy type <f8 \(float64\)"),
        (
            {"x": np.zeros((3, 4), np.float16)},
            r"input x: f16\[3, 4\] is given, f32\[N, 4\] is wanted",
        ),
        ({"x": np.zeros((3, 4), ">f4")}, "input x: elements of NumPy type >f4"),
        ({"x": np.zeros((2, 4), np.float32)}, "symbol N is 2 by input x and 3 by input y"),
        ({"x": [[1.0] * 4]}, "input x: a list is given, a tensor is wanted"),
        ({"w": np.zeros(3)}, 'no input is called "w"; it has x, y'),
        ({"out": {"y": np.zeros(3)}}, 'no output is called "y"; it has z'),
        (
            {"out": {"z": np.zeros((3, 4), np.int32)}},
            r"output z: i32\[3, 4\] is given, f32\[N, 4\]",
        ),
        (
            {"out": {"z": np.zeros((4, 4), np.float32)}},
            r"output z: f32\[4, 4\] is given, f32\[3, 4\]",
        ),
        ({"symbols": {"N": 2}}, "symbol N is 2 by set_symbol and 3 by input x"),
        ({"symbols": {"M": 2}}, 'no symbol is called "M"'),
        ({"device": "tpu"}, "tpu"),
    ],
)
def test_what_does_not_fit_is_named_with_both_values(change, message):
    given = {"x": np.zeros((3, 4), np.float32), "y": np.zeros((3, 4), np.float32), **change}
    with pytest.raises(sinter.SinterError, match=message):
        sinter.compile(ADD).run(**given)


def test_a_masked_array_is_refused(weights):
    x, y = (np.zeros((3, 4), np.float32) for _ in range(2))
    masked = np.ma.masked_array(x, mask=np.eye(3, 4))
    add, message = sinter.compile(ADD), "a masked array is given.*array.filled"
    with pytest.raises(sinter.SinterError, match="entry main, input x: " + message):
        add.run(x=masked, y=y)
    with pytest.raises(sinter.SinterError, match="entry main, output z: " + message):
        add.run(x=x, y=y, out={"z": masked})
    with pytest.raises(sinter.SinterError, match="weight tensor w: " + message):
        sinter.compile(BLOCK, weights={**weights, "w": np.ma.masked_array(weights["w"])})


def test_the_range_of_a_symbol_is_checked_before_memory_is_taken():
    x = np.broadcast_to(np.float32(1), (1 << 40, 4))
    with pytest.raises(
        sinter.SinterError,
        match=r"entry main, input x: N is 1099511627776, the plan is for 0 to 64 in steps of 1",
    ):
        sinter.compile(ADD).run(x=x, y=x)


def test_a_truth_value_is_0_or_1():
    masks = sinter.compile(MASKS, weights={"w": np.ones(4, bool)})
    given = np.array([1, 0, 1, 0, 0, 0, 255, 1], np.uint8)
    mask = given[:4].view(bool)
    np.testing.assert_array_equal(masks.run(m=mask), mask)
    said = r"entry main: %m\[{}\] is 255, a truth value \(i1\) is 0 or 1"
    with pytest.raises(sinter.SinterError, match=said.format(2)):
        masks.run(m=given[4:].view(bool))
    with pytest.raises(sinter.SinterError, match=said.format(3)):
        masks.run(m=given.view(bool)[::2])
    wrong = {"w": np.array([0, 1, 2, 1], np.uint8).view(bool)}
    with pytest.raises(sinter.SinterError, match="weight tensor w: element 2 is 2, a truth value"):
        sinter.compile(MASKS, weights=wrong).run(m=mask)


def test_what_is_missing_is_named():
    add = sinter.compile(ADD)
    with pytest.raises(
        sinter.SinterError, match=r"input y: no tensor is given, f32\[N, 4\] is wanted"
    ):
        add.run(x=np.zeros((3, 4), np.float32))
    add.run(x=np.zeros((3, 4), np.float32), y=np.zeros((3, 4), np.float32))
    with pytest.raises(sinter.SinterError, match="input y: no tensor is given"):
        add.run(x=np.zeros((3, 4), np.float32))


def test_a_read_only_result_is_refused():
    out = np.zeros((1, 4), np.float32)
    out.flags.writeable = False
    x = np.zeros((1, 4), np.float32)
    with pytest.raises(sinter.SinterError, match="output z: the array is read-only"):
        sinter.compile(ADD).run(x=x, y=x, out={"z": out})


def test_a_symbol_of_one_run_is_not_one_of_the_next():
    add = sinter.compile(ADD)
    for rows in (3, 2):
        x = np.zeros((rows, 4), np.float32)
        assert add.run(x=x, y=x, symbols={"N": rows}).shape == (rows, 4)
    x = np.zeros((5, 4), np.float32)
    assert add.run(x=x, y=x).shape == (5, 4)


def test_a_row_number_that_names_no_row_is_an_error(block):
    with pytest.raises(sinter.SinterError, match="%ids.1. is 10"):
        block.run(ids=np.array([3, 10], np.int32), r=random(2, 8))


def test_a_weight_is_given_by_a_name():
    with pytest.raises(sinter.SinterError, match="weights: the key 1 is no str"):
        sinter.compile(ADD, weights={1: np.zeros(8, np.float32)})


def test_weights_that_are_missing_or_of_another_type_are_named(weights):
    ids, r = np.array([1], np.int32), random(1, 8)
    with pytest.raises(sinter.SinterError, match="table"):
        sinter.compile(BLOCK).run(ids=ids, r=r)
    wrong = {**weights, "w": np.zeros(9, np.float32)}
    with pytest.raises(sinter.SinterError, match=r"f32\[9\]"):
        sinter.compile(BLOCK, weights=wrong).run(ids=ids, r=r)


def test_states_stay_in_a_session_and_not_between_runs():
    cached = sinter.compile(CACHE)
    x = random(2, 4)
    with cached.session("cpu", symbols={"R": 8}) as session:
        first = session.run(x=x, slot=np.array([0, 1], np.int32))
        second = session.run(x=x, slot=np.array([4, 5], np.int32))
        np.testing.assert_allclose(second, 2 * first, rtol=1e-6)
        state = session.read_state("cache")
        np.testing.assert_array_equal(state[4:6], x)
        assert not state[6:].any()
        session.clear()
        assert not session.read_state("cache").any()
        with pytest.raises(sinter.SinterError, match="no such state; it has cache"):
            session.read_state("keys")
    alone = [cached.run(x=x, slot=np.array([i, i + 1], np.int32), symbols={"R": 8}) for i in (0, 4)]
    np.testing.assert_array_equal(alone[0], alone[1])
    with pytest.raises(sinter.SinterError, match="symbol R has no value"):
        cached.run(x=x, slot=np.array([0, 1], np.int32))


def test_a_prebound_call_runs_on_what_its_memory_holds():
    x, y, z = random(3, 4), random(3, 4), np.zeros((3, 4), np.float32)
    with sinter.compile(ADD).session("cpu") as session:
        call = session.call().bind(x=x, y=y, out={"z": z})
        for factor in (1, 2):
            x *= factor
            assert call.run() is z
            np.testing.assert_array_equal(z, x * y + y)
        call.bind(y=x, out={"z": z})  # x stays
        call.run()
        np.testing.assert_array_equal(z, x * x + x)
        other, moved = random(3, 4), np.zeros((3, 4), np.float32)
        call.move([other.ctypes.data, y.ctypes.data], [moved.ctypes.data])
        assert call.run() == {}
        np.testing.assert_array_equal(moved, other * y + y)
        with pytest.raises(ValueError):
            call.move([other.ctypes.data], [moved.ctypes.data])
        with pytest.raises(sinter.SinterError, match="input x: f32.3, 4. has no memory"):
            call.move([0, y.ctypes.data], [moved.ctypes.data])
        call.forget()
        with pytest.raises(sinter.SinterError, match="no tensors are bound"):
            call.run()


def test_an_output_that_is_named_twice_is_one():
    twice = sinter.compile(ADD.replace("-> (%z)", "-> (%z, %p, %z)"))
    x, y = random(3, 4), random(3, 4)
    z, p = np.zeros((2, 3, 4), np.float32)
    assert list(twice.run(x=x, y=y)) == ["z", "p"]
    with twice.session("cpu") as session:
        call = session.call().bind(x=x, y=y)
        call.move([x.ctypes.data, y.ctypes.data], [z.ctypes.data, p.ctypes.data, z.ctypes.data])
        call.run()
    np.testing.assert_array_equal(p, x * y)
    np.testing.assert_array_equal(z, x * y + y)


def test_threads_run_at_the_same_time_on_one_plan(block, weights):
    ids, r = np.array([3, 0, 9], np.int32), random(3, 8)
    expected = block.run(ids=ids, r=r)["y"]
    wrong = []

    def work():
        for _ in range(30):
            if not np.array_equal(block.run(ids=ids, r=r)["y"], expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


IN_USE = "the session is in use, by another thread.*give each thread a session of its own"


def test_a_session_is_used_by_one_thread_at_a_time():
    add = sinter.compile(ADD)
    x = random(64, 4)
    refused, wrong = [], []
    with add.session("cpu") as session:

        def work(y):
            expected = x * y + y
            for _ in range(500):
                try:
                    if not np.array_equal(session.run(x=x, y=y), expected):
                        wrong.append(y)
                except sinter.SinterError as error:
                    refused.append(str(error))

        switch = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            threads = [threading.Thread(target=work, args=(random(64, 4) + i,)) for i in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(switch)
        assert not wrong
        assert refused
        assert all(re.search(IN_USE, error) for error in refused)
        np.testing.assert_array_equal(session.run(x=x, y=x), x * x + x)


def test_nothing_of_a_session_that_is_in_use_can_be_used_or_freed():
    cached = sinter.compile(CACHE)
    x, slot = random(1, 4), np.array([0], np.int32)
    session = cached.session("cpu", symbols={"R": 8})
    call = session.call().bind(x=x, slot=slot)

    class Busy(Exporter):
        """Its memory is asked for in the middle of a run."""

        def __dlpack__(self, **options):
            for function in (
                lambda: session.run(x=x, slot=slot),
                lambda: call.bind(x=x),
                call.run,
                call.prepare,
                call.check,
                call.forget,
                call.close,
                lambda: call.move([0, 0], [0]),
                session.clear,
                session.synchronize,
                session.forget,
                session.close,
                lambda: session.read_state("cache"),
            ):
                with pytest.raises(sinter.SinterError, match=IN_USE):
                    function()
            return super().__dlpack__(**options)

    for _ in range(2):
        np.testing.assert_allclose(session.run(x=Busy(x), slot=slot), x)
    with pytest.raises(sinter.SinterError, match="is wanted"):
        session.run(x=Busy(x[:, :2]), slot=slot)
    session.close()


def test_other_threads_go_on_while_a_call_runs():
    compiled = sinter.compile(SAMPLES / "glu_mlp.sir", random_weights=1)
    x = np.zeros((48, 1024), ml_dtypes.bfloat16)
    with compiled.session("cpu") as session:
        call = session.call("prefill").bind(x=x)
        began, ended = [], []

        def work():
            began.append(time.monotonic())
            call.run()
            ended.append(time.monotonic())

        thread = threading.Thread(target=work)
        thread.start()
        ticks = []
        while thread.is_alive():
            ticks.append(time.monotonic())
            time.sleep(0.001)
        assert sum(began[0] < tick < ended[0] for tick in ticks) > 3
