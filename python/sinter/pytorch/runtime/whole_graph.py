"""Calls of a graph that is one entry, without a GraphModule in between."""

from __future__ import annotations

from typing import Callable

from torch import fx

from ..convert.importer import is_size
from ..convert.partition import Part
from ..rewrites.packing import picked


class WholeGraph:
    """The function of a graph whose values one entry computes. taken: the positions of the entry's arguments
    among the graph's `count`. places: of each result of the graph among the entry's `computed` results, the
    graph's arguments, and None."""

    def __init__(self, entry: Callable, taken: list[int], places: list[int], count: int, computed: int) -> None:
        self._entry, self._pick, self._order = entry, picked(taken), picked(places)
        self._returned = [computed + i in places for i in range(count)]
        self.returns_arguments = any(self._returned)

    def __call__(self, *arguments):
        return self._order((*self._entry(*self._pick(arguments)), *arguments, None))


class TakingGraph(WholeGraph):
    """A WholeGraph whose entry lets go of arguments."""

    def take(self, arguments: list):
        """A call that empties `arguments`; see `CompiledEntry.take`."""
        given = [*self._pick(arguments)]
        returned = [argument if is_result else None for argument, is_result in zip(arguments, self._returned)]
        arguments.clear()
        return self._order((*self._entry.take(given), *returned, None))


def whole_graph(module: fx.GraphModule, parts: list[Part], entries: list) -> Callable | None:
    """A direct call where one part is the whole graph, else None."""
    if len(parts) != 1:
        return None
    part, entry = parts[0], entries[0]
    inside = set(part.nodes)
    if any(node.op == "call_function" and node not in inside and not is_size(node)
           for node in module.graph.nodes):
        return None  # perhaps for its effect, such as an assertion
    output = module.graph.output_node().args[0]
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    if not isinstance(output, (tuple, list)):
        return None
    index = {node: i for i, node in enumerate(part.results)}
    where = {node: i for i, node in enumerate(placeholders)}
    if any(leaf not in where for leaf in part.leaves):
        return None
    count = len(part.results)
    places = []
    for item in output:
        if isinstance(item, fx.Node) and item in index:
            places.append(index[item])
        elif isinstance(item, fx.Node) and part.written.get(item, item) in where:
            places.append(count + where[part.written.get(item, item)])
        elif item is None:
            places.append(count + len(placeholders))
        else:
            return None
    taken = [where[leaf] for leaf in part.leaves]
    if places == [*range(count)] and taken == [*range(len(placeholders))]:
        return entry
    kind = TakingGraph if hasattr(entry, "take") else WholeGraph
    return kind(entry, taken, places, len(placeholders), count)
