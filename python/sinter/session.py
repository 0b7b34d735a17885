"""Plans that run: executables with their weights, and sessions with their states."""

from __future__ import annotations

import ctypes
from typing import Any, Mapping

from sinter import tensors
from sinter._bindings import lib, sinter_executable, sinter_session, sinter_weights
from sinter.call import Call
from sinter.devices import Device
from sinter.errors import Interrupts, bad_input, check, usage
from sinter.handles import Handle, Turn, created, encoded, symbol_arrays
from sinter.module import split_type
from sinter.options import Options, Progress
from sinter.plan import Plan


class Weights(Handle):
    """Tensors for the weights of a module. Tensors on a GPU stay alive with it, since a weight that
    is such a tensor is used where it is."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(
            created(sinter_weights, lib.sinter_weights_create), lib.sinter_weights_free
        )
        self.given = dict(given)
        self._borrowed = []
        for name, value in self.given.items():
            if not isinstance(name, str):
                raise usage(
                    f"the key {name!r} is no str, and weights are given by the names of tensors",
                    "weights",
                    'give {"name": tensor}',
                )
            tensor = tensors.borrow(value, f"weight tensor {name}")
            self._borrowed.append(tensor)
            check(
                lib.sinter_weights_add(
                    self.pointer,
                    encoded(name),
                    encoded(tensor.dtype),
                    len(tensor.dims),
                    tensor.dims,
                    tensor.strides,
                    tensor.address,
                    int(tensor.device != "cpu"),
                )
            )


class Executable(Handle):
    """A plan on a device, with its weights. Immutable; several threads may use it.

    tune: on a GPU the library's implementations of each product are timed, and the fastest is taken.
    """

    def __init__(
        self,
        plan: Plan,
        device: Device,
        weights: Weights | None,
        progress: Progress = None,
        tune: bool = False,
    ) -> None:
        given = {"tune": True} if tune else {}
        with Interrupts() as interrupts, Options(given, interrupts, progress) as options:
            pointer = sinter_executable()
            interrupts.check(
                lib.sinter_load(
                    plan.pointer,
                    device.pointer,
                    None if weights is None else weights.pointer,
                    options.pointer,
                    ctypes.byref(pointer),
                ),
                lambda: lib.sinter_executable_free(pointer),
            )
            super().__init__(pointer, lib.sinter_executable_free)
        self.device, self._weights = device, weights


class Session(Handle):
    """States of one user, and on a GPU a stream. One thread at a time: a second one gets an error.
    Other sessions of the same plan may run beside it.

    symbols: values of the symbols in types of states. stream: a CUstream as a number, which must
    outlive the session (0: the legacy default stream). None: torch's current stream where the
    program has torch, else a stream of the session's own. Tensors are used in the session's stream;
    what other streams do with them must be ordered as between any two streams.
    """

    def __init__(
        self,
        plan: Plan,
        executable: Executable,
        stream: int | None = None,
        symbols: dict[str, int] | None = None,
    ) -> None:
        place = executable.device.place
        if stream is None and place != "cpu":
            stream = tensors.torch_stream(place)
        names = symbol_arrays(symbols)
        if stream is None:
            pointer = created(sinter_session, lib.sinter_session_create, executable.pointer, *names)
        else:
            pointer = created(
                sinter_session,
                lib.sinter_session_create_on_stream,
                executable.pointer,
                *names,
                stream,
            )
        self._take(pointer, plan, executable, symbols)

    def _take(
        self,
        pointer: Any,
        plan: Plan,
        executable: Executable,
        symbols: dict[str, int] | None = None,
    ) -> None:
        super().__init__(pointer, lib.sinter_session_free, Turn("session"))
        self._plan, self._executable = plan, executable
        self.symbols = dict(symbols or {})
        self._calls: dict[str, Call] = {}

    @property
    def device(self) -> Device:
        return self._executable.device

    @property
    def stream(self) -> int:
        """The CUstream; 0 on the CPU."""
        return lib.sinter_session_stream(self.pointer) or 0

    def call(self, entry: str | None = None) -> Call:
        """A new call of an entry, to bind once and run often."""
        return Call(self, self._plan.signature(entry))

    def run(
        self,
        entry: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        symbols: dict[str, int] | None = None,
        out: Mapping[str, Any] | None = None,
        check: bool = False,
        **tensors_by_name: Any,
    ) -> Any:
        """Runs an entry, like Compiled.run; states keep what it leaves. On a GPU the kernels are
        enqueued in the session's stream, and nothing waits, unless `check` asks for it; the session
        holds the tensors until its next run of the entry or synchronize()."""
        name = self._plan.signature(entry).name
        with self._turn:
            call = self._calls.get(name)
            if call is None or call.has_symbols or symbols:  # a call remembers them
                call = self._calls[name] = self.call(name)
            call.in_turn_forget()
            call.in_turn_bind({**(inputs or {}), **tensors_by_name}, symbols, out)
            results = call.in_turn_run()
            if check:
                call.in_turn_check()
            if self.device.place == "cpu" or check:
                call.in_turn_forget()
            return results

    def clear(self) -> None:
        """Sets the states to zeros again."""
        with self._turn:
            check(lib.sinter_session_clear(self.pointer))

    def synchronize(self) -> None:
        """Waits for the calls made so far."""
        with self._turn:
            check(lib.sinter_session_synchronize(self.pointer))
            self._forget()

    def forget(self) -> None:
        """Lets go of the tensors of the last runs."""
        with self._turn:
            self._forget()

    def _forget(self) -> None:
        for call in self._calls.values():
            call.in_turn_forget()

    def read_state(self, name: str, out: Any = None) -> Any:
        """A copy of a state in host memory: an array of NumPy (bf16: see docs/python.md), or `out`.
        Waits."""
        where = f"state {name}"
        if name not in self._plan.states:
            raise usage(
                "the plan has no such state", where, f"it has {', '.join(self._plan.states)}"
            )
        dtype, extents = split_type(self._plan.states[name])
        dims = [self.symbols[dim] if isinstance(dim, str) else dim for dim in extents]
        value = tensors.empty(dtype, dims, "cpu", "numpy", where) if out is None else out
        tensor = tensors.borrow_result(value, dtype, where)
        if tensor.device != "cpu":
            raise bad_input(f"memory on {tensor.device} is given", where, "give host memory")
        with self._turn:
            check(
                lib.sinter_session_read_state(
                    self.pointer,
                    encoded(name),
                    encoded(tensor.dtype),
                    len(tensor.dims),
                    tensor.dims,
                    tensor.strides,
                    tensor.address,
                )
            )
        return value

    def close(self) -> None:
        with self._turn:
            for call in self._calls.values():
                call.let_go()
            self.let_go()
