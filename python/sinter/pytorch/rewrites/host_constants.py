"""Tensors that a graph on a GPU makes of nothing but numbers, in host memory, and moves to the GPU.

    mask = where(arange(64, device="cpu") // 8 == ..., 0, -100); scores + mask.to("cuda")

Swin makes its masks in this way. Computed in each call they cut the graph into parts with work of the host
in between. Here they are computed once, when the graph is compiled: each is a further argument. A number that ops on
the GPU read in host memory, `scores / sqrt(tensor(64.0))`, becomes a constant there.
"""

from __future__ import annotations

from typing import Callable

import torch
from torch import fx
from torch._subclasses import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

from ..graphs.dtypes import TO_SINTER
from ..graphs.layout import is_repeatable, is_seen
from .packing import PARAMETER

aten = torch.ops.aten

MAX_BYTES = 16 << 20  # of a graph's constants, which stay in the GPU's memory
TO_DEVICE = aten._to_copy.default


def take_constants(module: fx.GraphModule, device: torch.device) -> list[torch.Tensor]:
    """Lets ops on the device read numbers as constants there, and takes tensors out of the graph. Returns these: the
    graph's further arguments, behind the others."""
    graph, host = module.graph, host_nodes(module)
    replace_numbers(module, host, device)
    moved = [node for node in graph.nodes
             if node.target is TO_DEVICE and node.args[0] in host and node.meta["val"].device == device
             and not is_seen(node)]
    constants = []
    if sum(node.meta["val"].nbytes for node in moved) <= MAX_BYTES:
        constants = computed(module, moved)
        for node in moved:
            replace_by_argument(graph, node)
    for node in reversed([node for node in host if node not in moved]):
        if not node.users:
            graph.erase_node(node)
    return constants


def replace_numbers(module: fx.GraphModule, host: dict[fx.Node, None], device: torch.device) -> None:
    """Lets ops on the device read constants instead of the numbers among nodes in host memory."""
    is_reader = lambda user: user not in host and is_on(user, device)
    numbers = [node for node in host if node.meta["val"].dim() == 0 and node.meta["val"].dtype in TO_SINTER
               and any(map(is_reader, node.users))]
    with _disable_current_modes():
        values = [value.item() for value in computed(module, numbers)]
    for node, value in zip(numbers, values):
        fake = node.meta["val"].to(device)
        with module.graph.inserting_after(node):
            constant = module.graph.call_function(aten.full.default, ([], value),
                                                  {"dtype": fake.dtype, "device": device, "pin_memory": False})
        constant.meta.update({**node.meta, "val": fake})
        node.replace_all_uses_with(constant, is_reader)


def is_on(node: fx.Node, device: torch.device) -> bool:
    """Whether all tensors that an op makes are on a device."""
    tensors = [one for one in tree_leaves(node.meta.get("val")) if isinstance(one, torch.Tensor)]
    return node.op == "call_function" and bool(tensors) and all(one.device == device for one in tensors)


def host_nodes(module: fx.GraphModule) -> dict[fx.Node, None]:
    """Nodes that read nothing but numbers and constants in host memory, in the graph's order."""
    found: dict[fx.Node, None] = {}
    for node in module.graph.nodes:
        if is_host_constant(module, node) or is_repeatable_on_host(node) and all(
                operand in found for operand in node.all_input_nodes):
            found[node] = None
    return found


def is_host_constant(module: fx.GraphModule, node: fx.Node) -> bool:
    value = getattr(module, node.target, None) if node.op == "get_attr" else None
    return isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor) and value.is_cpu


def is_repeatable_on_host(node: fx.Node) -> bool:
    """Whether a node gives one tensor in host memory, the same in every call, and changes nothing."""
    fake = node.meta.get("val")
    return (is_repeatable(node) and isinstance(fake, torch.Tensor)
            and fake.device.type == "cpu" and all(isinstance(size, int) for size in fake.shape))


def computed(module: fx.GraphModule, wanted: list[fx.Node]) -> list[torch.Tensor]:
    """The values of nodes, by torch."""
    values: dict[fx.Node, torch.Tensor] = {}

    def value_of(node: fx.Node) -> torch.Tensor:
        if node not in values:
            values[node] = getattr(module, node.target) if node.op == "get_attr" else node.target(
                *fx.map_arg(node.args, value_of), **fx.map_arg(node.kwargs, value_of))
        return values[node]

    with _disable_current_modes(), torch.inference_mode(False), torch.no_grad():
        return [value_of(node) for node in wanted]


def replace_by_argument(graph: fx.Graph, node: fx.Node) -> None:
    arguments = [one for one in graph.nodes if one.op == "placeholder"]
    place = graph.inserting_after(arguments[-1]) if arguments \
        else graph.inserting_before(next(iter(graph.nodes)))
    with place:
        argument = graph.placeholder(f"constant_{len(arguments)}")
    argument.meta.update({"val": node.meta["val"], PARAMETER: True})
    node.replace_all_uses_with(argument)
    graph.erase_node(node)


def with_constants(function: Callable, constants: list[torch.Tensor]) -> Callable:
    """The graph's function, which gets the constants as further arguments."""
    if not constants:
        return function

    def call(*arguments):
        return function(*arguments, *constants)

    def take(arguments: list):
        given = [*arguments, *constants]
        arguments.clear()
        return function.take(given)

    if hasattr(function, "take"):
        call.take = take
    return call
