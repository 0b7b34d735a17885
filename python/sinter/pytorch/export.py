"""`sinter.from_torch`: a module of torch as a Sinter module with its weights."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind

from ..compiled import Compiled, compile
from ..errors import usage
from ..module import Model
from .decompositions import decompositions
from .importer import ImportedGraph, Refused, import_graph
from .names import Names, location_of
from .unsupported import Unsupported

WEIGHTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


class TorchModel:
    """A module of torch in Sinter's text form, its weights, and where each value comes from.

    text: the module. The entry is called `main`; its inputs have the names of the arguments.
    weights: the tensors by the names of the module's parameters and buffers. Not copies.
    locations: of values that ops of the user's source made, "model.py:42: q = self.q(x)".
    """

    def __init__(self, graph: ImportedGraph, weights: dict[str, torch.Tensor]) -> None:
        with graph.module as module:
            self.model: Model = module.model()
        self.text = self.model.text
        self.weights = weights
        self.locations = graph.locations
        self.inputs = {operand.name: operand for operand in graph.inputs}
        self.outputs = {operand.name: operand for operand in graph.outputs}

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes model.sir and model.safetensors. Every command of the program `sinter` takes the
        folder. Lines of the module end with the place in the user's source."""
        try:
            from safetensors.torch import save_file
        except ImportError:
            raise usage("safetensors is not installed",
                        hint="pip install safetensors") from None
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        tensors = {name: tensor.detach().cpu().contiguous().clone()
                   for name, tensor in self.weights.items()}
        save_file(tensors, str(path / "model.safetensors.part"))
        (path / "model.sir.part").write_text(self.annotated_text())
        os.replace(path / "model.safetensors.part", path / "model.safetensors")
        os.replace(path / "model.sir.part", path / "model.sir")
        return path

    def annotated_text(self) -> str:
        """The module, with the places in comments."""
        lines = []
        for line in self.text.splitlines():
            name = line.strip().split(" = ")[0].removeprefix("%").strip('"')
            place = self.locations.get(name) if line.strip().startswith("%") else None
            lines.append(f"{line}  // {place}" if place else line)
        return "\n".join(lines) + "\n"

    def compile(self, **options: Any) -> Compiled:
        """`sinter.compile` of the module with its weights."""
        return compile(self.model, weights=self.weights, **options)


def from_torch(module: torch.nn.Module, args: tuple = (), kwargs: dict[str, Any] | None = None, *,
               dynamic_shapes: Any = None, name: str | None = None,
               check: bool = False) -> TorchModel:
    """Traces a module with torch.export and imports all of it.

    args, kwargs: example arguments. dynamic_shapes: as of torch.export.export; a dynamic size becomes
    a symbol of the module. check: integer divisors and indices that are only compared, such as labels,
    are row numbers of the module, so that a wrong one is an error of a run. An op that Sinter lacks, or
    a tensor that the module changes, is a SinterError that names it with its line."""
    program = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
    program = program.run_decompositions(decompositions())
    signature = program.graph_signature
    changed = [spec.target for spec in signature.output_specs
               if spec.kind is not OutputKind.USER_OUTPUT]
    title = name or type(module).__name__
    if changed:
        raise usage(f"the module changes {', '.join(str(target) for target in changed)}", title,
                    "return new values instead")
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    tensors = {**program.state_dict, **program.constants}
    weight_names, weights, inputs = {}, {}, {}
    for spec in signature.input_specs:
        node = nodes[spec.arg.name]
        if spec.kind in WEIGHTS:
            if node.users:
                weight_names[node] = spec.target
                weights[spec.target] = tensors[spec.target]
        elif spec.kind is InputKind.USER_INPUT:
            inputs[node] = spec.arg.name
    program.graph.eliminate_dead_code()
    symbol_names = names_of_symbols(inputs, dynamic_shapes)
    try:
        graph = import_graph(program.graph, title, Names(), weight_names, inputs, symbol_names, check)
    except Unsupported as error:
        raise usage(f"a tensor that Sinter does not take: {error}", title) from None
    except Refused as refused:
        raise usage("Sinter does not take all ops of the module:\n" + "\n".join(
            f"  {node.target} {location_of(node)}: {reason}"
            for node, reason in refused.reasons.items()), title,
            "torch.compile(backend=\"sinter\") runs such ops in eager") from None
    return TorchModel(graph, weights)


def names_of_symbols(inputs: dict[torch.fx.Node, str], dynamic_shapes: Any) -> dict[str, str]:
    """The names of torch.export.Dim for torch's symbols, of arguments that are tensors."""
    names: dict[str, str] = {}
    for position, (node, argument) in enumerate(inputs.items()):
        try:
            axes = dynamic_shapes[argument if isinstance(dynamic_shapes, dict) else position]
            axes = axes if isinstance(axes, dict) else dict(enumerate(axes))
        except (TypeError, KeyError, IndexError):
            continue  # nothing of this argument is dynamic, or it is no tensor
        for axis, dim in axes.items():
            size = node.meta["val"].shape[axis]
            name = getattr(dim, "__name__", None)
            if isinstance(size, torch.SymInt) and size.node.expr.is_symbol and name:
                names.setdefault(str(size.node.expr), name)
    return names
