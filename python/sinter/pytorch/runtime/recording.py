"""Calls of an entry that are recorded once, as a CUDA graph, and replayed: the option `graphs`.

A recording serves calls of one size whose parameters lie at the addresses of the recorded call. Inputs
that have moved from call to call are copied into buffers that the recording reads, and so are numbers in
host memory; the others are read where they lie, and one that moves later has the call recorded anew, with
a buffer for it. Results are copied out of the recording into new tensors, so that a replay changes nothing
that a caller holds. What a forward pass keeps for the backward pass is lent, not copied, and so are the
results of a backward pass, gradients, until a call finds one of the call before alive, as where they are
summed over several passes: from then on they are copied. Gradients lie in lent memory that the backward pass has
read, as long as none outlives the step. A result that replaces the value of an argument,
such as a sum that grows, is copied to it in the recording, if the argument is read where it lies. An argument
whose rows the entry writes in place is read where it lies, as a parameter is.

`RecordedCall` decides all of this; `recorder` has the device's part.
"""

from __future__ import annotations

import functools
import threading
import weakref
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Collection, Mapping, Sequence

import torch
from torch import fx

from ..rewrites.packing import addresses_at, is_parameter, picked
from .compiled_entry import CompiledEntry, Sessions
from .lending import Lease, is_lent
from .recorder import DEFAULT_STREAM, Capture, Recorder, alike, copy_to, open_recorder
from .shared_memory import SharedMemory

STATIC = "sinter_static"  # of an argument's node: torch says that its address stays, as a buffer's does
MAX_SIZES = 16  # of an entry that are recorded
MANY_BYTES = 64 << 20  # of inputs that have moved; without buffers for them a recording is worth some waiting
MAX_WAITS = 3  # calls
MAX_PLACES = 16  # recordings of one size, for parameters at different addresses
MAX_KNOWN = 256  # calls without a recording whose addresses are remembered
IDLE = 256  # calls of the entry after which one at other addresses may take the place of a recording


class Recording:
    """A capture, and the calls that it serves: those whose still inputs lie where they did."""

    def __init__(self, capture: Capture, arguments: Sequence, moving: Sequence[int], still: Still,
                 lent_inputs: Sequence[int], lent_results: Collection[int]) -> None:
        self.replay = capture.replay
        self.moving = [(picked([moving[i] for i in places]), [capture.buffers[i] for i in places])
                       for places in alike([arguments[i] for i in moving])]
        given = [i for i, result in enumerate(capture.results) if result is not None]
        given.sort(key=lambda i: i in lent_results)  # copied ones first
        self.results = [capture.results[i] for i in given]
        self._copied = self.results[:sum(i not in lent_results for i in given)]
        self._groups = [(picked(places), [self._copied[i] for i in places])
                        for places in alike(self._copied)]
        self.lease = Lease(self.results[len(self._copied):])
        place = {index: i for i, index in enumerate(given)}
        self._in_order = picked([place.get(i, len(given)) for i in range(len(capture.results))])
        self.still, self.seen = still, still.of(arguments)
        self._lent_inputs = addresses_at(lent_inputs)
        self._lent_seen = self._lent_inputs(arguments)
        self.nbytes = sum(tensor.nbytes for tensor in (*capture.buffers, *self.results))

    def fits(self, arguments: Sequence) -> bool:
        return self.still.of(arguments) == self.seen

    def has_lent_inputs(self, arguments: Sequence) -> bool:
        """Whether the lent inputs are the recorded call's. A call with others is launched alone, as the
        call that made them was; the next call has the recorded ones again."""
        return self._lent_inputs(arguments) == self._lent_seen

    def must_move(self, arguments: Sequence) -> bool:
        """Whether results lie in memory of a lease that has ended, or that a result has kept from being used."""
        return (self.lease.is_outlived or self.lease.is_void) and self.has_lent_inputs(arguments)

    def run(self, arguments: Sequence) -> Sequence[torch.Tensor | None]:
        """A replay on these arguments. None: a result that the replay has written to an argument."""
        for pick, buffers in self.moving:
            copy_to(buffers, pick(arguments))
        self.replay()
        copies = [*map(torch.empty_like, self._copied)]  # with their strides, as they are dense
        for pick, values in self._groups:
            copy_to(pick(copies), values)
        return self._in_order([*copies, *self.lease.lend(), None])


class Still:
    """Inputs that a recording reads where they lie, and what must be as it was for that: their addresses, and
    the strides of those that an op in eager made, which no guard of torch sees to."""

    def __init__(self, positions: Sequence[int], made: Sequence[int]) -> None:
        self._addresses = addresses_at(positions)
        self._made = picked([i for i in positions if i in made]) if set(positions) & set(made) else None

    def of(self, arguments: Sequence) -> tuple:
        addresses = self._addresses(arguments)
        return addresses if self._made is None else (
            addresses, [tensor.stride() for tensor in self._made(arguments)])


@dataclass
class Place:
    """Calls of one size with parameters at the same addresses. streams: in which one of them was launched alone.
    addresses: of the other inputs in the last call. recorded: how often. used: the number of the last call. refused:
    the number of a call for whose recording there was no room. waits: calls that were not recorded because large
    inputs lay elsewhere than in the call before."""

    streams: set[int] = field(default_factory=set)
    addresses: tuple[int, ...] = ()
    recording: Recording | None = None
    recorded: int = 0
    used: int = 0
    refused: int | None = None
    waits: int = 0

    def end(self) -> None:
        """Drops the recording, whose replays must be over."""
        if self.recording is not None:
            self.recording.lease.end()
            self.recording = None


class RecordedCall:
    """An entry whose calls are recorded. Several threads may call it.

    The first call of each size, addresses of parameters, and stream is launched alone; so are all calls in a stream
    that is being captured. A launch in the default stream uses the memory of recordings; in others a session of the
    stream, which prepares a capture there. reason: why nothing is recorded, or None. limits: why some calls are not.
    written: results that are copied to an argument behind the call and not used otherwise, with the argument; a
    recording that reads the argument where it lies has the copy. lent: results that the backward pass alone sees, or
    results of a backward pass, which can be copied instead. memory: of intermediate values, which the recorded calls of a
    function share.
    """

    def __init__(self, entry: CompiledEntry, leaves: Sequence[fx.Node], recorder: Recorder | None,
                 reason: str | None, written: Mapping[int, int] = MappingProxyType({}),
                 lent: Collection[int] = (), is_backward: bool = False,
                 memory: SharedMemory | None = None) -> None:
        self.entry, self.reason = entry, reason
        self._memory = memory or SharedMemory()
        self._recorder = recorder
        self._written, self._lent, self._is_backward = written, lent, is_backward
        tensors = [i for i, leaf in enumerate(leaves)
                   if isinstance(leaf.meta["val"], torch.Tensor) or i in entry.numbers]
        self._on_host = {i for i in tensors  # numbers
                         if i in entry.numbers or leaves[i].meta["val"].device != entry.device}
        self._movable = [i for i in tensors if i in self._on_host
                         or not (is_static(leaves[i]) or i in entry.states)]
        self._made = {i for i in tensors if leaves[i].op != "placeholder"}
        self._static_addresses = addresses_at([i for i in tensors if i not in self._movable])
        self._movable_addresses = addresses_at(self._movable)
        self._reuses = False
        # The forward pass kept these. The gradients of results, called tangents, may have other readers.
        self._kept = {i for i in self._movable if not leaves[i].name.startswith("tangents_")}
        self._lock = self._memory.turn
        self._forget()
        _ALL.add(self)

    def reuse_arguments(self) -> None:
        """Before the first call. The backward graph returns none of its arguments, so that a value that the forward
        pass kept may be overwritten once it has been read."""
        self.entry.allow_groups()
        self._reuses = self.entry.in_groups

    def _forget(self) -> None:
        self._sessions = Sessions(self._memory)  # whose intermediate values recordings use
        self._places: dict[tuple, Place] = {}  # by sizes and addresses of parameters, the oldest first
        self._moving: set[int] = {*self._on_host}  # inputs that have moved, or are not on the device
        self._calls = 0
        self.limits: set[str] = set()

    def __call__(self, *arguments):
        stream = None if self.reason is not None else self._recorder.stream()
        if stream is None:
            return self.entry(*arguments)
        if self.entry.numbers:
            arguments = [torch.as_tensor(x, dtype=self.entry.numbers[i]) if i in self.entry.numbers else x
                         for i, x in enumerate(arguments)]
        sizes = tuple(self.entry.symbol_values(arguments).values())
        key = (sizes, self._static_addresses(arguments))
        with self._lock:
            self._calls += 1
            place = self._places.get(key)
            if place is not None:
                place.used = self._calls
            if place is None or stream not in place.streams:
                recording = self._meet(key, stream, arguments)
            elif place.recording is not None and place.recording.lease.is_out():
                place.recording.lease.note_outlived()
                recording = self._copy_results(key, place, arguments) if self._is_backward else None
            elif place.recording is not None and place.recording.lease.hosts and keeps_graph():
                recording = None  # another pass will read what this one would overwrite
            elif place.recording is not None and place.recording.must_move(arguments):
                self._reuses &= not place.recording.lease.is_outlived
                recording = self._record(key, place, arguments)
            elif place.recording is not None and place.recording.fits(arguments):
                recording = place.recording
            elif place.recording is not None and not place.recording.has_lent_inputs(arguments):
                recording = None
            else:
                recording = self._record(key, place, arguments) if self._may_record(place, arguments) else None
            if recording is not None or stream == DEFAULT_STREAM:
                return self._run(recording, stream, arguments)
        return self.entry(*arguments)

    def _run(self, recording: Recording | None, stream: int, arguments) -> Sequence[torch.Tensor | None]:
        """A replay, or a launch in the memory that all recordings of the function share."""
        if stream != self._memory.stream:
            self._memory.recorder_stream = self._recorder.follow(self._memory.recorder_stream)
            self._memory.stream = stream
        if recording is not None:
            return recording.run(arguments)
        return self._recorder.launch(lambda at: self.entry.launch(arguments, self._sessions, at))

    def _copy_results(self, key: tuple, place: Place, arguments) -> Recording | None:
        """Records anew, because a result of the last call is alive: with results that are copied."""
        self._lent, self._reuses = (), False
        return self._record(key, place, arguments) if place.recording.has_lent_inputs(arguments) else None

    def _meet(self, key: tuple, stream: int, arguments) -> None:
        """Remembers a call that is the first one of its kind."""
        if key not in self._places:
            unrecorded = [known for known, place in self._places.items() if place.recording is None]
            if len(unrecorded) >= MAX_KNOWN:
                del self._places[unrecorded[0]]
            self._places[key] = Place()
        self._places[key].streams.add(stream)
        self._places[key].used = self._calls
        self._places[key].addresses = self._movable_addresses(arguments)

    def _may_record(self, place: Place, arguments) -> bool:
        if place.recorded == 0 and place.waits < MAX_WAITS and self._moved_bytes(place, arguments) >= MANY_BYTES:
            # Perhaps the call that makes these inputs has just been recorded, and makes them in one place from now on.
            place.waits, place.addresses = place.waits + 1, self._movable_addresses(arguments)
            return False
        return place.refused is None or self._calls - place.refused > IDLE

    def _moved_bytes(self, place: Place, arguments) -> int:
        addresses = self._movable_addresses(arguments)
        return sum(arguments[i].nbytes for i, old, new in zip(self._movable, place.addresses, addresses)
                   if old != new and i not in self._on_host)

    def _record(self, key: tuple, place: Place, arguments) -> Recording | None:
        """Records a call, or says in `limits` or `reason` why it does not."""
        idle = None if place.recording is not None else self._idle_place(key[0])
        limit = None if place.recording is not None or idle is not None else self._limit(key[0])
        if limit is not None:
            self.limits.add(limit)
            place.refused = self._calls
            return None
        moving = self._moving_inputs(place, arguments)
        lent = [i for i in self._movable if i not in self._moving and is_lent(arguments[i].data_ptr())]
        spare = [i for i in lent if i in self._kept]
        if [one for one in self._places.values() if one.recording is not None] == [place]:
            self._recorder.drop(place.end)  # so that the new one takes its memory
        try:
            is_run = not self.entry.overwritten  # else it would take the optimizer's step twice
            capture = self._recorder.record(
                lambda *given: self.entry.launch(given, self._sessions, is_run=is_run),
                functools.partial(self._captured, over=spare if self._reuses and not keeps_graph() else ()),
                arguments, moving,
                {result: argument for result, argument in self._written.items() if argument not in moving})
        except RuntimeError as error:
            self._refuse(f"recording failed: {str(error).splitlines()[0]}")
            return None
        still = Still([i for i in self._movable if i not in self._moving], self._made)
        for one in (place, idle):  # the recorder has waited for their replays
            if one is not None:
                one.end()
        place.recording = Recording(capture, arguments, moving, still, lent, self._lent)
        place.recorded += 1
        return place.recording

    def _captured(self, *arguments, over: Collection[int]) -> list[torch.Tensor]:
        return self.entry.launch(arguments, self._sessions, over=over)

    def _moving_inputs(self, place: Place, arguments) -> list[int]:
        """Which inputs get buffers: those that moved since the last call here, and all from the third
        recording here on; none that is lent."""
        addresses = self._movable_addresses(arguments)
        self._moving.update(
            i for i, old, new in zip(self._movable, place.addresses, addresses)
            if (place.recorded > 1 or old != new) and not is_lent(new))
        place.addresses = addresses
        return sorted(self._moving)

    def _idle_place(self, sizes: tuple[int, ...]) -> Place | None:
        """Where one size has all recordings that it may have, the place of one that no call has used for long."""
        places = [place for (known, _), place in self._places.items()
                  if known == sizes and place.recording is not None]
        if len(places) < MAX_PLACES:
            return None
        oldest = min(places, key=lambda place: place.used)
        return oldest if self._calls - oldest.used > IDLE else None

    def _limit(self, sizes: tuple[int, ...]) -> str | None:
        """Why there is no room for a further recording of a size."""
        recorded = [known for (known, _), place in self._places.items() if place.recording is not None]
        if sizes not in recorded and len(set(recorded)) >= MAX_SIZES:
            return f"more than {MAX_SIZES} sizes"
        if recorded.count(sizes) >= MAX_PLACES:
            return f"parameters at more than {MAX_PLACES} sets of addresses"
        return None

    def _refuse(self, reason: str) -> None:
        self.reason = reason
        self._drop()

    def _drop(self) -> None:
        self._recorder.release()
        for place in self._places.values():
            place.end()
        self._forget()

    def reset(self) -> None:
        """Drops all recordings and their memory. Later calls are recorded anew."""
        with self._lock:
            if self._places:
                self._drop()

    @property
    def recordings(self) -> list[Recording]:
        with self._lock:
            return [place.recording for place in self._places.values() if place.recording is not None]

    def __str__(self) -> str:
        """For `explain`."""
        if self.reason is not None:
            return f"not recorded: {self.reason}"
        recordings = self.recordings
        count = f"{len(recordings)} recording{'' if len(recordings) == 1 else 's'}"
        held = (f", {sum(one.nbytes for one in recordings):,} bytes of static buffers, "
                f"{self._recorder.nbytes():,} bytes of memory with them") if recordings else ""
        limits = "".join(f"; not recorded: {limit}" for limit in sorted(self.limits))
        return f"recorded: {count}{held}{limits}"


def keeps_graph() -> bool:
    """Whether the backward pass that is running may run again."""
    return torch._C._autograd._get_current_graph_task_keep_graph()


def is_static(leaf: fx.Node) -> bool:
    """Whether an input is never copied: a parameter, a buffer, or what torch was told is like one."""
    return leaf.op == "placeholder" and (STATIC in leaf.meta or is_parameter(leaf))


def mark_static(graph: fx.Graph) -> None:
    """Marks the arguments of aot_autograd's graph whose addresses stay, as torch says: parameters, buffers, and tensors
    of `torch._dynamo.mark_static_address`. It does not tell a backward graph's."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    arguments = [node for node in graph.nodes if node.op == "placeholder"]
    for i in metadata.static_input_indices if metadata is not None else []:
        if i < len(arguments):
            arguments[i].meta[STATIC] = True


def recorded(entry: CompiledEntry, leaves: Sequence[fx.Node], is_checked: bool, written: Mapping[int, int],
             lent: Collection[int], is_backward: bool, memory: SharedMemory | None = None) -> RecordedCall:
    """The entry, recorded unless something forbids it."""
    recorder = open_recorder(entry.device)
    reason = "it runs on the CPU" if recorder is None else \
        "the option check waits in every call" if is_checked else None
    return RecordedCall(entry, leaves, recorder, reason, written, lent, is_backward, memory)


_ALL: weakref.WeakSet[RecordedCall] = weakref.WeakSet()


def reset() -> None:
    """Drops the recordings of all graphs."""
    for call in list(_ALL):
        call.reset()
