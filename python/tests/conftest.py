"""Fixtures of the tests: the samples, a module with weights, and a count of the library's handles."""

from __future__ import annotations

import collections
import gc
from pathlib import Path

import numpy as np
import pytest

import sinter
from sinter._bindings import FUNCTIONS, lib

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLES = ROOT / "samples"

BLOCK = """
module @block {
  symbol N in [1, 64]
  weight %table : f32[10, 8] = file {tensor = "table"}
  weight %w : f32[8] = file {tensor = "w"}
  entry @main(%ids: i32[N], %r: f32[N, 8]) -> (%y, %n) {
    %e = embedding %table, %ids : f32[N, 8]
    %s = add %e, %r : f32[N, 8]
    %n = rms_norm %s, %w {eps = 1e-5} : f32[N, 8]
    %m = reduce_sum %n {axes = [0]} : f32[1, 8]
    %y = add %n, %m : f32[N, 8]
  }
}
"""

ADD = """
module @add {
  symbol N in [0, 64]
  entry @main(%x: f32[N, 4], %y: f32[N, 4]) -> (%z) {
    %p = mul %x, %y : f32[N, 4]
    %z = add %p, %y : f32[N, 4]
  }
}
"""

CACHE = """
module @cached {
  symbol R in [1, 64]
  symbol N in [1, 64]
  state %cache : f32[R, 4]
  entry @append(%x: f32[N, 4], %slot: i32[N]) -> (%sum) {
    %next = kv_append %cache, %x, %slot : f32[R, 4]
    %sum = reduce_sum %next {axes = [0]} : f32[1, 4]
  }
}
"""


@pytest.fixture
def weights() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    return {
        "table": generator.standard_normal((10, 8), dtype=np.float32),
        "w": generator.standard_normal(8, dtype=np.float32),
    }


@pytest.fixture
def block(weights) -> sinter.Compiled:
    return sinter.compile(BLOCK, weights=weights)


def block_in_float64(weights, ids, r):
    """The outputs y and n of BLOCK."""
    s = weights["table"].astype(np.float64)[ids] + r.astype(np.float64)
    n = s / np.sqrt((s * s).mean(axis=1, keepdims=True) + 1e-5) * weights["w"]
    return n + n.sum(axis=0, keepdims=True), n


class HandleCount:
    """Handles that were created and not freed, by kind. Wraps the functions of the library."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.alive: collections.Counter = collections.Counter()
        self.created: collections.Counter = collections.Counter()
        for name, (_, arguments) in FUNCTIONS.items():
            function = getattr(lib, name)
            if name.endswith("_free") and name != "sinter_free":
                monkeypatch.setattr(lib, name, self._freeing(name[7:-5], function))
            elif kind := _created_kind(arguments):
                monkeypatch.setattr(lib, name, self._creating(kind, function))

    def _creating(self, kind, function):
        def create(*arguments):
            error = function(*arguments)
            if not error and kind != "graph":  # a module owns its graphs
                self.alive[kind] += 1
                self.created[kind] += 1
            return error

        return create

    def _freeing(self, kind, function):
        def free(handle):
            if handle and kind != "error":
                self.alive[kind] -= 1
            function(handle)

        return free

    def left(self) -> dict[str, int]:
        gc.collect()
        return {kind: count for kind, count in self.alive.items() if count}


def _created_kind(arguments) -> str | None:
    """The kind of handle that a function writes to its last parameter; None: it makes no handle."""
    pointed = getattr(arguments[-1], "_type_", None) if arguments else None
    if isinstance(pointed, type) and pointed.__name__.startswith("sinter_"):
        return pointed.__name__[len("sinter_") :]
    return None


@pytest.fixture
def handles(monkeypatch) -> HandleCount:
    return HandleCount(monkeypatch)
