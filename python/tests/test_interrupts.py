"""Ctrl-C ends what takes long, and the process goes on."""

import os
import signal
import threading

import pytest
from conftest import ADD, BLOCK, SAMPLES

import sinter
from sinter._bindings import lib


def press():
    os.kill(os.getpid(), signal.SIGINT)


def interrupted_by_progress(function):
    """Presses Ctrl-C when progress is first told; says how often it was told afterwards."""
    told = []

    def progress(stage, done, total):
        told.append(stage)
        if len(told) == 1:
            press()

    with pytest.raises(KeyboardInterrupt):
        function(progress)
    return len(told) - 1


def test_compiling_is_interrupted():
    assert interrupted_by_progress(lambda progress: sinter.compile(BLOCK, progress=progress)) == 0
    sinter.compile(BLOCK)


def test_loading_is_interrupted(weights):
    compiled = sinter.compile(BLOCK, weights=weights)
    assert interrupted_by_progress(lambda progress: compiled.load("cpu", progress)) == 0
    compiled.load("cpu")


def test_opening_a_language_model_is_interrupted():
    path = SAMPLES / "tiny-llama"
    told = interrupted_by_progress(
        lambda progress: sinter.LanguageModel(path, "cpu", progress=progress)
    )
    assert told == 0


def test_ctrl_c_without_a_progress_function_is_not_lost():
    path = SAMPLES / "tiny-llama"
    timer = threading.Timer(0.02, press)
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        while True:
            sinter.LanguageModel(path, "cpu").close()
    timer.join()


def test_generating_is_interrupted():
    with sinter.LanguageModel(SAMPLES / "tiny-llama", "cpu") as model:
        threading.Timer(0.05, press).start()
        with pytest.raises(KeyboardInterrupt):
            for _ in range(1000):
                for _ in model.generate("Long ago", count=400):
                    pass
        assert [one for one in threading.enumerate() if one.name == "sinter generate"] == []
        assert model.generate("Long ago", count=3).text


@pytest.mark.parametrize("name", ["sinter_compile", "sinter_load", "sinter_language_model_open"])
def test_what_was_made_when_ctrl_c_is_pressed_is_freed(handles, monkeypatch, name):
    function = getattr(lib, name)

    def call(*arguments):
        error = function(*arguments)
        press()
        return error

    monkeypatch.setattr(lib, name, call)
    with pytest.raises(KeyboardInterrupt):
        if name == "sinter_language_model_open":
            sinter.LanguageModel(SAMPLES / "tiny-llama", "cpu")
        else:
            sinter.compile(ADD).load("cpu")
    kind = {"sinter_compile": "plan", "sinter_load": "executable"}.get(name, "language_model")
    assert handles.created[kind] == 1
    left = handles.left()
    left.pop("device", None)
    assert left == {}


def test_the_callers_own_handler_is_called_and_put_back():
    calls = []

    def handler(number, frame):
        calls.append(number)

    before = signal.signal(signal.SIGINT, handler)
    try:
        sinter.compile(BLOCK, progress=lambda *step: press() if not calls else None)
        assert calls == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_compiling_in_another_thread_works():
    plans = []
    thread = threading.Thread(target=lambda: plans.append(sinter.compile(BLOCK)))
    thread.start()
    thread.join()
    assert plans[0].target == "sm_90a"
