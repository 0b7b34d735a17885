"""Reports of the graphs of torch.compile: `sinter.explain`."""

from __future__ import annotations

import inspect
import os
import sys
import types
import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch

from ..compiled import Compiled
from . import recording
from .step_report import (RoleWork, class_rows, is_step, joined_plan, joined_text, kept_lines, ledgers_of, lost_lines,
                          markdown_table, place_of, role_rows, table, work_by_role)


@dataclass
class PackingReport:
    """Products that are computed as parts of others, by packed parameters.

    products: how many. calls: the products that they became. nbytes: of the parameters. refused: a
    product, or the name of several that would be one, and why it is not packed."""

    products: int = 0
    calls: int = 0
    nbytes: int = 0
    refused: dict[str, str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        packed = [f"  packed: {count(self.products, 'product')} as {self.calls}, "
                  f"{self.nbytes:,} bytes of parameters"] if self.calls else []
        reasons: dict[str, list[str]] = {}
        for name, reason in self.refused.items():
            reasons.setdefault(reason, []).append(name)
        return packed + [f"  not packed: {names[0]}"
                         + (f" and {len(names) - 1} more" if len(names) > 1 else "") + f": {reason}"
                         for reason, names in reasons.items()]


@dataclass
class GraphReport:
    """A graph of torch.compile.

    phase: "forward", "backward", "optimizer" where parameters or gradients are written, or "inference",
    where nothing needs a gradient.
    nodes: ops of torch in the graph. entries: what Sinter compiled, a CompiledEntry a part.
    eager: the ops that torch computes itself (EagerOp). seconds: what compiling took. owner: a weak
    reference to the function or module that torch.compile was given. packing: which products became
    one. recorded: with the option `graphs`, a RecordedCall for each entry. kept: for each entry, the values
    that are results for the backward pass alone.
    """

    phase: str
    nodes: int
    entries: list
    eager: list
    seconds: float
    owner: weakref.ref | None = None
    packing: PackingReport = field(default_factory=PackingReport)
    recorded: list = field(default_factory=list)
    kept: list[list[str]] = field(default_factory=list)
    late: list = field(default_factory=list)

    def show(self, entries: list, eager: list, recorded: list) -> None:
        self.entries, self.eager, self.recorded = entries, eager, recorded


@dataclass
class Explanation:
    """The graphs of a compiled function or module, in the order of their compilation.

    is_skipped: Dynamo has seen a call of the function and compiled no graph of it."""

    graphs: list[GraphReport]
    is_skipped: bool = False
    _plan: Compiled | None = field(default=None, repr=False, compare=False)

    @property
    def eager(self) -> list:
        """Ops of all graphs that run in eager."""
        return [op for graph in self.graphs for op in graph.eager]

    def __str__(self) -> str:
        if self.is_skipped:
            return ("no graph was compiled: Dynamo ran the whole function in eager; "
                    "torch._dynamo.explain(function)(*arguments) says why")
        if not self.graphs:
            return "no graph was compiled: call the function first"
        lines = [f"{count(len(self.graphs), 'graph')}, {count(len(self.eager), 'op')} in eager"]
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


def count(number: int, noun: str) -> str:
    plural = noun + ("es" if noun.endswith("ch") else "s")
    return f"{number} {noun if number == 1 else plural}"


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
            owner = owner_of(frame.f_locals["fn"])
            kind = weakref.WeakMethod if isinstance(owner, types.MethodType) else weakref.ref
            return kind(owner)
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
    return Explanation(graphs, not graphs and all(map(was_traced, owners)))


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
    recording.reset()
