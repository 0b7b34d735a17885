"""Reports of the graphs of torch.compile: `sinter.explain`."""

from __future__ import annotations

import inspect
import os
import sys
import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch

from ...compiled import Compiled
from ..rewrites import pipeline
from ..runtime import recording
from ..runtime.graph_report import GraphReport, count
from .breaks import Break, Recompilation, breaks_of, forget_breaks, recompilations_of, weak
from .step_report import (RoleWork, class_rows, is_step, joined_plan, joined_text, kept_lines, ledgers_of,
                          lost_lines, markdown_table, place_of, role_rows, table, work_by_role)


@dataclass
class Explanation:
    """The graphs of a compiled function or module, in the order of their compilation.

    is_skipped: Dynamo has seen a call of the function and compiled no graph of it. breaks: where Dynamo ended a graph
    before the function's end; what stands there runs in Python. recompilations: for calls that a guard refused."""

    graphs: list[GraphReport]
    is_skipped: bool = False
    breaks: list[Break] = field(default_factory=list)
    recompilations: list[Recompilation] = field(default_factory=list)
    _plan: Compiled | None = field(default=None, repr=False, compare=False)

    @property
    def eager(self) -> list:
        """Ops of all graphs that run in eager."""
        return [op for graph in self.graphs for op in graph.eager]

    def __str__(self) -> str:
        if self.is_skipped:
            return "\n".join(["no graph was compiled: Dynamo ran the whole function in eager; "
                              "torch._dynamo.explain(function)(*arguments) says why", *map(str, self.breaks)])
        if not self.graphs:
            return "no graph was compiled: call the function first"
        broken = f"{count(len(self.breaks), 'break')}, " if self.breaks else ""
        lines = [f"{count(len(self.graphs), 'graph')}, {broken}{count(len(self.eager), 'op')} in eager"]
        lines += map(str, [*self.breaks, *self.recompilations])
        if is_step(self.graphs):
            lines += ["", *table(role_rows(self.roles)), "", *table(class_rows(self.roles))]
        for graph in self.graphs:
            lines += self._graph_lines(graph)
        return "\n".join(lines)

    @property
    def roles(self) -> dict[str, RoleWork]:
        """Launches, bytes and predicted seconds of the graphs of each role, "forward", "backward",
        "optimizer" and "inference", and the same by class of work. Eager ops are not among them."""
        return work_by_role(self.graphs)

    @property
    def rewrites(self) -> str:
        """A table of the rewrites of the graphs: in how many graphs one changed something, how many nodes it added, took
        out and made read something else, and its time."""
        rows = [("rewrite", "graphs", "added", "removed", "changed", "ms")]
        for row in pipeline.PIPELINE:
            runs = [one for graph in self.graphs for one in graph.rewrites if one.name == row.name]
            if runs:
                changed = [one for one in runs if not one.is_idle]
                rows.append((row.name, f"{len(changed)} of {len(runs)}", str(sum(one.added for one in runs)),
                             str(sum(one.removed for one in runs)), str(sum(one.changed for one in runs)),
                             f"{1e3 * sum(one.seconds for one in runs):.1f}"))
        return "\n".join(table(rows))

    def markdown(self) -> str:
        """The tables of a training step, and the rest of the report as it is."""
        text = str(self)
        if not is_step(self.graphs):
            return f"```\n{text}\n```\n"
        first, _, rest = text.partition("\n")
        details = rest[rest.index(f"\n{self.graphs[0].phase}: "):].strip("\n")
        return "\n".join([first, "", *markdown_table(role_rows(self.roles)), "",
                          *markdown_table(class_rows(self.roles)), "", "```", details, "```", ""])

    @property
    def text(self) -> str:
        """All graphs as one module in the text form, with an entry for each: forward, backward, optimizer; a
        second graph of a role is forward_2. The program's commands take it as a file, `sinter profile step.sir
        --phase backward`."""
        return joined_text(self.graphs)[0]

    def plan(self) -> Compiled:
        """The plan of `text`, compiled at the first call: for `why`, `ledger`, `verify` and the page. The
        graphs themselves keep their own. SinterError: none was compiled, or two with different options."""
        if self._plan is None:
            self._plan = joined_plan(self.graphs)
        return self._plan

    def explain_html(self, with_text: bool = False) -> str:
        """A page with the graphs as entries, and time by class; see `Compiled.explain_html`."""
        return self.plan().explain_html(with_text)

    def _graph_lines(self, graph: GraphReport) -> list[str]:
        lines = [f"\n{graph.phase}: {count(graph.nodes, 'op')} of torch, compiled in "
                 f"{graph.seconds:.2f} s"]
        for entry in graph.entries:
            compiled = entry.compiled
            for variant, ledger in zip(compiled.entries.values(), compiled.ledger["entries"]):
                name = f"{entry.name}, {variant.range}" if variant.range else entry.name
                lines.append(f"  {name}: {variant.costs()}; unfused {variant.unfused_costs()}")
                lines += attention_lines(ledger, entry.locations)
        lines += [f"  {call.entry.name}: {call}" for call in graph.recorded]
        if is_step(self.graphs):
            lines += kept_lines(graph)
            for _, ledger in ledgers_of(graph):
                lines += lost_lines(ledger)
        lines += graph.packing.lines()
        lines += [f"  in the backward pass: {gradient}" for gradient in graph.late]
        reasons = Counter((op.op, op.location, op.reason) for op in graph.eager)
        for (op, location, reason), times in reasons.items():
            again = f" ({times} times)" if times > 1 else ""
            lines.append(f"  in eager: {op}{again}: {reason}" + (f"\n    {location}" if location else ""))
        return lines


def attention_lines(ledger: dict, locations: dict[str, str]) -> list[str]:
    """Which kernel computes each attention of an entry's ledger; why one is composed, with the user's
    line, and what relaxed attention would save."""
    choices = [choice for choice in ledger["choices"] if choice["what"] == "attention"]
    lines = []
    for choice in choices:
        lines.append(f"  attention: {len(choice['values'])} by {choice['by']} ({choice['why']})")
        if choice["by"] == "composed":
            places = {place_of(value, locations) for value in choice["values"]} - {None}
            lines += [f"    {place}" for place in sorted(places)]
    if "relaxed_attention" in ledger:
        lines.append(f'    options={{"attention": "relaxed"}} {ledger["relaxed_attention"]["text"]}')
    return lines


REPORTS: list[GraphReport] = []


def record(report: GraphReport) -> None:
    REPORTS.append(report)


# The file in which torch calls what torch.compile was given, as the variable `fn` of a frame.
_EVAL_FRAME = os.path.join("torch", "_dynamo", "eval_frame.py")


def calling() -> weakref.ref | None:
    """The compiled function or module whose call is running, for which Dynamo makes graphs."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.endswith(_EVAL_FRAME) and callable(frame.f_locals.get("fn")):
            return weak(owner_of(frame.f_locals["fn"]))
        frame = frame.f_back
    return None


def owner_of(function: Any) -> Any:
    """A module for its own call; else the function, without what wraps it."""
    function = getattr(function, "_orig_mod", function)
    function = inspect.unwrap(getattr(function, "_torchdynamo_orig_callable", function))
    module = getattr(function, "__self__", None)
    is_call = getattr(function, "__name__", "") in ("__call__", "_call_impl", "_wrapped_call_impl")
    return module if isinstance(module, torch.nn.Module) and is_call else function


def explain(*compiled: Any) -> Explanation:
    """The graphs that Sinter made of functions and modules that torch.compile returned, such as a model and the
    step of its optimizer; without arguments, all graphs of the process."""
    if not compiled or compiled == (None,):
        return Explanation(list(REPORTS))
    owners = [owner_of(one) for one in compiled]
    graphs = [one for one in REPORTS if one.owner is not None and one.owner() in owners]
    return Explanation(graphs, not graphs and all(map(was_traced, owners)),
                       [one for owner in owners for one in breaks_of(owner)],
                       [one for owner in owners for one in recompilations_of(owner)])


def was_traced(function: Any) -> bool:
    """Whether Dynamo has traced a call of a function, or of a module's forward."""
    from torch._dynamo import convert_frame
    forward = getattr(type(function), "forward", None) if isinstance(function, torch.nn.Module) \
        else function
    code = getattr(forward, "__code__", None)
    return code is not None and code in convert_frame.input_codes


def reset() -> None:
    """Forgets all reports and drops all recordings."""
    REPORTS.clear()
    forget_breaks()
    recording.reset()
