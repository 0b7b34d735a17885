"""What the backend did with the graphs of torch.compile: `sinter.explain`."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

FRAME = re.compile(r'File "([^"]+)", line \d+, in (\S+)')


@dataclass
class GraphReport:
    """A graph of torch.compile.

    phase: "forward", "backward", or "inference" where nothing needs a gradient.
    nodes: ops of torch in the graph. entries: what Sinter compiled, a CompiledEntry a part.
    eager: the ops that torch computes itself (EagerOp). seconds: what compiling took.
    """

    phase: str
    nodes: int
    entries: list
    eager: list
    seconds: float
    frames: set[tuple[str, str]] = field(default_factory=set)  # (file, function) of its source


@dataclass
class Explanation:
    """The graphs of a compiled function or module, in the order of their compilation."""

    graphs: list[GraphReport]

    @property
    def eager(self) -> list:
        """Ops of all graphs that run in eager."""
        return [op for graph in self.graphs for op in graph.eager]

    def __str__(self) -> str:
        if not self.graphs:
            return "no graph was compiled: call the function first"
        lines = [f"{count(len(self.graphs), 'graph')}, {count(len(self.eager), 'op')} in eager"]
        for graph in self.graphs:
            lines += self._graph_lines(graph)
        return "\n".join(lines)

    def _graph_lines(self, graph: GraphReport) -> list[str]:
        lines = [f"\n{graph.phase}: {count(graph.nodes, 'op')} of torch, compiled in "
                 f"{graph.seconds:.2f} s"]
        for entry in graph.entries:
            one = entry.compiled.entry()
            lines.append(f"  {entry.name}: {one.costs()}; unfused {one.unfused_costs()}")
        reasons = Counter((op.op, op.location, op.reason) for op in graph.eager)
        for (op, location, reason), times in reasons.items():
            again = f" ({times} times)" if times > 1 else ""
            lines.append(f"  in eager: {op}{again}: {reason}" + (f"\n    {location}" if location else ""))
        return lines


def count(number: int, noun: str) -> str:
    plural = noun + ("es" if noun.endswith("ch") else "s")
    return f"{number} {noun if number == 1 else plural}"


REPORTS: list[GraphReport] = []


def record(report: GraphReport, graph) -> None:
    """Keeps a report, with the places of the graph's nodes in the user's source."""
    for node in graph.nodes:
        trace = node.meta.get("stack_trace") or node.stack_trace or ""
        report.frames.update(FRAME.findall(trace))
    REPORTS.append(report)


def explain(compiled: Any = None) -> Explanation:
    """What Sinter made of a function or module that torch.compile returned; of None, of all.

    A graph belongs to it if its source lines lie in its code: two models of one class are not told
    apart."""
    if compiled is None:
        return Explanation(list(REPORTS))
    function = getattr(compiled, "_orig_mod", compiled)
    function = getattr(function, "forward", function)
    function = getattr(function, "_torchdynamo_orig_callable", function)
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return Explanation(list(REPORTS))
    key = (code.co_filename, code.co_name)
    return Explanation([report for report in REPORTS if key in report.frames])


def reset() -> None:
    """Forgets all reports."""
    REPORTS.clear()
