"""Every file that transformers and sentence-transformers read in a folder: read, refused, or said to be
ignored. The names come from the installed transformers, so that a new one fails here."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
from pathlib import Path

import pytest
import transformers
from transformers.models.auto import tokenization_auto

import sinter

ROOT = Path(__file__).resolve().parents[3]
TABLE = ROOT / "frontends" / "huggingface" / "folder_files.cpp"
MODULES = ("utils", "utils.hub", "utils.peft_utils", "configuration_utils", "modeling_utils", "processing_utils",
           "generation.utils", "tokenization_utils_base", "tokenization_utils_tokenizers",
           "integrations.mistral.constants")
FILE = re.compile(r"[\w.-]+\.(json|jinja|bin|safetensors|model|txt|py|h5|msgpack)")
SENTENCE_TRANSFORMERS = (
    "modules.json", "config_sentence_transformers.json", "router_config.json",
    *(f"sentence_{name}_config.json" for name in (
        "bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")))


def constants() -> set[str]:
    """Names of files and folders among the constants of transformers."""
    names = set()
    for module in MODULES:
        for key, value in vars(importlib.import_module(f"transformers.{module}")).items():
            if key.isupper() and isinstance(value, str) and (FILE.fullmatch(value) or key.endswith("_DIR")):
                names.add(value)
    return names


def vocabularies(tmp_path: Path) -> set[str]:
    """The files of the tokenizer classes of every model type that Sinter knows."""
    (tmp_path / "config.json").write_text('{"model_type": "unheard"}')
    with pytest.raises(sinter.SinterError) as raised:
        sinter.LanguageModel(tmp_path, "cpu", random_weights=1)
    known = re.findall(r"[\w-]+", str(raised.value).split("supported:")[-1])
    names, types = set(), 0
    for model_type in known:
        name = tokenization_auto.TOKENIZER_MAPPING_NAMES.get(model_type)
        made = tokenization_auto.tokenizer_class_from_name(name) if name else None
        if inspect.isclass(made):
            types += 1
            names.update(made.vocab_files_names.values())
    assert types > 8, raised.value
    return names


def test_every_name_is_in_the_table(tmp_path: Path) -> None:
    table = set(re.findall(r'\{"([^"]+)",\s+FileUse::', TABLE.read_text(encoding="utf-8")))
    names = constants()
    assert {"config.json", "chat_template.jinja", "additional_chat_templates", "tekken.json"} <= names
    missing = (names | vocabularies(tmp_path) | set(SENTENCE_TRANSFORMERS)) - table
    assert not missing, f"say in {TABLE.name} what becomes of these files ({transformers.__version__})"


def rows(use: str) -> list[str]:
    return re.findall(rf'\{{"([^"]+)",\s+FileUse::{use}\b', TABLE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A decoder, and an encoder of sentence-transformers, both without weights."""
    made = []
    for model, tokenizer in (("llama", "bytelevel_gpt2"), ("bert_post_ln", "wordpiece_bert")):
        folder = tmp_path_factory.mktemp(model)
        shutil.copy(ROOT / "tests/golden" / model / "config.json", folder)
        shutil.copy(ROOT / "tests/golden/tokenizers" / tokenizer / "tokenizer.json", folder)
        made.append(folder)
    (made[1] / "modules.json").write_text('[{"path": "", "type": "sentence_transformers.models.Transformer"}]')
    return made


def open_all(folders: list[Path]) -> None:
    sinter.LanguageModel(folders[0], "cpu", random_weights=1).close()
    sinter.Encoder(folders[1], "cpu", random_weights=1)


WEIGHTS = ("model.safetensors", "model.safetensors.index.json")  # are not opened here


def test_the_table_says_what_becomes_of_a_file(folders: list[Path]) -> None:
    """A broken file is an error where it is read, and nothing where it is ignored."""
    wrong = []
    for use in ("read", "refused", "ignored", "ignored_beside"):
        for name in rows(use):
            if name in WEIGHTS or not name.endswith((".json", ".txt", ".model", ".bin", ".safetensors")):
                continue
            kept = [(folder / name).read_bytes() if (folder / name).exists() else None for folder in folders]
            for folder in folders:
                (folder / name).write_text("[")
            try:
                open_all(folders)
                said = ""
            except sinter.SinterError as error:
                said = str(error)
            for folder, content in zip(folders, kept):
                if content is None:
                    (folder / name).unlink()
                else:
                    (folder / name).write_bytes(content)
            if (name in said) != (use in ("read", "refused")) or (said and name not in said):
                wrong.append((name, use, said))
    assert not wrong
