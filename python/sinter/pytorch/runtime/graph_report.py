"""The record of each graph of torch.compile, for `sinter.explain`."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field


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
    that are results for the backward pass alone. rewrites: those that ran (Applied); a forward graph's
    list begins with the joint graph's.
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
    rewrites: list = field(default_factory=list)

    def show(self, entries: list, eager: list, recorded: list, rewrites: list) -> None:
        self.entries, self.eager, self.recorded, self.rewrites = entries, eager, recorded, rewrites


def count(number: int, noun: str) -> str:
    plural = noun + ("es" if noun.endswith("ch") else "s")
    return f"{number} {noun if number == 1 else plural}"
