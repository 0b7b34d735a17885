"""Tensors that a graph on a GPU makes of nothing but numbers, in host memory, and moves to the GPU.

    mask = where(arange(64, device="cpu") // 8 == ..., 0, -100); scores + mask.to("cuda")

Swin makes its masks in this way. Computed in each call they cut the graph into parts with work of the host
in between. Here they are computed once, when the graph is compiled: each is a further argument.
"""

from __future__ import annotations

from typing import Callable

import torch
from torch import fx
from torch._subclasses import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from ..graphs.layout import is_repeatable, is_seen
from .packing import PARAMETER

MAX_BYTES = 16 << 20  # of a graph's constants, which stay in the GPU's memory
TO_DEVICE = torch.ops.aten._to_copy.default


def take_constants(module: fx.GraphModule, device: torch.device) -> list[torch.Tensor]:
    """Takes the constants out of the graph: its further arguments, behind the others."""
    graph = module.graph
    host = host_nodes(module)
    moved = [node for node in graph.nodes
             if node.target is TO_DEVICE and node.args[0] in host and node.meta["val"].device == device
             and not is_seen(node)]
    if not moved or sum(node.meta["val"].nbytes for node in moved) > MAX_BYTES:
        return []
    constants = computed(module, moved)
    for node in moved:
        replace_by_argument(graph, node)
    for node in reversed(host):
        if not node.users and node not in moved:
            graph.erase_node(node)
    return constants


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
