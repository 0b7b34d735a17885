"""Types of a model's inputs, and the sizes of its dynamic dims."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from ..errors import printable, usage
from .reader import AGAIN, dtype_name
from .registry import DTYPES, MICROSOFT, plain_domain
from .sizes import OnnxExtents, Size

MAX_SIZE = 4096  # of a dynamic dim, unless the caller says another
# Inputs of keys and values of earlier calls, with the tokens along axis 2.
PASTS = {
    ("", "Attention"): (4, 5),
    (MICROSOFT, "MultiHeadAttention"): (6, 7),
    (MICROSOFT, "GroupQueryAttention"): (3, 4),
}

DimSize = int | tuple[int, int] | str


class Dims:
    """The sizes of dims by their names in the file. given: what the caller says: a size, the least and the largest
    one, or a sum of sizes and names of other dims. A name in the file may be such a sum, too.

    may_be_zero: names of dims that a call may leave empty, as the past of the first call. Their symbols begin at 1; an
    entry of its own has them as 0."""

    def __init__(
        self, onnx: Any, graph: Any, given: Mapping[str, DimSize], extents: OnnxExtents
    ) -> None:
        self._onnx, self._given, self._extents = onnx, given, extents
        self._known: dict[str, Size | int] = {}
        self._declared: dict[str, Size | int] = {}
        self._in_file = {title for value in graph.input for title in titles_of(value)}
        self._joined = joined_dims(graph)
        self.may_be_zero: list[str] = []

    def begin_empty(self) -> None:
        """Begins an entry in which the dims are 0 that may be."""
        self._known = dict.fromkeys(self.may_be_zero, 0)

    def symbol_of(self, title: str) -> str:
        return str(self._declared[title])

    def need_given(self) -> None:
        """Refuses sizes of dims that no input has."""
        for name in self._given:
            if name not in self._known:
                raise usage(
                    f'no dim is called "{printable(name)}"',
                    "sizes",
                    f"the dims are {printable(', '.join(self._known) or 'numbers')}",
                )

    def input_type(self, value: Any) -> tuple[str, list[Any]]:
        """The element type and the sizes of an input."""
        where = f'input "{printable(value.name)}"'
        if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
            raise usage(
                "no tensor with a known number of axes", where, "export the model with shapes"
            )
        kind = value.type.tensor_type
        name = dtype_name(self._onnx, kind.elem_type)
        if name not in DTYPES:
            raise usage(f"elements of {name}", where, f"the types are {', '.join(DTYPES)}")
        return DTYPES[name], [self._size(dim, where) for dim in dims_of(value)]

    def _size(self, dim: int | str, where: str) -> Size | int:
        if isinstance(dim, str):
            return self._named(dim, 0)
        if not 0 <= dim < 2**31:
            raise usage(f"the size {dim}", where, AGAIN)
        return dim

    def _named(self, title: str, depth: int) -> Size | int:
        """The size of a dynamic dim: a symbol, unless the caller gave another or the name is a sum."""
        if title not in self._known:
            self._known[title] = self._made(title, depth)
        return self._known[title]

    def _made(self, title: str, depth: int) -> Size | int:
        if depth > len(self._given) + 1:
            raise usage(
                "dims that are each as large as another", f'sizes of "{title}"', "name one size"
            )
        given = self._given.get(title)
        if given is None and self._is_sum(title):
            given = title
        if isinstance(given, int):
            return given
        if isinstance(given, str):
            parts = (part.strip() for part in given.split("+"))
            sizes = (int(one) if is_number(one) else self._named(one, depth + 1) for one in parts)
            return sum(sizes, start=0)
        if title not in self._declared:
            low, high = given or (0 if title in self._joined else 1, MAX_SIZE)
            if low == 0:
                self.may_be_zero.append(title)
            name = self._extents.declare(title, max(low, 1), high)
            self._declared[title] = Size({(name,): 1})
        return self._declared[title]

    def _is_sum(self, title: str) -> bool:
        """Whether a dim's name is a sum of names that other dims have."""
        parts = [part.strip() for part in title.split("+")]
        return len(parts) > 1 and all(part in self._in_file or is_number(part) for part in parts)


def dims_of(value: Any) -> list[int | str]:
    """The size of each axis, or its name; a name may be a number, and an axis without one has one of its own."""
    dims = value.type.tensor_type.shape.dim
    return [
        int(dim.dim_param or dim.dim_value)
        if dim.HasField("dim_value") or is_number(dim.dim_param)
        else str(dim.dim_param or f"{value.name}_{i}")
        for i, dim in enumerate(dims)
    ]


def is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


def titles_of(value: Any) -> Iterator[str]:
    return (dim for dim in dims_of(value) if isinstance(dim, str))


def joined_dims(graph: Any) -> set[str]:
    """Names of dims along which a computed value is put behind an input, as new tokens are behind a past."""
    inputs = {value.name: dims_of(value) for value in graph.input}
    found: set[str | int] = set()
    for node in graph.node:
        places: Any = PASTS.get((plain_domain(node.domain), node.op_type), ())
        axis = 2
        if node.op_type == "Concat":
            places = (0,) if len(node.input) == 2 and node.input[1] not in inputs else ()
            axis = next((one.i for one in node.attribute if one.name == "axis"), 0)
        for place in places:
            dims = inputs.get(node.input[place], []) if place < len(node.input) else []
            found.update(dims[axis : axis + 1 or None])
    return {title for title in found if isinstance(title, str)}
