"""A torch program of a few lines that computes one op of a graph, in eager and by Sinter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import fx

PROGRAM = '''\
# {op}{place}
import torch
import sinter.pytorch

operands = torch.load("operands.pt")


def program({names}):
    return {call}


eager = program(*operands)
ours = torch.compile(program, backend="sinter", options={{"fuse": False}})(*operands)
print("eager ", eager)
print("Sinter", ours)
'''


def write_program(folder: Path, node: fx.Node, values: dict[fx.Node, Any], place: str) -> Path:
    """Writes program.py and its operands, operands.pt, to a folder. place: the user's line."""
    folder.mkdir(parents=True, exist_ok=True)
    operands: dict[fx.Node, str] = {}
    arguments = [written(argument, values, operands) for argument in node.args]
    arguments += [f"{name}={written(argument, values, operands)}" for name, argument in node.kwargs.items()]
    path = folder / "program.py"
    path.write_text(PROGRAM.format(
        op=node.target, place=f", {place}" if place else "", names=", ".join(operands.values()),
        call=f"torch.ops.{node.target}({', '.join(arguments)})"))
    # Copies: a view would be saved with all that its memory has.
    torch.save([values[operand].clone() for operand in operands], folder / "operands.pt")
    return path


def written(argument: Any, values: dict[fx.Node, Any], operands: dict[fx.Node, str]) -> str:
    """An argument as Python's text; a tensor becomes an operand."""
    if isinstance(argument, fx.Node):
        value = values[argument]
        if isinstance(value, torch.Tensor):
            return operands.setdefault(argument, f"x{len(operands)}")
        return repr(value)
    if isinstance(argument, (list, tuple)):
        return "[" + ", ".join(written(item, values, operands) for item in argument) + "]"
    return f"torch.device({str(argument)!r})" if isinstance(argument, torch.device) else repr(argument)
