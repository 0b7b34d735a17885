"""The rewrites of graphs of torch, and what runs them.

A graph passes through phases, in which rewrites run in the order of the table:

    a call with a gradient     traced, prepare, joint, loss, then as two graphs pair, codes (forward), compiled
    a call without             codes, prepare, packed, compiled
    torch.export               codes (skip_assertions), prepare, codes (take_codes)

`traced` is Dynamo's graph, all others are of ATen's ops. Most rewrites are optimizations, and any of them may be left
out (`limited`); the others say why they are needed.

    SINTER_DUMP=folder     each rewrite that changes a graph leaves the graph before and after it there
    SINTER_SKIP=a,b        leaves out these rewrites
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import time
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, NamedTuple

import torch
from torch import fx
from torch.utils._pytree import tree_leaves

from ...errors import usage
from ..graphs.layout import is_random_op, read_roots
from ..graphs.nodes import has_result
from ..quantized.coded_weights import take_codes
from .chunks import join_chunks
from .complex_pairs import split_complex
from .drawn_masks import draw_masks
from .early_gradients import early_gradients
from .expert_rows import join_experts
from .grouped_heads import share_heads
from .host_constants import take_constants
from .in_place import take_copies, take_writings
from .packing import Packing, find_packing
from .padding import pad_products
from .saved_values import keep_roots, make_again, make_norms_again
from .seeds import join_seeds
from .selects import join_selects
from .simplify import keep_sums, skip_assertions, skip_idle_casts, slice_operands
from .written_attention import join_attention


@dataclass(frozen=True)
class Rewrite:
    """A row of the table.

    run: of the graph's module, or of both modules and further arguments in the phase `pair`. nothing: its result where
    it is left out. needed: why it may not be left out; "": it is an optimization. same_call: the graph keeps its
    results and effects."""

    name: str
    phase: str
    run: Callable[..., Any]
    why: str
    needed: str = ""
    nothing: Callable[[], Any] = lambda: None
    same_call: bool = True


def of_graph(function: Callable[[fx.Graph], Any]) -> Callable[[fx.GraphModule], Any]:
    return lambda module: function(module.graph)


PIPELINE: tuple[Rewrite, ...] = (
    Rewrite("join_attention", "traced", of_graph(join_attention),
            "attention in products and a softmax is one kernel, also in the backward pass", nothing=lambda: False),
    Rewrite("skip_assertions", "codes", of_graph(skip_assertions), "what torch.export adds to check something goes",
            needed="Sinter has no assertions"),
    Rewrite("take_codes", "codes", lambda module, is_kept: take_codes(module.graph, is_kept),
            "products read packed matrices where a graph computes them of codes", nothing=list),
    Rewrite("read_roots", "prepare", read_roots, "as_strided reads the value that has the memory",
            needed="its strides count there"),
    Rewrite("split_complex", "prepare", of_graph(split_complex), "complex numbers are pairs of real ones",
            needed="the IR has no complex elements"),
    Rewrite("join_chunks", "prepare", of_graph(join_chunks),
            "running sums of chunks are one kernel, and one kept value"),
    Rewrite("join_selects", "prepare", of_graph(join_selects),
            "a sum of gradients of a tensor's parts writes each element once"),
    Rewrite("slice_operands", "prepare", of_graph(slice_operands),
            "slices whose size is a sum are read through what they are slices of",
            needed="the IR has no such sizes"),
    Rewrite("join_experts", "prepare", of_graph(join_experts),
            "rows multiply their expert's matrix where it is, and a counting sort orders them",
            needed="the IR has no sort of long rows"),
    Rewrite("join_seeds", "joint", of_graph(join_seeds), "one op draws the seeds of all dropouts of attention",
            same_call=False),
    Rewrite("draw_masks", "joint", of_graph(draw_masks),
            "masks of dropouts are drawn ahead, so that their ops in eager do not cut the graph"),
    Rewrite("share_heads", "joint", of_graph(share_heads),
            "repeated heads of keys are read once and not kept, and a group's gradients are rounded once"),
    Rewrite("pad_products", "joint", pad_products,
            "extents of products are multiples of 8: both passes read one padded tensor; also without a gradient"),
    Rewrite("early_gradients", "loss", early_gradients,
            "the forward pass computes the gradient of a loss while it reads the logits", nothing=lambda: ([], [])),
    Rewrite("make_again", "pair", make_again, "values that cost little are computed again and not kept",
            same_call=False),
    Rewrite("make_norms_again", "pair", make_norms_again, "norms that a condition scales are computed again",
            same_call=False),
    Rewrite("keep_roots", "pair", keep_roots, "a value is kept in place of its views", same_call=False),
    Rewrite("find_packing", "packed", of_graph(find_packing),
            "products that read one value are one, by parameters that move into one tensor",
            nothing=lambda: Packing([], {})),
    Rewrite("skip_idle_casts", "compiled", of_graph(skip_idle_casts),
            "casts to the type that a number of float64 has go, so that it is an input and not computed in eager"),
    Rewrite("keep_sums", "compiled", of_graph(keep_sums),
            "float32 gradients that are casts of 16-bit products are the products' sums, rounded once less"),
    Rewrite("take_copies", "compiled", take_copies, "copies into arguments are results, copied behind the call",
            needed="an entry has no effects", same_call=False),
    Rewrite("take_writings", "compiled", take_writings, "rows of an argument are written in place", nothing=list),
    Rewrite("take_constants", "compiled", take_constants, "numbers in host memory are constants of the device, and "
            "tensors that a graph makes of them are computed once", nothing=list, same_call=False),
)
ROWS = {rewrite.name: rewrite for rewrite in PIPELINE}
TYPES = {"val", "example_value"}  # keys of a node's type, of aot_autograd's graphs and of Dynamo's
APPLIED = "sinter_rewrites"  # of an output node: the rewrites that its graph went through
_NUMBERS = itertools.count()  # of dumps
_SKIPPED: ContextVar[frozenset[str]] = ContextVar("skipped", default=frozenset())


@contextlib.contextmanager
def limited(skip: Iterable[str] = (), stop_after: int | None = None) -> Iterator[None]:
    """Leaves out the rewrites `skip` and every row behind the first `stop_after` of the table; needed rewrites always
    run. Graphs that other threads compile meanwhile, as a lazy backward graph of CUDA's, are not limited."""
    names = {*skip}
    if unknown := sorted(names - ROWS.keys()):
        raise usage(f"there is no rewrite '{unknown[0]}'", hint="there are " + ", ".join(ROWS))
    if stop_after is not None:
        names |= {rewrite.name for rewrite in PIPELINE[stop_after:]}
    token = _SKIPPED.set(_SKIPPED.get() | {name for name in names if not ROWS[name].needed})
    try:
        yield
    finally:
        _SKIPPED.reset(token)


def optional() -> list[str]:
    """The rewrites that may be left out, in their order."""
    return [rewrite.name for rewrite in PIPELINE if not rewrite.needed]


def is_left_out(name: str) -> bool:
    return name in _SKIPPED.get() or name in named_by_environment(os.environ.get("SINTER_SKIP", ""))


@functools.cache
def named_by_environment(text: str) -> frozenset[str]:
    """The rewrites that SINTER_SKIP leaves out."""
    names = frozenset(one.strip() for one in text.split(",")) - {""}
    for name in sorted(names - {*optional()}):
        hint = f"it is needed: {ROWS[name].needed}" if name in ROWS else "there are " + ", ".join(optional())
        raise usage(f"SINTER_SKIP: no rewrite '{name}' can be left out", hint=hint)
    return names


class Applied(NamedTuple):
    """A rewrite that ran: how many nodes it added, took out and made read something else, and its seconds."""

    name: str
    added: int
    removed: int
    changed: int
    seconds: float

    @property
    def is_idle(self) -> bool:
        return not (self.added or self.removed or self.changed)


def applied(graph: fx.Graph) -> list[Applied]:
    """The rewrites that a graph went through, in their order. Its output node has the list."""
    return graph.output_node().meta.setdefault(APPLIED, [])


def run(phase: str, module: fx.GraphModule, *others: Any) -> None:
    """Runs the rewrites of a phase in their order, and drops their results."""
    for rewrite in PIPELINE:
        if rewrite.phase == phase:
            apply(rewrite.name, module, *others)


def apply(name: str, module: fx.GraphModule, *others: Any) -> Any:
    """Runs one rewrite and checks the graphs that it changed. Returns its result."""
    rewrite = ROWS[name]
    if not rewrite.needed and is_left_out(name):
        return rewrite.nothing()
    modules = [module, *(one for one in others if isinstance(one, fx.GraphModule))]
    before = [State(one) for one in modules]
    folder = os.environ.get("SINTER_DUMP")
    texts = [str(one.graph) for one in modules] if folder else []
    start = time.perf_counter()
    result = rewrite.run(module, *others)
    seconds = time.perf_counter() - start
    changes = [state.changes(one) for state, one in zip(before, modules)]
    for state, one, change in zip(before, modules, changes):
        if any(change):
            state.check(one, rewrite)
    done = Applied(name, *(sum(counts) for counts in zip(*changes)), seconds)
    applied(module.graph).append(done)
    if folder and not done.is_idle:
        dump(Path(folder), name, texts, modules)
    return result


class Content(NamedTuple):
    """A node's content, which a rewrite may change."""

    op: str
    target: Any
    args: tuple
    kwargs: dict


class State:
    """The properties of a graph that a rewrite must keep: its arguments, which others may follow; the types of its
    results; and its effects."""

    def __init__(self, module: fx.GraphModule) -> None:
        graph = module.graph
        self.nodes = contents_of(graph)
        self.results = results_of(graph)

    def changes(self, module: fx.GraphModule) -> tuple[int, int, int]:
        """How many nodes are new, how many are gone, and how many read something else."""
        now = contents_of(module.graph)
        both = now.keys() & self.nodes.keys()
        return len(now) - len(both), len(self.nodes) - len(both), sum(now[one] != self.nodes[one] for one in both)

    def check(self, module: fx.GraphModule, rewrite: Rewrite) -> None:
        """Raises where the rewrite broke one of these, or left a node without a type."""
        graph = module.graph
        graph.lint()
        for node in graph.nodes:
            if node.op == "call_function" and has_result(node) and not TYPES & node.meta.keys():
                raise fault_of(rewrite, f"{node} has no type")
        nodes = contents_of(graph)
        before, now = arguments_of(self.nodes), arguments_of(nodes)
        if rewrite.phase != "pair" and now[:len(before)] != before:
            raise fault_of(rewrite, f"arguments {before} become {now}")
        if not rewrite.same_call:
            return
        before, now = effects_of(self.nodes), effects_of(nodes)
        if now != before:
            raise fault_of(rewrite, f"effects {before} become {now}")
        # Both in the words of now: a rewrite may teach torch that two symbols are equal.
        before, now = types_of(self.results), types_of(results_of(graph))
        if now != before:
            raise fault_of(rewrite, f"results {before} become {now}")


def fault_of(rewrite: Rewrite, problem: str) -> AssertionError:
    hint = "" if rewrite.needed else f"; SINTER_SKIP={rewrite.name} leaves it out"
    return AssertionError(f"a fault of the rewrite {rewrite.name}: {problem}{hint}")


def contents_of(graph: fx.Graph) -> dict[fx.Node, Content]:
    """The nodes of a graph in their order, with what each is now."""
    return {node: Content(node.op, node.target, node.args, node.kwargs) for node in graph.nodes}


def arguments_of(nodes: dict[fx.Node, Content]) -> list[fx.Node]:
    return [node for node, content in nodes.items() if content.op == "placeholder"]


def results_of(graph: fx.Graph) -> list[torch.Tensor]:
    """The fake tensors of a graph's results."""
    nodes = [node for node in tree_leaves(graph.output_node().args) if isinstance(node, fx.Node)]
    values = [node.meta.get("val", node.meta.get("example_value")) for node in nodes]
    return [value for value in values if isinstance(value, torch.Tensor)]


def types_of(results: list[torch.Tensor]) -> list[tuple]:
    return [(fake.dtype, [str(size) for size in fake.shape]) for fake in results]


def effects_of(nodes: dict[fx.Node, Content]) -> list[str]:
    """The ops that change an argument or draw random numbers, in their order."""
    targets = [content.target for content in nodes.values() if content.op == "call_function"]
    return [str(target) for target in targets
            if is_random_op(target) or getattr(getattr(target, "_schema", None), "is_mutable", False)]


def dump(folder: Path, name: str, before: list[str], modules: list[fx.GraphModule]) -> None:
    """Writes graphs as text, NUMBER_NAME_before.txt and NUMBER_NAME_after.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    number = next(_NUMBERS)
    for when, texts in (("before", before), ("after", [str(module.graph) for module in modules])):
        (folder / f"{number:03}_{name}_{when}.txt").write_text("\n\n".join(texts) + "\n")
