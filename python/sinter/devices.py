"""The CPU and GPUs."""

from __future__ import annotations

import threading

from sinter._bindings import lib, sinter_device
from sinter.handles import Handle, created, encoded, text_of


class Device(Handle):
    """ "cpu", "cuda" (the first GPU), "cuda:N", or "auto": the first GPU, else the CPU. A GPU is
    used in its primary context, as torch does. Several threads may use it."""

    def __init__(self, name: str = "auto") -> None:
        self._take(created(sinter_device, lib.sinter_device_open, encoded(name)))

    def _take(self, pointer: sinter_device) -> None:
        super().__init__(pointer, lib.sinter_device_free)
        self.place = self.name.partition(" ")[0]
        """ "cpu" or "cuda:N": where tensors must be."""

    @property
    def name(self) -> str:
        """ "cpu", "cuda:0 (NVIDIA H200)" """
        return text_of(lib.sinter_device_name(self.pointer))

    @property
    def target(self) -> str:
        """The name to compile for: "sm_90a"; "" for the CPU."""
        return text_of(lib.sinter_device_target(self.pointer))

    def __repr__(self) -> str:
        return f"<sinter.Device {self.name}>"


_opened: dict[str, Device] = {}
_lock = threading.Lock()


def device_of(device: str | Device) -> Device:
    """A device by name; each is opened once in a process and stays until somebody closes it."""
    if isinstance(device, Device):
        return device
    with _lock:
        if device not in _opened or _opened[device].is_closed:
            _opened[device] = Device(device)
        return _opened[device]
