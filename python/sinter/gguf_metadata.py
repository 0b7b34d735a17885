"""Reads the tokens and the chat template that a GGUF file names."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any, BinaryIO

from sinter.errors import bad_input

_NUMBERS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_MAX_TEXT = 1 << 20
_PREFIX = "tokenizer."
_SPLIT = re.compile(r"-\d{5}(-of-\d{5}\.gguf)$")


def gguf_file(path: Path) -> Path | None:
    """The GGUF file that a path names, as the library has it: the file, or the only one of a folder
    that has no config.json; of a split model its first file. None: it names something else."""
    is_file = path.suffix == ".gguf"
    if not is_file and any((path / name).exists() for name in ("config.json", "model.sir")):
        return None
    files = [path] if is_file else path.glob("*.gguf")
    firsts = {one.with_name(_SPLIT.sub(r"-00001\1", one.name)) for one in files}
    return firsts.pop() if len(firsts) == 1 else None


def tokenizer_config(path: Path) -> dict[str, str]:
    """bos_token, eos_token and chat_template, as tokenizer_config.json would have them."""
    try:
        with path.open("rb") as file:
            facts = _read(file, path.stat().st_size)
    except (OSError, ValueError, struct.error, MemoryError) as error:
        raise bad_input(f"cannot read it: {error}", str(path)) from None
    tokens = facts.get("tokenizer.ggml.tokens", [])
    config = {}
    for name in ("bos", "eos"):
        number = facts.get(f"tokenizer.ggml.{name}_token_id")
        if isinstance(number, int) and 0 <= number < len(tokens):
            config[f"{name}_token"] = tokens[number]
    template = facts.get("tokenizer.chat_template")
    if isinstance(template, str):
        config["chat_template"] = template
    return config


def _read(file: BinaryIO, size: int) -> dict[str, Any]:
    if file.read(4) != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    _, _, keys = struct.unpack("<IQQ", file.read(20))
    facts = {}
    for _ in range(keys):
        key = _text(file, size)
        (kind,) = struct.unpack("<I", file.read(4))
        value = _value(file, kind, size)
        if key.startswith(_PREFIX):
            facts[key] = value
    return facts


def _text(file: BinaryIO, size: int) -> str:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > min(_MAX_TEXT, size - file.tell()):
        raise ValueError(f"a text of {length} bytes")
    return file.read(length).decode("utf-8", "replace")


def _value(file: BinaryIO, kind: int, size: int) -> Any:
    if kind == _STRING:
        return _text(file, size)
    if kind != _ARRAY:
        return _numbers(file, kind, 1, size)[0]
    kind, count = struct.unpack("<IQ", file.read(12))
    if kind != _STRING:
        return _numbers(file, kind, count, size)
    if count > (size - file.tell()) // 8:
        raise ValueError(f"an array of {count} texts")
    return [_text(file, size) for _ in range(count)]


def _numbers(file: BinaryIO, kind: int, count: int, size: int) -> tuple[Any, ...]:
    if kind not in _NUMBERS:
        raise ValueError(f"a value of the type {kind}")
    form = "<" + _NUMBERS[kind]
    if count > (size - file.tell()) // struct.calcsize(form):
        raise ValueError(f"an array of {count} numbers")
    return struct.unpack(f"<{count}{_NUMBERS[kind]}", file.read(count * struct.calcsize(form)))
