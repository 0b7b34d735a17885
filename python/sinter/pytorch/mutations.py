"""Arguments that a graph changes, such as the parameters in an optimizer's step.

    copy_(exp_avg, lerp); copy_(p, addcdiv)      at the end of the graph of aot_autograd

The entry of Sinter has new memory for `lerp` and `addcdiv`; behind its call one operation of torch
copies all of them, in few launches. What the graph reads is what the arguments held before.
"""

from __future__ import annotations

from typing import Callable

import torch
from torch import fx

aten = torch.ops.aten


def take_copies(module: fx.GraphModule) -> list[int]:
    """Takes the copies into arguments out of the graph; their values become results behind the
    others. Returns the positions of the arguments."""
    graph = module.graph
    position = {node: i for i, node in enumerate(
        node for node in graph.nodes if node.op == "placeholder")}
    output = next(node for node in graph.nodes if node.op == "output")
    if not isinstance(output.args[0], (tuple, list)):
        return []
    copies = [node for node in graph.nodes
              if node.target is aten.copy_.default and node.args[0] in position
              and set(node.users) <= {output} and isinstance(node.args[1], fx.Node)]
    for node in copies:
        node.replace_all_uses_with(node.args[0])
    output.args = ((*output.args[0], *[node.args[1] for node in copies]),)
    targets = [position[node.args[0]] for node in copies]
    for node in copies:
        graph.erase_node(node)
    return targets


def with_copies(function: Callable, targets: list[int]) -> Callable:
    """The graph's function, with the copies behind it."""
    if not targets:
        return function

    def call(*arguments):
        results = function(*arguments)
        count = len(results) - len(targets)
        given = {id(argument) for argument in arguments}
        # A value that is an argument may be changed by the copies before its own.
        values = [value.clone() if id(value) in given else value for value in results[count:]]
        with torch.no_grad():
            torch._foreach_copy_([arguments[i] for i in targets], values)
        return results[:count]

    return call
