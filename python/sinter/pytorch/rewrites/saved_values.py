"""Values that a forward graph keeps for the backward graph.

torch's partitioner keeps values where they are smallest and latest, views among them: of the queries,
keys and values that are slices of one product it keeps three views, each a copy, as a result of a graph
owns its memory, and of a value that the next product reads with other axes than attention gives it two.
Where the views of a value are as large as the value, the value itself is kept, and the backward graph
makes the views.

Of a norm whose result is multiplied by a condition it keeps the result beside what the norm's gradient reads:
the norm's operand, mean and deviation. The backward graph makes such a result again from these, in the kernels
that read it.

It also keeps values that depend on no argument, such as a mask of positions. The backward graph makes
them again: so the compiler sees that the mask is a range of keys, which a gradient of attention walks,
where an argument would be a truth value for each pair of a token and a key.
"""

from __future__ import annotations

import operator
from math import prod

import torch
from torch import fx

from ..graphs.layout import Layout, is_repeatable, is_view, with_sources
from ..graphs.nodes import add_value, finish


aten = torch.ops.aten

READ_BY_ELEMENT = {aten.mul.Tensor, aten.add.Tensor, aten.sub.Tensor}


def keep_roots(forward: fx.GraphModule, backward: fx.GraphModule, visible: int) -> None:
    """Rewrites both graphs in place. visible: how many results of the forward graph are not for the
    backward graph."""
    output = forward.graph.output_node()
    results = list(output.args[0])
    places = {node.name: node for node in backward.graph.nodes if node.op == "placeholder"}
    changed = False
    for root, views in views_of_roots(results[visible:], places).items():
        is_kept = root in results[visible:]
        if not is_kept and sum(map(bytes_of, views)) < bytes_of(root):
            continue
        changed = True
        place = places[root.name] if is_kept else placeholder_before(backward.graph, places[views[0].name], root)
        first = next(node for node in backward.graph.nodes if node.op != "placeholder")
        made = {root: place}
        for view in views:
            with backward.graph.inserting_before(first):
                old = places[view.name]
                old.replace_all_uses_with(view_again(backward.graph, view, made))
            backward.graph.erase_node(old)
        if not is_kept:
            results[visible:] = [root if node is views[0] else node for node in results[visible:]]
        results[visible:] = [node for node in results[visible:] if node not in views]
    if changed:
        output.args = (tuple(results),)
        finish(forward, backward)


def make_norms_again(forward: fx.GraphModule, backward: fx.GraphModule, visible: int) -> None:
    """Lets the backward graph compute the float32 results of norms whose readers there multiply, add or subtract.
    Rewrites both graphs in place. visible: how many results of the forward graph are not for the backward graph."""
    output = forward.graph.output_node()
    places = {node.name: node for node in backward.graph.nodes if node.op == "placeholder"}
    made = [node for node in output.args[0][visible:]
            if isinstance(node, fx.Node) and node.name in places and make_norm_again(backward.graph, places, node)]
    if not made:
        return
    output.args = ((*output.args[0][:visible], *(node for node in output.args[0][visible:] if node not in made)),)
    finish(forward, backward)


def make_norm_again(graph: fx.Graph, places: dict[str, fx.Node], kept: fx.Node) -> bool:
    """Whether the kept value is the result of a norm without weights that the graph has made again. On the CPU torch
    rounds mean and deviation of 16-bit norms to 16 bits, so that these would be less exact the second time."""
    if kept.target is not operator.getitem or kept.args[1] != 0 \
            or kept.args[0].target is not aten.native_layer_norm.default:
        return False
    norm, place = kept.args[0], places[kept.name]
    x, _, weight, bias, _ = norm.args
    sources = [x, *(user for i in (1, 2) for user in norm.users if user.args[1] == i)]
    if weight is not None or bias is not None or len(sources) != 3 \
            or not all(source.name in places for source in sources) \
            or any(one.meta["val"].dtype != torch.float32 for one in (kept, *sources)) \
            or not place.users or not all(user.target in READ_BY_ELEMENT for user in place.users):
        return False
    operand, mean, scale = (places[source.name] for source in sources)
    with graph.inserting_before(next(node for node in graph.nodes if node in place.users)):
        centered = graph.call_function(aten.sub.Tensor, (operand, mean))
        result = graph.call_function(aten.mul.Tensor, (centered, scale))
    for node in (centered, result):
        node.meta.update(place.meta)
    place.replace_all_uses_with(result)
    graph.erase_node(place)
    return True


def make_again(forward: fx.GraphModule, backward: fx.GraphModule, visible: int) -> None:
    """Lets the backward graph compute the kept values that depend on no tensor. Rewrites both graphs in place.
    visible: how many results of the forward graph are not for the backward graph."""
    output = forward.graph.output_node()
    places = {node.name: node for node in backward.graph.nodes if node.op == "placeholder"}
    free = free_nodes(forward.graph, places)
    kept = [node for node in output.args[0][visible:]
            if node in free and node.op == "call_function" and node.name in places]
    if not kept:
        return
    made = {node: places[node.name] for node in free if node.op == "placeholder"}
    first = next(node for node in backward.graph.nodes if node.op != "placeholder")
    needed = set(with_sources(kept))
    with backward.graph.inserting_before(first):
        for node in forward.graph.nodes:
            if node in needed and node not in made:
                made[node] = backward.graph.node_copy(node, made.__getitem__)
    for node in kept:
        places[node.name].replace_all_uses_with(made[node])
        backward.graph.erase_node(places[node.name])
    output.args = ((*output.args[0][:visible], *(node for node in output.args[0][visible:] if node not in kept)),)
    finish(forward, backward)


def free_nodes(graph: fx.Graph, places: dict[str, fx.Node]) -> set[fx.Node]:
    """The tensors of a forward graph that depend on no tensor, and the sizes that the backward graph has as
    arguments. Random numbers would be others the second time."""
    free: set[fx.Node] = set()
    for node in graph.nodes:
        if node.op == "placeholder":
            if isinstance(node.meta.get("val"), torch.SymInt) and node.name in places:
                free.add(node)
        elif is_repeatable(node) and free.issuperset(node.all_input_nodes):
            free.add(node)
    return free


def views_of_roots(kept: list, places: dict[str, fx.Node]) -> dict[fx.Node, list[fx.Node]]:
    """The kept views, by the computed value whose memory they read."""
    found: dict[fx.Node, list[fx.Node]] = {}
    for node in kept:
        if not isinstance(node, fx.Node) or not is_same_memory(node) or node.name not in places:
            continue
        root = node
        while is_same_memory(root):
            root = root.args[0]
        if root.op == "call_function" and isinstance(root.meta.get("val"), torch.Tensor) \
                and Layout.of_dense(root.meta["val"]) is not None and can_be_made_again(node) \
                and isinstance(bytes_of(root), int):
            found.setdefault(root, []).append(node)
    return found


def is_same_memory(node: fx.Node) -> bool:
    """Whether a node holds what its first operand's memory does: a view, or a clone with the same strides."""
    return is_view(node) or (node.target is torch.ops.aten.clone.default
                             and node.meta["val"].stride() == node.args[0].meta["val"].stride())


def can_be_made_again(node: fx.Node) -> bool:
    """Whether the views down to the root read no other value of the graph, such as a size."""
    while is_same_memory(node):
        if node.all_input_nodes != [node.args[0]]:
            return False
        node = node.args[0]
    return True


def bytes_of(node: fx.Node):
    value = node.meta["val"]
    return prod(value.shape) * value.element_size()


def placeholder_before(graph: fx.Graph, place: fx.Node, kept: fx.Node) -> fx.Node:
    with graph.inserting_before(place):
        node = graph.placeholder(kept.name)
    node.meta.update(kept.meta)
    return node


def view_again(graph: fx.Graph, view: fx.Node, made: dict[fx.Node, fx.Node]) -> fx.Node:
    if view not in made:
        view_again(graph, view.args[0], made)
        made[view] = graph.node_copy(view, made.__getitem__)
    return made[view]


def add_values(graph: fx.Graph) -> None:
    """Gives nodes the fake tensors that they lack: torch's partitioner makes nodes without them, those that run a
    random op again, in a checkpoint, with the state that the forward pass had."""
    for node in graph.nodes:
        if node.op == "call_function" and "val" not in node.meta:
            add_value(node)
