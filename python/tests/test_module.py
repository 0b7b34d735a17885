"""Modules under construction, and the base of everything: bindings, errors, handles."""

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sinter
from sinter import facts
from sinter._bindings import (
    lib,
    sinter_call,
    sinter_device,
    sinter_executable,
    sinter_plan,
    sinter_session,
)
from sinter.errors import check
from sinter.handles import created

PYTHON = Path(__file__).resolve().parent.parent


def test_the_bindings_are_what_the_header_says():
    subprocess.run([sys.executable, str(PYTHON / "make_bindings.py"), "--check"], check=True)


def test_the_library_has_every_function_of_the_bindings():
    from sinter._bindings import FUNCTIONS

    assert [name for name in FUNCTIONS if not hasattr(lib, name)] == []
    assert sinter.version() == sinter.__version__


def test_facts_are_what_the_library_takes():
    axes, operands = facts.limit("axes"), facts.max_operands("concat")
    with sinter.ModuleBuilder("limits") as module:
        graph = module.entry("main")
        x = graph.input("x", f"f32[{', '.join(['1'] * axes)}]")
        graph.output(graph.op("concat", [x] * operands, "axis = 0"))
        module.model()
        with pytest.raises(sinter.SinterError):
            graph.op("concat", [x] * (operands + 1), "axis = 0")
        with pytest.raises(sinter.SinterError):
            graph.input("y", f"f32[{', '.join(['1'] * (axes + 1))}]")
            module.model()
    assert {facts.op_class(op) for op in ("reshape", "slice")} == {"view"}
    assert facts.op_class("add") == "elementwise"


def test_a_built_module_runs_on_the_cpu():
    with sinter.ModuleBuilder("square") as module:
        module.symbol("N", 1, 64)
        graph = module.entry("main")
        x = graph.input("x", "f32[N, 8]")
        y = graph.op("mul", [x, x], name="y")
        graph.output(y)
        assert (y.dtype, y.dims, y.type, y.name) == ("f32", ("N", 8), "f32[N, 8]", "y")
        assert "%y = mul %x, %x" in module.text()
        model = module.model()
    device = created(sinter_device, lib.sinter_device_open, b"cpu")
    plan = created(sinter_plan, lib.sinter_compile, model.pointer, None)
    executable = created(sinter_executable, lib.sinter_load, plan, device, None, None)
    session = created(sinter_session, lib.sinter_session_create, executable, None, None, 0)
    call = created(sinter_call, lib.sinter_call_create, session, b"main")
    given = np.arange(24, dtype=np.float32).reshape(3, 8)
    result = np.empty_like(given)
    dims = (ctypes.c_int64 * 2)(3, 8)
    check(lib.sinter_call_input(call, b"x", b"f32", 2, dims, None, given.ctypes.data))
    check(lib.sinter_call_output(call, b"y", b"f32", 2, dims, None, result.ctypes.data))
    check(lib.sinter_call_run(call))
    np.testing.assert_array_equal(result, given * given)
    for free, handle in (
        (lib.sinter_call_free, call),
        (lib.sinter_session_free, session),
        (lib.sinter_executable_free, executable),
        (lib.sinter_plan_free, plan),
        (lib.sinter_device_free, device),
    ):
        free(handle)


def test_an_error_has_its_parts():
    with sinter.ModuleBuilder() as module:
        graph = module.entry("main")
        x = graph.input("x", "f32[8]")
        with pytest.raises(sinter.SinterError, match='no op is called "mull"') as raised:
            graph.op("mull", [x])
        assert raised.value.code == sinter.Code.USAGE
        assert raised.value.hint


def test_a_value_of_another_graph_is_refused():
    with sinter.ModuleBuilder() as module:
        x = module.entry("a").input("x", "f32[8]")
        other = module.entry("b")
        with pytest.raises(sinter.SinterError, match="is a value of entry 'a'"):
            other.op("exp", [x])


def test_a_closed_module_says_so():
    module = sinter.ModuleBuilder()
    graph = module.entry("main")
    module.close()
    module.close()
    with pytest.raises(sinter.SinterError, match="this ModuleBuilder is closed"):
        graph.input("x", "f32[8]")
