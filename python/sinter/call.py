"""Calls: an entry of a session with its tensors bound, to be run once or often."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from sinter import tensors
from sinter._bindings import lib, sinter_call
from sinter.errors import SinterError, bad_input, check, usage
from sinter.handles import Handle, created, encoded, symbol_value
from sinter.integers import integers
from sinter.module import split_type
from sinter.plan import Signature

if TYPE_CHECKING:
    from sinter.session import Session

_name = functools.lru_cache(maxsize=4096)(encoded)  # of names, which come again


class Call(Handle):
    """An entry of a session with its tensors bound. It holds them until it is bound anew.

    A method whose name begins with "in_turn_" runs while the session is marked as in use."""

    def __init__(self, session: Session, entry: Signature) -> None:
        super().__init__(
            created(sinter_call, lib.sinter_call_create, session.pointer, encoded(entry.name)),
            lib.sinter_call_free,
            session._turn,
        )
        # The library keeps its session; a reference to the Python object would make a cycle.
        self._executable, self._stream = session._executable, session.stream
        self._place, self._told = session.device.place, session._plan.told
        self.entry = entry
        self.has_symbols = self._is_bound = False
        self._inputs: dict[str, tensors.Tensor] = {}
        self._outputs: dict[str, Any] = {}
        self._addresses: tuple[Any, Any] = (
            (ctypes.c_void_p * len(entry.inputs))(),
            (ctypes.c_void_p * entry.output_count)(),
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
        with self._turn:
            self.in_turn_bind({**(inputs or {}), **tensors_by_name}, symbols, out)
        return self

    def in_turn_bind(
        self,
        given: Mapping[str, Any],
        symbols: dict[str, int] | None,
        out: Mapping[str, Any] | None,
    ) -> None:
        for name, value in (symbols or {}).items():
            check(lib.sinter_call_symbol(self.pointer, encoded(name), symbol_value(name, value)))
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
        self._is_bound = True

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
        """Checks that the library cannot make: where the memory is, and types that it does not have."""
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
                tensor.dims,
                tensor.strides,
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
        """The output, or where there are several, a dict of them in the entry's order. After move()
        an empty dict: the caller has the memory."""
        if len(self._outputs) == 1:
            return next(iter(self._outputs.values()))
        return dict(self._outputs)

    def move(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Moves all inputs and outputs to other memory, in the entry's order: addresses of tensors
        with the types, extents and strides of those that were bound, which the caller keeps alive.
        Of an output that the entry names twice the first address counts. A prepared call stays prepared. Takes microseconds."""
        with self._turn:
            given, taken = self._addresses
            given[:] = integers(inputs, "inputs", ctypes.c_size_t)
            taken[:] = integers(outputs, "outputs", ctypes.c_size_t)
            check(lib.sinter_call_addresses(self.pointer, given, len(given), taken, len(taken)))
            self._inputs, self._outputs = {}, {}  # it is the caller who knows them now

    def forget(self) -> None:
        """Lets go of the tensors, whose memory may then be gone: bind all of them before a run."""
        with self._turn:
            self.in_turn_forget()

    def in_turn_forget(self) -> None:
        self._inputs, self._outputs, self._is_bound = {}, {}, False

    def prepare(self) -> None:
        """Does all that run() needs and must not do while a CUDA graph is captured."""
        with self._turn:
            check(lib.sinter_call_prepare(self.pointer))

    def run(self) -> Any:
        """Runs the entry and returns `results`. On a GPU it only enqueues kernels: results are
        there for what follows in the session's stream."""
        with self._turn:
            return self.in_turn_run()

    def in_turn_run(self) -> Any:
        if not self._is_bound:
            raise usage("no tensors are bound", f"entry {self.entry.name}", "bind them first")
        self._check_run(lib.sinter_call_run(self.pointer))
        return self.results

    def check(self) -> None:
        """On a GPU: waits, and raises if a row number of the last run names no row."""
        with self._turn:
            self.in_turn_check()

    def in_turn_check(self) -> None:
        self._check_run(lib.sinter_call_check(self.pointer))

    def _check_run(self, error: Any) -> None:
        try:
            check(error)
        except SinterError as raised:
            raise self._told(raised) from None
