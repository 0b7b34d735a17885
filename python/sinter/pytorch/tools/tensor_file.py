"""Writing tensors to a safetensors file."""

from __future__ import annotations

import ctypes
import json
import struct
from pathlib import Path

import torch

NAMES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int32: "I32",
         torch.int64: "I64", torch.bool: "BOOL"}


def write_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Elements of the types that inputs of an entry have."""
    header, parts, end = {}, [], 0
    for name, tensor in tensors.items():
        dense = tensor.detach().cpu().contiguous()
        data = ctypes.string_at(dense.data_ptr(), dense.nbytes)
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [end, end + len(data)]}
        parts.append(data)
        end += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the data begin at a multiple of 8
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))
