"""Products that read one value become one product with packed parameters, in graphs without gradients.

    mm(x, q.T), mm(x, k.T), mm(x, v.T)      become      y = mm(x, packed.T), and slices of y's columns

`packed` is a new argument of the graph, behind the others: the parameters one behind the other.
`packed_parameters` makes it when the graph runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import Callable, Sequence

import torch
from torch import fx
from torch._functorch._aot_autograd.descriptors import PlainAOTInput
from torch.fx._lazy_graph_module import _make_graph_module

from ..graphs.layout import is_random, is_view
from ..graphs.names import module_path
from ..graphs.nodes import call
from ..graphs.symbols import expression_of

aten = torch.ops.aten

SMALL = 16  # a matrix of this many times the elements of a product's result may be packed with any
ALIGNMENT = 16  # bytes; where the parameters and the columns of a packed product begin
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
PARAMETER = "sinter_parameter"  # of an argument's node: it is a parameter
Pick = Callable[[Sequence], Sequence]  # some of the arguments
RESHAPES = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)


@dataclass(frozen=True)
class Product:
    """mm(x, weight.T) or addmm(bias, x, weight.T), whose weight and bias are arguments of the graph."""

    node: fx.Node
    x: fx.Node
    transposed: fx.Node
    bias: fx.Node | None

    @property
    def weight(self) -> fx.Node:
        return self.transposed.args[0]

    @property
    def parameters(self) -> list[fx.Node]:
        return [self.weight] if self.bias is None else [self.weight, self.bias]

    @property
    def rows(self) -> int:
        return self.weight.meta["val"].shape[0]

    @property
    def name(self) -> str:
        return module_path(self.node) or self.node.name


@dataclass(frozen=True)
class Group:
    """Products that become one."""

    products: tuple[Product, ...]

    @property
    def packs(self) -> list[list[fx.Node]]:
        """The parameters of each packed argument: the weights, and the biases if there are any."""
        return [list(pack) for pack in zip(*(product.parameters for product in self.products))]

    @property
    def spans_modules(self) -> bool:
        return len({product.name.rpartition(".")[0] for product in self.products}) > 1

    @property
    def nbytes(self) -> int:
        return sum(node.meta["val"].nbytes for pack in self.packs for node in pack)

    @property
    def name(self) -> str:
        """layers.0.attn.q, layers.0.attn.k, layers.0.attn.v -> layers.0.attn.qkv"""
        if self.spans_modules:
            return f"{self.products[0].name}_and_{len(self.products) - 1}_more"
        stem, dot, _ = self.products[0].name.rpartition(".")
        last = [product.name.removeprefix(stem + dot) for product in self.products]
        return stem + dot + ("" if all(len(part) == 1 for part in last) else "_").join(last)


@dataclass
class Packing:
    """The groups of a graph, and the products that would be in one but for a reason."""

    groups: list[Group] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # product -> reason


def find_packing(graph: fx.Graph) -> Packing:
    """Groups are products of one value in one module, such as an attention, so that no large result is kept for long;
    single products of several modules are one group where their results are small beside the matrices, such as the
    products of a condition in each layer. The graph's parameters are marked."""
    values = equal_values(graph)
    of_modules: dict[tuple, list[Product]] = {}
    for node in graph.nodes:
        product = product_of(node)
        if product is not None:
            key = key_of(product, values), module_path(product.node).rpartition(".")[0]
            of_modules.setdefault(key, []).append(product)
    of_many: dict[tuple, list[Product]] = {}
    for (key, _), products in of_modules.items():
        if len(products) == 1 and is_small(products[0]):
            of_many.setdefault(key, []).append(products[0])
    packing = Packing()
    for products in (*of_modules.values(), *of_many.values()):
        if len(products) > 1:
            add_groups(packing, products)
    return packing


def add_groups(packing: Packing, products: list[Product]) -> None:
    """Adds the groups of products that read one value, and the reasons of those that are in none."""
    reasons = [obstacle(product) for product in products]
    packing.refused.update((product.name, reason)
                           for product, reason in zip(products, reasons) if reason)
    packable = [product for product, reason in zip(products, reasons) if reason is None]
    for has_bias in (False, True):
        group = tuple(one for one in packable if (one.bias is not None) == has_bias)
        if len(group) > 1:
            packing.groups.append(Group(group))
        elif group:
            packing.refused[group[0].name] = "no other product of its operand can be packed with it"


def product_of(node: fx.Node) -> Product | None:
    """The product that a node is, if its weight is a transposed matrix among the graph's arguments."""
    if node.kwargs or node.target not in (aten.mm.default, aten.addmm.default):
        return None
    *bias, x, transposed = node.args
    if transposed.target is not aten.permute.default or list(transposed.args[1]) != [1, 0]:
        return None
    product = Product(node, x, transposed, *(bias or [None]))
    if any(parameter.op != "placeholder" for parameter in product.parameters):
        return None
    weight = product.weight.meta["val"]
    is_plain = weight.dtype in DTYPES and all(isinstance(size, int) for size in weight.shape) \
        and weight.numel() > 0 and weight.device == x.meta["val"].device \
        and (not bias or tuple(bias[0].meta["val"].shape) == (weight.shape[0],))
    return product if is_plain else None


def equal_values(graph: fx.Graph) -> dict[fx.Node, fx.Node]:
    """For each node the first one that computes the same of the same values."""
    first: dict[tuple, fx.Node] = {}
    values: dict[fx.Node, fx.Node] = {}
    for node in graph.nodes:
        key = (node,)
        if node.op == "call_function" and not node.is_impure() and not is_random(node):
            # A text tells 1 from 1.0 and True, and has the names of nodes.
            key = node.target, repr(fx.map_arg((node.args, node.kwargs), values.__getitem__))
        values[node] = first.setdefault(key, node)
    return values


def key_of(product: Product, values: dict[fx.Node, fx.Node]) -> tuple:
    """Equal for products of one value."""
    x = values[product.x]
    sizes = tuple(expression_of(size) for size in x.meta["val"].shape)
    while x.target in RESHAPES:
        x = x.args[0]
    return x, sizes


def is_small(product: Product) -> bool:
    """Whether the result has few elements beside the matrix."""
    rows, depth = product.x.meta["val"].shape
    return isinstance(rows, int) and SMALL * rows <= depth


def obstacle(product: Product) -> str | None:
    """Why a product is in no group, as far as the graph tells."""
    if not all(is_parameter(parameter) for parameter in product.parameters):
        return "it reads a tensor that is no parameter"
    if len(product.transposed.users) > 1 or any(len(one.users) > 1 for one in product.parameters):
        return "another op reads its parameter, too"
    if not all(one.meta["val"].is_contiguous() for one in product.parameters):
        return "its parameter is not contiguous"
    if product.rows * product.weight.meta["val"].element_size() % ALIGNMENT:
        return f"its {product.rows} columns are no multiple of {ALIGNMENT} bytes"
    return "it is a result of the graph" if is_returned(product.node) else None


def is_returned(node: fx.Node) -> bool:
    """Whether the graph returns a node or a view of it."""
    return any(user.op == "output" or is_view(user) and is_returned(user) for user in node.users)


def mark_parameters(graph: fx.Graph, example_inputs: Sequence) -> None:
    """Marks the arguments of aot_autograd's graph that are parameters among Dynamo's inputs. Compiled
    autograd gives lists of inputs, and aot_autograd numbers what is in them: nothing is marked there."""
    if any(isinstance(one, (list, tuple, dict)) for one in example_inputs):
        return
    for node in graph.nodes:
        source = node.meta.get("desc") if node.op == "placeholder" else None
        if isinstance(source, PlainAOTInput) and isinstance(example_inputs[source.idx], torch.nn.Parameter):
            node.meta[PARAMETER] = True


def is_parameter(node: fx.Node) -> bool:
    """Whether an argument of a graph is a parameter, or parameters that are packed."""
    return PARAMETER in node.meta


def addresses_at(positions: Sequence[int]) -> Callable[[Sequence], tuple[int, ...]]:
    """A function that gives the addresses of the tensors at these positions among arguments. It is a part of
    every call, and torch's method is twice as fast without a lookup for each tensor."""
    pick, address = picked(positions), torch.Tensor.data_ptr
    return lambda arguments: tuple(map(address, pick(arguments)))


def picked(positions: Sequence[int]) -> Pick:
    """A function that gives the arguments at these positions."""
    if len(positions) < 2:  # itemgetter gives no tuple
        return lambda arguments: [arguments[i] for i in positions]
    return itemgetter(*positions)


def packed_copy(module: fx.GraphModule, groups: Sequence[Group]) -> fx.GraphModule:
    """A copy of a graph in which each of the groups is one product. For each pack of each group it has
    one more argument."""
    graph, copies = fx.Graph(), {}
    graph.output(graph.graph_copy(module.graph, copies))
    for group in groups:
        pack(graph, Group(tuple(
            Product(*[copies.get(node) for node in (one.node, one.x, one.transposed, one.bias)])
            for one in group.products)))
    graph.eliminate_dead_code()  # operands of the same value
    return _make_graph_module(module, graph)


def pack(graph: fx.Graph, group: Group) -> None:
    """Replaces the products of a group by one, in place."""
    weight, *bias = [add_argument(graph, parts) for parts in group.packs]
    first = group.products[0]
    with graph.inserting_before(first.node):
        transposed = call(graph, first.transposed, aten.permute.default, weight, [1, 0])
        joined = call(graph, first.node, first.node.target, *bias, first.x, transposed)
    name_as(group.name, joined, transposed, *[first.x] * (module_path(first.x) == first.name))
    begin = 0
    for product in group.products:
        with graph.inserting_before(product.node):
            part = call(graph, product.node, torch.ops.sinter.part_of_rows.default, joined, begin,
                        begin + product.rows) if group.spans_modules else call(
                graph, product.node, aten.slice_copy.Tensor, joined, 1, begin, begin + product.rows)
        product.node.replace_all_uses_with(part)
        begin += product.rows
    for product in group.products:
        erase_unread(graph, product.node)


def name_as(path: str, *nodes: fx.Node) -> None:
    """Lets nodes belong to the module of that path."""
    for node in nodes:
        stack = list((node.meta.get("nn_module_stack") or {}).items())
        if stack:
            node.meta["nn_module_stack"] = dict([*stack[:-1], (path, (path, ""))])


def add_argument(graph: fx.Graph, parts: list[fx.Node]) -> fx.Node:
    """A further argument: the parts, joined along their first axis."""
    fakes = [part.meta["val"] for part in parts]
    arguments = [node for node in graph.nodes if node.op == "placeholder"]
    with graph.inserting_after(arguments[-1]):
        node = graph.placeholder(f"packed_{len(arguments)}")
    node.meta[PARAMETER] = True
    with fakes[0].fake_mode:
        node.meta["val"] = fakes[0].new_empty((sum(fake.shape[0] for fake in fakes),
                                               *fakes[0].shape[1:]))
    return node


def erase_unread(graph: fx.Graph, node: fx.Node) -> None:
    """Erases a node, and the views that only it read."""
    if node.users or node.op != "call_function":
        return
    operands = node.all_input_nodes
    graph.erase_node(node)
    for operand in operands:
        if operand.target in (*RESHAPES, aten.permute.default):
            erase_unread(graph, operand)
