"""What the backend did with the graphs of torch.compile: `sinter.explain`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class GraphReport:
    """A graph: its parts that Sinter computes, and what runs in eager."""

    phase: str  # forward, backward, inference
    nodes: int
    parts: list  # pairs of a Part and its CompiledEntry
    eager: list  # of EagerOp
    seconds: float


REPORTS: list[GraphReport] = []


def record(report: GraphReport) -> None:
    REPORTS.append(report)
