"""Where Dynamo broke a function into several graphs, and why it compiled a function again."""

from __future__ import annotations

import os
import re
import weakref
from typing import Any, Iterator, NamedTuple

import torch
from torch import fx
from torch._dynamo.utils import get_compilation_metrics, graph_break_reasons


class Break(NamedTuple):
    """A place in the user's source at which a graph ends, and why: "model.py:26", "Dynamo does not support RNN"."""

    location: str
    reason: str

    def __str__(self) -> str:
        return f"break at {self.location}: {self.reason}"


class Recompilation(NamedTuple):
    """A function that Dynamo compiled again, and the guard that failed."""

    location: str
    reason: str

    def __str__(self) -> str:
        return f"compiled again, {self.location}: {self.reason}"


_BROKEN: list[tuple[weakref.ref | None, Any]] = []  # owners of graphs that a break ended, with Dynamo's reasons
_FORGOTTEN: list = []  # compilations before the last reset of reports


def note_break(owner: weakref.ref | None, module: fx.GraphModule) -> None:
    """Remembers why Dynamo ended a graph, if by a break. owner: what torch.compile was given."""
    reason = getattr(module, "compile_subgraph_reason", None)
    if reason is not None and reason.graph_break:
        _BROKEN.append((owner, reason))


def forget_breaks() -> None:
    _BROKEN.clear()
    _FORGOTTEN[:] = get_compilation_metrics()


def breaks_of(function: Any) -> list[Break]:
    """The breaks of a function, or of a module's forward, since Dynamo's last reset."""
    code = code_of(function)
    reasons = [reason for owner, reason in _BROKEN if owner is not None and owner() is function]
    reasons += [reason for reason in graph_break_reasons if reason.user_stack and is_inside(
        code, reason.user_stack[0].filename, reason.user_stack[0].lineno)]
    return list(dict.fromkeys(Break(place_of(reason), words_of(reason.reason)) for reason in reasons))


def recompilations_of(function: Any) -> list[Recompilation]:
    """The recompilations of a function and of its parts behind breaks, among the last 64 compilations of Dynamo."""
    code = code_of(function)
    return [Recompilation(f"{os.path.basename(one.co_filename)}:{one.co_firstlineno}", guard_of(one.recompile_reason))
            for one in get_compilation_metrics() if not any(one is old for old in _FORGOTTEN)
            and one.recompile_reason and is_inside(code, one.co_filename, one.co_firstlineno)]


def code_of(function: Any) -> Any:
    """The code that Dynamo reads of what torch.compile was given; None: it has none."""
    forward = type(function).forward if isinstance(function, torch.nn.Module) else function
    return getattr(forward, "__code__", None)


def is_inside(code: Any, file: str | None, line: int | None) -> bool:
    """Whether a line is one of a function's."""
    if code is None or line is None or file != code.co_filename:
        return False
    return code.co_firstlineno <= line <= max(lines_of(code), default=code.co_firstlineno)


def lines_of(code: Any) -> Iterator[int]:
    for _, _, line in code.co_lines():
        if line is not None:
            yield line
    for inner in code.co_consts:
        if hasattr(inner, "co_lines"):
            yield from lines_of(inner)


def place_of(reason: Any) -> str:
    """The innermost line of the user's."""
    frame = reason.user_stack[-1] if reason.user_stack else None
    return f"{os.path.basename(frame.filename)}:{frame.lineno}" if frame is not None else "an unknown line"


def words_of(reason: str) -> str:
    """The sentence of Dynamo's explanation that says why."""
    explained = re.search(r"^\s*Explanation: (?:.*?Reason: )?(.*)$", reason, re.MULTILINE)
    sentence = explained[1] if explained else first_line(reason)
    return sentence.split(". ")[0].rstrip(".")


def guard_of(reason: str) -> str:
    """The guard that failed, without the number of its compilation and the comment behind it."""
    return re.sub(r"^\d+/\d+: |\s{2,}#.*$", "", first_line(reason))


def first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""
