"""The backend of torch.compile: `torch.compile(model, backend="sinter", options={...})`.

aot_autograd gives graphs of core ATen ops, forward and backward, in which parameters are inputs.
`partition` cuts each into parts that Sinter computes and ops that stay in eager; every part is
imported, compiled and called with torch's own memory.
"""

from __future__ import annotations

import time
from importlib.metadata import entry_points
from typing import Any, Callable, Sequence

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch import fx
from torch._dynamo import register_backend
from torch._dynamo.backends.common import aot_autograd

from .._bindings import Code
from ..errors import SinterError, usage
from .convert import importer
from .convert.partition import Part, partition, rewritten
from .graphs.attention_call import one_attention
from .graphs.decompositions import decompositions
from .graphs.roles import is_of_optimizer
from .quantized.coded_weights import CodedFunction
from .rewrites import pipeline
from .rewrites.early_gradients import LateGradient, with_results, without_results
from .rewrites.equal_sizes import join_factors
from .rewrites.host_constants import with_constants
from .rewrites.packing import Group, Packing, mark_parameters, packed_copy
from .rewrites.saved_values import add_values
from .runtime import recording
from .runtime.compiled_entry import CompiledEntry
from .runtime.compiled_graph import CompiledGraph
from .runtime.graph_report import GraphReport
from .runtime.mutations import with_copies, written_results
from .runtime.packed_parameters import PackedFunction
from .runtime.recording import STATIC, is_static, mark_static, recorded
from .runtime.shared_memory import SharedMemory, memory_of
from .runtime.whole_graph import whole_graph
from .tools.breaks import breaks_of, forget_breaks, note_breaks
from .tools.report import calling, record

NAME = "sinter"  # of the backend
LATE_GRADIENTS = "sinter_late_gradients"  # why gradients of losses are not computed in the forward pass
VISIBLE_COUNT = "sinter_visible_count"  # of an output node's results, how many the user sees

# Options of torch.compile(options=...): name -> (default, what it means).
OPTIONS: dict[str, tuple[Any, str]] = {
    "require_full": (False, "an op that would run in eager is an error, and so is a graph break"),
    "fuse": (True, "False: a kernel for each op, for comparing bits"),
    "numerics": ("strict", "strict or fast"),
    "attention": ("tiled", "tiled, composed, or relaxed: attention in primitives is one kernel even where "
                           "its scores are rounded to 16 bits"),
    "products": ("auto", "auto, library, or own: products of more than eight tokens by cuBLASLt, or by Sinter's "
                         "kernel with an epilogue, from five tokens on, which auto takes in strict numerics "
                         "where it was measured to be faster"),
    "invariant": (False, "a token's results, bit for bit, do not depend on the other sequences of a call, nor on "
                         "how its text was cut into calls; an op that would run in eager is an error"),
    "check": (False, "on a GPU every call waits, and a row number that names no row is an error"),
    "pack": (True, "without gradients, products of a module that read one value are one, by parameters "
                   "whose data move into one tensor; False: parameters stay where they are"),
    "graphs": (False, "on a GPU calls are recorded as CUDA graphs and replayed"),
    "tune": (False, "on a GPU the library's implementations of each product are timed, and the fastest is "
                    "taken"),
    "target": (None, "the architecture to compile for; the default: the device's"),
}

# Modes of torch.compile: name -> options.
MODES: dict[str, dict[str, Any]] = {
    "default": {}, "reduce-overhead": {"graphs": True}, "max-autotune": {"graphs": True, "tune": True},
    "max-autotune-no-cudagraphs": {"tune": True},
}


def read_options(options: dict[str, Any] | None, mode: str | None = None) -> dict[str, Any]:
    """All options with their values; an unknown one is an error."""
    if mode is not None and mode not in MODES:
        raise usage(f"torch.compile: backend sinter has no mode '{mode}'", hint="it has " + ", ".join(MODES))
    given = {**MODES[mode or "default"], **(options or {})}
    unknown = [name for name in given if name not in OPTIONS]
    if unknown:
        raise usage(f"torch.compile: backend sinter has no option '{unknown[0]}'",
                    hint="it has " + ", ".join(OPTIONS))
    chosen = {name: given.get(name, default) for name, (default, _) in OPTIONS.items()}
    if chosen["invariant"]:
        chosen["require_full"] = True  # torch's own kernels promise nothing about neighbours
    for name in ("invariant", "pack", "graphs", "tune"):
        if not isinstance(chosen[name], bool):
            raise usage(f'"{chosen[name]}" is neither True nor False', f"option {name}")
    return chosen


def compile_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options of sinter_compile."""
    chosen = {name: options[name] for name in ("fuse", "numerics", "attention", "products", "invariant")}
    return {**chosen, "target": options["target"]} if options["target"] else chosen


def device_of(module: fx.GraphModule) -> torch.device:
    """The device of the graph's tensors: a GPU if any of them is there."""
    devices = {fake.device for node in module.graph.nodes
               for fake in [node.meta.get("val")] if isinstance(fake, torch.Tensor)}
    gpus = sorted((device for device in devices if device.type == "cuda"), key=str)
    return gpus[0] if gpus else torch.device("cpu")


def compile_aten(module: fx.GraphModule, options: dict[str, Any], phase: str, owner=None,
                 packing: Packing | None = None):
    """A callable of a functional graph of ATen ops with fake tensors in its nodes. `owner` is what
    torch.compile was given, for the report, and whose graphs share memory. packing: products that
    become one."""
    start = time.perf_counter()
    nodes = sum(node.op == "call_function" for node in module.graph.nodes)
    report = GraphReport(phase, nodes, [], [], 0.0, owner)
    memory = memory_of(owner() if owner is not None else None)
    if packing is not None and packing.groups:
        compile = lambda groups: compile_packed(module, groups, options, phase, memory)
        function = PackedFunction(module.graph, packing, compile, report)
    else:
        compiled = compile_graph_of_ops(module, options, phase, memory)
        function = compiled.function
        report.show(compiled.entries, compiled.eager, compiled.recorded, compiled.rewrites)
        report.kept = compiled.kept
        report.late = late_gradients(module)
        report.packing.refused = packing.refused if packing is not None else {}
    report.seconds = time.perf_counter() - start
    record(report)
    return function


def compile_packed(module: fx.GraphModule, groups: list[Group], options: dict[str, Any],
                   phase: str, memory: SharedMemory) -> CompiledGraph:
    packed = packed_copy(module, groups)
    pipeline.applied(packed.graph)[:0] = pipeline.applied(module.graph)
    pipeline.apply("pad_products", packed)
    return compile_graph_of_ops(packed, options, phase, memory)


def compile_graph_of_ops(module: fx.GraphModule, options: dict[str, Any], phase: str, memory: SharedMemory,
                         wrapped: Callable[[CompiledEntry], Callable] | None = None) -> CompiledGraph:
    """Compiles a graph, which it changes. wrapped: what the graph calls instead of an entry."""
    device = device_of(module)
    pipeline.apply("skip_idle_casts", module)
    if phase == "backward":
        pipeline.apply("keep_sums", module)
    visible, lent = visible_results(module, phase), lent_results(module, phase)
    targets = pipeline.apply("take_copies", module)
    writings = pipeline.apply("take_writings", module, targets)
    constants = pipeline.apply("take_constants", module, device) if device.type != "cpu" else []
    is_checked = device.type == "cpu" or options["check"]
    refused: dict[fx.Node, str] = {}
    entries = None
    while entries is None:  # each time with more nodes in `refused`
        parts, eager = partition(module, device, phase, visible, is_checked, writings, refused)
        if eager and options["require_full"]:
            raise usage("torch.compile: Sinter does not take all ops of the graph:\n"
                        + "\n".join(f"  {op}" for op in eager),
                        hint="leave out the option require_full, or invariant, to run them in eager")
        # A wrapper may read the arguments after the entry's call.
        written = [{} if wrapped is not None else written_results(module, targets, part) for part in parts]
        entries = compile_parts(parts, written, device, options, refused, memory)
    calls = [recorded(entry, part.leaves, options["check"],
                      written_of_part, {i for i, node in enumerate(part.results) if node in lent}, phase == "backward",
                      memory.recordings)
             for entry, part, written_of_part in zip(entries, parts, written)] if options["graphs"] else []
    called = calls or ([wrapped(entry) for entry in entries] if wrapped is not None else entries)
    whole = whole_graph(module, parts, called)
    function = with_copies(with_constants(whole or rewritten(module, parts, called).forward, constants), targets)
    if phase == "backward" and hasattr(function, "take"):
        entries[0].allow_groups()
    elif phase == "backward" and calls and whole is not None and not targets and not getattr(whole, "returns_arguments", False):
        calls[0].reuse_arguments()
    kept = [[operand.name for operand in part.graph.outputs if phase == "forward" and operand.node in lent]
            for part in parts]
    return CompiledGraph(function, entries, eager, whole is not None, calls, kept, pipeline.applied(module.graph))


def compile_parts(parts: list[Part], written: list[dict[int, int]], device: torch.device,
                  options: dict[str, Any], refused: dict[fx.Node, str],
                  memory: SharedMemory) -> list[CompiledEntry] | None:
    """None: the compiler refuses a part, whose nodes are in `refused` now. Wrong options, a missing
    library and the like are errors. written: written_results() of each part."""
    entries: list[CompiledEntry] = []
    for part, written_of_part in zip(parts, written):
        try:
            entries.append(CompiledEntry.compile(part.graph, part.leaves, device, compile_options(options),
                                                 options["check"], memory, options["tune"],
                                                 written_of_part))
        except SinterError as error:
            if error.code != Code.BAD_INPUT or importer.RAISES_FAULTS:
                raise
            reason = f"Sinter does not compile the part of the graph that it is in: {error}"
            refused.update((node, reason) for node in part.nodes)
            for other in parts[len(entries) + 1:]:
                other.graph.module.close()
            return None
    return entries


def visible_results(module: fx.GraphModule, phase: str) -> list[fx.Node]:
    """The results that the user's function returns, or that torch makes its results of. Others are
    kept for the backward pass; gradients have the strides that Sinter chooses."""
    output = module.graph.output_node()
    if phase == "backward" or not isinstance(output.args[0], (tuple, list)):
        return []
    results = output.args[0][:output.meta.get(VISIBLE_COUNT)]
    return [node for node in results if isinstance(node, fx.Node)]


def late_gradients(module: fx.GraphModule) -> list[LateGradient]:
    """The gradients of losses that a forward graph does not compute, and why."""
    return module.graph.output_node().meta.get(LATE_GRADIENTS, [])


def lent_results(module: fx.GraphModule, phase: str) -> set[fx.Node]:
    """The results of a forward graph that are kept for the backward pass, and not visible; of a backward
    graph all, gradients."""
    output = module.graph.output_node()
    count = 0 if phase == "backward" else output.meta.get(VISIBLE_COUNT)
    if count is None or not isinstance(output.args[0], (tuple, list)):
        return set()
    return {node for node in output.args[0][count:] if isinstance(node, fx.Node)} - {*output.args[0][:count]}


def forward_and_backward(joint: fx.GraphModule, inputs, **options):
    """Cuts a joint graph so that little is kept from the forward pass for the backward pass."""
    pipeline.run("prepare", joint)
    pipeline.run("joint", joint)
    visible = options.pop("num_fwd_outputs")
    early, late = pipeline.apply("early_gradients", joint)
    with_results(joint, visible, early)
    forward, backward = min_cut_rematerialization_partition(
        joint, inputs, num_fwd_outputs=visible + len(early), **options)
    add_values(forward.graph)
    add_values(backward.graph)
    without_results(forward, backward, visible, len(early))
    pipeline.applied(forward.graph)[:0] = pipeline.applied(joint.graph)
    pipeline.run("pair", forward, backward, visible)
    output = forward.graph.output_node()
    output.meta[VISIBLE_COUNT] = visible
    output.meta[LATE_GRADIENTS] = late
    return forward, backward


def compile_graph(module: fx.GraphModule, example_inputs, *, options=None, mode=None, **others):
    """The backend: torch.compile calls it for each graph that Dynamo found."""
    if others:
        raise usage(f"torch.compile: backend sinter has no argument '{next(iter(others))}'")
    chosen, owner = read_options(options, mode), calling()
    note_breaks(owner, module)
    if chosen["require_full"] and owner is not None and (breaks := breaks_of(owner())):
        raise usage("torch.compile: Dynamo does not take the whole function:\n"
                    + "\n".join(f"  {one}" for one in breaks),
                    hint="leave out the option require_full, or invariant, to run what is there in Python")
    if chosen["attention"] == "relaxed" and wants_gradient(example_inputs) and pipeline.apply("join_attention", module):
        module.recompile()
    return compile_phases(module, example_inputs, chosen["pack"], lambda graph, phase, packing: compile_aten(
        graph, chosen, phase, owner, packing))


def wants_gradient(inputs: Sequence) -> bool:
    return torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)


def compile_phases(module: fx.GraphModule, example_inputs, joins: bool, compile_ops: Callable):
    """A callable of a graph of Dynamo's. compile_ops: makes one of a graph of ops, given its phase and the
    products that become one. joins: whether any do."""
    def compiler(phase: str):
        def compile_phase(graph: fx.GraphModule, inputs):
            packing, packs = None, []
            if phase != "backward":
                mark_parameters(graph.graph, example_inputs)
                mark_static(graph.graph)
                arguments = [node for node in graph.graph.nodes if node.op == "placeholder"]
                pipeline.applied(graph.graph)[:0] = pipeline.applied(module.graph)
                packs = pipeline.apply("take_codes", graph, is_static)
                for pack in packs:
                    pack.node.meta[STATIC] = True
                if packs:
                    graph.recompile()
            if phase == "inference":
                pipeline.run("prepare", graph)
                if joins:
                    packing = pipeline.apply("find_packing", graph)
                if packing is None or not packing.groups:
                    pipeline.apply("pad_products", graph)
            is_step = phase == "inference" and is_of_optimizer(graph.graph, module.graph, example_inputs)
            function = compile_ops(graph, "optimizer" if is_step else phase, packing)
            function = CodedFunction(function, packs, arguments) if packs else function
            return boxed(function)
        return compile_phase

    compile_module = aot_autograd(
        fw_compiler=compiler("forward"), bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"), decompositions=decompositions(),
        partition_fn=forward_and_backward, keep_inference_input_mutations=True)
    join_factors(example_inputs)
    with one_attention():
        return compile_module(module, example_inputs)


def boxed(function: Callable) -> Callable:
    """The function for aot_autograd's list of arguments. A call that can let go of them empties the list: nobody
    else holds what the forward pass has kept."""
    take = getattr(function, "take", None) or (lambda arguments: function(*arguments))

    def call(arguments: list):
        return take(arguments)

    call._boxed_call = True
    return call


def forget() -> None:
    recording.reset()
    forget_breaks()


compile_graph.reset = forget  # which torch._dynamo.reset calls


def register() -> None:
    """Registers the backend under its name, unless the package is installed: then torch finds the name
    among the entry points of packages, and registers it itself."""
    if NAME not in entry_points(group="torch_dynamo_backends").names:
        register_backend(compile_graph, NAME)
