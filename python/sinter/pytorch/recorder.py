"""Records calls on a device: as CUDA graphs of torch, with a pool of memory for the calls of one entry."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from typing import Callable, Protocol, Sequence

import torch

from .runtime import TorchDevice

_CAPTURES = threading.Lock()  # one at a time in the process


@dataclass
class Capture:
    """What a recorder made of a call. buffers: of the inputs that move. results: which each replay writes."""

    buffers: list[torch.Tensor]
    results: list[torch.Tensor]
    replay: Callable[[], None]


class Recorder(Protocol):
    """Records on one device. Its methods are called by one thread at a time, but for `stream`."""

    def stream(self) -> int | None:
        """The current stream; None: it is being captured, so that nothing may be replayed in it."""

    def follow(self) -> None:
        """Lets the current stream wait for the stream of the replay before."""

    def record(self, function: Callable, arguments: Sequence, moving: Sequence[int]) -> Capture:
        """Records a call of a function that returns new tensors. moving: arguments that get buffers. What
        the arguments hold is read by replays alone."""

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
        self._last: torch.cuda.Stream | None = None  # of the last replay
        self._begin()

    def _begin(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._arenas = 0  # bytes of intermediate values

    def stream(self) -> int | None:
        if torch._C._cuda_getDevice() != self._index:
            with torch.cuda.device(self._index):
                return self.stream()
        if torch.cuda.is_current_stream_capturing():
            return None
        return torch._C._cuda_getCurrentRawStream(self._index)

    def follow(self) -> None:
        current = torch.cuda.current_stream(self._device)
        if self._last is not None:
            current.wait_stream(self._last)
        self._last = current

    def record(self, function: Callable, arguments: Sequence, moving: Sequence[int]) -> Capture:
        """Launches the call once in the stream of captures, which prepares what a capture must not do."""
        with _CAPTURES, torch.cuda.device(self._index), torch.inference_mode(False), torch.no_grad():
            stream = capture_stream(self._device)
            before = self._place.allocated[stream.cuda_stream]
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                function(*arguments)
            self._arenas += self._place.allocated[stream.cuda_stream] - before
            graph, given = torch.cuda.CUDAGraph(), list(arguments)
            with torch.cuda.graph(graph, self._pool, stream, capture_error_mode="thread_local"):
                buffers = [torch.empty_like(arguments[i]) for i in moving]
                for i, buffer in zip(moving, buffers):
                    given[i] = buffer
                results = function(*given)
        return Capture(buffers, results, graph.replay)

    def nbytes(self) -> int:
        """The pool's segments, and intermediate values, which the library allocates itself."""
        segments = torch.cuda.memory_snapshot()
        pool = sum(one["total_size"] for one in segments if tuple(one["segment_pool_id"]) == self._pool)
        return pool + self._arenas

    def release(self) -> None:
        torch.cuda.synchronize(self._device)
        self._last = None
        self._begin()


@functools.cache
def capture_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream in which calls are captured."""
    return torch.cuda.Stream(device)


def open_recorder(device: torch.device) -> Recorder | None:
    """A recorder for an entry; None: the device records nothing."""
    return CudaRecorder(device) if device.type == "cuda" else None
