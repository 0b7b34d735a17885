"""Results of a recording that are lent, not copied: what a forward pass keeps for the backward pass.

They stand in the memory that a replay overwrites. A call gets new tensors in that memory; while one of them
is alive, in whatever graph of autograd, the recording must not be replayed. A later recording may read
lent memory where it lies, since it is lent from the same place in every call.

A recorded backward pass may leave its own results, gradients, in lent memory that it has read. Its lease is a tenant
there: while one of its tensors is alive, the host's recording must not be replayed either.
"""

from __future__ import annotations

import bisect
import sys
import threading
import weakref
from operator import attrgetter
from typing import Sequence

import torch

_DATA = attrgetter("data")
_LOCK = threading.Lock()
_LEASES: dict[int, list[Lease]] = {}  # by the addresses that they lend
_OUTLIVED: list[Lease] = []  # of recordings that were dropped while tensors in their memory were alive


class Lease:
    """Results of a recording that it lends. A call gets a new tensor for each, which shares a storage with
    one that the lease keeps: the number of a storage's users says whether a tensor of a call, or its storage,
    is alive.

    hosts: the leases in whose memory results lie. is_outlived: a tensor was alive when a host's recording was to be
    replayed. is_void: a host has ended, and its memory may be another's."""

    def __init__(self, results: Sequence[torch.Tensor]) -> None:
        self._results = list(results)
        with torch.inference_mode(False):
            self._kept = [unowned(result) for result in self._results]
        self._storages = [tensor.untyped_storage() for tensor in self._kept]
        self._keys = [storage._cdata for storage in self._storages]
        self._users = self._count_users()  # while no tensor of a call is alive
        self._tenants: weakref.WeakSet[Lease] = weakref.WeakSet()
        self.is_outlived = self.is_void = False
        with _LOCK:
            self.hosts = hosts_of(self._results)
            for host in self.hosts:
                host._tenants.add(self)
            for result in self._results:
                _LEASES.setdefault(result.data_ptr(), []).append(self)

    def _count_users(self) -> list[int]:
        """The tensors of each storage, and the references to it in Python."""
        return [*map(torch._C._storage_Use_Count, self._keys), *map(sys.getrefcount, self._storages)]

    def is_out(self) -> bool:
        """Whether a tensor of an earlier call is alive, or its storage, or one of a tenant."""
        return self._count_users() != self._users or any(tenant.is_out() for tenant in self._tenants)

    def note_outlived(self) -> None:
        """Called where the recording is not replayed because the lease is out."""
        for tenant in self._tenants:
            tenant.is_outlived |= tenant.is_out()

    def lend(self) -> list[torch.Tensor]:
        """New tensors in the results' memory, which none of them owns. torch makes them by `data`, without
        an operation and with a count of changes of their own."""
        return [*map(_DATA, self._kept)]

    def end(self) -> None:
        """The recording is dropped: the memory stays as long as a tensor in it is alive."""
        with _LOCK:
            for tenant in self._tenants:
                tenant.is_void = True
            for result in self._results:
                leases = _LEASES[result.data_ptr()]
                leases.remove(self)
                if not leases:
                    del _LEASES[result.data_ptr()]
            _OUTLIVED[:] = [lease for lease in (*_OUTLIVED, self) if lease.is_out()]


def unowned(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor in the memory of another one, with a storage of its own."""
    size = tensor.untyped_storage().nbytes() - tensor.storage_offset() * tensor.element_size()
    return tensor_at(tensor.data_ptr(), size, tensor.shape, tensor.stride(), tensor.dtype, tensor.device)


def tensor_at(address: int, size: int, sizes: Sequence[int], strides: Sequence[int], dtype: torch.dtype,
              device: torch.device) -> torch.Tensor:
    """A tensor in `size` bytes of memory that it does not own."""
    storage = torch._C._construct_storage_from_data_pointer(address, device, size)
    return torch.empty(0, dtype=dtype, device=device).set_(storage, 0, sizes, strides)


def is_lent(address: int) -> bool:
    return address in _LEASES


def hosts_of(tensors: Sequence[torch.Tensor]) -> list[Lease]:
    """The leases that lend memory in which one of the tensors begins."""
    begins = sorted(tensor.data_ptr() for tensor in tensors)
    holds = lambda result: bisect.bisect_left(begins, result.data_ptr()) < bisect.bisect_left(
        begins, result.data_ptr() + result.nbytes)
    leases = dict.fromkeys(lease for leases in _LEASES.values() for lease in leases)
    return [lease for lease in leases if any(map(holds, lease._results))]
