"""GGUF files as models: tokens, and chat templates."""

import struct

import pytest
from conftest import ROOT

import sinter
from sinter.chat import ChatTemplate
from sinter.gguf_metadata import gguf_file

GOLDEN = ROOT / "tests" / "golden" / "gguf"
TEMPLATE = "{{ bos_token }}{% for m in messages %}[{{ m.content }}]{% endfor %}{{ eos_token }}"


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def file_with(*keys):
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(keys)


def string(key, value):
    return text(key) + struct.pack("<I", 8) + text(value)


def chat_keys():
    tokens = (
        text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("<s>") + text("</s>")
    )
    numbers = text("tokenizer.ggml.scores") + struct.pack("<IIQff", 9, 6, 2, 0.5, 1.5)
    ids = [
        text(f"tokenizer.ggml.{name}_token_id") + struct.pack("<II", 4, number)
        for number, name in enumerate(("bos", "eos"))
    ]
    return [tokens, numbers, *ids, string("tokenizer.chat_template", TEMPLATE)]


def test_a_file_gives_the_tokens_of_its_folder():
    prompt = [5, 9, 12, 3, 40]
    tokens = [
        sinter.LanguageModel(GOLDEN / "llama" / name, device="cpu")
        .generate(prompt, count=12, stop_at_end=False)
        .tokens
        for name in ("", "model.gguf")
    ]
    assert tokens[0] == tokens[1]


def test_a_chat_template_of_a_file(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(file_with(*chat_keys()))
    for place in (path, tmp_path):
        assert ChatTemplate(str(place)).render([{"role": "user", "content": "hi"}]) == "<s>[hi]</s>"


def test_a_broken_file_is_an_error_of_the_file(tmp_path):
    path = tmp_path / "m.gguf"
    whole = file_with(*chat_keys())
    for broken in (
        whole[:40],
        whole[:-5],
        b"GGUX",
        whole.replace(b"\x02\0\0\0\0\0\0\0", b"\xff" * 8),
    ):
        path.write_bytes(broken)
        with pytest.raises(sinter.SinterError, match=r"m\.gguf"):
            ChatTemplate(str(path))


def test_which_file_a_path_names(tmp_path):
    names = ["a-00001-of-00002.gguf", "a-00002-of-00002.gguf"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    assert gguf_file(tmp_path) == gguf_file(tmp_path / names[1]) == tmp_path / names[0]
    (tmp_path / "b.gguf").write_bytes(b"")
    assert gguf_file(tmp_path) is None
    (tmp_path / "b.gguf").unlink()
    (tmp_path / "config.json").write_text("{}")
    assert gguf_file(tmp_path) is None
