"""A recorder for the CPU, so that tests see which calls are recorded: a replay calls the function again."""

from __future__ import annotations

import contextlib
from typing import Callable, Iterator, Mapping, Sequence
from unittest import mock

import torch

from sinter.pytorch.runtime import recording
from sinter.pytorch.runtime.lending import is_lent, tensor_at, unowned
from sinter.pytorch.runtime.recorder import DEFAULT_STREAM, Capture, Recorder, with_written


class FakeRecorder(Recorder):
    """stream_now: the current stream of all recorders, None while one is captured. launches: those that share
    memory with recordings."""

    stream_now: int | None = DEFAULT_STREAM

    def __init__(self, device: torch.device) -> None:
        self.replays, self.launches, self.followed, self.released = 0, 0, 0, 0

    def stream(self) -> int | None:
        return FakeRecorder.stream_now

    def follow(self, last: object) -> None:
        self.followed += 1

    def launch(self, function: Callable) -> list[torch.Tensor]:
        self.launches += 1
        return function(None)

    def record(self, prepare: Callable, function: Callable, arguments: Sequence, moving: Sequence[int],
               written: Mapping[int, int]) -> Capture:
        # As a CUDA graph, it holds no tensor that is lent to a call.
        given = [unowned(x) if isinstance(x, torch.Tensor) and is_lent(x.data_ptr()) else x for x in arguments]
        buffers = [torch.empty_like(arguments[i]) for i in moving]
        for i, buffer in zip(moving, buffers):
            given[i] = buffer
        results = [None if i in written else torch.empty_like(result)
                   for i, result in enumerate(prepare(*arguments))]
        move_over(results, [given[i] for i in getattr(function, "keywords", {}).get("over", ())])

        def replay() -> None:
            self.replays += 1
            for result, value in zip(results, with_written(function(*given), given, written)):
                if result is not None:
                    result.copy_(value)

        return Capture(buffers, results, replay)

    def drop(self, end: Callable[[], None]) -> None:
        end()

    def nbytes(self) -> int:
        return 4096

    def release(self) -> None:
        self.released += 1


def move_over(results: list[torch.Tensor | None], arguments: list[torch.Tensor]) -> None:
    """Gives each result the memory of an argument of its own that is as large, while there is one: first of the
    last."""
    for i, result in enumerate(results):
        places = [] if result is None else [k for k, one in enumerate(arguments) if one.nbytes >= result.nbytes]
        if places:
            results[i] = tensor_at(arguments.pop(places[-1]).data_ptr(), result.nbytes, result.shape, result.stride(),
                                   result.dtype, result.device)


@contextlib.contextmanager
def on_stream(stream: int | None) -> Iterator[None]:
    with mock.patch.object(FakeRecorder, "stream_now", stream):
        yield


def recorded_on_cpu():
    """Entries on the CPU are recorded within."""
    return mock.patch.object(recording, "open_recorder", FakeRecorder)
