"""The largest elements of rows, as routers of experts choose them."""

from __future__ import annotations

from ...importing.row_ops import MAX_CHOSEN, MAX_ROW, gather, top_k
from ...importing.tensor import Tensor
from ...importing.types import is_real
from ...importing.unsupported import Unsupported
from ..registry import Node, converts

MAX_COMPARED = 256  # elements of an axis, each two of which are compared


@converts("TopK")
def largest(c: Node) -> list[Tensor]:
    """Values and places; of equal ones the first place first."""
    x = c[0]
    axis, is_largest = c.axis(x.rank, -1), bool(c.integer("largest", 1))
    count = c.ints(1)[0] if c.has(1) else c.integer("k")
    places = top_k(x if is_largest else -x, axis, count) if is_real(x.dtype) else None
    if places is None:
        places = compared(x, axis, count, is_largest)
    return [gather(x, places, axis), places.to("i64")]


def compared(x: Tensor, axis: int, count: int, is_largest: bool) -> Tensor:
    """i32: the places of the first `count` elements along an axis in their order. The rank of an element is
    the number of those before it; NaN is larger than every number."""
    if not 0 < x.size(axis) <= MAX_COMPARED:
        raise Unsupported(
            f"the {count} largest elements of {x}; Sinter takes {MAX_CHOSEN} of {MAX_ROW} floats, "
            f"or of {MAX_COMPARED} numbers"
        )
    a, b = x.unsqueeze(axis + 1), x.unsqueeze(axis)
    precedes, is_tie = b.greater(a) if is_largest else b.less(a), a.equals(b)
    if is_real(x.dtype):
        first, second = (b.is_nan(), a.is_nan()) if is_largest else (a.is_nan(), b.is_nan())
        precedes, is_tie = precedes | (first & ~second), is_tie | (first & second)
    index = x.places(axis)
    rank = (precedes | (is_tie & index.less(index.unsqueeze(1)))).to("i32").sum([axis + 1])
    place = x.slice(axis, 0, count).places(axis)
    return x.g.where(rank.unsqueeze(axis).equals(place.unsqueeze(1)), index, 0).sum([axis + 1])
