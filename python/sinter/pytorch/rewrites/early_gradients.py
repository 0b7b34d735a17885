"""Gradients of losses that the forward pass computes but for a factor.

The gradient of a loss by its logits is the gradient of the loss times D, where D depends on values of the
forward pass alone:

    loss = cross_entropy(h @ w)      D = (softmax(h @ w) - at_label) / count, rounded
    dh = (s * D) @ w.T               is s * (D @ w.T)
    dw = h.T @ (s * D)               is s * (h.T @ D)

The kernel that reads the logits for the loss writes D as well, from the exponentials that it holds, so that
the backward pass does not read them a second time. D takes the place of the logits among the values that are
kept. The factor s, one number that the backward pass gets, goes behind the products, or to the smaller
operand of a product whose result no other op reads.

This holds where s reaches D through ops that are linear in it, only products read D, and the backward pass
reads the logits for nothing else. The sum for a bias of the logits would read D a second time, where the
backward pass has it from the kernel that computes D: then nothing is gained. A value that is rounded to
float16 needs the factor first: scales of losses are there so that such a gradient does not vanish.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Callable, Iterable, Sequence

import torch
from torch import fx
from torch.utils.checkpoint import CheckpointPolicy

from ..graphs.dtypes import CASTS
from ..graphs.layout import hint_of, is_view, with_sources
from ..graphs.names import location_of
from ..graphs.nodes import call, finish

aten = torch.ops.aten

# Ops that are linear in their first operand, whatever stands in the others.
LINEAR = {
    aten.neg.default, aten.sum.dim_IntList, aten.mean.dim, aten.mean.default, aten.clone.default, *CASTS,
    aten.div.Tensor, aten.div.Scalar, aten.mul.Scalar, aten.mul.Tensor, aten.gelu_backward.default,
}
SUMS = {aten.add.Tensor, aten.sub.Tensor}
# Ops whose fill or padding has to be zero, and where among the arguments it stands.
FILLED = {aten.constant_pad_nd.default: 2, aten.masked_fill.Scalar: 2}
# Elements of a row that one kernel keeps in registers. A longer one is read again in any case.
MAX_ROW = 65536
REDUCTIONS = {aten.sum.dim_IntList, aten.amax.default, aten.logsumexp.default, aten.mean.dim}
OF_BACKWARD = ("partitioner_tag", "autograd_backward")  # what torch says of nodes of the backward pass
PRODUCTS = {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default, aten.convolution.default}


@dataclass
class LateGradient:
    """The gradient of a loss that the backward pass computes: its node, the user's line, and why."""

    name: str
    location: str
    reason: str

    def __str__(self) -> str:
        return f"the gradient {self.name}{self.location and ' of '}{self.location}: {self.reason}"


class Refused(Exception):
    """Why a gradient stays in the backward pass."""


def in_backward(value, tangent):
    """Stands in a joint graph for a value of the forward pass where the backward pass reads it, so that torch
    computes no reader of it early."""
    return value


def early_gradients(module: fx.GraphModule) -> tuple[list[fx.Node], list[LateGradient]]:
    """Rewrites a joint graph in place. Returns the gradients that the forward pass is to compute, and those that
    stay."""
    graph = module.graph
    graph.eliminate_dead_code()
    reaching = tangents_of(graph)
    found: list[fx.Node] = []
    refused: list[LateGradient] = []
    for gradient in candidates(graph, reaching):
        try:
            early = Early(graph, gradient, reaching)
        except Refused as reason:
            refused.append(LateGradient(gradient.name, location_of(gradient), str(reason)))
            continue
        if early.is_worth_it:
            found.append(early.rewrite())
    if found:
        finish(module)
    return found, refused


def tangents_of(graph: fx.Graph) -> dict[fx.Node, frozenset[fx.Node]]:
    """For each node that depends on gradients of results of the forward pass, which these are."""
    reaching: dict[fx.Node, frozenset[fx.Node]] = {}
    for node in graph.nodes:
        if node.op == "placeholder":
            if "tangents" in str(node.target):
                reaching[node] = frozenset([node])
        elif node.op != "output":
            found = frozenset().union(*(reaching.get(operand, frozenset()) for operand in node.all_input_nodes))
            if found:
                reaching[node] = found
    return reaching


def candidates(graph: fx.Graph, reaching: dict) -> list[fx.Node]:
    """The gradients that products read, none of which is computed of a product's gradient."""
    behind: set[fx.Node] = set()
    found: dict[fx.Node, None] = {}
    for node in graph.nodes:
        if node not in reaching:
            continue
        if node.target in PRODUCTS:
            behind.add(node)
            if node.target is aten.mm.default:
                for operand in node.args:
                    root = root_of_operand(operand)
                    if operand in reaching and root not in behind and root.op == "call_function":
                        found[root] = None
        elif not behind.isdisjoint(node.all_input_nodes):
            behind.add(node)
    return list(found)


def root_of_operand(node: fx.Node) -> fx.Node:
    """The computed tensor that an operand is a view of all of."""
    while is_view(node) and elements(node.args[0]) == elements(node):
        node = node.args[0]
    return node


def elements(node: fx.Node) -> int:
    """How many a tensor has in the example."""
    value = node.meta.get("val")
    return prod(hint_of(size) or 0 for size in value.shape) if isinstance(value, torch.Tensor) else 0


class Early:
    """A gradient that the forward pass can compute but for a factor. The constructor raises Refused where the
    graph would gain by that and does not allow it. is_worth_it: the graph would gain."""

    def __init__(self, graph: fx.Graph, gradient: fx.Node, reaching: dict) -> None:
        self._graph, self._gradient, self._reaching = graph, gradient, reaching
        self._chain = [node for node in with_sources([gradient]) if node in reaching]
        order = {node: i for i, node in enumerate(graph.nodes)}
        self._chain.sort(key=order.__getitem__)
        given = dict.fromkeys(operand for node in self._chain for operand in node.all_input_nodes
                              if operand not in reaching)
        self._sources = sources_of(given)
        self.is_worth_it = self._reads_rows_again()
        if not self.is_worth_it:
            return
        self._tangent = self._factor()
        for node in self._chain:
            if node is not self._tangent:
                check_linear(node, reaching)
        self._readers = readers_of(gradient)
        for reader, _ in self._readers:
            self._check_reader(reader)
        self._check_others()

    def _reads_rows_again(self) -> bool:
        """Whether the forward pass reduces rows of a product's result, which the gradient reads again, and one
        kernel can hold a row for both."""
        whole = elements(self._gradient)
        wide = [node for node in self._sources if 2 * elements(node) >= whole > 0]
        self._products = [node for node in wide if node.target in PRODUCTS]
        of_products = derived(self._products, lambda node: node not in self._reaching)
        return any(node.target in REDUCTIONS and node.args[0] in of_products
                   and 2 * elements(node.args[0]) >= whole and 8 * elements(node) <= whole
                   and elements(node.args[0]) <= MAX_ROW * elements(node)
                   for node in self._sources)

    def _factor(self) -> fx.Node:
        tangents = self._reaching[self._gradient]
        if len(tangents) > 1:
            raise Refused("the gradients of several results reach it")
        tangent = next(iter(tangents))
        if tangent.meta["val"].dim():
            raise Refused("its factor is no single number")
        if any(node.meta["val"].dtype == torch.float16 for node in (tangent, *self._chain)):
            raise Refused("float16 needs the scale of the loss before it is rounded")
        return tangent

    def _check_reader(self, reader: fx.Node) -> None:
        if reader.target is aten.sum.dim_IntList:
            raise Refused(f"{reader.name} has its sum from the kernel that computes it")
        if reader.target is not aten.mm.default:
            raise Refused("the caller sees it" if reader.op == "output" else f"{reader.name} reads it too")
        if all(operand in self._reaching for operand in reader.args):
            raise Refused(f"{reader.name} is a product of two gradients")

    def _check_others(self) -> None:
        """Raises where the logits are kept in any case, so that the gradient would come to them."""
        dead = {self._gradient}
        for node in reversed(self._chain):
            if all(user in dead for user in node.users):
                dead.add(node)
        whole = elements(self._gradient)
        wide = derived(self._products, lambda node: node not in self._reaching and 4 * elements(node) >= whole)
        for node in wide:
            if node.meta.get("recompute") in (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE):
                raise Refused(f"{node.name} is to be computed again in the backward pass")
            for user in node.users:
                if user.op == "output":
                    raise Refused(f"the caller sees {node.name}")
                if user in self._reaching and user not in dead:
                    raise Refused(f"{user.name} of the backward pass reads {node.name}")

    def rewrite(self) -> fx.Node:
        """The gradient for a factor of one."""
        graph, tangent = self._graph, self._tangent
        value, old = tangent.meta["val"], set(graph.nodes)
        with graph.inserting_before(self._gradient):
            one = graph.call_function(aten.full.default, ([], 1.0), {"dtype": value.dtype, "device": value.device})
            with value.fake_mode:
                one.meta["val"] = aten.full.default(*one.args, **one.kwargs)
            made = {tangent: one}
            for node in self._chain:
                if node not in made:
                    made[node] = shared_exponentials(graph, node, made) or graph.node_copy(
                        node, lambda operand: made.get(operand, operand))
            early = made[self._gradient]
            for node in graph.nodes:
                if node not in old:
                    node.meta = {key: value for key, value in node.meta.items() if key not in OF_BACKWARD}
            early.meta["recompute"] = CheckpointPolicy.MUST_SAVE
            read = graph.call_function(in_backward, (early, tangent))
            read.meta = {**self._gradient.meta}
        self._gradient.replace_all_uses_with(read, lambda user: user is not read)
        for reader, operand in self._readers:
            scale(graph, reader, operand, tangent)
        return early


def sources_of(nodes: Iterable[fx.Node]) -> dict[fx.Node, None]:
    """Nodes, and what they are computed of, up to products."""
    found, waiting = dict.fromkeys(nodes), list(nodes)
    while waiting:
        node = waiting.pop()
        for operand in node.all_input_nodes if node.target not in PRODUCTS else ():
            if operand not in found:
                found[operand] = None
                waiting.append(operand)
    return found


def derived(roots: Sequence[fx.Node], takes: Callable[[fx.Node], bool]) -> set[fx.Node]:
    """The roots, and what is computed of them by nodes that `takes` takes."""
    found, waiting = set(roots), list(roots)
    while waiting:
        for user in waiting.pop().users:
            if user not in found and user.op == "call_function" and takes(user):
                found.add(user)
                waiting.append(user)
    return found


def readers_of(node: fx.Node) -> list[tuple[fx.Node, fx.Node]]:
    """Who reads a tensor, or a view of all of it, and what they read."""
    found = []
    for user in node.users:
        found += readers_of(user) if is_view(user) and elements(user) == elements(node) else [(user, node)]
    return found


def is_zero(value) -> bool:
    """Whether an operand of a choice is the number zero."""
    if not isinstance(value, fx.Node):
        return value == 0
    if value.target is aten.scalar_tensor.default:
        return value.args[0] == 0
    return value.target is aten.full.default and value.args[1] == 0


def check_linear(node: fx.Node, reaching: dict) -> None:
    """Raises if a node is not linear in its operands that depend on gradients."""
    first, *others = (*node.args, None)
    if node.target is aten.where.self:
        is_linear = first not in reaching and all(x in reaching or is_zero(x) for x in node.args[1:])
    elif node.target in SUMS:
        is_linear = all(isinstance(x, fx.Node) and x in reaching for x in node.args[:2])
    elif node.target is aten.mul.Tensor:
        is_linear = sum(isinstance(x, fx.Node) and x in reaching for x in node.args) == 1
    elif node.target in FILLED:
        at = FILLED[node.target]
        is_linear = first in reaching and (len(node.args) <= at or is_zero(node.args[at])) \
            and not any(operand in reaching for operand in node.all_input_nodes if operand is not first)
    else:
        is_linear = (node.target in LINEAR or is_view(node)) and isinstance(first, fx.Node) and first in reaching \
            and not any(isinstance(x, fx.Node) and x in reaching for x in others)
    if not is_linear or not node.meta["val"].is_floating_point():
        raise Refused(f"{node.name} is not known to be linear in it")


def shared_exponentials(graph: fx.Graph, node: fx.Node, made: dict[fx.Node, fx.Node]) -> fx.Node | None:
    """e^x t / s for a product e^(x - log s) t, where s sums the rows of e^x: the forward pass has these
    exponentials. None: the node is no such product."""
    if node.target is not aten.mul.Tensor or not all(isinstance(x, fx.Node) for x in node.args):
        return None
    for power, factor in (node.args, reversed(node.args)):
        total = total_of_powers(power)
        if total is not None and factor in made and factor.meta["val"].shape == total.meta["val"].shape:
            share = call(graph, node, aten.div.Tensor, made[factor], total)
            return call(graph, node, aten.mul.Tensor, total.args[0], share)
    return None


def total_of_powers(power: fx.Node) -> fx.Node | None:
    """The sum s of e^x if a node is e^(x - log s), as decompositions.py writes it."""
    rest = exponent(power)
    if rest is None or rest.target is not aten.sub.Tensor or not isinstance(rest.args[1], fx.Node):
        return None
    x, log = rest.args
    total = log.args[0] if log.target is aten.log.default else None
    if total is None or total.target is not aten.sum.dim_IntList or exponent(total.args[0]) is not x:
        return None
    return total


def exponent(power: fx.Node) -> fx.Node | None:
    """x of exp(-|x|)"""
    for target in (aten.exp.default, aten.neg.default, aten.abs.default):
        if power.target is not target:
            return None
        power = power.args[0]
    while power.target is aten.alias.default:
        power = power.args[0]
    return power


def scale(graph: fx.Graph, reader: fx.Node, operand: fx.Node, factor: fx.Node) -> None:
    """Multiplies what a product makes of an operand by a factor: where the result becomes float32, so that it is
    rounded no more often; else as it is; and where nothing computes with it, and the product's other operand is
    smaller, that operand."""
    last = reader
    while not is_widened(last) and len(last.users) == 1 and (is_view(next(iter(last.users)))
                                                            or is_widened(next(iter(last.users)))):
        last = next(iter(last.users))
    if not is_widened(last):
        ends = any(user.op == "output" or user.target in PRODUCTS for user in last.users)
        last = reader
        others = [x for x in reader.args if isinstance(x, fx.Node) and x is not operand]
        if ends and others and elements(others[0]) < elements(reader):
            with graph.inserting_before(reader):
                scaled = call(graph, reader, aten.mul.Tensor, others[0], factor)
            reader.replace_input_with(others[0], scaled)
            return
    with graph.inserting_after(last):
        scaled = call(graph, last, aten.mul.Tensor, last, factor)
    last.replace_all_uses_with(scaled, lambda user: user is not scaled)


def is_widened(node: fx.Node) -> bool:
    """Whether a node is a cast of a 16-bit type to float32."""
    return node.target in CASTS and node.meta["val"].dtype == torch.float32 \
        and node.args[0].meta["val"].dtype in (torch.bfloat16, torch.float16)


def with_results(module: fx.GraphModule, outputs: int, found: Sequence[fx.Node]) -> None:
    """Makes values of a joint graph results of the forward pass, behind its own."""
    node = module.graph.output_node()
    results = list(node.args[0])
    node.args = ([*results[:outputs], *found, *results[outputs:]],)
    described = node.meta.get("desc")
    if described is not None:
        described = list(described)
        node.meta["desc"] = [*described[:outputs], *[None] * len(found), *described[outputs:]]
    module.recompile()


def without_results(forward: fx.GraphModule, backward: fx.GraphModule, outputs: int, count: int) -> None:
    """Takes these results out again: the backward pass has them among the values that are kept for it."""
    node = forward.graph.output_node()
    results = list(node.args[0])
    node.args = ((*results[:outputs], *results[outputs + count:]),)
    if node.meta.get("desc") is not None:
        described = list(node.meta["desc"])
        node.meta["desc"] = [*described[:outputs], *described[outputs + count:]]
    for node in list(backward.graph.nodes):
        if node.target is in_backward:
            node.replace_all_uses_with(node.args[0])
            backward.graph.erase_node(node)
    finish(forward, backward)
