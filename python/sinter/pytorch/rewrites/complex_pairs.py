"""Complex numbers as pairs of real ones.

The IR has no complex elements. Models use them between real tensors, to rotate pairs of features:

    view_as_real(view_as_complex(x) * rotation)

The pass computes what a graph reads of complex64 tensors from their real and imaginary parts, in ops of
float32. A complex tensor that no rule makes, such as an input, is read through `view_as_real`; one of
another complex type is cast to complex64 first, as eager casts an operand of a complex64 result. Complex
results of the graph, and ops whose result is complex128 or complex32, stay as they are, in eager.
"""

from __future__ import annotations

from typing import Callable

import torch
from torch import fx

from ..graphs.layout import is_dense_from_start, is_seen
from ..graphs.nodes import call
from ..graphs.symbols import expression_of

aten = torch.ops.aten

# Ops of one tensor that move or add elements, and so treat both parts alike.
PARTWISE = {
    aten.view.default, aten._unsafe_view.default, aten.expand.default, aten.unsqueeze.default,
    aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.permute.default,
    aten.transpose.int, aten.select.int, aten.slice.Tensor, aten.index_select.default,
    aten.index.Tensor, aten.embedding.default, aten.clone.default, aten.alias.default,
    aten.detach.default, aten.sum.default, aten.sum.dim_IntList, aten.neg.default,
}
JOINS = {aten.cat.default, aten.stack.default}

# A part of an operand: a node or a number. Both parts of a complex node are nodes.
Part = fx.Node | float
Pair = tuple[Part, Part]


def is_tensor(value) -> bool:
    return isinstance(value, fx.Node) and isinstance(value.meta.get("val"), torch.Tensor)


def has_float_parts(value) -> bool:
    """Whether a value is a node of complex numbers whose parts are float32."""
    return is_tensor(value) and value.meta["val"].dtype == torch.complex64


def is_complex(value) -> bool:
    """Whether a value is a node of complex numbers of any type."""
    return is_tensor(value) and value.meta["val"].dtype.is_complex and number_of(value) is None


def number_of(value) -> complex | None:
    """A number of Python's, or the conjugate of one: autograd writes that as a node of complex128."""
    if not isinstance(value, fx.Node):
        return value
    is_conjugate = value.target is aten._conj.default and not isinstance(value.args[0], fx.Node)
    return value.args[0].conjugate() if is_conjugate else None


class Pairs:
    """Rewrites a graph: makes the parts of its complex nodes.

    parts: a node in `conjugates` has the parts of its conjugate, because a product takes the sign into its sums, and
    the ops of PARTWISE do not see it."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.parts: dict[fx.Node, Pair] = {}
        self.conjugates: set[fx.Node] = set()
        self.origin: fx.Node | None = None  # of the nodes that are being made

    def emit(self, target, *operands, **options) -> fx.Node:
        return call(self.graph, self.origin, target, *operands, **options)

    def pair(self, operand) -> Pair:
        """The parts of a node of complex or real numbers, or of a number."""
        if operand in self.conjugates:
            re, im = self.parts[operand]
            return re, self.emit(aten.neg.default, im)
        return self.unsigned(operand)

    def unsigned(self, operand) -> Pair:
        """As `pair`; of a node in `conjugates` the parts of its conjugate."""
        if operand in self.parts:
            return self.parts[operand]
        number = number_of(operand)
        if number is not None:
            return number.real, number.imag
        if not is_tensor(operand):  # a size
            return operand, 0.0
        real = self.cast(operand, torch.float32)
        # A tensor of zeros, so that a sum of imaginary parts has the shape of the result.
        return real, self.emit(aten.full_like.default, real, 0) if real.meta["val"].dim() else 0.0

    def cast(self, operand: fx.Node, dtype: torch.dtype) -> fx.Node:
        return operand if operand.meta["val"].dtype == dtype else self.emit(
            torch.ops.prims.convert_element_type.default, operand, dtype)

    def make(self, node: fx.Node) -> None:
        """Makes the parts of a complex node, before it."""
        self.origin = node
        rule = RULES.get(node.target, joined_parts if node.target in JOINS else same_of_parts)
        with self.graph.inserting_before(node):
            self.parts[node] = rule(self, *node.args)
        if is_conjugate(self, node):
            self.conjugates.add(node)

    def read(self, node: fx.Node) -> None:
        """Makes the parts of a complex tensor that no rule makes, behind it."""
        self.origin = node
        place = node.next
        while place.op == "placeholder":
            place = place.next
        with self.graph.inserting_before(place):
            plain = self.cast(node, torch.complex64)
            if plain.meta["val"].is_conj():
                plain = self.emit(aten._conj.default, plain)
                self.conjugates.add(node)
            self.parts[node] = halves(self, self.emit(aten.view_as_real.default, plain))

    def replace(self, node: fx.Node) -> None:
        """Lets a node that reads a complex one read its parts."""
        self.origin = node
        with self.graph.inserting_before(node):
            re, im = self.pair(node.args[0])
            for user in [user for user in node.users if selects_part(user) and not is_seen(user)]:
                user.replace_all_uses_with((re, im)[user.args[2]])
                self.graph.erase_node(user)
            if node.users:
                result = READERS[node.target](self, re, im)
                if is_dense_from_start(node.meta["val"]):
                    result.meta["val"] = node.meta["val"]  # with its order of axes in memory
                node.replace_all_uses_with(result)
        self.graph.erase_node(node)

    def combined(self, target, a: Part, b: Part) -> fx.Node:
        """The sum, difference or product of two parts, of which one is a tensor."""
        if is_tensor(a):
            return self.emit(target, a, b)
        return self.emit(aten.add.Tensor, self.emit(aten.neg.default, b), a) if target is aten.sub.Tensor \
            else self.emit(target, b, a)


def is_conjugate(pairs: Pairs, node: fx.Node) -> bool:
    """Whether the parts that the rule of a node made belong to the conjugate."""
    signs = [operand in pairs.conjugates for operand in node.args[:2]
             if isinstance(operand, fx.Node)]
    if node.target is aten._conj.default:
        return not signs[0]
    return signs == [True, True] if node.target is aten.mul.Tensor else \
        node.target in PARTWISE and signs[0]


def product(pairs: Pairs, x, y) -> Pair:
    """The parts of x y; of two conjugate operands, the parts of the conjugate result."""
    (a, b), (c, d) = pairs.unsigned(x), pairs.unsigned(y)
    ac, bd, ad, bc = (pairs.combined(aten.mul.Tensor, *factors)
                      for factors in ((a, c), (b, d), (a, d), (b, c)))
    x_sign, y_sign = x in pairs.conjugates, y in pairs.conjugates
    plus, minus = aten.add.Tensor, aten.sub.Tensor
    if x_sign == y_sign:
        return pairs.combined(minus, ac, bd), pairs.combined(plus, ad, bc)
    return pairs.combined(plus, ac, bd), pairs.combined(minus, *((ad, bc) if x_sign else (bc, ad)))


def sum_of_parts(pairs: Pairs, x, y) -> Pair:
    """The sums of both parts, or the differences."""
    return tuple(pairs.combined(pairs.origin.target, a, b) for a, b in zip(pairs.pair(x), pairs.pair(y)))


def same_of_parts(pairs: Pairs, x, *arguments) -> Pair:
    origin = pairs.origin
    return tuple(pairs.emit(origin.target, part, *arguments, **origin.kwargs) for part in pairs.parts[x])


def joined_parts(pairs: Pairs, tensors, *arguments) -> Pair:
    target = pairs.origin.target
    return tuple(pairs.emit(target, list(parts), *arguments) for parts in zip(*map(pairs.pair, tensors)))


def halves(pairs: Pairs, x) -> Pair:
    return tuple(pairs.emit(aten.select.int, x, x.meta["val"].dim() - 1, i) for i in range(2))


def broadcast_halves(pairs: Pairs, re, im) -> Pair:
    """Two real tensors as tensors of the shape to which they broadcast: x - 0, which is x where x is -0 too."""
    sizes = lambda node: list(map(expression_of, node.meta["val"].shape))
    return tuple(x if sizes(x) == sizes(pairs.origin) else pairs.emit(
        aten.sub.Tensor, x, pairs.emit(aten.full_like.default, other, 0)) for x, other in ((re, im), (im, re)))


def polar(pairs: Pairs, radius, angle) -> Pair:
    return tuple(pairs.emit(aten.mul.Tensor, radius, pairs.emit(function, angle))
                 for function in (aten.cos.default, aten.sin.default))


# The parts of a complex node, made of its arguments.
RULES: dict[object, Callable[..., Pair]] = {
    aten.view_as_complex.default: halves,
    aten.complex.default: broadcast_halves,
    aten.polar.default: polar,
    aten.mul.Tensor: product,
    aten.add.Tensor: sum_of_parts,
    aten.sub.Tensor: sum_of_parts,
    aten._conj.default: lambda pairs, x: pairs.unsigned(x),
}


def joined(pairs: Pairs, re: fx.Node, im: fx.Node) -> fx.Node:
    parts = [pairs.emit(aten.unsqueeze.default, x, x.meta["val"].dim()) for x in (re, im)]
    return pairs.emit(aten.cat.default, parts, parts[0].meta["val"].dim() - 1)


# Ops of complex tensors with a real result.
READERS: dict[object, Callable[..., fx.Node]] = {
    aten.view_as_real.default: joined,
    aten.abs.default: lambda pairs, re, im: pairs.emit(aten.hypot.default, re, im),
}


def has_rule(node: fx.Node) -> bool:
    """Whether the parts of a complex node can be made of its operands."""
    if not has_float_parts(node):
        return False
    if node.target in JOINS:
        return all(map(has_float_parts, node.args[0]))
    if node.kwargs.keys() - {"memory_format"}:  # such as a factor of a sum
        return False
    if node.target in (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor):
        return node.meta["val"].dim() > 0 or any(map(is_complex, node.args))
    return node.target in RULES or node.target in PARTWISE


def reads_parts(node: fx.Node) -> bool:
    """Whether an op has a real result of a complex operand. A result that the caller sees is dense: one
    of the parts has other strides than one with gaps."""
    return node.target in READERS and has_float_parts(node.args[0]) and (
        is_dense_from_start(node.meta["val"]) or not is_seen(node))


def selects_part(node: fx.Node) -> bool:
    """Whether a node takes one of the parts that `view_as_real` gives."""
    source = node.args[0]
    return node.target is aten.select.int and source.target is aten.view_as_real.default \
        and node.args[1] in (-1, source.meta["val"].dim() - 1)


def split_complex(graph: fx.Graph) -> None:
    """Computes the parts of complex numbers of which a graph reads real ones, in place."""
    wanted: set[fx.Node] = set()
    for node in reversed(graph.nodes):
        if is_complex(node) and any(reads_parts(user) or (user in wanted and has_rule(user))
                                    for user in node.users):
            wanted.add(node)
    if not wanted:
        return
    pairs = Pairs(graph)
    for node in list(graph.nodes):
        if node in wanted:
            pairs.make(node) if has_rule(node) else pairs.read(node)
        elif reads_parts(node) and (has_rule(node.args[0]) or node.target is not aten.view_as_real.default):
            pairs.replace(node)
    graph.eliminate_dead_code()
