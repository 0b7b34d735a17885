"""The largest elements of rows, as routers of experts choose them."""

from __future__ import annotations

from ...importing.row_ops import MAX_CHOSEN, MAX_ROW, gather, top_k
from ...importing.tensor import Tensor
from ...importing.unsupported import Unsupported
from ..registry import Node, converts


@converts("TopK")
def largest(c: Node) -> list[Tensor]:
    """Values and places; of equal ones the first place first."""
    x = c[0]
    axis = c.axis(x.rank, -1)
    count = c.ints(1)[0] if c.has(1) else c.integer("k")
    places = top_k(x if c.integer("largest", 1) else -x, axis, count)
    if places is None:
        raise Unsupported(f"the {count} largest elements of {x}; Sinter takes at most {MAX_CHOSEN} of at most "
                          f"{MAX_ROW} floats")
    return [gather(x, places, axis), places.to("i64")]
