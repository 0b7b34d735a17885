"""Every handle is freed: by close(), by `with`, and by the garbage collector."""

import numpy as np
import pytest
from conftest import ADD, BLOCK, CACHE, SAMPLES

import sinter


def use_everything(weights):
    with sinter.ModuleBuilder() as module:
        graph = module.entry("main")
        graph.output(graph.op("exp", [graph.input("x", "f32[4]")]))
        sinter.compile(module).run(x=np.zeros(4, np.float32))
    block = sinter.compile(BLOCK, weights=weights)
    ids, r = np.array([1], np.int32), np.zeros((1, 8), np.float32)
    block.run(ids=ids, r=r)
    with pytest.raises(sinter.SinterError):
        block.run(ids=ids, r=ids)
    block.why("s", "n")
    block.decisions()
    block.entry().unfused_costs()
    block.verify("cpu")
    cached = sinter.compile(CACHE)
    cached.run(x=r[:, :4], slot=ids, symbols={"R": 4})
    session = cached.session("cpu", symbols={"R": 4})
    session.run(x=r[:, :4], slot=ids)
    session.call()
    with pytest.raises(sinter.SinterError):
        sinter.compile(BLOCK, require=[("n", "m")])
    model = sinter.LanguageModel(SAMPLES / "tiny-llama", "cpu")
    for _ in model.generate("Long ago", count=50):
        break


def test_no_handle_is_left(handles, weights):
    use_everything(weights)
    left = handles.left()
    left.pop("device", None)  # each is opened once in a process and stays
    assert left == {}
    kinds = {"module", "model", "plan", "options", "weights", "executable", "session", "call"}
    assert kinds | {"decision", "costs", "report", "language_model"} <= set(handles.created)


def test_what_has_no_cycle_is_freed_without_the_garbage_collector(handles):
    import gc

    gc.disable()
    try:
        compiled = sinter.compile(ADD)
        x = np.zeros((1, 4), np.float32)
        compiled.run(x=x, y=x)
        session = compiled.session("cpu")
        session.run(x=x, y=x)
        call = session.call()
        del compiled, session, call
        assert {kind: n for kind, n in handles.alive.items() if n and kind != "device"} == {}
    finally:
        gc.enable()


def test_closing_twice_frees_once(handles):
    compiled = sinter.compile(ADD)
    x = np.zeros((1, 4), np.float32)
    session = compiled.session("cpu")
    compiled.run(x=x, y=x)
    compiled.close()
    compiled.close()
    with pytest.raises(sinter.SinterError, match="this Plan is closed"):
        compiled.ledger_text
    assert session.run(x=x, y=x).shape == (1, 4)  # goes on
    session.close()
    session.close()
    assert handles.left().keys() <= {"model", "device"}


def test_a_run_keeps_no_tensor_alive():
    import weakref

    class Array(np.ndarray):
        pass

    add = sinter.compile(ADD)
    x = np.zeros((1, 4), np.float32).view(Array)
    watched = weakref.ref(x)
    add.run(x=x, y=np.zeros((1, 4), np.float32))
    del x
    assert watched() is None
