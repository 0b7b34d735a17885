"""Records calls on a device: as CUDA graphs of torch, with a pool of memory for the calls of one entry."""

from __future__ import annotations

import contextlib
import functools
import threading
from dataclasses import dataclass
from typing import Callable, Iterator, Mapping, Protocol, Sequence

import torch

from .compiled_entry import TorchDevice

DEFAULT_STREAM = 0  # which cannot be captured
_CAPTURES = threading.Lock()  # of the stream of captures


@dataclass
class Capture:
    """A recorded call. buffers: memory of the inputs that move. results: tensors that each replay writes;
    None: one that it writes to an argument."""

    buffers: list[torch.Tensor]
    results: list[torch.Tensor | None]
    replay: Callable[[], None]


class Recorder(Protocol):
    """Records on one device. Its methods are called by one thread at a time, but for `stream`."""

    def stream(self) -> int | None:
        """The current stream; None: it is being captured, so that nothing may be replayed in it."""

    def follow(self, last: object) -> object:
        """Lets the current stream wait for the stream of the replay or launch before. Returns the current one."""

    def launch(self, function: Callable) -> list[torch.Tensor]:
        """Calls a function of a stream: in which it launches what shares memory with recordings. None: in
        the current one."""

    def record(self, prepare: Callable, function: Callable, arguments: Sequence, moving: Sequence[int],
               written: Mapping[int, int]) -> Capture:
        """Records a call of a function that returns new tensors, or arguments that it has overwritten.
        prepare: does all of the call that a capture must not do, and overwrites no argument. moving:
        arguments that get buffers, on the device. What these hold is read by replays alone. written: results
        that a replay writes to an argument, with the argument."""

    def drop(self, end: Callable[[], None]) -> None:
        """Waits for replays, calls a function that drops all recordings, and gives their memory back. Intermediate
        values stay."""

    def nbytes(self) -> int:
        """Bytes that recordings hold: results, buffers and intermediate values."""

    def release(self) -> None:
        """Waits for replays, before the recordings are dropped."""


class CudaRecorder(Recorder):
    """Each recording is a CUDA graph."""

    def __init__(self, device: torch.device) -> None:
        self._index = device.index or 0
        self._device = torch.device("cuda", self._index)
        self._place = TorchDevice.of(device)
        self._begin()

    def _begin(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._arenas = 0  # bytes of intermediate values

    def stream(self) -> int | None:
        stream = torch._C._cuda_getCurrentRawStream(self._index)
        if stream == DEFAULT_STREAM:
            return stream
        with torch.cuda.device(self._index):
            return None if torch.cuda.is_current_stream_capturing() else stream

    def follow(self, last: torch.cuda.Stream | None) -> torch.cuda.Stream:
        current = torch.cuda.current_stream(self._device)
        if last is not None:
            current.wait_stream(last)
        return current

    def launch(self, function: Callable) -> list[torch.Tensor]:
        with _CAPTURES, self._counted() as stream:
            return function(stream)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[torch.cuda.Stream]:
        """The stream of captures. What is allocated in it within are intermediate values of calls here."""
        stream = capture_stream(self._device)
        before = self._place.allocated[stream.cuda_stream]
        try:
            yield stream
        finally:
            self._arenas += self._place.allocated[stream.cuda_stream] - before

    def record(self, prepare: Callable, function: Callable, arguments: Sequence, moving: Sequence[int],
               written: Mapping[int, int]) -> Capture:
        with _CAPTURES, torch.cuda.device(self._index), torch.inference_mode(False), torch.no_grad():
            torch.cuda.synchronize()
            with self._counted() as stream, torch.cuda.stream(stream):
                prepare(*arguments)
            graph, given = torch.cuda.CUDAGraph(), list(arguments)
            with torch.cuda.graph(graph, self._pool, stream, capture_error_mode="thread_local"):
                buffers = [torch.empty_like(arguments[i], device=self._device) for i in moving]
                for i, buffer in zip(moving, buffers):
                    given[i] = buffer
                results = with_written(function(*given), given, written)
        return Capture(buffers, results, graph.replay)

    def drop(self, end: Callable[[], None]) -> None:
        with _CAPTURES, torch.cuda.device(self._index):
            torch.cuda.synchronize()
            end()
            self._pool = torch.cuda.graph_pool_handle()  # nothing is captured into a pool whose last graph is gone
            torch.cuda.empty_cache()

    def nbytes(self) -> int:
        """The pool's segments, and intermediate values, which the library allocates itself."""
        segments = torch.cuda.memory_snapshot()
        pool = sum(one["total_size"] for one in segments if tuple(one["segment_pool_id"]) == self._pool)
        return pool + self._arenas

    def release(self) -> None:
        torch.cuda.synchronize(self._device)
        self._begin()


def with_written(results: Sequence[torch.Tensor], arguments: Sequence,
                 written: Mapping[int, int]) -> list[torch.Tensor | None]:
    """Copies results to arguments, where they were not computed there. They become None."""
    own = [i for i, argument in written.items() if results[i] is not arguments[argument]]
    for places in alike([results[i] for i in own]):
        copy_to([arguments[written[own[i]]] for i in places], [results[own[i]] for i in places])
    return [None if i in written else result for i, result in enumerate(results)]


def alike(tensors: Sequence[torch.Tensor]) -> list[list[int]]:
    """Positions of tensors of one type and device, which torch copies in one launch."""
    groups: dict[tuple, list[int]] = {}
    for i, tensor in enumerate(tensors):
        groups.setdefault((tensor.dtype, tensor.device), []).append(i)
    return list(groups.values())


def copy_to(targets: Sequence[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
    """Copies tensors of one type. From host memory too it does not wait: torch has read a number there when
    it returns."""
    if len(targets) == 1:
        targets[0].copy_(values[0], non_blocking=True)
    else:
        torch._foreach_copy_(targets, values, non_blocking=True)


@functools.cache
def capture_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream in which calls are captured."""
    return torch.cuda.Stream(device)


def open_recorder(device: torch.device) -> Recorder | None:
    """A recorder for an entry; None: the device records nothing."""
    return CudaRecorder(device) if device.type == "cuda" else None
