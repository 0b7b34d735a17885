"""The role of a graph without gradients in a training step: it changes parameters, or gradients, or it
does neither."""

from __future__ import annotations

from typing import Sequence

import torch
from torch import fx
from torch._functorch._aot_autograd.descriptors import ParamAOTInput, PlainAOTInput

aten = torch.ops.aten


def is_of_optimizer(graph: fx.Graph, traced: fx.Graph, example_inputs: Sequence) -> bool:
    """Whether a graph of aot_autograd writes a parameter or a gradient, as a step of an optimizer and the
    clipping of gradients do. traced: Dynamo's graph, whose inputs are `example_inputs`."""
    given = [node for node in traced.nodes if node.op == "placeholder"]
    for node in graph.nodes:
        if node.target is not aten.copy_.default or node.args[0].op != "placeholder":
            continue
        source = node.args[0].meta.get("desc")
        if isinstance(source, ParamAOTInput):
            return True
        if isinstance(source, PlainAOTInput) and len(given) == len(example_inputs):
            value = example_inputs[source.idx]
            if isinstance(value, torch.Tensor) and (value.requires_grad or is_gradient(given[source.idx])):
                return True
    return False


def is_gradient(node: fx.Node) -> bool:
    """Whether an input of Dynamo's graph is the attribute `grad` of a tensor."""
    source = getattr(node.meta.get("grapharg"), "source", None)
    return type(source).__name__ == "GradSource" or getattr(source, "member", None) == "grad"
