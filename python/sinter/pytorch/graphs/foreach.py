"""Ops on lists of tensors, with which torch's optimizers step: `_foreach_mul(xs, 2)` is `mul(x, 2)`
of each tensor. Ops of a graph fuse across tensors, so that a list needs no kernel of its own."""

from __future__ import annotations

from typing import Any, Callable

import torch

aten = torch.ops.aten

# The name of the op for one tensor, where it differs from the name of the op on lists.
OTHER_NAMES = {"norm": "linalg_vector_norm", "zero": "zeros_like"}
SCALAR_NAMES = {"maximum": "clamp_min", "minimum": "clamp_max"}
FACTORS = ("value", "scalars")  # of addcmul and addcdiv, which take it by name alone


def foreach_decompositions() -> dict:
    """A function for each functional op on lists whose op for one tensor torch has."""
    table = {}
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::_foreach_")
        if name == schema.name or name.endswith("_") or "out" in schema.overload_name:
            continue
        overload = getattr(getattr(aten, f"_foreach_{name}"), schema.overload_name or "default")
        names = SCALAR_NAMES if schema.overload_name.startswith("Scalar") else {}
        packet = getattr(aten, names.get(name, OTHER_NAMES.get(name, name)), None)
        scalars = [one.name for one in schema.arguments if one.name == "scalars"]
        if packet is None or (scalars and schema.overload_name == "Tensor"):
            continue  # one tensor that holds a number for each of the list
        table[overload] = for_each(packet, schema)
    return table


def for_each(packet: Callable, schema: Any) -> Callable:
    """Calls an op once for each tensor of the lists among its arguments."""
    arguments = [(one.name, isinstance(one.type, torch.ListType)) for one in schema.arguments]

    def function(*given: Any, **named: Any) -> list[torch.Tensor]:
        pairs = list(zip(arguments, given))
        count = next(len(value) for (_, is_list), value in pairs if is_list)
        result = []
        for i in range(count):
            positional, keywords = [], dict(named)
            for (name, is_list), value in pairs:
                if name in FACTORS and packet in (aten.addcmul, aten.addcdiv):
                    keywords["value"] = value[i] if is_list else value
                else:
                    positional.append(value[i] if is_list else value)
            result.append(packet(*positional, **keywords))
        return result

    return function
