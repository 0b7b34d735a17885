"""A graph whose parts are compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from ..convert.partition import EagerOp
from .compiled_entry import CompiledEntry
from .recording import RecordedCall


@dataclass
class CompiledGraph:
    """A callable of a graph, what Sinter compiled of it, and the ops that torch computes. is_whole: one
    entry is the whole graph. recorded: the entries whose calls are recorded. kept: for each entry, the
    values that a forward graph keeps for the backward graph. rewrites: that the graph went through."""

    function: Callable
    entries: list[CompiledEntry]
    eager: list[EagerOp]
    is_whole: bool
    recorded: list[RecordedCall]
    kept: list[list[str]]
    rewrites: list
