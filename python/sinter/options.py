"""Options of a function of the library, with progress that Ctrl-C cancels."""

from __future__ import annotations

import os
from threading import current_thread, main_thread
from typing import Any, Callable, Iterable, Optional

from sinter._bindings import lib, sinter_options, sinter_progress
from sinter.errors import Interrupts, check
from sinter.handles import Handle, created, encoded
from sinter.integers import index_of

Progress = Optional[Callable[[str, int, int], Any]]
"""Called while something takes long, with a stage ("weights"), and how many bytes or kernels of how
many are done. It stops what is going on by returning False or raising."""


def _text(value: Any) -> str | os.PathLike[str]:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(os.fspath(_text(item)) for item in value)
    if isinstance(value, (str, os.PathLike)):
        return value
    number = index_of(value)
    return str(value if number is None else number)


def sampling_options(
    temperature: float | None, top_k: int | None, top_p: float | None, seed: int | None
) -> dict[str, Any]:
    """Options of the choice of tokens."""
    return {
        "temperature": None if temperature is None else float(temperature),
        "top-k": top_k,
        "top-p": None if top_p is None else float(top_p),
        "seed": seed,
    }


class Options(Handle):
    """Names and values; None is left out. Numbers are written as decimals, lists with commas."""

    def __init__(
        self,
        values: dict[str, Any],
        interrupts: Interrupts | None = None,
        progress: Progress = None,
        require: Iterable[tuple[str, str]] = (),
        forbid: Iterable[tuple[str, str]] = (),
    ) -> None:
        super().__init__(
            created(sinter_options, lib.sinter_options_create), lib.sinter_options_free
        )
        for name, value in values.items():
            if value is not None:
                check(lib.sinter_options_set(self.pointer, encoded(name), encoded(_text(value))))
        for required, pairs in ((1, require), (0, forbid)):
            for a, b in pairs:
                check(lib.sinter_options_pair(self.pointer, required, encoded(a), encoded(b)))
        # Ctrl-C reaches the main thread alone: a callback in another one would do nothing.
        if interrupts is None or (progress is None and current_thread() is not main_thread()):
            return

        def step(user: Any, stage: bytes, done: int, total: int) -> int:
            if progress is None:
                return interrupts.guard(lambda: False)
            return interrupts.guard(lambda: progress(stage.decode(), done, total) is False)

        self._progress = sinter_progress(step)  # stays as long as the options
        lib.sinter_options_progress(self.pointer, self._progress, None)
