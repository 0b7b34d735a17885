"""Plans that run: executables, sessions with their states, and calls with their tensors bound."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Mapping, Sequence

from sinter import tensors
from sinter._bindings import (
    lib,
    sinter_call,
    sinter_executable,
    sinter_session,
    sinter_weights,
)
from sinter.devices import Device
from sinter.errors import Interrupts, bad_input, check, usage
from sinter.handles import Handle, created, encoded, symbol_arrays
from sinter.module import split_type
from sinter.options import Options, Progress
from sinter.plan import Plan, Signature


_name = functools.lru_cache(maxsize=4096)(encoded)  # of names, which come again


def _dims(values: tuple[int, ...] | None) -> Any:
    return None if values is None else (ctypes.c_int64 * len(values))(*values)


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
            tensor = tensors.borrow(value, f"weight tensor {name}")
            self._borrowed.append(tensor)
            check(
                lib.sinter_weights_add(
                    self.pointer,
                    encoded(name),
                    encoded(tensor.dtype),
                    len(tensor.dims),
                    _dims(tensor.dims),
                    _dims(tensor.strides),
                    tensor.address,
                    tensor.device != "cpu",
                )
            )


class Executable(Handle):
    """A plan on a device, with its weights. Immutable; several threads may use it."""

    def __init__(
        self, plan: Plan, device: Device, weights: Weights | None, progress: Progress = None
    ) -> None:
        with Interrupts() as interrupts, Options({}, interrupts, progress) as options:
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
    """States of one user, and on a GPU a stream. One thread at a time; other sessions of the same
    plan may run beside it.

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
        super().__init__(pointer, lib.sinter_session_free)
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
        call = self._calls.get(name)
        if call is None or call.has_symbols or symbols:  # a call remembers them
            call = self._calls[name] = self.call(name)
        call.forget()
        call.bind({**(inputs or {}), **tensors_by_name}, symbols=symbols, out=out)
        call.run()
        if check:
            call.check()
        results = call.results
        if self.device.place == "cpu" or check:
            call.forget()
        return results

    def clear(self) -> None:
        """Sets the states to zeros again."""
        check(lib.sinter_session_clear(self.pointer))

    def synchronize(self) -> None:
        """Waits for the calls made so far."""
        check(lib.sinter_session_synchronize(self.pointer))
        self.forget()

    def forget(self) -> None:
        """Lets go of the tensors of the last runs."""
        for call in self._calls.values():
            call.forget()

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
        check(
            lib.sinter_session_read_state(
                self.pointer,
                encoded(name),
                encoded(tensor.dtype),
                len(tensor.dims),
                _dims(tensor.dims),
                _dims(tensor.strides),
                tensor.address,
            )
        )
        return value

    def close(self) -> None:
        for call in self._calls.values():
            call.close()
        super().close()


class Call(Handle):
    """An entry of a session with its tensors bound. It holds them until it is bound anew."""

    def __init__(self, session: Session, entry: Signature) -> None:
        super().__init__(
            created(sinter_call, lib.sinter_call_create, session.pointer, encoded(entry.name)),
            lib.sinter_call_free,
        )
        # The library keeps its session; a reference to the Python object would make a cycle.
        self._executable, self._stream = session._executable, session.stream
        self._place = session.device.place
        self.entry = entry
        self.has_symbols = False
        self._inputs: dict[str, tensors.Tensor] = {}
        self._outputs: dict[str, Any] = {}
        self._addresses = (
            (ctypes.c_void_p * len(entry.inputs))(),
            (ctypes.c_void_p * len(entry.outputs))(),
        )

    def bind(
        self,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        symbols: dict[str, int] | None = None,
        out: Mapping[str, Any] | None = None,
        **tensors_by_name: Any,
    ) -> Call:
        """Binds tensors to inputs, by name; those that are not named keep theirs. Outputs go to the
        tensors of `out`, or to new ones of the kind of the inputs. On a GPU tensors must be
        dense."""
        given = {**(inputs or {}), **tensors_by_name}
        for name, value in (symbols or {}).items():
            check(lib.sinter_call_symbol(self.pointer, encoded(name), value))
            self.has_symbols = True
        for name, value in given.items():
            self._bind_input(name, value)
        for name in self.entry.inputs:
            if name not in self._inputs:
                raise usage(
                    f"no tensor is given, {self.entry.inputs[name]} is wanted",
                    f"entry {self.entry.name}, input {name}",
                    "give one",
                )
        for name in out or {}:
            if name not in self.entry.outputs:
                raise self._unknown("output", name, self.entry.outputs)
        for name in self.entry.outputs:
            self._bind_output(name, (out or {}).get(name))
        return self

    def _unknown(self, kind: str, name: str, names: Mapping[str, str]) -> Exception:
        has = f"it has {', '.join(names)}" if names else f"it has no {kind}s"
        return usage(f'no {kind} is called "{name}"', f"entry {self.entry.name}", has)

    def _bind_input(self, name: str, value: Any) -> None:
        if name not in self.entry.inputs:
            raise self._unknown("input", name, self.entry.inputs)
        where = f"entry {self.entry.name}, input {name}"
        tensor = tensors.borrow(value, where, self._stream)
        self._check(tensor, self.entry.inputs[name], where)
        self._give(lib.sinter_call_input, name, tensor)
        self._inputs[name] = tensor

    def _check(self, tensor: tensors.Tensor, wanted: str, where: str) -> None:
        """What the library cannot know: where the memory is, and types that it does not have."""
        if tensor.dtype != split_type(wanted)[0]:
            raise bad_input(
                f"{tensor.type} is given, {wanted} is wanted", where, "convert the tensor"
            )
        if tensor.device != self._place:
            raise bad_input(
                f"the tensor is on {tensor.device}, the session is on {self._place}",
                where,
                "move the tensor, or make a session there",
            )

    def _give(self, function: Any, name: str, tensor: tensors.Tensor) -> None:
        check(
            function(
                self.pointer,
                _name(name),
                _name(tensor.dtype),
                len(tensor.dims),
                _dims(tensor.dims),
                _dims(tensor.strides),
                tensor.address,
            )
        )

    def _bind_output(self, name: str, value: Any) -> None:
        wanted = self.entry.outputs[name]
        where = f"entry {self.entry.name}, output {name}"
        if value is None:
            kinds = [tensor.kind for tensor in self._inputs.values()]
            kind = "torch" if "torch" in kinds else (kinds or ["numpy"])[0]
            dims = self._output_dims(name, len(split_type(wanted)[1]))
            value = tensors.empty(split_type(wanted)[0], dims, self._place, kind, where)
        tensor = tensors.borrow_result(value, split_type(wanted)[0], where)
        self._check(tensor, wanted, where)
        self._give(lib.sinter_call_output, name, tensor)
        self._outputs[name] = value

    def _output_dims(self, name: str, rank: int) -> list[int]:
        dims, room = (ctypes.c_int64 * rank)(), ctypes.c_size_t(rank)
        check(lib.sinter_call_output_dims(self.pointer, encoded(name), ctypes.byref(room), dims))
        return list(dims)

    @property
    def results(self) -> Any:
        """The output, or where there are several, a dict of them in the entry's order."""
        if len(self._outputs) == 1:
            return next(iter(self._outputs.values()))
        return dict(self._outputs)

    def move(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Moves all inputs and outputs to other memory, in the entry's order: addresses of tensors
        with the types, extents and strides of those that were bound, which the caller keeps alive.
        A prepared call stays prepared. Takes microseconds."""
        given, taken = self._addresses
        given[:], taken[:] = list(inputs), list(outputs)
        check(lib.sinter_call_addresses(self.pointer, given, len(given), taken, len(taken)))

    def forget(self) -> None:
        """Lets go of the tensors, whose memory may then be gone: bind all of them before a run."""
        self._inputs, self._outputs = {}, {}

    def prepare(self) -> None:
        """Does all that run() needs and must not do while a CUDA graph is captured."""
        check(lib.sinter_call_prepare(self.pointer))

    def run(self) -> Any:
        """Runs the entry and returns `results`. On a GPU it only enqueues kernels: results are
        there for what follows in the session's stream."""
        if len(self._outputs) < len(self.entry.outputs):
            raise usage("no tensors are bound", f"entry {self.entry.name}", "bind them first")
        check(lib.sinter_call_run(self.pointer))
        return self.results

    def check(self) -> None:
        """On a GPU: waits, and raises if a row number of the last run names no row."""
        check(lib.sinter_call_check(self.pointer))
