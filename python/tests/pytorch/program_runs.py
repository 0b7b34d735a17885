"""Runs a program through Sinter and compares its results with eager and with float64.

Routes: "fx" traces with make_fx and calls compile_aten, without Dynamo; "record" does so with a faster
tracer where no size is dynamic; "compile" is torch.compile, and "graphs" records its calls.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import re
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch._dynamo
from program_recorder import DependsOnData, record, without_changes
from programs import (EAGER_SCOPE, EPS, Input, Program, Reference, Statement, clones, function_of,
                      gradients, is_float)
from sinter.pytorch.tools import report
from sinter.pytorch.graphs.attention_call import default_scale
from sinter.pytorch.backend import compile_aten, compile_graph, read_options
from sinter.pytorch.rewrites import pipeline
from sinter.pytorch.graphs.decompositions import KERNELS, decompositions, defaults
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functionalize, vjp
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import (DimDynamic, ShapeEnv, StatelessSymbolicContext)

OPTIONS = read_options({})
COMPARES_STRIDES = True

# Floats are right if they are nearer to float64 than ROUNDINGS roundings of their type, in units of the largest number
# of the result; or at most TIMES_EAGER times as far as eager by one of its kernels of attention, or as the ops into
# which torch decomposed the program; or at most TIMES_NOISE times as far as random roundings of each statement move the
# float64 result. Sums have at most as many terms as the largest input has elements, n; above SHORT terms the roundings
# grow as their root, as in a random walk. A gradient may be the small difference of large terms, which are of the size
# of the cotangents.
ROUNDINGS = 8
SHORT = 16
TIMES_EAGER = 4
TIMES_NOISE = 8


@dataclass
class Outcome:
    """status: "passed", "wrong", "crashed" or "skipped". cause: what stays while a failure shrinks."""

    status: str
    cause: str = ""
    detail: str = ""
    eager_ops: collections.Counter = field(default_factory=collections.Counter)
    calls: int = 0  # comparisons with eager

    @property
    def is_failure(self) -> bool:
        return self.status in ("wrong", "crashed")


class Skipped(Exception):
    """torch itself does not take the program this way."""


# ---- comparison

def compare(ours: list, reference: Reference, strides: list | None) -> tuple[str, str] | None:
    """None, or (cause, detail) of the first wrong result."""
    count = len(reference.program.outputs)
    if len(ours) != len(reference.eager):
        return "results", f"{len(ours)} results instead of {len(reference.eager)}"
    noisy: list[list] = []
    longest = max((one.numel() for one in reference.inputs), default=1)
    roundings = ROUNDINGS * max(1.0, math.sqrt(longest / SHORT))
    terms = max((one.abs().max().item() for one in reference.cotangents if one.numel()), default=0.0)
    for i, (a, b, exact) in enumerate(zip(ours, reference.eager, reference.exact)):
        name = reference.program.outputs[i] if i < count else f"gradient {i - count}"
        if a.dtype != b.dtype or a.shape != b.shape or a.device != b.device:
            return "type", f"{name}: {describe(a)}, eager has {describe(b)}"
        difference = differs(a, b, exact, roundings, terms if i >= count else 0.0)
        if difference and is_float(a) and difference[0] == "numbers":
            noisy = noisy or reference.noisy()
            if within_noise(a, exact, [trial[i] for trial in noisy]):
                difference = None
        if difference:
            return difference[0], f"{name} {describe(a)}: {difference[1]}"
        wanted = strides[i] if strides else None
        if COMPARES_STRIDES and wanted is not None and not same_strides(a, wanted):
            return "strides", f"{name} {describe(a)}: strides {a.stride()}, wanted {wanted}"
    return None


def same_strides(tensor: torch.Tensor, wanted: tuple) -> bool:
    """Strides of axes of one element, and of a tensor without elements, mean nothing."""
    return tensor.numel() == 0 or all(
        a == b or size == 1 for a, b, size in zip(tensor.stride(), wanted, tensor.shape))


def differs(ours: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor, roundings: float,
            terms: float) -> tuple[str, str] | None:
    if exact.shape != eager.shape:
        exact = eager.double() if is_float(eager) else eager
    if not is_float(eager):
        wrong = (ours != eager) & (eager == exact)
        return ("integers", listed(wrong, ours, eager)) if wrong.any() else None
    a, b, x = ours.double(), eager.double(), exact
    special = ~a.isfinite() | ~b.isfinite()
    alike = (b == x.to(eager.dtype).double()) | (b.isnan() & x.isnan())
    wrong = special & ~((a == b) | (a.isnan() & b.isnan())) & alike
    if wrong.any():
        return "special values", listed(wrong, ours, eager)
    finite = ~special & x.isfinite()
    if not finite.any():
        return None
    errors = torch.where(finite, (a - x).abs(), 0.0)
    scale = max(torch.where(finite, x.abs(), 0.0).max().item(), terms, 0.01)
    allowed = max(roundings * EPS[eager.dtype] * scale,
                  TIMES_EAGER * torch.where(finite, (b - x).abs(), 0.0).max().item())
    if errors.max() <= allowed:
        return None
    return "numbers", f"off by {errors.max():.2e}, allowed {allowed:.2e}; " \
        + listed(errors > allowed, ours, eager)


def within_noise(ours: torch.Tensor, exact: torch.Tensor, trials: list) -> bool:
    if any(trial.shape != exact.shape for trial in trials) or ours.shape != exact.shape:
        return True  # a size that depends on roundings
    spread = max((finite_part(trial - exact).abs().max().item() for trial in trials), default=0.0)
    return bool(finite_part(ours.double() - exact).abs().max() <= TIMES_NOISE * spread)


def finite_part(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.isfinite(), x, 0.0)


def listed(wrong: torch.Tensor, ours: torch.Tensor, eager: torch.Tensor) -> str:
    places = wrong.nonzero()
    lines = [f"{list(map(int, place))}: {ours[tuple(place)].item()} and {eager[tuple(place)].item()}"
             for place in places[:3]]
    return f"{len(places)} of {wrong.numel()} elements: " + ", ".join(lines)


def describe(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


# ---- the route without Dynamo

def traced_function(program: Program):
    """A function of the inputs, the weights of the results and the numbers: results, then gradients."""
    count, end = len(program.inputs), -len(program.numbers) or None
    if not program.backward:
        return lambda *given: program.function()(*given)

    def joint(*given):
        function = lambda *inputs: program.function()(*inputs, *given[end:] if end else ())
        inputs, cotangents = given[:count], given[count:end]
        places = [i for i, one in enumerate(inputs) if is_float(one)]
        kinds = []

        def run(*floats):
            given = list(inputs)
            for place, tensor in zip(places, floats):
                given[place] = tensor
            results = function(*given)
            kinds[:] = [is_float(one) for one in results]
            return [one for one in results if is_float(one)], \
                [one for one in results if not is_float(one)]

        if not places or not cotangents:
            return [*function(*inputs), *[torch.zeros_like(inputs[place]) for place in places]]
        floats, pull, rest = vjp(run, *[inputs[place] for place in places], has_aux=True)
        parts = (iter(floats), iter(rest))
        results = [next(parts[0] if kind else parts[1]) for kind in kinds]
        return results + list(pull(list(cotangents)))

    return joint


def fakes_of(program: Program, tensors: list) -> tuple[list, ShapeEnv]:
    """Fake inputs; sizes that are an expression of a dynamic size are symbols, and so are the numbers."""
    environment = ShapeEnv()
    mode = FakeTensorMode(shape_env=environment)
    fakes = []
    for i, tensor in enumerate(tensors):
        texts = program.inputs[i].shape if i < len(program.inputs) else [None] * tensor.dim()
        marks = [DimDynamic.DUCK if text is None or set(text.split()) & set(program.dynamic)
                 else DimDynamic.STATIC for text in texts]
        fakes.append(mode.from_tensor(
            tensor, source=ConstantSource(f"x{i}"),
            symbolic_context=StatelessSymbolicContext(dynamic_sizes=marks)))
    for name in program.numbers:
        source, value = ConstantSource(name), program.sizes[name]
        symbol = environment.create_unspecified_symbol(value, source, DimDynamic.DYNAMIC)
        fakes.append(environment.create_symintnode(symbol, hint=value, source=source))
    return fakes, environment


def trace(program: Program, tensors: list, table: dict, is_recorded: bool = False):
    """The graph as aot_autograd makes it, and whether given tensors have the same graph."""
    function = functionalize(traced_function(program))
    try:
        if not program.changes and is_recorded:
            try:
                graph = record(function, table, tensors)
            except DependsOnData:  # of which fake tensors know more
                return trace(program, tensors, table)
            fits = lambda others: True
        elif not program.changes:
            graph = make_fx(function, decomposition_table=table, tracing_mode="fake")(*tensors)
            fits = lambda others: True
        else:
            fakes, environment = fakes_of(program, tensors)
            graph = make_fx(function, decomposition_table=table, tracing_mode="symbolic")(*fakes)

            def fits(others):
                guards = environment.produce_guards_expression(fakes, ignore_static=False)
                return are_in_ranges(environment, fakes, others) and (
                    guards is None or environment.evaluate_guards_expression(guards, others))

    except Skipped:
        raise
    except Exception as error:
        raise Skipped(f"torch cannot trace it: {type(error).__name__}: {str(error)[:80]}") from error
    without_changes(graph.graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph, fits


def are_in_ranges(environment: ShapeEnv, fakes: list, tensors: list) -> bool:
    """Whether each symbol has one value, in the range that tracing left it."""
    values: dict = {}
    for fake, given in zip(fakes, tensors):
        pairs = zip(fake.shape, given.shape) if isinstance(given, torch.Tensor) else [(fake, given)]
        for size, value in pairs:
            if not isinstance(size, torch.SymInt):
                continue
            expression = size.node.expr
            if expression.is_number:
                if int(expression) != value:
                    return False
                continue
            bounds = environment.bound_sympy(expression)
            if values.setdefault(expression, value) != value \
                    or not bounds.lower <= value <= bounds.upper:
                return False
    return True


def dense_strides(graph) -> list:
    """The strides of the graph's results, None where they have gaps or are symbols."""
    output = next(node for node in graph.graph.nodes if node.op == "output")
    strides: list = []
    for node in output.args[0]:
        fake = node.meta["val"] if hasattr(node, "meta") else None
        known = fake is not None and all(isinstance(n, int) for n in (*fake.stride(), *fake.shape))
        dense = known and fake.numel() == 1 + sum(
            (size - 1) * stride for size, stride in zip(fake.shape, fake.stride()))
        strides.append(fake.stride() if dense else None)
    return strides


def attention_gradient(name: str) -> Callable:
    """The gradient that stands for one of torch's ops for the gradient of attention; a mask gets none."""
    schema = getattr(torch.ops.aten, name).default._schema
    names = [argument.name for argument in schema.arguments]

    def gradient(grad, q, k, v, *others, scale=None, attn_mask=None):
        given = dict(zip(names[4:], others, strict=False))
        grads = torch.ops.sinter.attention_backward(grad, q, k, v, given.get("attn_bias", attn_mask),
                                                    given.get("is_causal", False), default_scale(q, scale))
        return (*grads, *[None] * (len(schema.returns) - len(grads)))

    return gradient


# torch.func.functionalize takes scaled_dot_product_attention apart into the ops of a kernel. They stand for the ops
# that torch.compile uses instead.
GRADIENTS = ("_scaled_dot_product_flash_attention_for_cpu_backward", "_scaled_dot_product_flash_attention_backward",
             "_scaled_dot_product_efficient_attention_backward", "_scaled_dot_product_cudnn_attention_backward")
TABLE = {**decompositions(), **defaults(KERNELS), **defaults({name: attention_gradient(name) for name in GRADIENTS})}


def run_fx(program: Program, device: str, is_recorded: bool = False) -> Outcome:
    references = [reference_of(program, program.sizes, device)]
    given = [*references[0].inputs, *references[0].cotangents]
    graph, fits = trace(program, given, TABLE, is_recorded)
    strides = dense_strides(graph)
    report.reset()
    outcome = Outcome("passed")
    stage = "compiling"
    try:
        pipeline.run("prepare", graph)
        compiled = compile_aten(graph, OPTIONS, "program")
        outcome.eager_ops.update((op.op, op.reason) for one in report.REPORTS for op in one.eager)
        for sizes in program.other_sizes:
            references.append(reference_of(program, sizes, device))
        stage = "running"
        for i, reference in enumerate(references):
            tensors = [*reference.inputs, *reference.cotangents]
            numbers = [reference.sizes[name] for name in program.numbers]
            if i and not fits([*tensors, *numbers]):
                continue
            ours = list(compiled(*clones(tensors), *numbers))
            outcome.calls += 1
            wrong = compare(ours, reference, strides if i == 0 else None)
            if wrong and wrong[0] == "numbers":
                decomposed, _ = trace(program, given, TABLE, is_recorded)
                wrong = beside_decomposed(ours, decomposed, tensors, reference)
            if wrong and not is_of_torch(program, tensors, reference):
                at = f" at sizes {program.all_sizes()[i]}" if i else ""
                return failed(outcome, "wrong", wrong[0], wrong[1] + at)
    except Skipped:
        raise
    except Exception as error:
        return failed(outcome, "crashed", cause_of(error), f"{stage}: {last_lines(error)}")
    return outcome


def beside_decomposed(ours: list, graph, tensors: list,
                      reference: Reference) -> tuple[str, str] | None:
    """Compares with the ops into which torch decomposed the program, which round in other places than
    eager's: a gradient that is a small difference of large terms is not nearer to float64 than these."""
    with torch.no_grad():
        decomposed = list(reference.bound(graph)(*clones(tensors)))
    return compare(ours, dataclasses.replace(reference, eager=decomposed), None)


def reference_of(program: Program, sizes: dict, device: str) -> Reference:
    try:
        return Reference.of(program, sizes, device)
    except Exception as error:  # such as a gradient that torch lacks
        raise Skipped(f"eager refuses it: {type(error).__name__}: {str(error)[:60]}") from error


def is_of_torch(program: Program, tensors: list, reference: Reference) -> bool:
    """Whether torch's own graph of the program, without Sinter's decompositions, is as wrong."""
    try:
        graph, _ = trace(program, tensors, {})
        with torch.no_grad():
            return compare(list(reference.bound(graph)(*clones(tensors))), reference, None) is not None
    except Exception:
        return False


def failed(outcome: Outcome, status: str, cause: str, detail: str) -> Outcome:
    outcome.status, outcome.cause, outcome.detail = status, cause, detail
    return outcome


def cause_of(error: BaseException) -> str:
    """The type of an error, and its first words without numbers and names."""
    text = re.sub(r"[\d%\[\]]+", "", str(error).split("\n")[0])
    return f"{type(error).__name__}: {' '.join(text.split()[:6])}"


def last_lines(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}" for frame in frames
            if "sinter" in frame.filename]
    return f"{type(error).__name__}: {str(error)[:600]}\n    in " + " < ".join(reversed(ours[-4:]))


# ---- through torch.compile

def run_compile(program: Program, device: str, mode: str = "default", calls: int = 1) -> Outcome:
    """calls: of each set of sizes; the last one is compared."""
    outcome = Outcome("passed")
    torch._dynamo.reset()
    report.reset()
    # Shrunk programs may differ only in their text: Dynamo keeps code by its object.
    function = torch.compile(program.function(), backend=compile_graph, mode=mode,
                             dynamic=True if program.changes else False)
    for i, sizes in enumerate(program.all_sizes()):
        reference = reference_of(program, sizes, device)
        try:
            ours = [results_of(function, reference) for _ in range(calls)][-1]
        except Exception as error:
            if not fails_only_here(program, reference):
                raise Skipped("torch.compile itself fails") from error
            return failed(outcome, "crashed", cause_of(error), last_lines(error))
        outcome.calls += 1
        wrong = compare(ours, reference, eager_strides(reference))
        if wrong and wrong[0] == "numbers":
            wrong = beside_other_kernels(ours, reference)
        if wrong and fails_only_here(program, reference):
            at = f" at sizes {sizes}" if i else ""
            return failed(outcome, "wrong", wrong[0], wrong[1] + at)
    outcome.eager_ops.update((op.op, op.reason) for one in report.REPORTS for op in one.eager)
    return outcome


def results_of(function, reference: Reference) -> list:
    """Results of a compiled program, then its gradients if it has them."""
    function = reference.bound(function)
    if reference.program.backward:
        outputs, grads = gradients(function, reference.inputs, reference.cotangents)
        return [*outputs, *grads]
    with torch.no_grad():
        return list(function(*clones(reference.inputs)))


def eager_strides(reference: Reference) -> list:
    """Strides of results; a gradient has whatever strides the last op of the backward pass left."""
    count = len(reference.program.outputs)
    return [one.stride() if i < count else None for i, one in enumerate(reference.eager)]


def beside_other_kernels(ours: list, reference: Reference) -> tuple[str, str] | None:
    """Compares with eager by torch's other kernels of attention, whose gradients differ as much from each other where
    they are small differences of large terms: the kernels of products and a softmax, and of the CPU."""
    wrong = None
    for device, kernel in ((reference.inputs[0].device, SDPBackend.MATH), ("cpu", SDPBackend.FLASH_ATTENTION)):
        other = dataclasses.replace(reference, inputs=[one.to(device) for one in reference.inputs],
                                    cotangents=[one.to(device) for one in reference.cotangents])
        with sdpa_kernel([kernel, SDPBackend.MATH]):
            eager = results_of(reference.program.function(), other)
        eager = [one.to(given.device) for one, given in zip(eager, reference.eager)]
        wrong = compare(ours, dataclasses.replace(reference, eager=eager), eager_strides(reference))
        if wrong is None:
            break
    return wrong


def fails_only_here(program: Program, reference: Reference) -> bool:
    """Whether torch.compile is right with the backend that runs graphs in eager."""
    torch._dynamo.reset()
    function = torch.compile(program.function(), backend="aot_eager",
                             dynamic=True if program.changes else False)
    try:
        return compare(results_of(function, reference), reference,
                       eager_strides(reference)) is None
    except Exception:
        return False
    finally:
        torch._dynamo.reset()


def run_recorded(program: Program, device: str) -> Outcome:
    return run_fx(program, device, is_recorded=True)


def run_graphs(program: Program, device: str) -> Outcome:
    """The third call of each kind is a replay."""
    return run_compile(program, device, "reduce-overhead", 3)


ROUTES = {"record": run_recorded, "fx": run_fx, "compile": run_compile, "graphs": run_graphs}


def run_program(program: Program, route: str = "record", device: str = "cpu") -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ROUTES[route](program, device)
        except Skipped as reason:
            return Outcome("skipped", str(reason))


def is_valid(program: Program) -> bool:
    """Whether eager and float64 take the program, at all its sizes."""
    try:
        for sizes in program.all_sizes():
            Reference.of(program, sizes)
        return True
    except Exception:
        return False


# ---- a script of one program

SCRIPT = '''"""{title}

Run in the folder of random_programs.py."""
import sys
from program_runs import *

PROGRAM = Program(
    sizes={sizes},
    inputs=({inputs}
    ),
    statements=({statements}
    ),
    outputs={outputs},
    backward={backward}, dynamic={dynamic},
    other_sizes={other_sizes}, numbers={numbers})

if __name__ == "__main__":
    sys.exit(run_script(PROGRAM, "{route}"))
'''


def script_of(program: Program, route: str, title: str) -> str:
    """A script that runs the program in eager and in Sinter; exit status 1 if it is wrong."""
    indent = "\n        "
    return SCRIPT.format(
        title=title, sizes=program.sizes, outputs=program.outputs, backward=program.backward,
        dynamic=program.dynamic, other_sizes=program.other_sizes, route=route, numbers=program.numbers,
        inputs="".join(f"{indent}{one!r}," for one in program.inputs),
        statements="".join(f"{indent}{one!r}," for one in program.statements))


def run_script(program: Program, route: str) -> int:
    print(program.listing())
    outcome = run_program(program, route)
    print(outcome.status, outcome.cause, outcome.detail, sep="\n")
    return 1 if outcome.is_failure else 0


assert math.isfinite(TIMES_NOISE) and EAGER_SCOPE and Input and Statement and function_of
