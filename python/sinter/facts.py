"""Facts of the text form, as the library has them: limits, ops, and the layout of codes."""

from __future__ import annotations

import functools
import json
from typing import Any

from sinter._bindings import lib
from sinter.handles import taken_text


@functools.cache
def facts() -> dict[str, Any]:
    """All facts; sinter_facts in sinter_c.h names them."""
    found: dict[str, Any] = json.loads(taken_text(lib.sinter_facts))
    return found


def limit(name: str) -> int:
    """A number that no module exceeds, such as the "axes" of a value."""
    return int(facts()["limits"][name])


def op_class(op: str) -> str:
    """The class of an op: "view", "elementwise", "composite" and others (ir/graph.h)."""
    return str(facts()["ops"][op]["class"])


def max_operands(op: str) -> int:
    """The most operands of an op."""
    return int(facts()["ops"][op]["operands"][1])
