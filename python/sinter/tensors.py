"""Tensors of the caller: NumPy arrays, torch tensors, and whatever speaks DLPack. Nothing is
copied.

Element types are Sinter's names: f32, f16, bf16, i32, i64, i1. NumPy has no bfloat16: arrays of
ml_dtypes.bfloat16 are bf16, and so are DLPack tensors of that type.
"""

from __future__ import annotations

import ctypes
import sys
import warnings
from dataclasses import dataclass
from typing import Any, Sequence

from sinter.errors import bad_input, usage
from sinter.extras import needed

NUMPY_NAMES = {
    "f32": "float32",
    "f16": "float16",
    "i32": "int32",
    "i64": "int64",
    "i1": "bool",
}
TORCH_NAMES = {**NUMPY_NAMES, "bf16": "bfloat16"}
_FROM_NAME = {name: dtype for dtype, name in TORCH_NAMES.items()}


@dataclass(frozen=True)
class Tensor:
    """Memory of the caller: `address` in bytes, `dims` and `strides` in elements (None: dense),
    `device` "cpu" or "cuda:N". `owner` keeps the memory; `kind` is "numpy", "torch" or "dlpack"."""

    address: int
    dtype: str
    dims: tuple[int, ...]
    strides: tuple[int, ...] | None
    device: str
    owner: Any
    kind: str

    @property
    def type(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.dims))}]"


def _torch() -> Any:
    """torch, if the program uses it."""
    return sys.modules.get("torch")


def place_of(value: Any, where: str) -> tuple[str, str]:
    """Device and kind of a tensor: ("cuda:0", "torch")."""
    torch, numpy = _torch(), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return str(value.device), "torch"
    if numpy is not None and isinstance(value, numpy.ndarray):
        return "cpu", "numpy"
    if not (hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")):
        raise bad_input(
            f"a {type(value).__name__} is given, a tensor is wanted",
            where,
            "give a NumPy array, a torch tensor or another object with __dlpack__",
        )
    kind, ordinal = value.__dlpack_device__()
    if int(kind) not in _DLPACK_DEVICES:
        raise bad_input(
            f"memory of DLPack device type {int(kind)}", where, "move it to cpu or cuda"
        )
    device = _DLPACK_DEVICES[int(kind)]
    return (device if device == "cpu" else f"cuda:{ordinal}"), "dlpack"


def borrow(value: Any, where: str, stream: int | None = None, writable: bool = False) -> Tensor:
    """The memory of a tensor. `stream` is the CUstream in which the tensor will be used: DLPack
    producers on a GPU are told it. Errors name `where`."""
    device, kind = place_of(value, where)
    if kind == "torch":
        return _from_torch(value, where)
    if kind == "numpy":
        return _from_numpy(value, where, writable)
    return _from_dlpack(value, device, where, stream)


def _strides(dims: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """None where the elements lie densely, in row-major order."""
    step = 1
    for extent, stride in zip(reversed(dims), reversed(strides)):
        if extent != 1 and stride != step:
            return tuple(strides) if 0 not in dims else None
        step *= extent
    return None


def _from_numpy(value: Any, where: str, writable: bool) -> Tensor:
    if isinstance(value, needed("numpy").ma.MaskedArray):
        raise bad_input(
            "a masked array is given, and no mask would be seen",
            where,
            "give array.filled(value), or array.data if no element is masked",
        )
    dtype = _FROM_NAME.get(value.dtype.name)
    if dtype is None or not value.dtype.isnative:
        raise bad_input(
            f"elements of NumPy type {value.dtype.str} ({value.dtype.name})",
            where,
            f"convert it; the types are {', '.join(_FROM_NAME)}",
        )
    size = value.itemsize
    if any(stride % size for stride in value.strides):
        raise bad_input(
            f"strides of {value.strides} bytes for elements of {size}", where, "copy it"
        )
    if writable and not value.flags.writeable:
        raise bad_input("the array is read-only, and a result goes there", where, "copy it")
    strides = _strides(value.shape, [stride // size for stride in value.strides])
    address = value.__array_interface__["data"][0]
    return Tensor(address, dtype, value.shape, strides, "cpu", value, "numpy")


def _from_torch(value: Any, where: str) -> Tensor:
    torch = _torch()
    dtype = _FROM_NAME.get(str(value.dtype).removeprefix("torch."))
    if dtype is None:
        raise bad_input(
            f"elements of {value.dtype}",
            where,
            f"convert it; the types are {', '.join(_FROM_NAME)}",
        )
    if value.layout is not torch.strided or value.device.type not in ("cpu", "cuda"):
        raise bad_input(
            f"a {value.layout} tensor on {value.device}", where, "give a strided one on cpu or cuda"
        )
    device = "cpu" if value.device.type == "cpu" else f"cuda:{value.device.index}"
    dims = tuple(value.shape)
    return Tensor(
        value.data_ptr(), dtype, dims, _strides(dims, value.stride()), device, value, "torch"
    )


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


# DLPack: device types 1 (CPU), 2 (CUDA), 3 (pinned host memory); type codes by bits.
_DLPACK_DEVICES = {1: "cpu", 2: "cuda", 3: "cpu"}
_DLPACK_TYPES = {
    (2, 32): "f32",
    (2, 16): "f16",
    (4, 16): "bf16",
    (0, 32): "i32",
    (0, 64): "i64",
    (6, 8): "i1",
}

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _from_dlpack(value: Any, device: str, where: str, stream: int | None) -> Tensor:
    # To DLPack, 1 is the legacy default stream, which is null in CUDA.
    capsule = value.__dlpack__() if device == "cpu" else value.__dlpack__(stream=stream or 1)
    # The capsule is not consumed: it keeps the memory, and frees it when it goes.
    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    dtype = _DLPACK_TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise bad_input(
            f"elements of DLPack type code {tensor.code} with {tensor.bits} bits in "
            f"{tensor.lanes} lanes",
            where,
            f"convert it; the types are {', '.join(_FROM_NAME)}",
        )
    dims = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    return Tensor(
        (tensor.data or 0) + tensor.byte_offset,
        dtype,
        dims,
        None if strides is None else _strides(dims, strides),
        device,
        capsule,
        "dlpack",
    )


def torch_stream(device: str) -> int | None:
    """torch's current CUstream on a GPU; None where the program does not use torch."""
    torch = _torch()
    return None if torch is None else torch.cuda.current_stream(torch.device(device)).cuda_stream


def empty(dtype: str, dims: Sequence[int], device: str, kind: str, where: str) -> Any:
    """A dense tensor for a result, of the kind of the inputs."""
    torch = _torch()
    if kind == "torch" and torch is not None:
        return torch.empty(tuple(dims), dtype=getattr(torch, TORCH_NAMES[dtype]), device=device)
    if device != "cpu":
        raise usage(
            f"memory on {device} is wanted for a result",
            where,
            "give out={name: tensor}, or the inputs as torch tensors",
        )
    numpy = needed("numpy")
    if dtype == "bf16":
        return numpy.empty(tuple(dims), _numpy_bf16(where))
    return numpy.empty(tuple(dims), NUMPY_NAMES[dtype])


def _numpy_bf16(where: str) -> Any:
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        warnings.warn(
            f"{where}: NumPy has no bfloat16; the result is an array of uint16 with its bits. "
            "pip install ml_dtypes, or give torch tensors",
            stacklevel=6,
        )
        return "uint16"
    return bfloat16


def borrow_result(value: Any, dtype: str, where: str) -> Tensor:
    """The memory of a result. An array of uint16 may take bf16."""
    if dtype == "bf16" and getattr(getattr(value, "dtype", None), "name", "") == "uint16":
        view = _from_numpy(value.view(needed("numpy").float16), where, writable=True)
        return Tensor(view.address, "bf16", view.dims, view.strides, "cpu", value, "numpy")
    return borrow(value, where, writable=True)
