"""Modules under construction: symbols, weights, states, and entries with their graphs.

    with ModuleBuilder("post_norm") as module:
        module.symbol("N", 1, 4096)
        module.weight("weight", "f16[768]")
        graph = module.entry("main")
        x = graph.input("x", "f16[N, 768]")
        y = graph.op("rms_norm", [x, graph.use("weight")], "eps = 1e-5", name="y")
        graph.output(y)
        compiled = sinter.compile(module)

Types are texts: an element type (f32, f16, bf16, i32, i1) and extents, each a number or the name
of a symbol. docs/sir.md lists the ops with their attributes.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Sequence

from sinter._bindings import lib, sinter_graph, sinter_model, sinter_module, sinter_value
from sinter.errors import check, usage
from sinter.handles import Handle, created, encoded, taken_text, text_of


@functools.lru_cache(maxsize=4096)
def split_type(text: str) -> tuple[str, tuple[int | str, ...]]:
    """Element type and extents of "f16[N, 768]": ("f16", ("N", 768))."""
    dtype, bracket, rest = text.partition("[")
    inside = rest.removesuffix("]").strip() if bracket else ""
    dims = [dim.strip() for dim in inside.split(",")] if inside else []
    return dtype.strip(), tuple(int(dim) if dim.lstrip("-").isdigit() else dim for dim in dims)


class Model(Handle):
    """A module and where its weights are. Immutable; several threads may use it."""

    def __init__(self, pointer: sinter_model) -> None:
        super().__init__(pointer, lib.sinter_model_free)

    @property
    def name(self) -> str:
        return text_of(lib.sinter_model_name(self.pointer))

    @property
    def text(self) -> str:
        """The module before the passes, in the text form."""
        return taken_text(lib.sinter_model_text, self.pointer)

    @property
    def tensors(self) -> dict[str, str]:
        """Name and type of each tensor that the weights are made of."""
        return {
            lib.sinter_model_tensor_name(
                self.pointer, index
            ).decode(): lib.sinter_model_tensor_type(self.pointer, index).decode()
            for index in range(lib.sinter_model_tensor_count(self.pointer))
        }

    def __repr__(self) -> str:
        return f"<sinter.Model {self.name}>"


class Value:
    """A value of one graph: an input, a weight, a state or the result of an op.

    type: "f16[N, 768]"; dtype: "f16"; dims: ("N", 768), extents or names of symbols.
    name: the name that it was given, or None.
    """

    __slots__ = ("graph", "number", "name", "_type", "_parts")

    def __init__(self, graph: GraphBuilder, number: int, name: str | None) -> None:
        self.graph, self.number, self.name = graph, number, name
        self._type: str | None = None
        self._parts: tuple[str, tuple[int | str, ...]] | None = None

    @property
    def type(self) -> str:
        if self._type is None:
            self._type = taken_text(lib.sinter_graph_type, self.graph.pointer, self.number)
        return self._type

    def _split(self) -> tuple[str, tuple[int | str, ...]]:
        if self._parts is None:
            self._parts = split_type(self.type)
        return self._parts

    @property
    def dtype(self) -> str:
        return self._split()[0]

    @property
    def dims(self) -> tuple[int | str, ...]:
        return self._split()[1]

    def __repr__(self) -> str:
        return f"%{self.name or self.number} : {self.type}"


class GraphBuilder:
    """The graph of an entry. The module owns it."""

    def __init__(self, module: ModuleBuilder, graph: sinter_graph, name: str) -> None:
        self.module, self._address, self.name = module, graph.value, name

    @property
    def pointer(self) -> sinter_graph:
        graph = sinter_graph(self._address)
        vars(graph)["module"] = self.module.pointer  # is not freed while this object lives
        return graph

    def input(self, name: str, type: str) -> Value:
        """A parameter of the entry."""
        number = sinter_value()
        check(
            lib.sinter_graph_input(self.pointer, encoded(name), encoded(type), ctypes.byref(number))
        )
        return Value(self, number.value, name)

    def use(self, name: str) -> Value:
        """A weight or a state of the module as a value of this graph."""
        number = sinter_value()
        check(lib.sinter_graph_use(self.pointer, encoded(name), ctypes.byref(number)))
        return Value(self, number.value, name)

    def op(
        self,
        op: str,
        operands: Sequence[Value],
        attributes: str | None = None,
        name: str | None = None,
    ) -> Value:
        """Appends an op of the op table. `attributes` have the text form without braces:
        "eps = 1e-5, axis = 1". The result's type is inferred; a broken constraint is a SinterError
        with its number."""
        for operand in operands:
            if operand.graph is not self:
                raise usage(
                    f"{operand!r} is a value of entry '{operand.graph.name}'",
                    f"{op} in entry '{self.name}'",
                    "use values of one graph",
                )
        numbers = [operand.number for operand in operands]
        number = sinter_value()
        check(
            lib.sinter_graph_op(
                self.pointer,
                encoded(op),
                numbers,
                len(numbers),
                None if attributes is None else encoded(attributes),
                None if name is None else encoded(name),
                ctypes.byref(number),
            )
        )
        return Value(self, number.value, name)

    def rename(self, value: Value, name: str) -> None:
        """Gives an op's value another name. Inputs, weights and states keep theirs."""
        check(lib.sinter_graph_rename(self.pointer, value.number, encoded(name)))
        value.name = name

    def output(self, value: Value) -> None:
        """Adds a result of the entry."""
        if value.graph is not self:
            raise usage(
                f"{value!r} is a value of entry '{value.graph.name}'",
                f"output of entry '{self.name}'",
            )
        check(lib.sinter_graph_output(self.pointer, value.number))


class ModuleBuilder(Handle):
    """A module under construction. One thread at a time."""

    def __init__(self, name: str = "main") -> None:
        super().__init__(
            created(sinter_module, lib.sinter_module_create, encoded(name)), lib.sinter_module_free
        )
        self.name = name

    def symbol(
        self, name: str, low: int, high: int, multiple: int = 1, at_most: str | None = None
    ) -> str:
        """An extent that is known when an entry is called: low .. high, divisible by `multiple`,
        never larger than the symbol `at_most`, which was added before. Returns the name."""
        check(
            lib.sinter_module_symbol(
                self.pointer,
                encoded(name),
                low,
                high,
                multiple,
                None if at_most is None else encoded(at_most),
            )
        )
        return name

    def weight(self, name: str, type: str) -> None:
        """A weight of constant extents, which is the tensor of that name."""
        check(lib.sinter_module_weight(self.pointer, encoded(name), encoded(type)))

    def state(self, name: str, type: str) -> None:
        """Memory that a session keeps between calls, zeros at first."""
        check(lib.sinter_module_state(self.pointer, encoded(name), encoded(type)))

    def entry(self, name: str) -> GraphBuilder:
        """A new entry, and its graph."""
        graph = created(sinter_graph, lib.sinter_module_entry, self.pointer, encoded(name))
        return GraphBuilder(self, graph, name)

    def text(self) -> str:
        """The module in the text form, whether it is complete or not."""
        return taken_text(lib.sinter_module_text, self.pointer)

    def model(self) -> Model:
        """Verifies the module and returns a copy, which stays when this module is closed."""
        return Model(created(sinter_model, lib.sinter_model_build, self.pointer))

    def __repr__(self) -> str:
        return f"<sinter.ModuleBuilder {self.name}>"
