"""A training step in tables: its graphs by role, their kernels by class of work, and what the backward
pass costs the forward pass."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from math import prod
from typing import Iterable

from ...compiled import Compiled
from ...errors import usage
from ...opening import open_source
from ..convert.importer import Operand
from ..runtime.graph_report import GraphReport

SHOWN = 3  # kept values and refusals that the text of a graph names


@dataclass
class Work:
    """Launches, what they move, and their time by the cost model at usual sizes."""

    launches: int = 0
    moved_bytes: int = 0
    seconds: float = 0.0

    def add(self, launches: int, moved_bytes: int, seconds: float) -> None:
        self.launches += launches
        self.moved_bytes += moved_bytes
        self.seconds += seconds


@dataclass
class RoleWork(Work):
    """The work of a step's graphs of one role. graphs: how many. kernels: distinct generated kernels.
    classes: the same work by class, the largest time first; it adds up to the role's."""

    graphs: int = 0
    kernels: int = 0
    classes: dict[str, Work] = field(default_factory=dict)


@dataclass(frozen=True)
class KeptValue:
    """A value that a forward graph keeps for the backward graph. nbytes: None where its size changes. alone:
    the kernel that computes it writes it for the backward graph alone, since all readers in the forward
    graph share that kernel. place: in the user's source."""

    name: str
    type: str
    nbytes: int | None
    alone: bool
    place: str | None


def ledgers_of(graph: GraphReport) -> Iterable[tuple[object, dict]]:
    """The entries of a graph with their ledgers; of an entry with variants, the variant for the largest sizes."""
    for entry in graph.entries:
        yield entry, entry.compiled.ledger["entries"][-1]


def work_by_role(graphs: Iterable[GraphReport]) -> dict[str, RoleWork]:
    """In the order in which the roles were first compiled, but backward behind forward."""
    roles: dict[str, RoleWork] = {}
    names: dict[str, set[str]] = {}
    for graph in graphs:
        role = roles.setdefault(graph.phase, RoleWork())
        role.graphs += 1
        for _, ledger in ledgers_of(graph):
            for step in ledger["kernels"]:
                work = step["read_bytes"] + step["written_bytes"], step["predicted_s"]
                role.add(1, *work)
                role.classes.setdefault(step["class"], Work()).add(1, *work)
                if step["kind"] == "kernel":
                    names.setdefault(graph.phase, set()).add(step["name"])
    for name, role in roles.items():
        role.kernels = len(names.get(name, ()))
        role.classes = dict(sorted(role.classes.items(), key=lambda one: -one[1].seconds))
    order = {"forward": 0, "backward": 1, "optimizer": 2}
    return dict(sorted(roles.items(), key=lambda one: order.get(one[0], 3)))


def kept_values(graph: GraphReport) -> list[KeptValue]:
    """The values that a forward graph computes and keeps, the largest first. Arguments are not among them."""
    kept = []
    for (entry, ledger), names in zip(ledgers_of(graph), graph.kept):
        types = {value["name"]: value for value in ledger["values"]}
        read = {edge["value"] for edge in ledger["edges"]}
        for operand, result in zip(entry.graph.outputs, results_after_passes(entry.compiled)):
            if operand.name in names:
                value = types[result]
                kept.append(KeptValue(operand.name, value["type"], bytes_of(operand),
                                      value["step"] is not None and result not in read,
                                      place_of(operand.name, entry.locations)))
    return sorted(kept, key=lambda value: (-(value.nbytes or 0), value.name))


def results_after_passes(compiled: Compiled) -> list[str]:
    """The values of the ledger that an entry's results are, in order: passes may drop what only moves one."""
    header = re.findall(r"^  entry @.*\) -> \(([^()]*)\)", compiled.optimized_text, flags=re.M)[-1]
    return [name.strip().removeprefix("%") for name in header.split(",")]


def place_of(value: str, locations: dict[str, str]) -> str | None:
    """The place in the user's source of a value, which may be a part of what a line there made."""
    while value:
        if value in locations:
            return locations[value]
        value = value.rpartition(".")[0]
    return None


def bytes_of(operand: Operand) -> int | None:
    """None: a size is not a number."""
    if not all(isinstance(dim, int) for dim in operand.dims):
        return None
    return prod(operand.dims) * operand.dtype.itemsize


# ---- text

def table(rows: list[list[str]], numbers_from: int = 1) -> list[str]:
    """Columns of text, aligned; those from `numbers_from` on at the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) if i < numbers_from else cell.rjust(width)
                      for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]


def markdown_table(rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "| --- |" + " ---: |" * (len(rows[0]) - 1), *lines[1:]]


def role_rows(roles: dict[str, RoleWork]) -> list[list[str]]:
    rows = [["", "graphs", "launches", "kernels", "bytes", "us"]]
    for name, one in roles.items():
        rows.append([name, str(one.graphs), str(one.launches), str(one.kernels), f"{one.moved_bytes:,}",
                     micro(one.seconds)])
    total = lambda get: sum(get(one) for one in roles.values())
    return rows + [["all", str(total(lambda one: one.graphs)), str(total(lambda one: one.launches)), "",
                    f"{total(lambda one: one.moved_bytes):,}", micro(total(lambda one: one.seconds))]]


def class_rows(roles: dict[str, RoleWork]) -> list[list[str]]:
    """Microseconds by class and role."""
    spent: Counter[str] = Counter()
    for one in roles.values():
        for name, work in one.classes.items():
            spent[name] += work.seconds
    whole = sum(one.seconds for one in roles.values())
    rows = [["us by class", *roles, "all", "share"]]
    for name, seconds in sorted(spent.items(), key=lambda one: (-one[1], one[0])):
        cells = [micro(one.classes[name].seconds) if name in one.classes else "" for one in roles.values()]
        rows.append([name, *cells, micro(seconds), f"{100 * seconds / whole:.1f} %" if whole else ""])
    return rows


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:.1f}"


def is_step(graphs: Iterable[GraphReport]) -> bool:
    return any(graph.phase in ("backward", "optimizer") for graph in graphs)


def kept_lines(graph: GraphReport) -> list[str]:
    """The values that a forward graph keeps, and those that its kernels write for that alone."""
    kept = kept_values(graph)
    if not kept:
        return []
    alone = [value for value in kept if value.alone]
    total = lambda values: f"{sum(value.nbytes or 0 for value in values):,} bytes"
    noun = "value" if len(kept) == 1 else "values"
    lines = [f"  kept for the backward pass: {len(kept)} {noun}, {total(kept)}; written for it alone: "
             f"{len(alone)}, {total(alone)}"]
    for value in alone[:SHOWN]:
        lines.append(f"    {value.name} : {value.type}" + (f", {value.place}" if value.place else ""))
    return lines


def lost_lines(ledger: dict) -> list[str]:
    """The fusions of a graph that were refused and would pay most, and the refusals by reason."""
    worth = [one for one in ledger["worth"] if one["seconds"] > 0][:SHOWN]
    lines = [f"  not fused: {one['a']} and {one['b']}"
             + (f" ({one['count']} times)" if one["count"] > 1 else "")
             + f": {text_of(ledger, one['reason'])} ({one['reason']}), at most {micro(one['seconds'])} us"
             for one in worth]
    reasons: Counter[str] = Counter()
    for one in ledger["reasons"]:
        reasons[one["reason"]] += one["count"]
    counted = [f"{number} {reason}" for reason, number in reasons.items()]
    return lines + ([f"  refusals: {', '.join(counted)}"] if counted else [])


def text_of(ledger: dict, reason: str) -> str:
    return next((one["text"] for one in ledger["reasons"] if one["reason"] == reason), reason)


# ---- all graphs as one module

def joined_text(graphs: Iterable[GraphReport], name: str = "step") -> tuple[str, dict[str, str]]:
    """The modules of graphs as one module with an entry for each, and the user's lines by value. Entries have
    the names of the roles: forward, backward, optimizer; a second one is forward_2."""
    symbols: dict[str, str] = {}
    states, entries = [], []
    sources: dict[str, str] = {}
    taken: Counter[str] = Counter()
    for graph in graphs:
        for entry in graph.entries:
            taken[graph.phase] += 1
            number = taken[graph.phase]
            title = graph.phase if number == 1 else f"{graph.phase}_{number}"
            for value, place in entry.compiled.sources.items():
                sources.setdefault(value, place)
            body = []
            lines = entry.compiled.text.splitlines()
            renamed: list[tuple[re.Pattern, str]] = []
            for line in lines[1:-1]:
                declared = re.match(r"  (symbol|state) (%?)([\w.]+)", line)
                if declared is None:
                    body.append(line)
                    continue
                kind, sign, own = declared.groups()
                other = own
                if kind == "state":
                    other = f"{title}.{own}"
                elif symbols.get(own, line) != line:
                    other = f"{own}_{title}"
                if other != own:
                    pattern = re.compile(rf"(?<![%@\w.]){re.escape(sign + own)}(?![\w.])")
                    renamed.append((pattern, sign + other))
                    line = pattern.sub(sign + other, line)
                if kind == "state":
                    states.append(line)
                else:
                    symbols[other] = line
            text = "\n".join(body).replace("entry @main(", f"entry @{title}(", 1)
            for pattern, other in renamed:
                text = pattern.sub(other, text)
            entries.append(text)
    header = [f"module @{name} {{", *symbols.values(), *states]
    return "\n".join([*header, *entries, "}"]) + "\n", sources


def joined_plan(graphs: list[GraphReport]) -> Compiled:
    """The plan of joined_text(). An error: there is no graph, or two were compiled with other options."""
    entries = [entry for graph in graphs for entry in graph.entries]
    if not entries:
        raise usage("no graph was compiled", hint="call the function first")
    options, *others = [{name: value for name, value in entry.compiled._options.items()
                         if name != "overwrite"} for entry in entries]  # which has names of one entry
    if any(other != options for other in others):
        raise usage("the graphs were compiled with different options", hint="explain one function at a time")
    text, sources = joined_text(graphs)
    plan = Compiled(open_source(text, {}), options, [], [], None, None)
    plan.sources = sources
    return plan
