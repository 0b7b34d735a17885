"""Straight-line torch programs as data: sizes, inputs made from seeds, and statements of Python.

A program runs in eager, in float64 (every float type is then float64), and in float64 with the
rounding of each statement's type put in at random, which shows how much roundings can move a result.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F

FLOATS = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
OTHERS = {"i64": torch.int64, "i32": torch.int32, "b1": torch.bool}
DTYPES = {**FLOATS, **OTHERS}
COMPLEX = {"c32": torch.complex32, "c64": torch.complex64, "c128": torch.complex128}  # inside of statements
NAMES = {dtype: name for name, dtype in DTYPES.items()}
EPS = {dtype: torch.finfo(dtype).eps for dtype in FLOATS.values()}

# Numbers around which integers overflow, or float types stop to hold them.
EDGES = (2**31, 2**53, 2**63, 2**24, 0)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(seed: int, shape: tuple, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(shape, generator=seeded(seed)).to(dtype)


def integers(seed: int, shape: tuple, dtype: torch.dtype, low: int, high: int) -> torch.Tensor:
    """Numbers low .. high - 1; for floats, such numbers too, so that ties are frequent."""
    return torch.randint(low, max(high, low + 1), shape, generator=seeded(seed)).to(dtype)


def edges(seed: int, shape: tuple, dtype: torch.dtype) -> torch.Tensor:
    """Integers near powers of two at which an integer or a float type ends."""
    generator = seeded(seed)
    count = 1
    for size in shape:
        count *= size
    picks = torch.randint(0, 2 * len(EDGES), (count,), generator=generator).tolist()
    steps = torch.randint(-3, 4, (count,), generator=generator).tolist()
    info = torch.iinfo(dtype)
    numbers = [min(max((-1) ** pick * EDGES[pick // 2] + step, info.min), info.max)
               for pick, step in zip(picks, steps)]
    return torch.tensor(numbers, dtype=dtype).reshape(shape)


def bools(seed: int, shape: tuple, dtype: torch.dtype = torch.bool) -> torch.Tensor:
    return torch.randint(0, 3, shape, generator=seeded(seed)) > 0


def distinct(seed: int, shape: tuple, dtype: torch.dtype, high: int) -> torch.Tensor:
    """A vector of row numbers that are all different: shape[0] <= high."""
    return torch.randperm(high, generator=seeded(seed))[:shape[0]].to(dtype)


MAKERS = {"normal": normal, "integers": integers, "edges": edges, "bools": bools,
          "distinct": distinct}
SCOPE = {"torch": torch, "F": F, **MAKERS}
EAGER_SCOPE = {**SCOPE, **DTYPES, **COMPLEX}
DOUBLE_SCOPE = {**EAGER_SCOPE, **{name: torch.float64 for name in FLOATS},
                **{name: torch.complex128 for name in COMPLEX}}


@dataclass(frozen=True)
class Input:
    """x = maker(seed, shape, dtype, *numbers); shape and numbers are expressions of sizes."""

    name: str
    maker: str
    seed: int
    shape: tuple[str, ...]
    dtype: str
    numbers: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        shape = "(" + "".join(f"{size}, " for size in self.shape).rstrip(" ") + ")"
        return f"{self.maker}({', '.join([str(self.seed), shape, self.dtype, *self.numbers])})"

    def make(self, sizes: dict[str, int]) -> torch.Tensor:
        return eval(self.text, EAGER_SCOPE, sizes)


@dataclass(frozen=True)
class Statement:
    kind: str
    lines: tuple[str, ...]
    results: tuple[str, ...]


def assigned(line: str) -> list[str]:
    """The names that a line binds; none if it does something else."""
    match = re.match(r"([a-z]\d*(?:, [a-z]\d*)*),? = ", line)
    return match.group(1).split(", ") if match else []


@dataclass(frozen=True)
class Program:
    """dynamic: names of sizes that are symbols of the graph; other_sizes: what they become in later
    calls. backward: gradients of a weighted sum of the float results are results too. numbers: names of sizes
    that are arguments behind the inputs, ints that change from call to call; no input has them as a size."""

    sizes: dict[str, int]
    inputs: tuple[Input, ...]
    statements: tuple[Statement, ...]
    outputs: tuple[str, ...]
    backward: bool = False
    dynamic: tuple[str, ...] = ()
    other_sizes: tuple[dict[str, int], ...] = ()
    seed: int = 0
    numbers: tuple[str, ...] = ()

    def with_(self, **changes) -> Program:
        return replace(self, **changes)

    def source(self, after: str | None = None) -> str:
        """`after`: a line put in behind each assignment, with the name in the place of {name}."""
        lines = [f"def program({', '.join([*(one.name for one in self.inputs), *self.numbers])}):"]
        for statement in self.statements:
            # Where tensors change in place, a name that is bound anew would lose its views.
            is_plain = all(map(assigned, statement.lines))
            for line in statement.lines:
                lines.append(f"    {line}")
                if after and is_plain:
                    lines += ["    " + after.replace("{name}", name) for name in assigned(line)]
            if after and not is_plain:
                lines += ["    " + after.replace("{name}", name) for name in statement.results]
        return "\n".join(lines + [f"    return [{', '.join(self.outputs)}]"]) + "\n"

    def listing(self) -> str:
        """The program for a reader, with its sizes and inputs."""
        lines = [", ".join(f"{name} = {size}" for name, size in self.sizes.items())]
        lines += [f"{one.name} = {one.text}" for one in self.inputs]
        facts = (["gradients"] if self.backward else []) \
            + ([f"dynamic {self.dynamic + self.numbers}, then {self.other_sizes}"] if self.changes else [])
        return "\n".join(lines + [f"# {fact}" for fact in facts]) + "\n" + self.source()

    @property
    def changes(self) -> bool:
        """Whether calls differ in sizes or numbers."""
        return bool(self.dynamic or self.numbers)

    def function(self):
        return function_of(self.source(), EAGER_SCOPE)

    def with_numbers(self, function, sizes: dict[str, int]):
        """The program's function for the numbers of one call."""
        numbers = [sizes[name] for name in self.numbers]
        return (lambda *inputs: function(*inputs, *numbers)) if numbers else function

    def make_inputs(self, sizes: dict[str, int] | None = None, device: str = "cpu") -> list:
        return [one.make(sizes or self.sizes).to(device) for one in self.inputs]

    def all_sizes(self) -> list[dict[str, int]]:
        return [self.sizes, *self.other_sizes]


def function_of(source: str, scope: dict):
    names = dict(scope)
    exec(compile(source, "<program>", "exec"), names)
    return names["program"]


@contextlib.contextmanager
def double_by_default():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def is_float(tensor: torch.Tensor) -> bool:
    return tensor.dtype.is_floating_point


def cotangents_of(outputs: list, seed: int = 1) -> list:
    """The weights of the float results, whose sum is differentiated."""
    return [normal(seed + i, tuple(one.shape), one.dtype).to(one.device)
            for i, one in enumerate(outputs) if is_float(one)]


def gradients(function, inputs: list, cotangents: list | None) -> tuple[list, list]:
    """Results and the gradients of all float inputs, by torch's autograd."""
    inputs = [one.detach().clone(memory_format=torch.preserve_format)
              .requires_grad_(is_float(one)) for one in inputs]
    outputs = function(*inputs)
    if cotangents is None:
        cotangents = cotangents_of(outputs)
    pairs = [(out, weight) for out, weight in zip(filter(is_float, outputs), cotangents)
             if out.requires_grad]
    wanted = [one for one in inputs if one.requires_grad]
    if pairs and wanted:
        grads = torch.autograd.grad([out for out, _ in pairs], wanted,
                                    [weight for _, weight in pairs], materialize_grads=True,
                                    allow_unused=True)
    else:
        grads = [torch.zeros_like(one) for one in wanted]
    return [out.detach() for out in outputs], list(grads)


def double(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if is_float(tensor) else tensor


@dataclass
class Reference:
    """The results of eager and float64 for one set of sizes."""

    program: Program
    inputs: list
    eager: list = field(default_factory=list)
    exact: list = field(default_factory=list)
    cotangents: list = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of(program: Program, sizes: dict[str, int], device: str = "cpu") -> Reference:
        self = Reference(program, program.make_inputs(sizes, device), sizes=sizes)
        run = self._run if program.backward else self._forward
        if program.backward:
            with torch.no_grad():
                self.cotangents = cotangents_of(self.bound(program.function())(*clones(self.inputs)))
        self.eager = run(program.function(), self.inputs, self.cotangents)
        with double_by_default():
            self.exact = run(function_of(program.source(), DOUBLE_SCOPE),
                             [double(one) for one in self.inputs],
                             [double(one) for one in self.cotangents])
        return self

    def bound(self, function):
        return self.program.with_numbers(function, self.sizes)

    def _run(self, function, inputs, cotangents) -> list:
        outputs, grads = gradients(self.bound(function), inputs, cotangents)
        return outputs + grads

    def _forward(self, function, inputs, cotangents) -> list:
        with torch.no_grad():
            return self.bound(function)(*clones(inputs))

    def noisy(self, trials: int = 6) -> list[list]:
        """Results in float64 where inputs and each statement's floats have a random rounding error."""
        dtypes: list[torch.dtype] = []  # of all assignments, in their order

        def collect(tensor):
            dtypes.append(getattr(tensor, "dtype", None))

        with torch.no_grad():
            self.bound(function_of(self.program.source("collect({name})"),
                                   {**EAGER_SCOPE, "collect": collect}))(*clones(self.inputs))
        results = []
        for trial in range(trials):
            generator = seeded(trial)

            def moved(tensor, dtype):
                if not is_float(tensor):
                    return tensor
                error = torch.rand(tensor.shape, generator=generator) * 2 - 1
                return tensor.double() * (1 + EPS.get(dtype, 0.0) * error.to(tensor.device))

            order = iter(dtypes)

            def rounded(tensor):
                dtype = next(order)
                return moved(tensor, dtype) if isinstance(tensor, torch.Tensor) else tensor

            source = self.program.source("{name} = rounded({name})")
            with double_by_default():
                function = function_of(source, {**DOUBLE_SCOPE, "rounded": rounded})
                run = self._run if self.program.backward else self._forward
                results.append(run(function, [moved(one, one.dtype) for one in self.inputs],
                                   [moved(one, one.dtype) for one in self.cotangents]))
        return results


def clones(tensors: list) -> list:
    return [one.clone(memory_format=torch.preserve_format) for one in tensors]
