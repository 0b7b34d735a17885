"""Where Dynamo broke a function into several graphs, and why it compiled a function again."""

from __future__ import annotations

import inspect
import os
import re
import types
import weakref
from typing import Any, Iterator, NamedTuple

import torch
from torch import fx
from torch._dynamo.utils import get_compilation_metrics, graph_break_reasons

from ..graphs.names import TORCH_FOLDER


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


# Dynamo's breaks and compilations so far, each with the owner whose graphs it ended or began: what torch.compile was
# given. None: of another backend's functions, or from before the last reset.
_BREAKS: list[tuple[Any, weakref.ref | None]] = []
_COMPILATIONS: list[tuple[Any, weakref.ref | None]] = []


def note_breaks(owner: weakref.ref | None, module: fx.GraphModule) -> None:
    """Remembers the breaks of the function that is being compiled, and its compilations that have ended. module: the
    graph that Dynamo gives, with the reason why it ends."""
    reason = getattr(module, "compile_subgraph_reason", None)
    if reason is not None and reason.graph_break and not is_known(reason, _BREAKS):
        _BREAKS.append((reason, owner))
    note_rest(owner)


def note_rest(owner: weakref.ref | None) -> None:
    """Files what Dynamo reported since the last call: under the owner, if it happened in the owner's code."""
    function = owner() if owner is not None else None
    code = code_of(function)
    for reason in graph_break_reasons:
        if not is_known(reason, _BREAKS):
            frame = reason.user_stack[0] if reason.user_stack else None
            is_own = frame is not None and is_inside(code, frame.filename, frame.lineno)
            _BREAKS.append((reason, owner if is_own else None))
    for one in get_compilation_metrics():
        if one.recompile_reason and not is_known(one, _COMPILATIONS):
            is_own = is_inside(code, one.co_filename, one.co_firstlineno)
            _COMPILATIONS.append((one, owner if is_own else None))


def is_known(item: Any, items: list[tuple[Any, weakref.ref | None]]) -> bool:
    return any(one is item for one, _ in items)


def owned_by(function: Any, items: list[tuple[Any, weakref.ref | None]]) -> list[Any]:
    return [item for item, owner in items if owner is not None and (one := owner()) is not None and one == function]


def forget_breaks() -> None:
    """Called at a reset: what Dynamo still remembers belongs to nobody."""
    _BREAKS[:] = [(reason, None) for reason in graph_break_reasons]
    _COMPILATIONS[:] = [(one, None) for one in get_compilation_metrics()]


def breaks_of(function: Any) -> list[Break]:
    """The breaks of a function, or of a module's forward, since the last reset."""
    note_rest(weak(function))
    return list(dict.fromkeys(Break(place_of(reason), words_of(reason.reason))
                              for reason in owned_by(function, _BREAKS) if not is_asked_by_torch(reason)))


def is_asked_by_torch(reason: Any) -> bool:
    """Whether torch's own code breaks the graph on purpose, as the step of its optimizers does."""
    frame = reason.user_stack[-1] if reason.user_stack else None
    return frame is not None and frame.filename.startswith(TORCH_FOLDER) and "graph_break" in (frame.line or reason.reason)


def recompilations_of(function: Any) -> list[Recompilation]:
    """The recompilations of a function and of its parts behind breaks, in their order."""
    note_rest(weak(function))
    return [Recompilation(f"{os.path.basename(one.co_filename)}:{one.co_firstlineno}", guard_of(one.recompile_reason))
            for one in owned_by(function, _COMPILATIONS)]


def weak(function: Any) -> weakref.ref:
    """A reference to a function or a module; a bound method lives as long as its object."""
    kind = weakref.WeakMethod if isinstance(function, types.MethodType) else weakref.ref
    return kind(function)


def code_of(function: Any) -> Any:
    """The code that Dynamo reads of what torch.compile was given; None: it has none."""
    forward = type(function).forward if isinstance(function, torch.nn.Module) else function
    return getattr(inspect.unwrap(forward), "__code__", None) if callable(forward) else None


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
