"""An object that is closed while a call uses it is freed after the call, and what threads share
gives errors or right results. histories.py plays more of them: `python tests/histories.py`."""

import gc
import threading
from collections import Counter

import numpy as np
import pytest
from conftest import ADD, SAMPLES
from histories import run_all
from history_kinds import PROMPTS, tokens_alone

import sinter
from sinter._bindings import lib

TINY = SAMPLES / "tiny-llama"


def in_threads(*works):
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    return threads


def join(threads):
    for thread in threads:
        thread.join()


def test_histories_of_threads_end_with_errors_or_right_results():
    assert run_all(count=14) == []


def test_what_a_call_was_given_is_freed_when_the_call_has_returned(handles):
    compiled = sinter.compile(ADD)
    session, model = compiled.session("cpu"), sinter.LanguageModel(TINY, "cpu")
    module = sinter.ModuleBuilder()
    graph = module.entry("main")
    owners = {
        "plan": compiled.plan,
        "executable": compiled.load("cpu"),
        "call": session.call(),
        "session": session,
        "batch": model.batch(places=1, capacity=32),
        "language_model": model,
        "model": compiled.model,
    }
    for kind, owner in owners.items():
        before, pointer = handles.alive[kind], owner.pointer  # as ctypes refers to it in a call
        owner.close()
        owner.close()
        assert handles.alive[kind] == before
        with pytest.raises(sinter.SinterError, match=f"this {type(owner).__name__} is closed"):
            owner.pointer
        del pointer
        assert handles.alive[kind] == before - 1
    pointer = graph.pointer  # of the module, which owns it
    module.close()
    assert handles.alive["module"] == 1
    with pytest.raises(sinter.SinterError, match="this ModuleBuilder is closed"):
        graph.input("x", "f32[4]")
    del pointer
    assert handles.alive["module"] == 0


def test_a_device_that_is_closed_is_opened_again():
    compiled, x = sinter.compile(ADD), np.ones((1, 4), np.float32)
    compiled.load("cpu").device.close()
    assert (sinter.compile(ADD).run(x=x, y=x) == 2).all()


def test_an_error_that_is_kept_keeps_no_handle(handles):
    kept = []
    with sinter.LanguageModel(TINY, "cpu") as model, model.batch(places=1, capacity=32) as batch:
        for wrong in (
            lambda: model.decode([10**6]),
            lambda: batch.remove(2**64),
            lambda: batch.remove(99),
            lambda: model.batch(places=99, capacity=32),
        ):
            with pytest.raises(sinter.SinterError) as raised:
                wrong()
            kept.append(raised.value)
    assert (handles.alive["language_model"], handles.alive["batch"]) == (0, 0)


def test_a_batch_that_calls_back_is_neither_closed_nor_used():
    with sinter.LanguageModel(TINY, "cpu") as model:
        alone = tokens_alone(model, 4)[0]
        batch = model.batch(places=2, capacity=32)
        said = []

        def progress(*told):
            assert batch.free_places == 2
            for function in (batch.close, batch.step, lambda: batch.remove(0), progress_again):
                with pytest.raises(sinter.SinterError, match="the batch is in use") as raised:
                    function()
                said.append(raised.value)
            with pytest.raises(sinter.SinterError, match="the handle is in use"):
                model.generate(PROMPTS[0]).text  # whose products work in the same memory

        def progress_again():
            batch.add(PROMPTS[0])

        sequence = batch.add(PROMPTS[0], progress=progress)
        assert len(said) == 4
        assert [batch.step()[sequence] for _ in range(4)] == alone
        batch.close()
        with pytest.raises(sinter.SinterError, match="this Batch is closed"):
            batch.step()


def test_threads_that_step_one_batch_get_each_token_once(monkeypatch):
    """A second thread steps when the library has returned the tokens of the first one's step, which
    has not read them."""
    step_of_the_library = lib.sinter_batch_step
    with sinter.LanguageModel(TINY, "cpu") as model, model.batch(places=4, capacity=64) as batch:
        alone = tokens_alone(model, 24)
        sequences = [batch.add(one) for one in PROMPTS]
        given, refused = [], []

        def step():
            try:
                given.append(batch.step())
            except sinter.SinterError as error:
                refused.append(str(error))

        def step_in_between(*arguments):
            error = step_of_the_library(*arguments)
            monkeypatch.setattr(lib, "sinter_batch_step", step_of_the_library)
            join(in_threads(step))
            return error

        for _ in range(6):
            monkeypatch.setattr(lib, "sinter_batch_step", step_in_between)
            step()
        assert all("the batch is in use" in error for error in refused)
        for sequence, wanted in zip(sequences, alone):
            tokens = Counter(one[sequence] for one in given)
            assert tokens == Counter(wanted[: len(given)])


def test_closing_a_plan_that_is_being_loaded(handles, block):
    compiled, alive = block, []

    def progress(*told):
        compiled.close()
        alive.append(handles.alive["plan"])

    with pytest.raises(sinter.SinterError, match="this Plan is closed"):
        compiled.load("cpu", progress)
    assert alive and set(alive) == {1}
    assert (handles.alive["plan"], handles.alive["executable"]) == (0, 0)


def test_a_plan_that_is_being_loaded_runs_and_is_loaded_once(handles, block):
    ids, r, results = np.array([1], np.int32), np.zeros((1, 8), np.float32), []
    loaded = block.load("cpu", lambda *told: results.append(block.run(ids=ids, r=r)["y"]))
    assert results
    for result in results:
        np.testing.assert_array_equal(result, block.run(ids=ids, r=r)["y"])
    assert block.load("cpu") is loaded


def test_closing_a_model_while_a_generation_begins(monkeypatch):
    model = sinter.LanguageModel(TINY, "cpu")
    start, said = threading.Thread.start, []

    def close():
        try:
            model.close()
        except BaseException as error:
            said.append(error)

    def start_after_closing(thread):
        if thread.name == "sinter generate":
            closing = threading.Thread(target=close)
            start(closing)
            closing.join(0.1)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_after_closing)
    with pytest.raises(sinter.SinterError, match="this LanguageModel is closed"):
        model.generate(PROMPTS[0], count=400).text
    assert not said


def test_closing_a_model_is_an_error_for_those_who_read_it():
    model = sinter.LanguageModel(TINY, "cpu")
    pieces, whole = iter(model.generate(PROMPTS[0], count=400)), model.generate(PROMPTS[1], count=3)
    next(pieces)
    model.close()
    with pytest.raises(sinter.SinterError, match="this LanguageModel is closed"):
        list(pieces)
    for _ in range(2):
        with pytest.raises(sinter.SinterError, match="this LanguageModel is closed"):
            whole.text


def test_a_generation_is_dropped_in_its_own_thread(monkeypatch):
    """As the garbage collector does where a cycle holds it."""
    with sinter.LanguageModel(TINY, "cpu") as model:
        ignored = []
        monkeypatch.setattr("sys.unraisablehook", ignored.append)
        pieces = iter(model.generate(PROMPTS[0], count=400))
        next(pieces)
        (stream,) = model._running
        put, stopped = stream._queue.put, threading.Event()

        class Queue:
            get = staticmethod(stream._queue.get)

            def put(self, item):
                if not stopped.is_set():
                    stopped.set()
                    stream.stop()
                put(item)

        stream._queue = Queue()
        assert stopped.wait(60)
        stream._thread.join()
        del pieces
        gc.collect()
        assert ignored == []


def test_the_text_of_a_generation_is_whole_for_each_thread():
    with sinter.LanguageModel(TINY, "cpu") as model:
        generation = model.generate(PROMPTS[0], count=40)
        texts = []
        join(in_threads(*[lambda: texts.append(generation.text)] * 3))
        assert texts == [model.generate(PROMPTS[0], count=40).text] * 3
