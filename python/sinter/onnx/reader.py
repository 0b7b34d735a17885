"""ONNX files, which are untrusted: protobufs, and tensors beside them within the model's folder."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from ..errors import bad_input, printable
from ..extras import needed

MAX_RANK = 32  # axes of a tensor in a file
AGAIN, ITSELF = "export the model anew", "put the file itself beside the model"
# Bits of the types that have several elements in a byte, the first in the low bits.
PACKED = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}


def read_model(path: str | os.PathLike[str]) -> Any:
    """The ModelProto of a file, without the tensors beside it."""
    onnx = needed("onnx", "from_onnx")
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise bad_input(f"cannot read it: {error.strerror}", str(path)) from None
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # each implementation of protobuf has an exception of its own
        raise bad_input(f"not an ONNX model: {error}", str(path), AGAIN) from None
    if not model.HasField("graph") or not model.opset_import:
        raise bad_input("not an ONNX model: it has no graph or no opset", str(path), AGAIN)
    need_texts(model.graph, str(path))
    return model


def need_texts(graph: Any, where: str) -> None:
    """Refuses names that are no UTF-8, which protobuf gives as bytes."""
    values = [*graph.input, *graph.output, *graph.initializer]
    names = [graph.name, *(value.name for value in values)]
    for node in graph.node:
        names += [node.name, node.op_type, node.domain, *node.input, *node.output]
        names += [one.name for one in node.attribute]
        for one in node.attribute:
            if one.HasField("g"):
                need_texts(one.g, where)
    for value in (*graph.input, *graph.output):
        names += [dim.dim_param for dim in value.type.tensor_type.shape.dim]
    if not all(isinstance(name, str) for name in names):
        raise bad_input("a name that is no text", where, AGAIN)


class TensorReader:
    """Reads the tensors of a model. folder: where files beside the model may be; None: nowhere."""

    def __init__(self, folder: Path | None) -> None:
        self.onnx = needed("onnx", "from_onnx")
        self.folder = folder.resolve() if folder is not None else None

    def array(self, tensor: Any) -> np.ndarray:
        """The elements of a TensorProto; those beside the model are mapped, not read."""
        where = f'tensor "{printable(tensor.name, 200)}"'
        kinds = self.onnx.TensorProto
        if tensor.data_type not in {*kinds.DataType.values()} - {kinds.UNDEFINED, kinds.STRING}:
            raise bad_input(
                f"elements of type {tensor.data_type}", where, "numbers or truth values are wanted"
            )
        shape = tuple(tensor.dims)
        if len(shape) > MAX_RANK or any(not 0 <= size < 2**31 for size in shape):
            raise bad_input(f"the shape {list(shape)[:MAX_RANK]}", where, AGAIN)
        dtype = np.dtype(self.onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
        bits = PACKED.get(kinds.DataType.Name(tensor.data_type), 0)
        if tensor.data_location == kinds.EXTERNAL or tensor.HasField("raw_data"):
            if not bits:
                return self._bytes(tensor, dtype, shape, where)
            size = -(-math.prod(shape) * bits // 8)
            parts = unpacked(self._bytes(tensor, np.uint8, (size,), where), bits)
            return parts[: math.prod(shape)].reshape(shape).view(dtype)
        return self._typed(tensor, 8 // bits if bits else 1, shape, where)

    def _bytes(self, tensor: Any, dtype: Any, shape: tuple[int, ...], where: str) -> np.ndarray:
        if tensor.data_location == self.onnx.TensorProto.EXTERNAL:
            return self._external(tensor, np.dtype(dtype), shape, where)
        need_bytes(len(tensor.raw_data), np.dtype(dtype), shape, where)
        return np.frombuffer(tensor.raw_data, dtype).reshape(shape)

    def _typed(self, tensor: Any, count: int, shape: tuple[int, ...], where: str) -> np.ndarray:
        """Elements in a field of their type, `count` of them in a number."""
        field = self.onnx.helper.tensor_dtype_to_field(tensor.data_type)
        given = len(getattr(tensor, field))
        if given != -(-math.prod(shape) // count):
            raise bad_input(f"{given} numbers for the shape {list(shape)}", where, AGAIN)
        return np.asarray(self.onnx.numpy_helper.to_array(tensor))

    def _external(self, tensor: Any, dtype: Any, shape: tuple[int, ...], where: str) -> np.ndarray:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        unknown = set(entries) - {"location", "offset", "length", "checksum", "basepath"}
        if "location" not in entries or unknown or len(entries) != len(tensor.external_data):
            reason = "external data without a location, or with entries twice or unknown"
            raise bad_input(reason, where)
        offset, length = (whole_number(entries, key, where) for key in ("offset", "length"))
        file = open_inside(self.folder, entries["location"], where)
        with os.fdopen(file, "rb") as data:
            size = os.fstat(data.fileno()).st_size
            length = size - offset if "length" not in entries else length
            if offset > size or length > size - offset:
                reason = f"bytes {offset} .. {offset + length} of a file of {size} bytes"
                raise bad_input(reason, where, AGAIN)
            need_bytes(length, dtype, shape, where)
            if length == 0:
                return np.zeros(shape, dtype)
            mapped = np.memmap(data, np.uint8, "r", offset, (length,))
        return np.frombuffer(mapped, dtype).reshape(shape)


def dtype_name(onnx: Any, number: int) -> str:
    """NumPy's name of an element type."""
    try:
        return str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number)).name)
    except (KeyError, TypeError):
        return f"type {number}"


def unpacked(data: np.ndarray, bits: int) -> np.ndarray:
    """uint8 [..., n * 8 / bits]: elements of a few bits, a byte each, of bytes [..., n]."""
    parts = data[..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8(2**bits - 1)
    return parts.reshape(*data.shape[:-1], -1)


def whole_number(entries: dict[str, str], key: str, where: str) -> int:
    text = entries.get(key, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise bad_input(f"the {key} {text[:40]!r}, which is no number of bytes", where)
    return int(text)


def need_bytes(given: int, dtype: Any, shape: tuple[int, ...], where: str) -> None:
    wanted = math.prod(shape) * dtype.itemsize
    if given != wanted:
        reason = f"{given} bytes are given, {list(shape)} of {dtype.name} has {wanted}"
        raise bad_input(reason, where, AGAIN)


def open_inside(folder: Path | None, location: str, where: str) -> int:
    """Opens a regular file inside of a folder, whose path has no link."""
    path = PurePosixPath(location)
    if folder is None:
        reason = "the tensor is in another file, and the model was given without a folder"
        raise bad_input(reason, where)
    leaves = path.is_absolute() or ".." in path.parts or not path.parts
    if leaves or "\\" in location or "\0" in location:
        reason = f"the location {location!r} leaves the model's folder"
        raise bad_input(reason, where, "put the file beside the model")
    full = folder.joinpath(*path.parts)
    try:
        if Path(os.path.realpath(full)) != full:
            raise bad_input(f"the location {location!r} is a link", where, ITSELF)
        file = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise bad_input(f"cannot read {location!r}: {error.strerror}", where) from None
    state = os.fstat(file)
    if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
        os.close(file)
        reason = f"{location!r} is no file of its own: a link or a device"
        raise bad_input(reason, where, ITSELF)
    return file
