"""Results of a recording that are lent, not copied: what a forward pass keeps for the backward pass.

They stand in the memory that a replay overwrites. A call gets new tensors in that memory; while one of them
is alive, in whatever graph of autograd, the recording must not be replayed. A later recording may read
lent memory where it lies, since it is lent from the same place in every call.
"""

from __future__ import annotations

import threading
from typing import Sequence

import torch
from torch.multiprocessing.reductions import StorageWeakRef

_LOCK = threading.Lock()
_PLACES: dict[int, int] = {}  # addresses that recordings lend, and how many results stand there
_OUTLIVED: list[Lease] = []  # of recordings that were dropped while tensors in their memory were alive


class Lease:
    """Results of a recording that it lends."""

    def __init__(self, results: Sequence[torch.Tensor]) -> None:
        self._results = list(results)
        self._lent: list[StorageWeakRef] = []
        with _LOCK:
            for result in self._results:
                _PLACES[result.data_ptr()] = _PLACES.get(result.data_ptr(), 0) + 1

    def is_out(self) -> bool:
        """Whether a tensor of the last call is alive."""
        return any(not storage.expired() for storage in self._lent)

    def lend(self) -> list[torch.Tensor]:
        """New tensors in the results' memory, which none of them owns."""
        tensors = [unowned(result) for result in self._results]
        self._lent = [StorageWeakRef(tensor.untyped_storage()) for tensor in tensors]
        return tensors

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
