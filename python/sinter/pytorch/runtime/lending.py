"""Results of a recording that are lent, not copied: what a forward pass keeps for the backward pass.

They stand in the memory that a replay overwrites. A call gets new tensors in that memory; while one of them
is alive, in whatever graph of autograd, the recording must not be replayed. A later recording may read
lent memory where it lies, since it is lent from the same place in every call.
"""

from __future__ import annotations

import sys
import threading
from operator import attrgetter
from typing import Sequence

import torch

_DATA = attrgetter("data")
_LOCK = threading.Lock()
_PLACES: dict[int, int] = {}  # addresses that recordings lend, and how many results stand there
_OUTLIVED: list[Lease] = []  # of recordings that were dropped while tensors in their memory were alive


class Lease:
    """Results of a recording that it lends. A call gets a new tensor for each, which shares a storage with
    one that the lease keeps: the number of a storage's users says whether a tensor of a call, or its storage,
    is alive."""

    def __init__(self, results: Sequence[torch.Tensor]) -> None:
        self._results = list(results)
        with torch.inference_mode(False):
            self._kept = [unowned(result) for result in self._results]
        self._storages = [tensor.untyped_storage() for tensor in self._kept]
        self._keys = [storage._cdata for storage in self._storages]
        self._users = self._count_users()  # while no tensor of a call is alive
        with _LOCK:
            for result in self._results:
                _PLACES[result.data_ptr()] = _PLACES.get(result.data_ptr(), 0) + 1

    def _count_users(self) -> list[int]:
        """The tensors of each storage, and the references to it in Python."""
        return [*map(torch._C._storage_Use_Count, self._keys), *map(sys.getrefcount, self._storages)]

    def is_out(self) -> bool:
        """Whether a tensor of an earlier call is alive, or its storage."""
        return self._count_users() != self._users

    def lend(self) -> list[torch.Tensor]:
        """New tensors in the results' memory, which none of them owns. torch makes them by `data`, without
        an operation and with a count of changes of their own."""
        return [*map(_DATA, self._kept)]

    def end(self) -> None:
        """The recording is dropped: the memory stays as long as a tensor in it is alive."""
        with _LOCK:
            for result in self._results:
                _PLACES[result.data_ptr()] -= 1
                if not _PLACES[result.data_ptr()]:
                    del _PLACES[result.data_ptr()]
            _OUTLIVED[:] = [lease for lease in (*_OUTLIVED, self) if lease.is_out()]


def unowned(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor in the memory of another one, with a storage of its own."""
    storage = torch._C._construct_storage_from_data_pointer(
        tensor.data_ptr(), tensor.device, tensor.untyped_storage().nbytes()
        - tensor.storage_offset() * tensor.element_size())
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(
        storage, 0, tensor.shape, tensor.stride())


def is_lent(address: int) -> bool:
    return address in _PLACES
