"""A compiled entry that is called with torch's tensors, in their memory and on torch's stream."""

from __future__ import annotations

import contextlib
import ctypes
import math
import threading
from collections import Counter
from types import MappingProxyType
from typing import Collection, Iterator, Mapping, NamedTuple

import torch

from ..._bindings import Code, lib, sinter_allocate, sinter_device, sinter_release
from ...call import Call
from ...compiled import Compiled
from ...devices import Device
from ...errors import SinterError, bad_input, check, usage
from ...handles import created, encoded
from ...importing.extents import Extents
from ...importing.row_checks import python_error
from ...importing.unsupported import Unsupported
from ...plan import may_share
from ...session import Executable
from ...tensors import Tensor as Memory
from ..convert.importer import ImportedGraph, Operand
from ..graphs.dtypes import in_memory, sinter_dtype
from ..graphs.symbols import sizes_of
from ..rewrites.packing import addresses_at, is_parameter
from .lent_memory import SpareMemory, apart
from .shared_memory import SharedMemory, StreamSession
from .step_groups import Group, groups_of

ALIGNMENT = 16  # bytes; what kernels need of an address
MAX_CALLS = 256  # of an entry in one stream, of different sizes, that are kept ready
MAX_MODULES = 256  # whose parameters' addresses an entry remembers
_AT_ONCE = contextlib.nullcontext()


class TorchDevice(Device):
    """A device of Sinter in torch's context; on a GPU its memory is torch's allocator's."""

    _opened: dict[torch.device, TorchDevice] = {}
    _lock = threading.Lock()

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.allocated: Counter[int] = Counter()  # bytes that the library asked for, by stream
        if device.type == "cpu":
            super().__init__("cpu")
            return
        torch.cuda.current_stream(device)  # makes the context
        self._allocate = sinter_allocate(self._allocate_memory)
        self._release = sinter_release(self._release_memory)
        pointer = created(sinter_device, lib.sinter_device_open_cuda, device.index or 0, None,
                          self._allocate, self._release, None)
        self._take(pointer)

    def _allocate_memory(self, user, size, stream):
        self.allocated[stream or 0] += size
        try:
            return torch.cuda.caching_allocator_alloc(size, self.device, stream or 0)
        except Exception:  # the library reports that there is none left
            return None

    def _release_memory(self, user, memory, size, stream):
        torch.cuda.caching_allocator_delete(memory)

    @classmethod
    def of(cls, device: torch.device) -> TorchDevice:
        with cls._lock:
            if device not in cls._opened:
                cls._opened[device] = cls(device)
            return cls._opened[device]


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
                   leaves: list[torch.fx.Node]) -> dict[str, SymbolSource]:
    """A source for each symbol, in an order in which they can be read."""
    places = [(position, None if isinstance(node.meta["val"], torch.SymInt) else axis, product)
              for position, node in enumerate(leaves)
              for axis, size in enumerate(sizes_of(node.meta["val"]))
              if (product := graph.extents.known_product(size)) is not None]
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


class Place(NamedTuple):
    """An input of the entry. leaf: its position among the arguments. dtype: to which it is converted, or
    None. order: of its axes in memory, or None for the usual one."""

    input: int
    leaf: int
    dtype: torch.dtype | None
    order: tuple[int, ...] | None


class Sessions:
    """Sessions of an entry, one for each stream, with the calls that are ready there. memory: of their
    intermediate values."""

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory
        self._by_stream: dict[int | None, StreamSession] = {}
        self._calls: dict[tuple, BoundCall] = {}  # by stream and the symbols' values; the oldest first
        self._lock = threading.Lock()  # of making sessions and calls

    def call(self, entry: CompiledEntry, stream: int | None, values: dict[str, int]) -> BoundCall:
        key = (stream, *values.values())
        return self._calls.get(key) or self._new_call(entry, key, values)

    def _new_call(self, entry: CompiledEntry, key: tuple, values: dict[str, int]) -> BoundCall:
        stream = key[0]
        with self._lock:
            if stream not in self._by_stream:
                self._by_stream[stream] = self._memory.session(entry.compiled.plan, entry.executable, stream)
            session = self._by_stream[stream]
            with session.lock:
                call = BoundCall(entry, session, values)
            if len(self._calls) >= MAX_CALLS:
                del self._calls[next(iter(self._calls))]
            self._calls[key] = call
            return call


class BoundCall(Call):
    """A call of the entry in one session and for one set of sizes, whose tensors are addresses."""

    def __init__(self, entry: CompiledEntry, session: StreamSession,
                 values: dict[str, int]) -> None:
        super().__init__(session, entry.compiled.plan.signature("main"))
        self._lock = session.lock  # a reference to the session would make a cycle
        if entry.in_groups:
            check(lib.sinter_call_allow_groups(self.pointer))
        self._groups: list[Group] | None = None
        for name, value in values.items():
            check(lib.sinter_call_symbol(self.pointer, encoded(name), value))
        evaluate = lambda dims: [values[dim] if isinstance(dim, str) else dim for dim in dims]
        self._operands = [(operand, evaluate(operand.dims)) for operand in
                          (*entry.graph.inputs, *entry.graph.outputs)]
        self._device = entry.device
        self._input_count = len(entry.graph.inputs)
        self._parameter_places = [place.input for place in entry.parameters]
        self._other_places = [place.input for place in entry.others]
        self._kept_places = [i for i, place in enumerate(entry.others)
                             if is_made(entry.graph.inputs[place.input].node)]
        self._parameters: tuple[int, ...] | None = None  # their addresses, as the library has them
        self._states = entry.graph.states
        self._state_addresses: list[int] = []
        # Sizes, strides and type of each result as a tensor of torch.
        self.result_layouts = [(*sizes_and_strides(operand, entry.graph.extents, values), operand.dtype)
                        for operand in entry.graph.outputs]

    def launch(self, parameters: tuple[int, ...], given: list[torch.Tensor], states: list[torch.Tensor],
               results: list[torch.Tensor], is_checked: bool, is_run: bool) -> None:
        """Enqueues the kernels. parameters: addresses. given: the other inputs. states: are written in place.
        is_checked: waits, and raises for a row number out of range. not is_run: the call is only
        prepared."""
        with self._lock:  # the one that run() and check() take
            self._bind_states(states)
            self._write_addresses(parameters, given, results)
            pointer = self.pointer
            if self._is_bound:
                inputs, outputs = self._addresses
                check(lib.sinter_call_addresses(pointer, inputs, len(inputs), outputs, len(outputs)))
            else:
                self._bind_addresses([*self._addresses[0], *self._addresses[1]])
            check(lib.sinter_call_run(pointer) if is_run else lib.sinter_call_prepare(pointer))
            if is_checked and is_run:
                check(lib.sinter_call_check(pointer))

    def new_result(self, number: int) -> torch.Tensor:
        sizes, strides, dtype = self.result_layouts[number]
        return torch.empty_strided(sizes, strides, dtype=dtype, device=self._device)

    def launch_in_groups(self, parameters: tuple[int, ...], given: list[torch.Tensor | None],
                         spare: Collection[int] = ()) -> list[torch.Tensor]:
        """Enqueues the kernels in groups of steps. Results are new tensors, made before the first group that writes
        them; tensors of `given` that the forward pass has made become None after the last group that reads them.
        spare: those of them in whose memory results may lie from then on."""
        results: list[torch.Tensor | None] = [None] * len(self.result_layouts)
        memory = SpareMemory()
        with self._lock:
            inputs, outputs = self._addresses
            self._write_addresses(parameters, given, [])
            for place in range(len(outputs)):
                outputs[place] = None
            if not self._is_bound:
                self._bind_addresses([*inputs, *outputs])
            if self._groups is None or spare:
                self._groups = self._find_groups([tensor.nbytes for tensor in given], bool(spare))
            for group in self._groups:
                for i in group.made:
                    spared = memory.take(*self.result_layouts[i], self._device)
                    results[i] = self.new_result(i) if spared is None else spared
                    outputs[i] = results[i].data_ptr()
                check(lib.sinter_call_addresses(self.pointer, inputs, len(inputs), outputs, len(outputs)))
                check(lib.sinter_call_run_steps(self.pointer, group.first, group.last))
                for i in group.ended:
                    place = self._kept_places[i]
                    if place in spare:
                        memory.add(given[place])
                    given[place] = inputs[self._other_places[place]] = None
        return results

    def _find_groups(self, given_bytes: list[int], are_recorded: bool) -> list[Group]:
        inputs, outputs = self._addresses
        steps = ctypes.c_size_t()
        ends, begins = (ctypes.c_size_t * len(inputs))(), (ctypes.c_size_t * len(outputs))()
        check(lib.sinter_call_lifetimes(self.pointer, ctypes.byref(steps), ends, len(ends), begins, len(begins)))
        result_bytes = [math.prod(sizes) * dtype.itemsize for sizes, _, dtype in self.result_layouts]
        return groups_of(steps.value, [ends[self._other_places[place]] for place in self._kept_places],
                         [given_bytes[place] for place in self._kept_places], [*begins], result_bytes,
                         are_recorded)

    def _write_addresses(self, parameters: tuple[int, ...], given: list[torch.Tensor],
                         results: list[torch.Tensor]) -> None:
        inputs, outputs = self._addresses
        if parameters != self._parameters:
            for place, address in zip(self._parameter_places, parameters):
                inputs[place] = address
            self._parameters = parameters
        for place, address in zip(self._other_places, [tensor.data_ptr() for tensor in given]):
            inputs[place] = address
        for place, tensor in enumerate(results):
            outputs[place] = tensor.data_ptr()

    def _bind_states(self, states: list[torch.Tensor]) -> None:
        addresses = [tensor.data_ptr() for tensor in states]
        if addresses == self._state_addresses:
            return
        for operand, address in zip(self._states, addresses):
            memory = Memory(address, sinter_dtype(operand.dtype), operand.dims, None, self._place, None, "torch")
            self._give(lib.sinter_call_state, operand.name, memory)
        self._state_addresses = addresses

    def _bind_addresses(self, addresses: list[int]) -> None:
        for i, ((operand, dims), address) in enumerate(zip(self._operands, addresses)):
            bind = lib.sinter_call_input if i < self._input_count else lib.sinter_call_output
            memory = Memory(address or 0, sinter_dtype(operand.dtype), tuple(dims), None, self._place,
                            None, "torch")
            self._give(bind, operand.name, memory)
        self._is_bound = True


class CompiledEntry:
    """An imported graph, compiled and loaded. Called with a value for each of its leaves.

    compiled: the plan, a `sinter.Compiled`: why, ledger, kernels, verify. locations: of values in
    the user's source. memory: of intermediate values, which entries of one function share. written:
    results that are copied to a leaf behind the call and not used otherwise, with the leaf, which no one
    else reads: where the plan allows it, the call writes such a result in the leaf's memory.
    """

    def __init__(self, graph: ImportedGraph, leaves: list[torch.fx.Node], device: torch.device,
                 compiled: Compiled, executable: Executable, is_checked: bool = False,
                 memory: SharedMemory | None = None,
                 written: Mapping[int, int] = MappingProxyType({})) -> None:
        self.graph = graph
        self.device = device
        self.name = graph.module.name
        self.locations = graph.locations
        self.compiled, self.executable = compiled, executable
        self._sources = symbol_sources(graph, leaves)
        position = {node: i for i, node in enumerate(leaves)}
        places = [Place(i, position[operand.node], self._converted_type(operand),
                        None if operand.layout.is_plain else operand.layout.order)
                  for i, operand in enumerate(graph.inputs)]
        is_stable = lambda place: place.dtype is None and is_parameter(graph.inputs[place.input].node)
        self.parameters = [place for place in places if is_stable(place)]
        self.others = [place for place in places if not is_stable(place)]
        self.states = [position[operand.node] for operand in graph.states]
        self._state_places = [Place(i, leaf, None, None) for i, leaf in enumerate(self.states)]
        self._parameter_addresses = addresses_at([place.leaf for place in self.parameters])
        self._known: set[tuple[int, ...]] = set()  # addresses of parameters that need no copies
        self._made = [(position[operand.node], operand) for operand in graph.inputs
                      if operand.node.op != "placeholder" and not is_number(operand)]
        self.numbers = {position[operand.node]: operand.dtype for operand in graph.inputs if is_number(operand)}
        self._sessions = Sessions(memory or SharedMemory())
        self._lock = threading.Lock()  # of the known addresses
        self._is_cuda = device.type == "cuda"
        self._is_checked = is_checked
        self.overwritten = self._overwritten_leaves(written)
        self.in_groups = False

    def allow_groups(self) -> None:
        """Before the first call. All calls then go through `take`, which runs the steps in groups and lets go of
        arguments in between."""
        self.in_groups = not (self._is_checked or self.overwritten or self.states)

    def _overwritten_leaves(self, written: Mapping[int, int]) -> dict[int, int]:
        """The results that calls may write in the memory of a leaf, with the leaf."""
        by_leaf = {place.leaf: place for place in (*self.parameters, *self.others) if place.dtype is None}
        found = {}
        for result, leaf in written.items():
            place, output = by_leaf.get(leaf), self.graph.outputs[result]
            if place is None:
                continue
            given = self.graph.inputs[place.input]
            if given.layout.order == output.layout.order and given.dims == output.dims and \
                    may_share(self.compiled.plan.pointer, "main", result, place.input):
                found[result] = leaf
        return found

    @classmethod
    def compile(cls, graph: ImportedGraph, leaves: list[torch.fx.Node], device: torch.device, options: dict,
                is_checked: bool = False, memory: SharedMemory | None = None, tune: bool = False,
                written: Mapping[int, int] = MappingProxyType({})) -> CompiledEntry:
        """The entry of a graph without weights. options: of the compilation. tune: products, by timing."""
        inputs = {operand.node: operand.name for operand in graph.inputs}
        pairs = [f"{graph.outputs[result].name}={inputs[leaves[leaf]]}"
                 for result, leaf in written.items() if leaves[leaf] in inputs]
        place = TorchDevice.of(device)
        with graph.module as module:
            model = module.model()
        given = {"target": place.target or None, **options, "device-inputs": True, "overwrite": pairs or None}
        compiled = Compiled(model, given, [], [], None, None)
        compiled.sources = graph.locations
        executable = Executable(compiled.plan, place, None, tune=tune)
        return cls(graph, leaves, device, compiled, executable, is_checked, memory, written)

    def __call__(self, *arguments):
        return self.launch(arguments, self._sessions)

    def take(self, arguments: list) -> list[torch.Tensor]:
        """A call that empties `arguments`. Where nobody else holds one, its memory is free for results as soon as
        no kernel that is still to be enqueued reads it."""
        if not self.in_groups:
            results = self(*arguments)
            arguments.clear()
            return results
        values = self.symbol_values(arguments)
        parameters, copies = self._parameters_of(arguments)  # alive, as `kept`, until the kernels are queued
        kept = [arguments[place.leaf] for place in self.parameters]
        given = [self._ready(arguments[place.leaf], place) for place in self.others]
        arguments.clear()
        call = self._sessions.call(self, self._handle(None), values)
        try:
            return call.launch_in_groups(parameters, given)
        except SinterError as error:
            raise python_error(error, self.graph.row_checks) from None

    def symbol_values(self, arguments) -> dict[str, int]:
        """The values of the symbols in a call. An op in eager that gave other sizes than traced is an error."""
        for position, operand in self._made:
            check_made(in_memory(arguments[position]), operand)
        values: dict[str, int] = {}
        for name, source in self._sources.items():
            values[name] = source.value(arguments, values)
        return values

    def inputs_of(self, arguments) -> tuple[dict[str, torch.Tensor], dict[str, int]]:
        """The inputs of the entry in a call, by name, as kernels read them; the values of the symbols."""
        values = self.symbol_values(arguments)
        inputs = {}
        for place in (*self.parameters, *self.others):
            operand = self.graph.inputs[place.input]
            dims = [values[dim] if isinstance(dim, str) else dim for dim in operand.dims]
            inputs[operand.name] = self._ready(arguments[place.leaf], place).reshape(dims)
        return inputs, values

    def launch(self, arguments, sessions: Sessions,
               stream: torch.cuda.Stream | None = None, is_run: bool = True,
               over: Collection[int] = ()) -> list[torch.Tensor]:
        """A call in one of the sessions, in order with the current stream. Results are new tensors, or the
        argument that the call has overwritten. stream: in which its kernels run; None: in the current one.
        not is_run: the call is only prepared. over: arguments in whose memory results may lie when they have been
        read, if calls run in groups."""
        values = self.symbol_values(arguments)
        parameters, copies = self._parameters_of(arguments)  # alive until the kernels are queued
        given = [self._ready(arguments[place.leaf], place) for place in self.others]
        states = [self._ready(arguments[place.leaf], place) for place in self._state_places]
        call = sessions.call(self, self._handle(stream), values)
        overwritten = self._overwritten(arguments, parameters, given) if self.overwritten else {}

        def run(overwritten: dict[int, torch.Tensor]) -> list[torch.Tensor]:
            if over and self.in_groups:
                spare = [i for i, place in enumerate(self.others)
                         if place.leaf in over and given[i].data_ptr() == arguments[place.leaf].data_ptr()]
                return call.launch_in_groups(parameters, given, apart(given, spare))
            results = [overwritten[i] if i in overwritten else call.new_result(i)
                       for i in range(len(call.result_layouts))]
            with _AT_ONCE if stream is None else in_order(stream):
                call.launch(parameters, given, states, results, self._is_checked, is_run)
            return results

        try:
            try:
                results = run(overwritten)
            except SinterError as error:
                if not overwritten or error.code != Code.USAGE:
                    raise
                results = run({})  # an argument shares its memory with another
                overwritten = {}
        except SinterError as error:
            raise python_error(error, self.graph.row_checks) from None
        if overwritten and is_run:
            torch.autograd.graph.increment_version(
                [tensor for tensor in overwritten.values() if not tensor.is_inference()])
        for leaf, state in zip(self.states, states):
            if state.data_ptr() != arguments[leaf].data_ptr():  # a copy
                with torch.no_grad():
                    arguments[leaf].copy_(state)
        return results

    def _overwritten(self, arguments, parameters: tuple[int, ...],
                     given: list[torch.Tensor]) -> dict[int, torch.Tensor]:
        """The arguments in whose memory results are written: those that kernels read where they lie."""
        read = {place.leaf: address for place, address in zip(self.parameters, parameters)}
        read.update((place.leaf, tensor.data_ptr()) for place, tensor in zip(self.others, given))
        return {result: arguments[leaf] for result, leaf in self.overwritten.items()
                if arguments[leaf].data_ptr() == read[leaf]}

    def _handle(self, stream: torch.cuda.Stream | None) -> int | None:
        """The library's number of a stream, or of the current one; None: the device has none."""
        if stream is not None:
            return stream.cuda_stream
        return torch._C._cuda_getCurrentRawStream(self.device.index or 0) if self._is_cuda else None

    def _ready(self, tensor: torch.Tensor | int | float, place: Place) -> torch.Tensor:
        """The tensor as kernels read it: itself, or a copy. A number of Python's is given as it is."""
        if not isinstance(tensor, torch.Tensor):
            # A number beyond float32 becomes infinity, as in eager; torch.full would refuse it.
            number = torch.as_tensor(tensor, dtype=place.dtype).item()
            tensor = torch.full((), number, dtype=place.dtype, device=self.device)
        if place.dtype is not None:
            tensor = in_memory(tensor).to(self.device, place.dtype, non_blocking=True)
        if place.order is not None:
            tensor = tensor.permute(place.order)
        if not tensor.is_contiguous():
            tensor = tensor.contiguous()
        if tensor.is_neg():
            tensor = tensor.resolve_neg()
        address = tensor.data_ptr()
        if address == 0 and tensor.numel():
            if not tensor._is_zerotensor():
                raise usage(f"a {type(tensor).__name__} of {tensor.numel()} elements has no memory",
                            "a call of a compiled graph", "give a tensor with elements")
            return torch.zeros_like(tensor, memory_format=torch.contiguous_format)
        if address % ALIGNMENT:
            return tensor.clone(memory_format=torch.contiguous_format)
        return tensor

    def _parameters_of(self, arguments) -> tuple[tuple[int, ...], list[torch.Tensor]]:
        """Addresses at which kernels read the parameters, and the tensors there, unless they are known to be the
        arguments."""
        addresses = self._parameter_addresses(arguments)
        if addresses in self._known:
            return addresses, []
        ready = self._ready_parameters(arguments, addresses)
        return tuple([tensor.data_ptr() for tensor in ready]), ready

    def _ready_parameters(self, arguments, addresses: tuple[int, ...]) -> list[torch.Tensor]:
        """The parameters as kernels read them. Addresses at which they need no copy are known from then on:
        torch's guards see to their types, sizes and strides."""
        ready = [self._ready(arguments[place.leaf], place) for place in self.parameters]
        if all(tensor.data_ptr() == address for tensor, address in zip(ready, addresses)):
            with self._lock:
                if len(self._known) >= MAX_MODULES:
                    self._known.clear()
                self._known.add(addresses)
        return ready

    def _converted_type(self, operand: Operand) -> torch.dtype | None:
        """Converted are numbers, complex ones too, and what an op in eager made: torch's own fake kernels have other
        types here and there."""
        if is_number(operand):
            return operand.dtype
        given = operand.node.meta["val"]
        is_sure = operand.node.op == "placeholder" and given.device == self.device \
            and given.dtype == operand.dtype
        return None if is_sure else operand.dtype


@contextlib.contextmanager
def in_order(stream: torch.cuda.Stream) -> Iterator[None]:
    """Work that is enqueued in a stream within is done after what the current stream has, and before what
    it gets later."""
    current = torch.cuda.current_stream(stream.device)
    stream.wait_stream(current)
    try:
        yield
    finally:
        current.wait_stream(stream)


def is_number(operand: Operand) -> bool:
    """Whether an input is a number of Python's."""
    return not isinstance(operand.node.meta["val"], torch.Tensor)


def is_made(argument: torch.fx.Node) -> bool:
    """Whether an argument of a backward graph was made by torch or the forward graph: it is none of the user's,
    which aot_autograd calls primals."""
    return not argument.name.startswith("primals_")


def check_made(tensor: torch.Tensor, operand: Operand) -> None:
    """An op in eager must have made the sizes that torch traced; else memory beyond it would be read."""
    is_right = tensor.dim() == len(operand.sizes) and all(
        size == wanted for size, wanted in zip(tensor.shape, operand.sizes) if isinstance(wanted, int))
    if not is_right:
        raise bad_input(f"{operand.node.target} gave sizes {list(tensor.shape)}, torch's trace of it "
                        f"has {list(operand.sizes)}", operand.name)


def sizes_and_strides(operand: Operand, extents: Extents,
                      values: dict[str, int]) -> tuple[list[int], list[int]]:
    """The extents and strides of torch's tensor for values of the symbols. The strides are the traced ones where those
    are dense, else row-major."""
    sizes = [extents.evaluate(size, values) for size in operand.sizes]
    strides = operand.layout.strides(sizes)
    for axis, size in enumerate(sizes):
        if size == 1 or 0 in sizes:  # any stride is right: torch's
            try:
                strides[axis] = extents.evaluate(operand.strides[axis], values)
            except Unsupported:
                pass
    return sizes, strides
