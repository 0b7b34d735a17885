"""Runs of a module of `from_torch` that are recorded: `from_torch(...).compile(graphs=True)`."""

from __future__ import annotations

import threading
from typing import Any, Mapping

import torch

from ...compiled import Compiled
from ...errors import bad_input, usage
from ...session import Executable, Weights
from ..convert.importer import ImportedGraph, Operand
from .compiled_entry import CompiledEntry, TorchDevice
from .recording import RecordedCall, recorded


class RecordedModule:
    """A compiled module whose runs on a GPU are recorded as CUDA graphs, as calls of the backend with the
    option `graphs` are.

    compiled: the plan; `verify`, `why` and all else. Several threads may run it."""

    def __init__(self, compiled: Compiled, graph: ImportedGraph, weights: Weights) -> None:
        self.compiled = compiled
        self._graph, self._weights = graph, weights
        self._calls: dict[torch.device, RecordedCall] = {}
        self._lock = threading.Lock()

    def run(self, inputs: Mapping[str, torch.Tensor] | None = None, /, **tensors: torch.Tensor) -> Any:
        """Runs the module on tensors of torch by name, in torch's current stream: the result, or a dict
        where there are several. Results are new tensors. Nothing waits, and a row number that names no
        row gives zeros on a GPU."""
        given = {**(inputs or {}), **tensors}
        names = [operand.name for operand in self._graph.inputs]
        unknown = [name for name in given if name not in names]
        missing = [name for name in names if name not in given]
        if unknown or missing:
            raise usage(f'no input is called "{unknown[0]}"' if unknown else
                        f'no tensor is given for the input "{missing[0]}"', self.compiled.model.name,
                        f"it has {', '.join(names)}")
        arguments = [tensor_of(given[name], name) for name in names]
        call = self._call(device_of(arguments))
        self._check(arguments, call.entry)
        return self._named(call(*arguments))

    def _call(self, device: torch.device) -> RecordedCall:
        with self._lock:
            if device not in self._calls:
                nodes = [operand.node for operand in self._graph.inputs]
                for operand in self._graph.inputs:  # the example may have been elsewhere; numbers are tensors now
                    example = operand.node.meta["val"]
                    operand.node.meta["val"] = example.to(device) if isinstance(example, torch.Tensor) \
                        else torch.empty((), dtype=operand.dtype, device=device)
                executable = Executable(self.compiled.plan, TorchDevice.of(device), self._weights)
                entry = CompiledEntry(self._graph, nodes, device, self.compiled, executable,
                                      is_checked=device.type == "cpu")
                self._calls[device] = recorded(entry, nodes, False, {}, (), False)
            return self._calls[device]

    def _check(self, arguments: list[torch.Tensor], entry: CompiledEntry) -> None:
        """Refuses tensors of other types and sizes than the inputs have; no guard of torch has seen them."""
        for tensor, operand in zip(arguments, self._graph.inputs):
            wanted = operand.node.meta["val"]
            if tensor.dtype != wanted.dtype or tensor.device != entry.device or tensor.dim() != wanted.dim():
                raise wrong(tensor, operand, entry.device)
        values = entry.symbol_values(arguments)
        for name, value in values.items():
            symbol = self.compiled.symbols[name]
            if not symbol.low <= value <= symbol.high or value % symbol.multiple:
                raise bad_input(f"symbol {name} is {value}, {symbol.low} to {symbol.high} is wanted",
                                self.compiled.model.name)
        for tensor, operand in zip(arguments, self._graph.inputs):
            sizes = [self._graph.extents.evaluate(size, values) for size in operand.node.meta["val"].shape]
            if list(tensor.shape) != sizes:
                raise wrong(tensor, operand, entry.device)

    def _named(self, results: list[torch.Tensor]) -> Any:
        named = {operand.name: result for operand, result in zip(self._graph.outputs, results)}
        return next(iter(named.values())) if len(named) == 1 else named

    def reset(self) -> None:
        """Waits for the GPU and drops the recordings. Later runs are recorded anew."""
        for call in list(self._calls.values()):
            call.reset()

    def __str__(self) -> str:
        """The recordings of each device, and the memory that they hold."""
        return "\n".join(f"{device}: {call}" for device, call in self._calls.items()) or "nothing has run"


def tensor_of(value: Any, name: str) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        raise usage(f"a {type(value).__name__} is given", f"input {name}", "give a tensor of torch")
    return value


def device_of(arguments: list[torch.Tensor]) -> torch.device:
    """The device of the tensors; of a module without inputs the GPU, if there is one."""
    if arguments:
        return arguments[0].device
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


def wrong(tensor: torch.Tensor, operand: Operand, device: torch.device) -> Exception:
    wanted = operand.node.meta["val"]
    return bad_input(f"{tensor.dtype} {list(tensor.shape)} on {tensor.device} is given, {wanted.dtype} "
                     f"{list(wanted.shape)} on {device} is wanted", f"input {operand.name}")
