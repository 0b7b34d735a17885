"""Which nodes of a graph Sinter computes, and which torch's eager mode."""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import dataclass
from typing import Sequence

import torch
from torch import fx
from torch._ops import HigherOrderOperator
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from ..graphs.dtypes import TO_SINTER, in_memory, is_double_number
from ..graphs.layout import is_dense_from_start, is_random_op, is_view, root_of
from ..graphs.names import location_of
from ..graphs.symbols import expression_of
from ..rewrites.in_place import Writing
from .importer import ImportedGraph, Importer, is_size, substitute
from .ops import CONVERSIONS

aten = torch.ops.aten

# Views and generators: alone they are no work for a kernel.
VIEWS_AND_GENERATORS = {
    operator.getitem, aten.view.default, aten.permute.default, aten.expand.default, aten.unsqueeze.default,
    aten.squeeze.dims, aten.select.int, aten.slice.Tensor, aten.alias.default, aten.detach.default, aten.full.default,
    aten.empty.memory_format, aten.arange.start_step, aten.scalar_tensor.default, aten.split_with_sizes.default,
    aten.lift_fresh_copy.default, aten.reshape.default, aten.clone.default, aten.view_as_real.default,
}


@dataclass
class EagerOp:
    """A node that torch computes itself: the op, where the user wrote it, and why."""

    op: str
    name: str
    location: str
    reason: str

    def __str__(self) -> str:
        return f"{self.op} {self.location}: {self.reason}" if self.location \
            else f"{self.op} ({self.name}): {self.reason}"


@dataclass
class Part:
    """Nodes that one entry computes. leaves: what it reads. results: what it computes for others.
    replayed: its views that torch makes anew of results and leaves. written: the leaves whose rows it writes
    in place, by the op that does so, whose result the leaf then is."""

    graph: ImportedGraph
    nodes: list[fx.Node]
    leaves: list[fx.Node]
    results: list[fx.Node]
    replayed: set[fx.Node]
    written: dict[fx.Node, fx.Node]


class SupportedOps(OperatorSupportBase):
    """The nodes that Sinter takes: nodes with a conversion, except refused ones."""

    def __init__(self, refused: dict[fx.Node, str], device: torch.device) -> None:
        self.refused, self.device = refused, device

    def is_node_supported(self, submodules, node: fx.Node) -> bool:
        if node.op != "call_function" or is_size(node):
            return False
        if node not in self.refused:
            reason = self._reason(node)
            if reason is not None:
                self.refused[node] = reason
        return node not in self.refused

    def _reason(self, node: fx.Node) -> str | None:
        if node.target is operator.getitem:
            source = node.args[0]
            return self.refused.get(source) or (
                "part of an op that is computed elsewhere" if source.op != "call_function" else None)
        if node.target not in CONVERSIONS:
            return "no conversion"
        results = flat_fakes(node.meta.get("val"))
        operands = flat_fakes([arg.meta.get("val") for arg in node.all_input_nodes])
        if node.target is aten.view_as_real.default:
            operands = [in_memory(fake) for fake in operands]
        for i, fake in enumerate(results + operands):
            if i >= len(results) and is_double_number(fake):
                continue
            if fake.dtype not in TO_SINTER:
                return f"elements of {str(fake.dtype).removeprefix('torch.')}"
            if any(free_unbacked_symbols(size) for size in fake.shape):
                return "a size that depends on data"
            if fake.layout != torch.strided:
                return f"the layout {fake.layout}"
        if self._is_number_for_device(node, results, operands):
            return None
        # Numbers in host memory are copied for the call.
        for fake in results + [operand for operand in operands if not is_host_number(operand)]:
            if fake.device != self.device:
                return f"a tensor on {fake.device} beside those on {self.device}"
        return None

    def _is_number_for_device(self, node: fx.Node, results: list[torch.Tensor], operands: list[torch.Tensor]) -> bool:
        """Whether the node converts a number in host memory to float32 for ops on the device alone, which take it from
        either memory. Such are the floats of modules, as an epsilon, where torch.compile is asked for dynamic=True."""
        if node.target is not torch.ops.prims.convert_element_type.default or self.device.type == "cpu":
            return False
        readers = [flat_fakes(user.meta.get("val")) for user in node.users]
        return all(map(is_host_number, results + operands)) and results[0].dtype == torch.float32 \
            and all(fakes and all(fake.device == self.device for fake in fakes) for fakes in readers)


def is_host_number(fake: torch.Tensor) -> bool:
    return fake.dim() == 0 and fake.device.type == "cpu"


def flat_fakes(value) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [fake for item in value for fake in flat_fakes(item)]
    return []


def is_unknown_number(node: fx.Node) -> bool:
    """Whether a node is a size that torch knows only when the graph runs."""
    size = node.meta.get("val")
    return isinstance(size, torch.SymInt) and not isinstance(expression_of(size), int) \
        and bool(free_unbacked_symbols(size))


def has_compute(nodes) -> bool:
    """Whether any of the nodes computes something."""
    return any(node.target not in VIEWS_AND_GENERATORS for node in nodes)


def partition(module: fx.GraphModule, device: torch.device, name: str, visible: Sequence[fx.Node],
              is_checked: bool, writings: Sequence[Writing],
              refused: dict[fx.Node, str]) -> tuple[list[Part], list[EagerOp]]:
    """Cuts the graph; every part is imported. A node that cannot be imported goes to eager, and the
    graph is cut anew, until all parts can be.

    visible: results that the user sees, with the strides, the offset and the aliases that torch traced.
    is_checked: as of Emitter. writings: ops that may write an argument in place. refused: nodes that go to eager, with the reasons; grows."""
    replayed = replayed_views(module.graph, visible)
    while True:
        groups = [group for group in node_groups(module, SupportedOps(refused, device))
                  if has_compute(group)]
        known = len(refused)
        parts = [import_part(group, name if len(groups) == 1 else f"{name}_{number}", refused,
                             replayed, set(visible), is_checked, writings)
                 for number, group in enumerate(groups)]
        if len(refused) == known:
            break
        for part in parts:
            if part is not None:
                part.graph.module.close()
    taken = {node for part in parts for node in part.nodes}
    eager = [EagerOp(str(node.target), node.name, location_of(node), refused[node])
             for node in module.graph.nodes
             if node in refused and node not in taken and node.target is not operator.getitem]
    return parts, eager


class Downstreams:
    """The nodes that must run after each node, for torch's partitioner: its readers, and after a random op the next one,
    so that each draws the numbers that it draws in eager."""

    def __init__(self, graph: fx.Graph) -> None:
        self.behind: dict[fx.Node, set[fx.Node]] = {}
        later = None
        for node in reversed(graph.nodes):
            next_ones = [*node.users, later] if later is not None and draws_numbers(node) else [*node.users]
            self.behind[node] = set(next_ones).union(*(self.behind[one] for one in next_ones))
            later = node if draws_numbers(node) else later

    def downstreams_of(self, node: fx.Node) -> set[fx.Node]:
        return self.behind[node]


def draws_numbers(node: fx.Node) -> bool:
    """Whether a node is a random op, or one of torch's that runs such an op, its first argument."""
    target = node.args[0] if isinstance(node.target, HigherOrderOperator) and node.args else node.target
    return node.op == "call_function" and is_random_op(target)


def node_groups(module: fx.GraphModule, supported: SupportedOps) -> list[list[fx.Node]]:
    """Nodes that may be one part, in the graph's order. Where all are supported they are one group, which
    takes no search."""
    nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    if all(supported.is_node_supported({}, node) for node in nodes):
        return [nodes] if nodes else []
    order = {node: i for i, node in enumerate(nodes)}
    partitioner = CapabilityBasedPartitioner(module, supported, allows_single_node_partition=True)
    partitioner.dependency_viewer = Downstreams(module.graph)
    proposed = partitioner.propose_partitions()
    return [sorted(part.nodes, key=order.__getitem__) for part in proposed]


def replayed_views(graph: fx.Graph, visible: Sequence[fx.Node]) -> set[fx.Node]:
    """Views that torch makes of the tensor whose memory they read, where anyone outside of a part
    reads them: those with gaps, repeats or an offset, and results that share memory with an argument
    or with others."""
    roots = Counter(root_of(node) for node in dict.fromkeys(visible))
    shares = lambda node: roots[root_of(node)] > 1 or root_of(node).op == "placeholder"
    return {node for node in graph.nodes
            if is_view(node) and isinstance(node.meta.get("val"), torch.Tensor)
            and (not is_dense_from_start(node.meta["val"]) or (node in visible and shares(node)))}


def results_of(nodes: list[fx.Node], replayed: set[fx.Node], visible: set[fx.Node],
               written: set[fx.Node]) -> tuple[list[fx.Node], set[fx.Node]]:
    """The values that a part computes for others, and the views that torch makes of them. written: values that no
    other part reads, and that an argument has behind the call."""
    inside = set(nodes)
    wanted = {node for node in nodes if any(user not in inside for user in node.users)} - written
    views: set[fx.Node] = set()
    pending = [node for node in wanted
               if node in replayed and is_observed(node, inside, visible)
               or is_view(node) and root_of(node) not in inside and is_dense_from_start(node.meta["val"])
               or is_view(node) and any(is_view(user) for user in node.users if user not in inside)]
    while pending:
        node = pending.pop()
        source = node.args[0]
        views.add(node)
        if source not in inside or source in views:
            continue
        if is_view(source):
            pending.append(source)
        else:
            wanted.add(source)
    results = [node for node in nodes if node in wanted and node not in views
               and isinstance(node.meta.get("val"), torch.Tensor)]
    return results, views


def is_observed(node: fx.Node, inside: set[fx.Node], visible: set[fx.Node]) -> bool:
    """Whether the user or an op in eager sees how a value lies in memory."""
    return node in visible or any(
        user not in inside and user.op != "output" and user.target is not aten.sym_size.int
        for user in node.users)


def import_part(nodes: list[fx.Node], name: str, refused: dict[fx.Node, str],
                replayed: set[fx.Node], visible: set[fx.Node], is_checked: bool,
                writings: Sequence[Writing]) -> Part | None:
    """The part, or None: then `refused` has more nodes."""
    inside = set(nodes)
    states = {writing.argument: writing for writing in writings if writing.writer in inside and all(
        user in inside or user.op == "output" for user in writing.writer.users)}
    results, views = results_of(nodes, replayed, visible, {one.writer for one in states.values()})
    states = {argument: one for argument, one in states.items() if one.writer not in results}
    leaves = list(dict.fromkeys(operand for node in nodes for operand in node.all_input_nodes
                                if operand not in inside))
    unknown = [leaf for leaf in leaves if is_unknown_number(leaf)]
    if unknown:
        refused.update((user, "a number that depends on data")
                       for leaf in unknown for user in leaf.users if user in inside)
        return None
    importer = Importer(name, is_checked=is_checked)
    try:
        importer.begin(leaves, nodes)
        if all([importer.try_input(leaf, states.get(leaf)) for leaf in leaves]):
            for node in nodes:
                if not importer.convert(node):
                    substitute(importer, node)
        if importer.reasons:
            refused.update((node, reason) for node, reason in importer.reasons.items()
                           if node in inside)
            importer.imported.module.close()
            return None
        for node in results:
            importer.add_output(node, node in visible)
    except BaseException:
        importer.imported.module.close()
        raise
    return Part(importer.imported, nodes, leaves, results, views,
                {one.writer: argument for argument, one in states.items()})


def rewritten(module: fx.GraphModule, parts: list[Part], entries: list) -> fx.GraphModule:
    """The graph with each part replaced by a call of a submodule. `entries` are what the submodules call: with the
    leaves, for a list of the results."""
    part_of = {node: part for part in parts for node in part.nodes if node not in part.replayed}
    root = torch.nn.Module()
    graph = fx.Graph()
    new: dict[fx.Node, fx.Node] = {}
    pending = [node for node in module.graph.nodes if node.op != "output"]
    random = [node for node in pending if draws_numbers(node)]
    drawn_before = dict(zip(random[1:], random))
    done: set[int] = set()
    while pending:
        waiting = []
        for node in pending:
            part = part_of.get(node)
            reads = part.leaves if part is not None else node.all_input_nodes
            if node in drawn_before:
                reads = [*reads, drawn_before[node]]
            if part is not None and id(part) in done:
                continue
            if any(read not in new for read in reads):
                waiting.append(node)
                continue
            if part is None:
                if node.op == "get_attr":
                    copy_attribute(module, root, node.target)
                new[node] = graph.node_copy(node, new.__getitem__)
                continue
            done.add(id(part))
            number = parts.index(part)
            root.add_module(f"part_{number}", Call(entries[number]))
            call = graph.call_module(f"part_{number}", tuple(new[leaf] for leaf in part.leaves))
            for i, result in enumerate(part.results):
                new[result] = graph.call_function(operator.getitem, (call, i))
            new.update((writer, new[argument]) for writer, argument in part.written.items())
        if len(waiting) == len(pending):
            raise AssertionError("the parts of a graph depend on one another")
        pending = waiting
    output = module.graph.output_node()
    graph.node_copy(output, new.__getitem__)
    return fx.GraphModule(root, graph)


class Call(torch.nn.Module):
    """Calls an entry."""

    def __init__(self, entry) -> None:
        super().__init__()
        self.entry = entry

    def forward(self, *arguments):
        return self.entry(*arguments)


def copy_attribute(source: torch.nn.Module, target: torch.nn.Module, path: str) -> None:
    """A constant of the graph."""
    value = source
    for part in path.split("."):
        value = getattr(value, part)
    if "." in path:
        raise AssertionError(f"a nested constant {path}")
    setattr(target, path, value)
