"""`sinter.bisect`: what makes a compiled function of torch wrong.

First the unfused plan beside eager: where it is wrong, each op of torch is computed alone on eager's
operands, and those whose results are wrong are conversions at fault. Then the fused plan beside the
unfused one, by the library's bisection, on the inputs that each part of the function had. Then the
options that change what is compiled, and the rewrites of the graphs.
"""

from __future__ import annotations

import copy
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import torch
from torch import fx
from torch.utils._pytree import tree_flatten, tree_map

from ..._bindings import lib
from ...errors import Interrupts, usage
from ...handles import taken_text
from ...importing.tensor import Tensor
from ...options import Options, Progress
from ...tensor_file import FileTensor, write_tensors
from ..backend import compile_graph_of_ops, compile_options, compile_phases, device_of, read_options
from ..convert.importer import Importer, describe, is_size
from ..graphs.names import location_of, module_path
from ..rewrites import pipeline
from ..runtime.compiled_entry import CompiledEntry, TorchDevice
from ..runtime.shared_memory import SharedMemory
from . import comparison
from .op_program import write_program
from .output_folder import check_reproducer_folder
from .report import owner_of
from .step_report import place_of

# Options that a search for the one at fault changes, one at a time.
CHOICES: tuple[tuple[str, Any], ...] = (("graphs", False), ("pack", False), ("attention", "composed"),
                                        ("products", "library"))


@dataclass
class WrongOp:
    """An op of torch whose conversion is at fault.

    phase: "forward", "backward" or "inference". op: "aten.mul.Tensor". location: the user's
    line, or the path of the module where only torch's own code made it.
    operands: their types. problem: how far its result is from eager's, on eager's operands. program: the
    path of a torch program that shows it; "": none was asked for."""

    phase: str
    op: str
    name: str
    location: str
    operands: list[str]
    problem: str
    program: str = ""

    def __str__(self) -> str:
        lines = [f"{self.op} of {', '.join(self.operands) or 'no tensor'}, {self.phase}: {self.problem}"]
        lines += [f"  {self.location}"] if self.location else []
        return "\n".join(lines + ([f"  {self.program}"] if self.program else []))


@dataclass
class WrongFusion:
    """Fusions that make a plan wrong together.

    part: the name of the entry, "inference", "forward_1". found: a member of `guilty` of `sinter bisect --json`.
    locations: the user's lines of the kernel's ops."""

    part: str
    found: dict[str, Any]
    locations: list[str]

    def __str__(self) -> str:
        pairs = ", ".join(f"{one['a']} with {one['b']}" for one in self.found["fusions"])
        lines = [f"fusion of {pairs}, {self.part}"]
        lines += [f"  {place}" for place in self.locations]
        if difference := self.found.get("difference"):
            lines.append(f"  {difference['value']}{difference['index']} is {difference['fused']}, unfused "
                         f"{difference['unfused']}; {difference['elements']} of {difference['of']} differ")
        if failure := self.found.get("failure"):
            lines.append(f"  {failure}")
        if made := self.found.get("reproducer"):
            alone = "fails alone" if made["fails_alone"] else "does not fail alone"
            lines.append(f"  {made['folder']}: {alone}; {made['input_bytes']} bytes of inputs")
        return "\n".join(lines)


@dataclass
class Bisection:
    """The findings of `bisect`. True if nothing is wrong.

    verdict: "right"; "op" (a conversion), "fusion", "rewrite" (of a graph before its conversion), "choice" (with
    another value of an option the function is right), or "other". rewrite: its name in `rewrites/pipeline.py`.
    choice: "pack=False". checks: plans and runs that were judged.
    flaky: the fault shows in some runs alone."""

    verdict: str
    ops: list[WrongOp] = field(default_factory=list)
    fusions: list[WrongFusion] = field(default_factory=list)
    rewrite: str = ""
    choice: str = ""
    problems: list[str] = field(default_factory=list)  # of results and gradients
    checks: int = 0
    flaky: bool = False
    notes: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.verdict == "right"

    def __str__(self) -> str:
        head = {"right": "nothing is wrong: the unfused plan is as near to float64 as eager is, and the fused "
                         "plan is equal to it",
                "op": "wrong without fusion: a conversion of an op",
                "fusion": "wrong by fusion",
                "rewrite": f"wrong by a rewrite of the graph: {self.rewrite}",
                "choice": f"neither an op nor a fusion: right with {self.choice}",
                "other": "wrong, and neither an op alone, a fusion, a rewrite nor an option is found guilty"}
        lines = [head[self.verdict], *map(str, self.ops), *map(str, self.fusions),
                 *(f"wrong: {problem}" for problem in self.problems), *self.notes]
        if self.flaky:
            lines.append("the fault is flaky: it shows in some runs alone")
        return "\n".join([*lines, f"{self.checks} checks"])


class WatchedEntry:
    """Calls an entry and keeps what it read in its first call."""

    def __init__(self, entry: CompiledEntry) -> None:
        self.entry = entry
        self.arguments: list | None = None

    def __call__(self, *arguments):
        if self.arguments is None:
            self.arguments = [kept(one) for one in arguments]
        return self.entry(*arguments)


@dataclass
class WatchedGraph:
    """A graph as the backend got it, with its arguments in the first call, and its entries."""

    phase: str
    module: fx.GraphModule
    entries: list[WatchedEntry] = field(default_factory=list)
    arguments: list | None = None


class Watch:
    """A backend whose graphs and calls are kept."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.graphs: list[WatchedGraph] = []

    def __call__(self, module: fx.GraphModule, example_inputs, **others):
        return compile_phases(module, example_inputs, False, self._compile)

    def _compile(self, module: fx.GraphModule, phase: str, packing) -> Callable:
        seen = WatchedGraph(phase, fx.GraphModule(module, copy.deepcopy(module.graph)))
        self.graphs.append(seen)

        def watched(entry: CompiledEntry) -> WatchedEntry:
            seen.entries.append(WatchedEntry(entry))
            return seen.entries[-1]

        function = compile_graph_of_ops(module, self.options, phase, SharedMemory(), watched).function

        def call(*arguments):
            if seen.arguments is None:
                seen.arguments = [kept(one) for one in arguments]
            return function(*arguments)

        return call


def kept(value: Any) -> Any:
    """A copy that later calls do not change."""
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def bisect(module: Callable, args: tuple = (), kwargs: dict[str, Any] | None = None, *,
           backward: bool = True, seed: int = 0, output: str | None = "reproducer", repeats: int = 20,
           progress: Progress = None, **options: Any) -> Bisection:
    """Finds the kernels that make a module, or a function, wrong under torch.compile(backend="sinter").

    module: as it is, or as torch.compile returned it. args, kwargs: its arguments. backward: gradients of
    all parameters and float arguments count too. output: a folder for what fails alone, made if something
    does: for a conversion a torch program and its operands, for a fusion a module, its inputs and the
    command. It must be absent, empty or hold what an earlier search wrote. repeats: runs of a fused plan
    before it is called right. options: of the backend, as they were given to torch.compile.

    Without fusion, floats are right as `sinter.pytorch.check` allows them, all else if equal. With fusion, the unfused
    plan's bits are right: with fast numerics each fusion that changes bits is named. The module is copied; Dynamo's
    caches are reset."""
    module = owner_of(module)
    if not callable(module):
        raise usage("the first argument is neither a module nor a function", "bisect")
    chosen = read_options(options)
    if output:
        check_reproducer_folder(Path(output))
    return Search(module, (args, kwargs or {}), backward, seed, output, repeats, progress, chosen).run()


class Search:
    def __init__(self, module: Callable, given: tuple, backward: bool, seed: int, output: str | None,
                 repeats: int, progress: Progress, options: dict[str, Any]) -> None:
        self.module, self.backward, self.seed = module, backward, seed
        # Gradients of float arguments that want one; the call runs on copies.
        self.given = tree_map(kept_argument, given)
        self.output = Path(output) if output else None
        self.repeats, self.progress, self.options = repeats, progress, options
        self.result = Bisection("right")

    def run(self) -> Bisection:
        self.eager = comparison.run(self.module, self.given, self.backward, self.seed)
        self.exact = comparison.exact_run(self.module, self.given, self.backward, self.seed, self.result.notes)
        watch = Watch({**self.options, "fuse": False, "graphs": False, "require_full": False})
        self.tell("the unfused plan beside eager")
        self.result.problems = self.problems(watch)
        if not watch.graphs:
            self.result.notes.append(comparison.NO_GRAPH)
        if self.result.problems:
            self.result.verdict = "op"
            self.find_ops(watch.graphs)
            if not self.result.ops:
                self.result.verdict = "other"
                self.find_rewrite(lambda: self.problems(Watch(watch.options)))
            return self.result
        self.find_fusions(watch.graphs)
        if self.result.fusions:
            self.result.verdict = "fusion"
            return self.result
        self.find_choice()
        return self.result

    def tell(self, stage: str) -> None:
        if self.progress is not None:
            self.progress(stage, 0, 0)

    def problems(self, backend: Callable, options: dict[str, Any] | None = None) -> list[str]:
        """Says which results and gradients are wrong under a backend."""
        torch._dynamo.reset()
        self.result.checks += 1
        compile_this = lambda function: torch.compile(function, backend=backend, dynamic=False,
                                                      options=options)
        ours = comparison.run(self.module, self.given, self.backward, self.seed, compiler=compile_this)
        return [f"{one.name}: {one.problem}" for one in
                comparison.compare("fixed", "", ours, self.eager, self.exact) if one.problem]

    # ---- conversions

    def find_ops(self, graphs: list[WatchedGraph]) -> None:
        for graph in graphs:
            if graph.arguments is None:
                continue
            self.tell(f"the ops of the {graph.phase} graph, each alone")
            self.result.checks += 1
            for node, problem, values in wrong_ops(graph, self.options):
                operands = [describe(value) for value in flat_values(node, values)]
                found = WrongOp(graph.phase, str(node.target), node.name, place_in_source(node), operands, problem)
                if self.output is not None:
                    number = len(self.result.ops)
                    folder = self.output / f"op{number}" if number else self.output
                    found.program = str(write_program(folder, node, values, found.location))
                self.result.ops.append(found)

    # ---- fusions

    def find_fusions(self, graphs: list[WatchedGraph]) -> None:
        for graph in graphs:
            for watched in graph.entries:
                if watched.arguments is not None:
                    self.find_fusions_of(watched)

    def find_fusions_of(self, watched: WatchedEntry) -> None:
        entry = watched.entry
        self.tell(f"the fusions of {entry.name}")
        with tempfile.TemporaryDirectory() as folder:
            inputs = Path(folder) / "inputs.safetensors"
            tensors, symbols = entry.inputs_of(watched.arguments)
            write_tensors(inputs, [file_tensor(name, tensor) for name, tensor in tensors.items()])
            number = len(self.result.fusions)
            output = None if self.output is None else \
                self.output / f"fusion{number}" if number else self.output
            if output is not None:
                output.parent.mkdir(parents=True, exist_ok=True)
            report = bisect_module(entry.compiled.model, TorchDevice.of(entry.device), {
                **compile_options({**self.options, "fuse": True}), "device-inputs": True,
                "inputs": inputs if tensors else None, "output": output, "repeats": self.repeats,
                "seed": self.seed, **{f"symbol.{name}": value for name, value in symbols.items()},
            }, self.progress)
        self.result.checks += report["checks"]
        self.result.flaky |= report["flaky"]
        for one in report["guilty"]:
            places = {place_of(name, entry.locations) for name in one["ops"]} - {None}
            self.result.fusions.append(WrongFusion(entry.name, one, sorted(places)))

    # ---- rewrites

    def find_rewrite(self, problems: Callable[[], list[str]]) -> None:
        """Names the last rewrite of the shortest part of the pipeline that makes the function wrong."""
        def is_right(skipped: list[str]) -> bool:
            with pipeline.limited(skipped):
                return not problems()

        self.tell("the rewrites of the graphs")
        names = [name for name in pipeline.optional() if not pipeline.is_left_out(name)]
        if not is_right(names):
            return
        right, wrong = 0, len(names)  # how many of the first rewrites run
        while wrong - right > 1:
            middle = (right + wrong) // 2
            right, wrong = (middle, wrong) if is_right(names[middle:]) else (right, middle)
        self.result.verdict, self.result.rewrite = "rewrite", names[wrong - 1]
        if not is_right([names[wrong - 1]]):
            self.result.notes.append("without this rewrite alone it is wrong, too: another is at fault beside it")

    # ---- options

    def find_choice(self) -> None:
        from ..backend import compile_graph
        self.tell("the function as it was compiled")
        problems = self.problems(compile_graph, self.options)
        if not problems:
            return
        self.result.problems, self.result.verdict = problems, "other"
        for name, value in CHOICES:
            if self.options[name] != value and not self.problems(
                    compile_graph, {**self.options, name: value}):
                self.result.verdict, self.result.choice = "choice", f"{name}={value}"
                return
        self.find_rewrite(lambda: self.problems(compile_graph, self.options))


def kept_argument(value: Any) -> Any:
    copied = kept(value)
    return copied.requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else copied


def bisect_module(model, device, options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """The report of sinter_bisect."""
    with Interrupts() as interrupts, Options(options, interrupts, progress) as given:
        return json.loads(taken_text(lib.sinter_bisect, model.pointer, device.pointer, given.pointer))


# ---- ops, each alone

def wrong_ops(graph: WatchedGraph, options: dict[str, Any]):
    """(node, problem, eager's values by node) of each op that is wrong on eager's operands."""
    values = eager_values(graph)
    device = device_of(graph.module)
    entry, leaves, computed = import_apart(graph, device, device.type == "cpu" or options["check"], options)
    if entry is None:
        return
    results = entry(*[values[leaf] for leaf in leaves])
    for node, ours in zip(computed, results):
        source = node.args[0] if is_part(node) else node
        problem = problem_of(ours, values[node], exact_result(node, values))
        if problem:
            yield source, problem, values


def eager_values(graph: WatchedGraph) -> dict[fx.Node, Any]:
    """The value of each node of the graph in eager."""
    interpreter = fx.Interpreter(graph.module, garbage_collect_values=False)
    with torch.no_grad():
        interpreter.run(*[kept(one) for one in graph.arguments])
    return interpreter.env


def is_part(node: fx.Node) -> bool:
    """Whether a node is a result of an op that has several."""
    return getattr(node.target, "__name__", "") == "getitem"


def import_apart(graph: WatchedGraph, device: torch.device, is_checked: bool, options: dict[str, Any]):
    """An entry in which each op reads inputs and no other op; its leaves, and the nodes that its results
    are. None: no op has a conversion."""
    nodes = [node for node in graph.module.graph.nodes if node.op == "call_function" and not is_size(node)]
    leaves = list(dict.fromkeys(operand for node in nodes for operand in node.all_input_nodes
                                if not isinstance(operand.meta.get("val"), (tuple, list))))
    importer = Importer(f"{graph.phase}_ops", is_checked=is_checked)
    importer.begin(leaves, nodes)
    inputs = {}
    for leaf in leaves:
        if importer.try_input(leaf) and leaf in importer.values:
            inputs[leaf] = importer.values[leaf]
    importer.values = dict(inputs)
    computed: dict[fx.Node, Tensor] = {}
    for node in nodes:
        if not importer.convert(node):
            continue
        result = importer.values[node]
        if isinstance(result, Tensor):
            computed[node] = result
            importer.values.pop(node)
            if node in inputs:
                importer.values[node] = inputs[node]
    importer.values.update(computed)
    if not computed:
        importer.imported.module.close()
        return None, [], []
    for node in computed:
        importer.add_output(node)
    entry = CompiledEntry.compile(importer.imported, leaves, device,
                                  compile_options({**options, "fuse": False}), is_checked)
    return entry, leaves, list(computed)


def exact_result(node: fx.Node, values: dict[fx.Node, Any]) -> torch.Tensor | None:
    """The node in float64 on the same operands; None where torch has no such op."""
    if not isinstance(values[node], torch.Tensor) or not values[node].is_floating_point():
        return None
    source = node.args[0] if is_part(node) else node

    def widened(value: Any) -> Any:
        value = values[value] if isinstance(value, fx.Node) else value
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return value.double()
        return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value

    try:
        with torch.no_grad():
            result = source.target(*tree_map(widened, source.args), **tree_map(widened, source.kwargs))
    except Exception:
        return None
    result = result[node.args[1]] if is_part(node) else result
    return result if isinstance(result, torch.Tensor) else None


def problem_of(ours: torch.Tensor, eager: Any, exact: torch.Tensor | None) -> str:
    """Says how a result is wrong, wherever its axes lie in memory; "" if it is right."""
    ours, eager = ours.contiguous(), eager.detach().contiguous()
    problem = comparison.difference(ours, eager, exact)[2]
    if not problem:
        return ""
    if ours.shape != eager.shape or ours.dtype != eager.dtype:
        return problem
    apart = (ours != eager) & ~(ours.isnan() & eager.isnan()) if eager.is_floating_point() else ours != eager
    where = apart.nonzero()
    if eager.is_floating_point():  # the element that is farthest off, not one that differs by a rounding
        far = torch.nan_to_num((ours.double() - eager.double()).abs(), nan=float("inf"))
        where = (far == far.max()).nonzero()
    index = tuple(where[0].tolist())
    return f"{list(index)} is {ours[index].item()}, eager {eager[index].item()}; {problem}"


def place_in_source(node: fx.Node) -> str:
    """The user's line that made a node, or the path of a module of torch."""
    path = module_path(node)
    return location_of(node) or (f"module {path}" if path else "")


def flat_values(node: fx.Node, values: dict[fx.Node, Any]) -> list[torch.Tensor]:
    leaves = tree_flatten((node.args, node.kwargs))[0]
    return [values[leaf] for leaf in leaves if isinstance(leaf, fx.Node)
            and isinstance(values.get(leaf), torch.Tensor)]


def file_tensor(name: str, tensor: torch.Tensor) -> FileTensor:
    dense = tensor.detach().cpu().contiguous()
    return FileTensor(name, str(dense.dtype).removeprefix("torch."), dense.shape,
                      dense.reshape(-1).view(torch.uint8).numpy().data)
