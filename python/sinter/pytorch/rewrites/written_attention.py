"""Attention that a model writes in products and a softmax becomes one op, with its gradient, in graphs whose
gradient is asked for:

    softmax(tanh(scale q k' / cap) cap + mask) v      becomes      sinter::attention, or its form with log-sums

torch takes the gradient apart where a graph is traced, and keeps the probabilities for it: so it is done
before that, in Dynamo's graph. The model rounds its scores to 16 bits between these steps, the op does not:
the option attention=relaxed allows it. Without a gradient a pass of the compiler does the same.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx

from ..graphs import attention_call

DTYPES = (torch.float16, torch.bfloat16)
NAMES: dict[str, tuple] = {
    "matmul": (torch.matmul, operator.matmul, "matmul"),
    "mul": (operator.mul, operator.imul, torch.mul, "mul"),
    "div": (operator.truediv, operator.itruediv, torch.div, "div"),
    "tanh": (torch.tanh, "tanh"),
    "add": (operator.add, operator.iadd, torch.add, "add"),
    "softmax": (F.softmax, torch.softmax, "softmax"),
    "transpose": (torch.transpose, "transpose"),
    "reshape": (torch.reshape, "reshape"),
    "expand": ("expand",),
}
KIND = {target: kind for kind, targets in NAMES.items() for target in targets}


def join_attention(graph: fx.Graph) -> int:
    """How many attentions of a graph of Dynamo's became ops."""
    joined = 0
    for node in list(graph.nodes):
        found = attention_of(node) if kind_of(node) == "matmul" else None
        if found is None:
            continue
        operands, options = found
        with graph.inserting_before(node):
            op = graph.call_function(attention, operands, options)
        op.meta.update(node.meta)
        node.replace_all_uses_with(op)
        joined += 1
    if joined:
        graph.eliminate_dead_code()
    return joined


def attention(*operands: torch.Tensor, **options: Any) -> torch.Tensor:
    """[B, H, S, E], dense as a product is."""
    return attention_call.attention(*operands, **options).contiguous()


def kind_of(node: Any) -> str | None:
    if not isinstance(node, fx.Node) or node.op not in ("call_function", "call_method"):
        return None
    return KIND.get(node.target) if isinstance(node.target, str) or callable(node.target) else None


def value_of(node: Any) -> torch.Tensor | None:
    value = node.meta.get("example_value") if isinstance(node, fx.Node) else None
    return value if isinstance(value, torch.Tensor) else None


def number_of(node: fx.Node) -> float | None:
    """The number by which a product or a quotient changes its first operand."""
    if len(node.args) != 2 or node.kwargs or isinstance(node.args[1], bool):
        return None
    return float(node.args[1]) if isinstance(node.args[1], (int, float)) else None


def only_read_by_one(node: Any) -> bool:
    return isinstance(node, fx.Node) and len(node.users) == 1


def attention_of(product: fx.Node) -> tuple[tuple, dict] | None:
    """The operands and options of the attention whose last product this is."""
    if len(product.args) != 2 or product.kwargs:
        return None
    weights, v = product.args
    softmax = softmax_of(weights)
    if softmax is None or not only_read_by_one(softmax.args[0]):
        return None
    scores, mask, cap, scale = softmax.args[0], None, 0.0, 1.0
    if kind_of(scores) == "add" and len(scores.args) == 2 and not scores.kwargs:
        scores, mask = scores.args
    if kind_of(scores) == "mul" and kind_of(scores.args[0]) == "tanh":
        quotient = scores.args[0].args[0]
        cap = number_of(scores)
        if kind_of(quotient) != "div" or not cap or cap < 0 or number_of(quotient) != cap:
            return None
        scores = quotient.args[0]
    if kind_of(scores) in ("mul", "div"):
        number = number_of(scores)
        if not number:
            return None
        scale = number if kind_of(scores) == "mul" else 1 / number
        scores = scores.args[0]
    if kind_of(scores) != "matmul" or len(scores.args) != 2 or kind_of(scores.args[1]) != "transpose":
        return None
    q, transposed = scores.args
    k = transposed.args[0]
    if not is_last_two(transposed) or not fits(q, k, v, mask, weights):
        return None
    k, v = without_repeats(k), without_repeats(v)
    if value_of(k).shape[1] != value_of(v).shape[1]:
        return None
    return (q, k, v), {"attn_mask": mask, "scale": scale, "softcap": cap, "enable_gqa": True}


def softmax_of(weights: Any) -> fx.Node | None:
    """The softmax, along the last axis and in float32, whose rounded result these probabilities are; nothing
    else reads them."""
    while only_read_by_one(weights) and kind_of(weights) != "softmax":
        is_cast = weights.op == "call_method" and weights.target in ("to", "type_as", "half", "bfloat16")
        if not is_cast and not is_idle_dropout(weights):
            return None
        weights = weights.args[0]
    if not only_read_by_one(weights):
        return None
    axis = weights.kwargs.get("dim", weights.args[1] if len(weights.args) > 1 else None)
    rank = value_of(weights).dim() if value_of(weights) is not None else 0
    return weights if rank == 4 and axis in (-1, 3) and value_of(weights).dtype == torch.float32 else None


def is_idle_dropout(node: fx.Node) -> bool:
    if node.target is not F.dropout:
        return False
    p = node.kwargs.get("p", node.args[1] if len(node.args) > 1 else 0.5)
    training = node.kwargs.get("training", node.args[2] if len(node.args) > 2 else True)
    return p == 0 or training is False


def is_last_two(transpose: fx.Node) -> bool:
    axes = transpose.args[1:]
    return not transpose.kwargs and len(axes) == 2 and all(isinstance(axis, int) for axis in axes) \
        and {axis % 4 for axis in axes} == {2, 3}


def fits(q, k, v, mask, weights) -> bool:
    """Whether the operands fit an attention of one 16-bit type, in four axes, that broadcasts only the mask."""
    values = [value_of(x) for x in (q, k, v, weights)]
    if any(x is None or x.dim() != 4 or x.dtype not in DTYPES or x.dtype != values[0].dtype for x in values):
        return False
    q, k, v, _ = values
    if not (q.shape[:2] == k.shape[:2] == v.shape[:2] and q.shape[3] == k.shape[3] and k.shape[2] == v.shape[2]):
        return False
    if mask is None:
        return True
    mask = value_of(mask)
    return mask is not None and mask.dtype == q.dtype and mask.dim() == 4 and not mask.requires_grad \
        and all(have in (1, want) for have, want in zip(mask.shape, (*q.shape[:3], k.shape[2])))


def without_repeats(x: fx.Node) -> fx.Node:
    """Keys or values before each head was repeated for its query heads; x itself where none is."""
    if kind_of(x) != "reshape" or kind_of(x.args[0]) != "expand":
        return x
    expand = x.args[0]
    item = expand.args[0]
    if not (isinstance(item, fx.Node) and item.target is operator.getitem):
        return x
    source, index = item.args
    whole = slice(None, None, None)
    if index != (whole, whole, None, whole, whole) or value_of(source) is None:
        return x
    (b, g, t, d), wide, joined = value_of(source).shape, value_of(expand).shape, value_of(x).shape
    is_repeat = len(wide) == 5 and (*wide[:2], *wide[3:]) == (b, g, t, d) and \
        tuple(joined) == (b, g * wide[2], t, d)
    return source if is_repeat else x
