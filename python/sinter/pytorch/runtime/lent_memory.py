"""Memory of arguments that a call has read, in which it leaves results."""

from __future__ import annotations

import bisect
import math
from typing import Sequence

import torch

from .lending import tensor_at

BLOCK = 512  # bytes; torch's allocator begins and ends tensors at multiples


class SpareMemory:
    """Memory without a value, and tensors in it."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []  # [begin, end), ascending, apart

    def add(self, tensor: torch.Tensor) -> None:
        begin, end = extent(tensor)
        at = bisect.bisect(self._ranges, (begin, end))
        if at < len(self._ranges) and self._ranges[at][0] == end:
            end = self._ranges.pop(at)[1]
        if at > 0 and self._ranges[at - 1][1] == begin:
            at -= 1
            begin = self._ranges.pop(at)[0]
        self._ranges.insert(at, (begin, end))

    def take(self, sizes: Sequence[int], strides: Sequence[int], dtype: torch.dtype,
             device: torch.device) -> torch.Tensor | None:
        """A tensor at the beginning of the smallest range in which it fits; None: there is none."""
        size = math.prod(sizes) * dtype.itemsize
        fitting = [(end - begin, at) for at, (begin, end) in enumerate(self._ranges) if size <= end - begin]
        if not fitting or size == 0:
            return None
        begin, end = self._ranges.pop(at := min(fitting)[1])
        rest = begin + blocks(size)
        if rest < end:
            self._ranges.insert(at, (rest, end))
        return tensor_at(begin, size, sizes, strides, dtype, device)


def apart(tensors: Sequence[torch.Tensor], places: Sequence[int]) -> set[int]:
    """The places of tensors that begin a block, and whose memory no other tensor shares."""
    order = sorted(range(len(tensors)), key=lambda i: extent(tensors[i]))
    shared: set[int] = set()
    furthest = None  # of those before, the one that ends last
    for i in order:
        if furthest is not None and extent(tensors[i])[0] < extent(tensors[furthest])[1]:
            shared |= {i, furthest}
        if furthest is None or extent(tensors[i])[1] > extent(tensors[furthest])[1]:
            furthest = i
    return {i for i in places if tensors[i].data_ptr() % BLOCK == 0} - shared


def extent(tensor: torch.Tensor) -> tuple[int, int]:
    """The memory of a dense tensor, up to the end of its last block."""
    return tensor.data_ptr(), tensor.data_ptr() + blocks(tensor.nbytes)


def blocks(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
