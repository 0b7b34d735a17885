"""Folders that functions write: they must be absent, empty, or hold what such a function wrote."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import bad_input

MODULE = {"model.sir", "model.safetensors", "model.sir.part", "model.safetensors.part"}
REPRODUCER = {"model.sir", "model.safetensors", "inputs.safetensors", "reproduce.sh", "about.json"}
PROGRAM = {"program.py", "operands.pt"}


def check_module_folder(folder: Path) -> None:
    """For a module and its weights. Weights alone are somebody else's."""
    names = names_in(folder)
    if not names & {"model.sir", "model.sir.part"}:
        refuse(folder, names, "module")
    refuse(folder, names - MODULE, "module")


def check_reproducer_folder(folder: Path) -> None:
    """For a reproducer: a module beside its about.json, or a program beside its operands; in folders
    op1, fusion1, ... further ones."""
    names = names_in(folder)
    for name in sorted(names):
        if re.fullmatch(r"(op|fusion)[0-9]+", name) and (folder / name).is_dir():
            check_reproducer_folder(folder / name)
            names.remove(name)
    names -= REPRODUCER if "about.json" in names else set()
    refuse(folder, names - PROGRAM if PROGRAM <= names else names, "reproducer")


def names_in(folder: Path) -> set[str]:
    if folder.exists() and not folder.is_dir():
        raise bad_input("this is no folder", str(folder), "give another folder")
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def refuse(folder: Path, foreign: set[str], what: str) -> None:
    if foreign:
        raise bad_input(f"the folder holds {min(foreign)}, which is no part of a {what}", str(folder),
                        "give another folder, or move this one away")
