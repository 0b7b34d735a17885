"""Writing tensors to a safetensors file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Iterable, NamedTuple, Sequence

COPIED = 2**24  # bytes that are written at once
NAMES = {
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int32": "I32",
    "int64": "I64",
    "bool": "BOOL",
}


class FileTensor(NamedTuple):
    """A tensor of a file: its element type as NumPy and torch call it, its sizes and its bytes."""

    name: str
    dtype: str
    shape: Sequence[int]
    data: memoryview


def write_tensors(path: Path, tensors: Iterable[FileTensor]) -> None:
    """Writes tensors of the element types that inputs of an entry have."""
    given, header, end = list(tensors), {}, 0
    for one in given:
        begin, end = end, end + one.data.nbytes
        header[one.name] = {
            "dtype": NAMES[one.dtype],
            "shape": list(one.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the data begin at a multiple of 8
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for one in given:
            for begin in range(0, one.data.nbytes, COPIED):
                file.write(one.data[begin : begin + COPIED])
