"""A compiled entry that is called with torch's tensors, in their memory and on torch's stream."""

from __future__ import annotations

import ctypes

import torch

from .._bindings import (lib, sinter_allocate, sinter_call, sinter_costs, sinter_device, sinter_executable,
                         sinter_model, sinter_options, sinter_plan, sinter_release,
                         sinter_session)
from ..errors import check
from ..handles import Handle, created, encoded, taken_text
from .dtypes import sinter_dtype
from .importer import ImportedGraph, Operand, sizes_of

ALIGNMENT = 16  # bytes; what kernels need of an address


class TorchDevice:
    """A device of Sinter that uses torch's context and, on a GPU, torch's allocator."""

    _open: dict[torch.device, TorchDevice] = {}

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._memory: dict[int, torch.UntypedStorage] = {}
        if device.type == "cpu":
            pointer = created(sinter_device, lib.sinter_device_open, b"cpu")
        else:
            torch.cuda.current_stream(device)  # makes the context
            self._allocate = sinter_allocate(self._allocate_memory)
            self._release = sinter_release(self._release_memory)
            pointer = created(sinter_device, lib.sinter_device_open_cuda, device.index or 0, None,
                              self._allocate, self._release, None)
        self.handle = Handle(pointer, lib.sinter_device_free)
        self.target = lib.sinter_device_target(pointer).decode()

    def _allocate_memory(self, user, size, stream):
        try:
            return torch.cuda.caching_allocator_alloc(size, self.device, stream or 0)
        except Exception:  # torch has none left; the library reports it
            return None

    def _release_memory(self, user, memory, size, stream):
        torch.cuda.caching_allocator_delete(memory)

    @classmethod
    def of(cls, device: torch.device) -> TorchDevice:
        if device not in cls._open:
            cls._open[device] = cls(device)
        return cls._open[device]


class SymbolSource:
    """Where a call finds the value of a symbol: a number, or an axis of an argument, whose size is
    the symbol times a number and other symbols."""

    def __init__(self, argument: int, axis: int | None, number: int,
                 others: tuple[str, ...]) -> None:
        self.argument, self.axis, self.number, self.others = argument, axis, number, others

    def value(self, arguments, values: dict[str, int]) -> int:
        given = arguments[self.argument]
        size = int(given) if self.axis is None else given.shape[self.axis]
        for other in self.others:
            size //= values[other]
        return size // self.number


def symbol_sources(graph: ImportedGraph,
                   placeholders: list[torch.fx.Node]) -> dict[str, SymbolSource]:
    """A source for each symbol, in an order in which they can be read."""
    places = [(position, None if isinstance(node.meta["val"], torch.SymInt) else axis,
               graph.extents.product(size))
              for position, node in enumerate(placeholders)
              for axis, size in enumerate(sizes_of(node.meta["val"]))]
    sources: dict[str, SymbolSource] = {}
    while len(sources) < len(graph.extents.symbols):
        known = len(sources)
        for position, axis, product in places:
            unknown = [name for name in product.symbols if name not in sources]
            if len(unknown) == 1:
                others = tuple(name for name in product.symbols if name != unknown[0])
                sources[unknown[0]] = SymbolSource(position, axis, product.number, others)
        if len(sources) == known:
            raise AssertionError("a symbol that no argument tells")
    return sources


class BoundCall:
    """A call of the entry for one stream and one set of sizes."""

    def __init__(self, owner: CompiledEntry, stream: int | None, values: dict[str, int]) -> None:
        if stream is None:
            session = created(sinter_session, lib.sinter_session_create, owner.executable.pointer,
                              None, None, 0)
        else:
            session = created(sinter_session, lib.sinter_session_create_on_stream,
                              owner.executable.pointer, None, None, 0, stream)
        self.session = Handle(session, lib.sinter_session_free)
        self.handle = Handle(created(sinter_call, lib.sinter_call_create, session, b"main"),
                             lib.sinter_call_free)
        for name, value in values.items():
            check(lib.sinter_call_symbol(self.handle.pointer, encoded(name), value))
        evaluate = lambda dims: [values[dim] if isinstance(dim, str) else dim for dim in dims]
        self.input_dims = [evaluate(operand.dims) for operand in owner.graph.inputs]
        self.outputs = []
        for operand in owner.graph.outputs:
            memory = evaluate(operand.dims)
            self.outputs.append((operand, memory, owner.output_sizes(operand, values)))
        self.input_addresses = (ctypes.c_void_p * len(self.input_dims))()
        self.output_addresses = (ctypes.c_void_p * len(self.outputs))()
        self.is_bound = False
        self._call = self.handle.pointer

    def run(self, owner: CompiledEntry, tensors: list[torch.Tensor],
            results: list[torch.Tensor]) -> None:
        inputs, outputs = self.input_addresses, self.output_addresses
        for i, tensor in enumerate(tensors):
            inputs[i] = tensor.data_ptr()
        for i, tensor in enumerate(results):
            outputs[i] = tensor.data_ptr()
        if self.is_bound:
            check(lib.sinter_call_addresses(self._call, inputs, len(inputs), outputs,
                                            len(outputs)))
        else:
            self._bind(owner)
        check(lib.sinter_call_run(self._call))

    def _bind(self, owner: CompiledEntry) -> None:
        lists = ((lib.sinter_call_input, owner.graph.inputs, self.input_dims, self.input_addresses),
                 (lib.sinter_call_output, owner.graph.outputs, [o[1] for o in self.outputs],
                  self.output_addresses))
        for bind, operands, dims, addresses in lists:
            for operand, extents, address in zip(operands, dims, addresses):
                extents_array = (ctypes.c_int64 * len(extents))(*extents)
                check(bind(self._call, encoded(operand.name), encoded(sinter_dtype(operand.dtype)),
                           len(extents), extents_array, None, address))
        self.is_bound = True


class CompiledEntry:
    """An imported graph, compiled and loaded. Called with the arguments of its placeholders."""

    def __init__(self, graph: ImportedGraph, placeholders: list[torch.fx.Node],
                 device: torch.device, options: dict[str, str]) -> None:
        self.graph = graph
        self.device = TorchDevice.of(device)
        self.sources = symbol_sources(graph, placeholders)
        position = {node: i for i, node in enumerate(placeholders)}
        self.positions = [position[operand.node] for operand in graph.inputs]
        model = created(sinter_model, lib.sinter_model_build, graph.module.pointer)
        self.text = taken_text(lib.sinter_model_text, model)
        try:
            self.plan = Handle(self._compile(model, options), lib.sinter_plan_free)
        finally:
            lib.sinter_model_free(model)
        graph.module.close()
        self.executable = Handle(
            created(sinter_executable, lib.sinter_load, self.plan.pointer,
                    self.device.handle.pointer, None, None), lib.sinter_executable_free)
        self._calls: dict[tuple, BoundCall] = {}
        self._layouts = [None if operand.layout.is_plain else operand.layout.order
                         for operand in graph.inputs]

    def _compile(self, model, options: dict[str, str]):
        handle = created(sinter_options, lib.sinter_options_create)
        try:
            given = dict(options)
            if self.device.target:
                given.setdefault("target", self.device.target)
            for name, value in given.items():
                check(lib.sinter_options_set(handle, encoded(name), encoded(value)))
            return created(sinter_plan, lib.sinter_compile, model, handle)
        finally:
            lib.sinter_options_free(handle)

    @property
    def name(self) -> str:
        return self.graph.module.name

    @property
    def ops(self) -> int:
        """Ops of the entry, views and generators included."""
        return self.text.count(" = ")

    def costs(self) -> tuple[int, int]:
        """(launches of a call, bytes that they move), sizes at usual values."""
        costs = created(sinter_costs, lib.sinter_plan_costs, self.plan.pointer, 0, None, None, 0)
        try:
            return lib.sinter_costs_launches(costs), lib.sinter_costs_moved_bytes(costs)
        finally:
            lib.sinter_costs_free(costs)

    def output_sizes(self, operand: Operand, values: dict[str, int]) -> tuple[int, ...]:
        """torch's sizes of an output for values of the symbols."""
        sizes = []
        for size in operand.sizes:
            product = self.graph.extents.product(size)
            number = product.number
            for symbol in product.symbols:
                number *= values[symbol]
            sizes.append(number)
        return tuple(sizes)

    def __call__(self, *arguments):
        tensors = []
        for position, order in zip(self.positions, self._layouts):
            tensor = arguments[position]
            if order is None:
                if not tensor.is_contiguous():
                    tensor = tensor.contiguous()
            else:
                tensor = tensor.permute(order)
                if not tensor.is_contiguous():
                    tensor = tensor.contiguous()
            if tensor.data_ptr() % ALIGNMENT:
                tensor = tensor.clone(memory_format=torch.contiguous_format)
            if tensor.is_conj() or tensor.is_neg():
                tensor = tensor.resolve_conj().resolve_neg()
            tensors.append(tensor)
        device = self.device.device
        stream = None if device.type == "cpu" else torch.cuda.current_stream(device).cuda_stream
        values: dict[str, int] = {}
        for name, source in self.sources.items():
            values[name] = source.value(arguments, values)
        key = (stream, *values.values())
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = BoundCall(self, stream, values)
        memory, results = [], []
        for operand, dims, sizes in call.outputs:
            layout = operand.layout
            shape = sizes if layout.is_plain else [sizes[axis] for axis in layout.order]
            tensor = torch.empty(shape, dtype=operand.dtype, device=device)
            memory.append(tensor)
            results.append(tensor if layout.is_plain else tensor.permute(layout.inverse))
        call.run(self, tensors, memory)
        return results


