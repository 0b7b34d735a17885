"""Parameters in one piece of memory, for products that are one.

When a graph runs first, its packed arguments are made: the parameters of each are copied one behind the
other, and each parameter's data becomes its part of the copy. So no memory is doubled, and a parameter
that changes in place changes what the graph reads. A parameter that moved to other memory is noticed by
its address in the next call; then it is packed again, or the graph runs without the pack.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Callable

import torch
from torch import fx

from ..rewrites.packing import Group, Packing, addresses_at, picked
from .compiled_graph import CompiledGraph
from .graph_report import GraphReport, PackingReport

MAX_FORMS = 256  # of a graph, which may serve many modules of one class
MAX_CACHED = 64 << 20  # bytes in torch's cache while parameters move
SHARED = "another tensor shares the memory of a parameter"
_LOCK = threading.Lock()  # of moving parameters, which several graphs may share


@dataclass(frozen=True)
class Pack:
    """Parameters that are one argument of a packed graph: those at `positions` of the arguments."""

    positions: tuple[int, ...]
    sizes: tuple[int, ...]  # of the joined tensor

    def of(self, arguments) -> list[torch.Tensor]:
        return [arguments[position] for position in self.positions]

    def joined(self, arguments) -> torch.Tensor:
        """The parameters as one tensor. They lie one behind the other."""
        return arguments[self.positions[0]].as_strided(self.sizes, (*self.sizes[1:], 1))


class Form:
    """The graph with some of its groups packed. join: gives the packed arguments. One entry that is the whole
    graph reads them by their addresses: it gets the first parameter of each."""

    def __init__(self, packs: list[Pack], compiled: CompiledGraph) -> None:
        self.function = compiled.function
        self.join = picked([pack.positions[0] for pack in packs]) if compiled.is_whole else \
            lambda arguments: [pack.joined(arguments) for pack in packs]


class PackedFunction:
    """A graph's function, which makes the packed arguments itself.

    compile: for the groups that are packed, the compiled graph, whose function has their packs for
    further arguments. report: says what is packed now, and what runs."""

    def __init__(self, graph: fx.Graph, packing: Packing,
                 compile: Callable[[list[Group]], CompiledGraph], report: GraphReport) -> None:
        arguments = [node for node in graph.nodes if node.op == "placeholder"]
        position = {node: i for i, node in enumerate(arguments)}
        self._packing, self._compile, self._report = packing, compile, report
        self._packs = [[pack_of(parts, position) for parts in group.packs]
                       for group in packing.groups]
        self._addresses = addresses_at([place for packs in self._packs for pack in packs
                                        for place in pack.positions])
        self._graphs: dict[tuple[int, ...], CompiledGraph] = {}  # by the groups that are packed
        self._forms: dict[tuple[int, ...], Form] = {}  # by the parameters' addresses
        self._compiled({})

    def __call__(self, *arguments):
        form = self._forms.get(self._addresses(arguments)) or self._adapt(arguments)
        try:
            joined = form.join(arguments)
        except RuntimeError:  # other memory at the same addresses, of several tensors
            form = self._adapt(arguments)
            joined = form.join(arguments)
        return form.function(*arguments, *joined)

    def _adapt(self, arguments) -> Form:
        """The form for parameters that are new or have moved, which are packed where that is possible."""
        with _LOCK:
            tensors = [[pack.of(arguments) for pack in packs] for packs in self._packs]
            reasons = {i: reason for i, packs in enumerate(tensors)
                       for reason in [pack_all(packs)] if reason is not None}
            compiled = self._compiled(reasons)
            packs = [pack for i, packs in enumerate(self._packs) if i not in reasons for pack in packs]
            if len(self._forms) >= MAX_FORMS:
                self._forms.clear()
            form = self._forms[self._addresses(arguments)] = Form(packs, compiled)
            return form

    def _compiled(self, reasons: dict[int, str]) -> CompiledGraph:
        """The graph in which groups with a reason are not packed."""
        groups = self._packing.groups
        packed = tuple(i for i in range(len(groups)) if i not in reasons)
        if packed not in self._graphs:
            self._graphs[packed] = self._compile([groups[i] for i in packed])
        compiled = self._graphs[packed]
        self._report.show(compiled.entries, compiled.eager, compiled.recorded, compiled.rewrites)
        self._report.packing = PackingReport(
            sum(len(groups[i].products) for i in packed), len(packed),
            sum(groups[i].nbytes for i in packed),
            {**self._packing.refused, **{groups[i].name: reasons[i] for i in reasons}})
        return compiled


def pack_of(parts: list[fx.Node], position: dict[fx.Node, int]) -> Pack:
    shapes = [part.meta["val"].shape for part in parts]
    return Pack(tuple(position[part] for part in parts),
                (sum(shape[0] for shape in shapes), *shapes[0][1:]))


def pack_all(packs: list[list[torch.Tensor]]) -> str | None:
    """Moves the parameters of each pack into one piece of memory, unless they are in one. A reason:
    nothing has moved."""
    scattered = [tensors for tensors in packs if not are_adjacent(tensors)]
    for tensors in scattered:
        reason = obstacle(tensors)
        if reason is not None:
            return reason
    try:
        copies = [joined_copy(tensors) for tensors in scattered]
    except torch.OutOfMemoryError:
        return "there is no memory for a copy of the parameters"
    for tensors, copy in zip(scattered, copies):
        move(tensors, copy)
    return None


def are_adjacent(tensors: list[torch.Tensor]) -> bool:
    """Whether the tensors lie one behind the other in one storage."""
    storage = tensors[0].untyped_storage().data_ptr()
    address = tensors[0].data_ptr()
    for tensor in tensors:
        if not tensor.is_contiguous() or tensor.data_ptr() != address \
                or tensor.untyped_storage().data_ptr() != storage:
            return False
        address += tensor.nbytes
    return True


def obstacle(tensors: list[torch.Tensor]) -> str | None:
    """Why parameters cannot be moved to other memory."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    own_users = Counter(storage._cdata for storage in storages)
    places = sorted((tensor.data_ptr(), tensor.nbytes) for tensor in tensors)
    if any(begin + size > next_begin for (begin, size), (next_begin, _) in pairwise(places)):
        return SHARED
    for tensor, storage in zip(tensors, storages):
        if type(tensor) is not torch.nn.Parameter:
            return f"a parameter is of the type {type(tensor).__name__}"
        if tensor.is_inference():
            return "a parameter was made in inference mode"
        if torch._C._storage_Use_Count(storage._cdata) > own_users[storage._cdata] + 1:  # ours
            return SHARED
        if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
            return "a CUDA graph is captured"
        if not tensor.is_cuda and tensor.is_shared():
            return "other processes may share the memory of a parameter"
    return None


def joined_copy(tensors: list[torch.Tensor]) -> torch.Tensor:
    with torch.inference_mode(False), torch.no_grad():
        return torch.cat([tensor.detach() for tensor in tensors])


def move(tensors: list[torch.Tensor], copy: torch.Tensor) -> None:
    """Lets parameters be the parts of a copy. Kernels of all streams end before, which may read the
    parameters' memory or will read the copy."""
    if copy.is_cuda:
        torch.cuda.synchronize(copy.device)
    with torch.inference_mode(False), torch.no_grad():
        for tensor, part in zip(tensors, copy.split([tensor.shape[0] for tensor in tensors])):
            tensor.data = part
    if copy.is_cuda:
        return_memory(copy.device)


def return_memory(device: torch.device) -> None:
    """Gives memory of parameters that moved back to the GPU, whose blocks fit no later copy. It takes
    milliseconds, so that little of it waits in torch's cache."""
    if torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device) > MAX_CACHED:
        torch.cuda.empty_cache()
