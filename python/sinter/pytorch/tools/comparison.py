"""`sinter.pytorch.check`: a module compiled by Sinter beside eager and beside float64.

`verify` compares fused with unfused plans of one imported graph: it cannot see that the graph is not the
module. This check can: it compares with torch's own results, forward and backward, at several sizes.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable

import torch
from torch.utils._pytree import tree_flatten, tree_map

from ...errors import usage
from . import report as reports
from .step_report import table

# Sinter may be this much farther from float64 than eager is: the two sum in different orders.
FACTOR = 4.0
# ... or this many units of the result's type, relative to its largest element: what a few roundings
# give where eager happens to be exact.
UNITS = 16.0
# Sizes of dynamic axes. Many of their products coincide, with one another and with numbers of heads.
SIZES = (2, 3, 4, 6, 8)
MAX_RUNS = 6  # sets of sizes by default
NO_GRAPH = "Dynamo compiled no graph: torch._dynamo.explain(module)(*args) says why"


@dataclass
class Comparison:
    """One result or gradient in one run.

    kind: "fixed" or "dynamic". sizes: "B=2, S=8", of the dynamic axes. name: "output 0",
    "gradient of layers.0.weight". ours, eager: the largest differences from float64, divided by the
    largest element there; None: there is nothing to compare, such as integers. problem: "" if right."""

    kind: str
    sizes: str
    name: str
    dtype: torch.dtype
    ours: float | None
    eager: float | None
    problem: str


@dataclass
class CheckReport:
    """The findings of `check`. True if everything is right; `sys.exit(report.exit_code)` ends a script."""

    comparisons: list[Comparison] = field(default_factory=list)
    graphs: int = 0  # that Sinter compiled
    eager: list[str] = field(default_factory=list)  # ops that ran in eager
    notes: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[Comparison]:
        return [one for one in self.comparisons if one.problem]

    def __bool__(self) -> bool:
        return bool(self.comparisons) and not self.wrong

    @property
    def exit_code(self) -> int:
        return 0 if self else 1

    def __str__(self) -> str:
        by_name: dict[str, list[Comparison]] = {}
        for one in self.comparisons:
            by_name.setdefault(one.name, []).append(one)
        rows = [("", "type", "runs", "Sinter from float64", "eager from float64", "")]
        for name, group in by_name.items():
            worst = max(group, key=lambda one: (bool(one.problem), one.ours or 0.0))
            bad = sum(bool(one.problem) for one in group)
            rows.append((name, str(worst.dtype).removeprefix("torch."), str(len(group)),
                         percent(worst.ours), percent(worst.eager),
                         f"WRONG in {bad}" if bad else "right"))
        lines = table(rows, numbers_from=len(rows[0]))
        lines += [f"WRONG: {one.name}, {one.kind} sizes{', ' + one.sizes if one.sizes else ''}: "
                  f"{one.problem}" for one in self.wrong[:10]]
        lines += [f"note: {note}" for note in self.notes]
        ops = sorted(set(self.eager))
        lines.append(f"{self.graphs} graphs compiled, " + (
            f"ops in eager: {', '.join(ops)}" if ops else "no op in eager"))
        lines.append("right" if self else "WRONG" if self.wrong else "nothing was compared")
        return "\n".join(lines)


def percent(error: float | None) -> str:
    return "" if error is None else f"{error:.1e}"


def check(module: Callable, args: tuple = (), kwargs: dict[str, Any] | None = None, *,
          dynamic_shapes: Any = None, sizes: Iterable[dict[str, int]] | None = None,
          backward: bool = True, seed: int = 0, **options: Any) -> CheckReport:
    """Runs a module, or a function, compiled by Sinter, in eager, and in eager with float64.

    args, kwargs: example arguments. dynamic_shapes: which of their axes may change, a structure like
    (args, kwargs) or like args with {axis: name} (or torch.export.Dim) for a tensor; axes of one name
    have one size. Each set of sizes is run with fixed and with dynamic shapes, on random tensors like
    the examples: floats of their mean and deviation, other elements drawn from theirs. sizes: the
    sets, {"B": 2, "S": 8}, ...; the default draws sizes whose products coincide.
    backward: gradients of all parameters and of all float arguments are compared too.
    options: of the backend.

    A float is right if it is at most FACTOR times as far from float64 as eager is, or within UNITS
    roundings of its type; NaN and infinities are where eager has them; all else is equal. The module
    is copied; Dynamo's caches are reset."""
    if not callable(module):
        raise usage("the first argument is neither a module nor a function", "check")
    examples, structure = tree_flatten((args, kwargs or {}))
    names = axis_names(dynamic_shapes, args, kwargs or {})
    sets = list(sizes) if sizes is not None else default_sizes(sorted(
        {name for axes in names.values() for name in axes.values()}))
    result = CheckReport()
    for number, chosen in enumerate(sets or [{}]):
        generator = torch.Generator().manual_seed(seed + number)
        leaves = [like(leaf, {axis: chosen[name] for axis, name in names.get(i, {}).items()},
                       generator, is_new=bool(chosen)) for i, leaf in enumerate(examples)]
        text = ", ".join(f"{name}={size}" for name, size in chosen.items())
        given = torch.utils._pytree.tree_unflatten(leaves, structure)
        expected = run(module, given, backward, seed)
        exact = exact_run(module, given, backward, seed, result.notes)
        for kind in ("fixed", "dynamic") if names else ("fixed",):
            torch._dynamo.reset()
            known = len(reports.REPORTS)
            compile_this = lambda function: torch.compile(
                function, backend=backend(), dynamic=kind == "dynamic", options=options or None)
            ours = run(module, given, backward, seed, compiler=compile_this)
            new = reports.REPORTS[known:]
            result.graphs += len(new)
            result.eager += [op.op for one in new for op in one.eager]
            result.comparisons += compare(kind, text, ours, expected, exact)
    if not result.graphs:
        result.notes.append(NO_GRAPH)
    return result


def backend() -> Callable:
    from ..backend import compile_graph
    return compile_graph


def axis_names(shapes: Any, args: tuple, kwargs: dict[str, Any]) -> dict[int, dict[int, str]]:
    """The names of dynamic axes, by the position of the argument among all leaves."""
    if shapes is None:
        return {}
    if isinstance(shapes, dict) and not (set(shapes) <= set(kwargs)):
        raise usage(f"dynamic_shapes names {', '.join(map(str, shapes))}; the keyword arguments are "
                    f"{', '.join(kwargs) or 'none'}", "check", "give a tuple for args")
    both = ((), shapes) if isinstance(shapes, dict) else (
        shapes if len(shapes) == 2 and isinstance(shapes[1], dict) and isinstance(shapes[0], tuple)
        else (shapes, {}))
    found: dict[int, dict[int, str]] = {}
    position = 0
    for value, shape in itertools.chain(
            itertools.zip_longest(args, both[0]),
            ((value, both[1].get(name)) for name, value in kwargs.items())):
        if isinstance(shape, dict) and isinstance(value, torch.Tensor):
            found[position] = {axis % value.dim(): getattr(name, "__name__", str(name))
                               for axis, name in shape.items()}
        position += len(tree_flatten(value)[0])
    return found


def default_sizes(names: list[str]) -> list[dict[str, int]]:
    """Sets of sizes, those first whose sizes are equal or multiples of one another."""
    if not names:
        return []
    sets = list(itertools.product(SIZES, repeat=min(len(names), 3)))
    related = lambda a, b: a != b and (a % b == 0 or b % a == 0)
    sets.sort(key=lambda values: -sum(related(a, b) for a, b in itertools.combinations(values, 2)))
    spread = sets[::max(1, len(sets) // (2 * MAX_RUNS))][:MAX_RUNS]
    return [dict(zip(names, itertools.chain(values, itertools.repeat(values[-1]))))
            for values in spread]


def like(leaf: Any, axes: dict[int, int], generator: torch.Generator, is_new: bool) -> Any:
    """A random tensor like an example, with other sizes along `axes`."""
    if not isinstance(leaf, torch.Tensor):
        return leaf
    if not is_new:
        return leaf.detach().clone().requires_grad_(leaf.is_floating_point())
    shape = [axes.get(axis, size) for axis, size in enumerate(leaf.shape)]
    source = leaf.detach().cpu()
    if leaf.is_floating_point():
        spread = source.double().std(correction=0) if source.numel() else torch.tensor(1.0)
        centre = source.double().mean() if source.numel() else torch.tensor(0.0)
        if not torch.isfinite(spread + centre):  # a mask of -inf
            picked = torch.randint(max(source.numel(), 1), shape, generator=generator)
            return source.flatten()[picked].to(leaf.device)
        values = torch.randn(shape, generator=generator, dtype=torch.float64) * spread + centre
        return values.to(leaf.device, leaf.dtype).requires_grad_()
    if not source.numel():
        return torch.zeros(shape, dtype=leaf.dtype, device=leaf.device)
    picked = torch.randint(source.numel(), shape, generator=generator)
    return source.flatten()[picked].to(leaf.device)


@dataclass
class Run:
    """Tensors by what they are: "output 0", "gradient of weight"."""

    tensors: dict[str, torch.Tensor | None]


def run(module: Callable, given: Any, backward: bool, seed: int,
        dtype: torch.dtype | None = None,
        compiler: Callable | None = None) -> Run:
    """Results and gradients of a copy of the module. The gradients are taken of a weighted sum of all float results.
    dtype: all floats are converted to it first."""
    convert = lambda x: (x.detach().to(dtype or x.dtype).clone().requires_grad_(x.requires_grad)
                         if isinstance(x, torch.Tensor) and x.is_floating_point() else x)
    own = copy.deepcopy(module) if isinstance(module, torch.nn.Module) else module
    if isinstance(own, torch.nn.Module):
        own.zero_grad()
        own = own.to(dtype) if dtype is not None else own
    args, kwargs = tree_map(convert, given)
    function = compiler(own) if compiler is not None else own
    torch.manual_seed(seed)
    outputs = [x for x in tree_flatten(function(*args, **kwargs))[0] if isinstance(x, torch.Tensor)]
    tensors: dict[str, torch.Tensor | None] = {
        f"output {i}": x.detach() for i, x in enumerate(outputs)}
    sources = [x for x in outputs if x.requires_grad and x.is_floating_point()]
    if not backward or not sources:
        return Run(tensors)
    generator = torch.Generator().manual_seed(seed)
    loss = sum((x * torch.randn(x.shape, generator=generator, dtype=torch.float64)
                .to(x.device, x.dtype)).sum() for x in sources)
    loss.backward()
    for i, leaf in enumerate(tree_flatten((args, kwargs))[0]):
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
            tensors[f"gradient of argument {i}"] = leaf.grad
    if isinstance(own, torch.nn.Module):
        for name, parameter in own.named_parameters():
            if parameter.requires_grad:
                tensors[f"gradient of {name}"] = parameter.grad
    return Run(tensors)


def exact_run(module: Callable, given: Any, backward: bool, seed: int, notes: list[str]) -> Run | None:
    """The run in float64; None, and a note, where the module does not run in it."""
    try:
        return run(module, given, backward, seed, torch.float64)
    except Exception as error:
        notes.append(f"the module does not run in float64: {type(error).__name__}: " + str(error).partition("\n")[0])
        return None


def compare(kind: str, sizes: str, ours: Run, eager: Run, exact: Run | None) -> list[Comparison]:
    found = []
    for name, theirs in eager.tensors.items():
        mine = ours.tensors.get(name)
        if theirs is None and mine is None:
            continue
        if theirs is None or mine is None:
            dtype = (theirs if mine is None else mine).dtype
            missing = "Sinter" if mine is None else "eager"
            found.append(Comparison(kind, sizes, name, dtype, None, None, f"{missing} has none"))
            continue
        truth = exact.tensors.get(name) if exact is not None else None
        found.append(Comparison(kind, sizes, name, theirs.dtype,
                                *difference(mine.detach(), theirs.detach(), truth)))
    return found


def difference(ours: torch.Tensor, eager: torch.Tensor,
               exact: torch.Tensor | None) -> tuple[float | None, float | None, str]:
    """(how far ours is from float64, how far eager is, "" or what is wrong)"""
    for fact in ("shape", "dtype", "device"):
        if getattr(ours, fact) != getattr(eager, fact):
            return None, None, f"{fact} {getattr(ours, fact)}, eager has {getattr(eager, fact)}"
    if ours.stride() != eager.stride():
        return None, None, f"strides {ours.stride()}, eager has {eager.stride()}"
    if not eager.is_floating_point():
        wrong = int((ours != eager).sum())
        return None, None, f"{wrong} of {eager.numel()} elements differ" if wrong else ""
    reference = (eager if exact is None or exact.shape != eager.shape else exact).detach().double()
    a, b = ours.double(), eager.double()
    special = ~(b.isfinite() & reference.isfinite())
    if not torch.equal(torch.nan_to_num(a[special], 3.0), torch.nan_to_num(b[special], 3.0)):
        return None, None, "NaN or infinity in other places than eager's"
    kept = ~special
    scale = float(reference[kept].abs().max()) if kept.any() else 0.0
    largest = lambda x: float((x - reference)[kept].abs().max()) / (scale or 1.0) if kept.any() else 0.0
    mine, theirs = largest(a), largest(b)
    limit = max(FACTOR * theirs, UNITS * torch.finfo(eager.dtype).eps)
    if mine <= limit:
        return mine, theirs, ""
    return mine, theirs, f"{mine:.1e} from float64, eager {theirs:.1e}, allowed {limit:.1e}"
