"""`sinter.from_torch`: a module of torch as a Sinter module with its weights."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils._pytree import TreeSpec

from ..compiled import Compiled, compile
from ..errors import usage
from ..extras import needed
from ..importing.names import Names
from ..importing.row_checks import library_error
from ..importing.unsupported import Unsupported
from ..module import Model
from ..session import Weights
from .caches import explained
from .convert.importer import ImportedGraph, Refused, import_graph
from .graphs.decompositions import export_decompositions
from .graphs.dtypes import in_memory
from .graphs.names import location_of
from .rewrites import pipeline
from .runtime.recorded_module import RecordedModule
from .tools.output_folder import check_module_folder

WEIGHTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)

# The models that `from_torch` takes: a module with example arguments, or an exported program.
Exported = torch.nn.Module | ExportedProgram | str | os.PathLike


class TorchModel:
    """A module of torch in Sinter's text form, its weights, and where each value comes from.

    text: the module. The entry is called `main`; its inputs have the names of the arguments.
    weights: the tensors by the names of the module's parameters and buffers. Not copies.
    locations: of values that ops of the user's source made, "model.py:42: q = self.q(x)".
    """

    def __init__(self, graph: ImportedGraph, weights: dict[str, torch.Tensor]) -> None:
        with graph.module as module:
            self.model: Model = module.model()
        self._graph = graph
        self.text = self.model.text
        self.weights = weights
        self.locations = graph.locations
        self.inputs = {operand.name: operand for operand in graph.inputs}
        self.outputs = {operand.name: operand for operand in graph.outputs}

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes model.sir and model.safetensors. Every command of the program `sinter` takes the
        folder, which must be absent, empty or hold these files of another module. Lines of the module
        end with the place in the user's source."""
        needed("numpy", "save")  # by safetensors
        save_file = needed("safetensors.torch", "save").save_file
        path = Path(folder)
        check_module_folder(path)
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

    def compile(self, *, graphs: bool = False, **options: Any) -> Compiled | RecordedModule:
        """`sinter.compile` of the module with its weights. Pairs of `require` and `forbid` are values or
        modules. graphs: runs on a GPU are recorded; the result is a `RecordedModule`."""
        compiled = compile(self.model, weights=self.weights, **options)
        compiled.plan.told = lambda error: library_error(error, self._graph.row_checks)
        return RecordedModule(compiled, self._graph, Weights(self.weights)) if graphs else compiled


def from_torch(module: Exported, args: tuple = (), kwargs: dict[str, Any] | None = None, *,
               dynamic_shapes: Any = None, name: str | None = None,
               check: bool = False) -> TorchModel:
    """Traces a module with torch.export and imports all of it.

    module: a module of torch, or what torch.export.export made of one, or the file in which
    torch.export.save wrote that; these have arguments and sizes of their own.
    args, kwargs: example arguments. dynamic_shapes: as of torch.export.export; a dynamic size becomes
    a symbol of the module. check: integer divisors, numbers that a loss refuses, and indices that are only
    compared, such as labels, are row numbers of the module, so that a wrong one is an error of a run. An op that Sinter lacks, or
    a tensor that the module changes, is a SinterError that names it with its line."""
    shapes: list = []
    if isinstance(module, torch.nn.Module):
        title = name or type(module).__name__
        with explained((args, kwargs), title):
            program = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes,
                                          strict=False)
        shapes = shapes_of_inputs(program, module, dynamic_shapes)
    else:
        if args or kwargs or dynamic_shapes:
            raise usage("an exported program has arguments and sizes of its own",
                        hint="give it alone, or export the module with others")
        program = module if isinstance(module, ExportedProgram) else torch.export.load(module)
        title = name or class_of(program)
    return import_program(program, title, shapes, check)


def class_of(program: ExportedProgram) -> str:
    """The name of the class of the module that was exported; "module" if it is not known."""
    for node in program.graph.nodes:
        for _, kind in (node.meta.get("nn_module_stack") or {}).values():
            return (kind if isinstance(kind, str) else kind.__name__).rsplit(".", 1)[-1]
    return "module"


def import_program(program: ExportedProgram, title: str, shapes: list, check: bool) -> TorchModel:
    """shapes: of each input what the user wrote of its sizes."""
    program = program.run_decompositions(export_decompositions())
    signature = program.graph_signature
    changed = [spec.target for spec in signature.output_specs
               if spec.kind is not OutputKind.USER_OUTPUT]
    if changed:
        raise usage(f"the module changes {', '.join(str(target) for target in changed)}", title,
                    "return new values instead")
    graph_module = program.graph_module
    pipeline.apply("skip_assertions", graph_module)
    pipeline.run("prepare", graph_module)
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    tensors = {**program.state_dict, **program.constants}
    targets = {nodes[spec.arg.name]: spec.target for spec in signature.input_specs if spec.kind in WEIGHTS}
    weight_names, weights, inputs = {}, {}, {}
    for pack in pipeline.apply("take_codes", graph_module, targets.__contains__):
        name = weight_names[pack.node] = f"{plain_name(targets[pack.coded.node])}.packed"
        weights[name] = pack.make([tensors[targets[source]] for source in pack.sources])
    for spec in signature.input_specs:
        node = nodes[spec.arg.name]
        if spec.kind in WEIGHTS:
            if node.users:
                weight_names[node] = spec.target
                weights[spec.target] = in_memory(tensors[spec.target])
        elif spec.kind is InputKind.USER_INPUT:
            inputs[node] = spec.arg.name
    symbol_names = names_of_symbols(inputs, shapes)
    try:
        graph = import_graph(program.graph, title, Names(), weight_names, inputs, symbol_names,
                             program.range_constraints, check)
    except Unsupported as error:
        raise usage(f"a tensor that Sinter does not take: {error}", title) from None
    except Refused as refused:
        raise usage("Sinter does not take all ops of the module:\n" + "\n".join(
            f"  {node.target} {location_of(node)}: {reason}"
            for node, reason in refused.reasons.items()), title,
            "torch.compile(backend=\"sinter\") runs such ops in eager") from None
    return TorchModel(graph, weights)


def plain_name(target: str) -> str:
    """The name of a weight whose parts torch.export has as tensors of their own."""
    return re.sub(r"parametrizations\.(\w+)\.original\d+$", r"\1", target)


def shapes_of_inputs(program: ExportedProgram, module: torch.nn.Module, dynamic_shapes: Any) -> list:
    """The part of `dynamic_shapes` for each input of a program, in their order; None: nothing of it is
    dynamic."""
    positional, named = program.call_spec.in_spec.children()
    specs = [*positional.children(), *named.children()]
    if isinstance(dynamic_shapes, dict):
        arguments = list(inspect.signature(module.forward).parameters)[:len(positional.children())]
        given = [dynamic_shapes.get(name) for name in [*arguments, *named.context]]
    else:
        given = list(dynamic_shapes or ())
    given += [None] * (len(specs) - len(given))
    return [leaf for spec, part in zip(specs, given) for leaf in shapes_of_leaves(spec, part)]


def shapes_of_leaves(spec: TreeSpec, shapes: Any) -> list:
    """The parts of `shapes` for the leaves of an argument."""
    if spec.is_leaf():
        return [shapes]
    children = spec.children()
    if isinstance(shapes, dict) and spec.type is dict:
        parts = [shapes.get(key) for key in spec.context]
    else:
        parts = list(shapes.values() if isinstance(shapes, dict) else shapes or ())
    parts += [None] * (len(children) - len(parts))
    return [leaf for child, part in zip(children, parts) for leaf in shapes_of_leaves(child, part)]


def names_of_symbols(inputs: dict[torch.fx.Node, str], shapes: list) -> dict[str, str]:
    """The names of torch.export.Dim for torch's symbols. shapes: of each input."""
    names: dict[str, str] = {}
    for node, axes in zip(inputs, shapes):
        fake = node.meta.get("val")
        if not isinstance(fake, torch.Tensor) or axes is None:
            continue
        for axis, dim in (axes if isinstance(axes, dict) else dict(enumerate(axes))).items():
            size, name = fake.shape[axis], getattr(dim, "__name__", None)
            if isinstance(size, torch.SymInt) and size.node.expr.is_symbol and name:
                names.setdefault(str(size.node.expr), name)
    return names
