"""Arguments that a graph changes, such as the parameters in an optimizer's step.

    copy_(exp_avg, lerp); copy_(p, addcdiv)      at the end of the graph of aot_autograd

Where the plan allows it, the entry of Sinter writes `lerp` and `addcdiv` in the memory of the arguments
(`CompiledEntry.overwritten`). It has new memory for the others; behind its call one operation of torch
copies all of them, in few launches. What the graph reads is what the arguments held before.
"""

from __future__ import annotations

from collections import Counter
from typing import Callable

import torch
from torch import fx

from ..convert.partition import Part


def written_results(module: fx.GraphModule, targets: list[int], part: Part) -> dict[int, int]:
    """The results of a part that are copied to one of its leaves behind the call and not used otherwise,
    with the leaf, which no one else reads. targets: of the last values that the graph returns."""
    if not targets:
        return {}
    output = module.graph.output_node()
    arguments = [node for node in module.graph.nodes if node.op == "placeholder"]
    values = output.args[0]
    uses = Counter(value for value in values if isinstance(value, fx.Node))
    inside, last = {*part.nodes, output}, values[-len(targets):]
    is_own = lambda argument: argument not in last and set(argument.users) <= inside - part.replayed
    copied = {value: arguments[target] for value, target in zip(last, targets)
              if uses[value] == 1 and is_own(arguments[target])}
    position = {leaf: i for i, leaf in enumerate(part.leaves)}
    return {i: position[copied[result]] for i, result in enumerate(part.results)
            if copied.get(result) in position and set(result.users) <= inside}


def with_copies(function: Callable, targets: list[int]) -> Callable:
    """The graph's function, with the copies behind it."""
    if not targets:
        return function

    def call(*arguments):
        results = function(*arguments)
        count = len(results) - len(targets)
        given = {id(argument) for argument in arguments}
        # A value that is an argument may be changed by the copies before its own. One that is None has
        # been copied, one that is the argument itself was written in place.
        copies = [(arguments[i], value.clone() if id(value) in given else value)
                  for i, value in zip(targets, results[count:])
                  if value is not None and value is not arguments[i]]
        if copies:
            with torch.no_grad():
                torch._foreach_copy_(*zip(*copies))
        return results[:count]

    return call
