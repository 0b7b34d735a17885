"""Folders that functions write: they must be absent, empty, or hold what such a function wrote."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ...errors import bad_input

MODULE = {"model.sir", "model.safetensors", "model.sir.part", "model.safetensors.part"}
REPRODUCER = {"model.sir", "model.safetensors", "inputs.safetensors", "reproduce.sh", "about.json"}
PROGRAM = {"program.py", "operands.pt"}


def check_module_folder(folder: Path) -> None:
    """For a module and its weights. Weights alone are somebody else's."""
    names, files = names_in(folder)
    is_module = bool(files & {"model.sir", "model.sir.part"})
    refuse(folder, names - (files & MODULE) if is_module else names, "module")


def check_reproducer_folder(folder: Path, has_folders: bool = True) -> None:
    """For a reproducer: a module beside its about.json, or a program beside its operands; in folders
    op1, fusion1, ... further ones. The rule of `sinter bisect` (driver/bisect/reproducer_folder.cpp), here too because
    programs of torch are written without the library."""
    names, files = names_in(folder)
    for name in sorted(names):
        path = folder / name
        if has_folders and re.fullmatch(r"(op|fusion)[0-9]+", name) and path.is_dir() and not path.is_symlink():
            check_reproducer_folder(path, has_folders=False)
            names.remove(name)
    names -= files & REPRODUCER if is_made(folder / "about.json") else set()
    refuse(folder, names - PROGRAM if PROGRAM <= files else names, "reproducer")


def is_made(about: Path) -> bool:
    """Whether a Sinter wrote this about.json."""
    try:
        facts = json.loads(about.read_text())
    except (OSError, ValueError):
        return False
    return isinstance(facts, dict) and {"sinter", "fails_alone"} <= facts.keys()


def names_in(folder: Path) -> tuple[set[str], set[str]]:
    """All names, and those of files. A link or a folder in the place of a file is somebody else's."""
    if folder.exists() and not folder.is_dir():
        raise bad_input("this is no folder", str(folder), "give another folder")
    paths = list(folder.iterdir()) if folder.exists() else []
    return {path.name for path in paths}, {path.name for path in paths if path.is_file() and not path.is_symlink()}


def refuse(folder: Path, foreign: set[str], what: str) -> None:
    if foreign:
        raise bad_input(f"the folder holds {min(foreign)}, which is no part of a {what}", str(folder),
                        "give another folder, or move this one away")
