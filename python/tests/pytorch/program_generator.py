"""Makes random programs. A statement is drawn, run in eager and in float64 for each set of sizes, and
dropped where torch refuses it, where it is too large, or where its numbers are ill-conditioned."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import dataclass, field

import torch
from programs import (DOUBLE_SCOPE, DTYPES, EAGER_SCOPE, EPS, FLOATS, NAMES, Input, Program,
                      Statement, double, double_by_default, is_float)

SIZES = (1, 2, 3, 4, 6, 8)
MOST_ELEMENTS = 1024
MOST_RANK = 6
LARGEST = 16.0  # larger floats are scaled down, so that float16 does not overflow
NUMBERS = (0, 1, -1, 2, 3, -3, 5, 7, -8, 2**31, -2**31 - 1, 2**40 + 1, 1000)
MARGIN = 32  # roundings: floats that are nearer to a step of a function are not given to it

Dim = tuple  # the size of an axis in each world


class World:
    """The values of a program for one set of sizes, in eager and in float64."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self.eager: dict[str, torch.Tensor] = {}
        self.exact: dict[str, torch.Tensor] = {}

    def run(self, code) -> None:
        with torch.no_grad():
            exec(code, EAGER_SCOPE, self.eager)
            with double_by_default():
                exec(code, DOUBLE_SCOPE, self.exact)


@dataclass
class Draw:
    """A statement as a kind proposes it: lines, then expressions whose values are the results.
    moves: the results hold elements of the operands as they are."""

    expression: str
    lines: list[str] = field(default_factory=list)
    moves: bool = False


class Reject(Exception):
    """A kind that does not suit the values there are."""


class Generator:
    def __init__(self, seed: int, backward: bool = False, dynamic: bool = False,
                 length: int | None = None, has_numbers: bool = False) -> None:
        self.rng = random.Random(seed)
        self.seed, self.backward = seed, backward
        self.float = self.rng.choice(("f32", "f32", "f16", "bf16"))
        self.length = length or self.rng.randint(2, 10)
        self.numbers = ("n0", "n1") if has_numbers else ()
        self._draw_sizes(dynamic)
        self.inputs: list[Input] = []
        self.statements: list[Statement] = []
        self.names: list[str] = []  # in the order of their making
        self.exact: set[str] = set()  # values without roundings
        self.used: set[str] = set()

    def _draw_sizes(self, dynamic: bool) -> None:
        rng = self.rng
        sizes = {name: rng.choice(SIZES) for name in "BSHD"}
        if rng.random() < 0.4:  # a size is the product of two others
            whole, a, b = rng.sample("BSHD", 3)
            sizes.update({whole: sizes[a] * sizes[b]} if sizes[a] * sizes[b] <= 12
                         else {a: 2, b: 2, whole: 4})
        if not dynamic and rng.random() < 0.06:
            sizes[rng.choice("BSHD")] = 0
        self.dynamic: tuple[str, ...] = ()
        self.worlds = [World(sizes)]
        if dynamic:
            self.dynamic = rng.choice((("B",), ("S",), ("B", "S"), ("B", "S"), ("S", "H")))
            values = rng.sample((2, 3, 4, 5, 6, 7), len(self.dynamic)) if rng.random() < 0.85 \
                else [4] * len(self.dynamic)
            sizes.update(zip(self.dynamic, values))
            for _ in range(2):
                self.worlds.append(World({**sizes, **{name: rng.choice((2, 3, 4, 6, 8, 9))
                                                      for name in self.dynamic}}))
        if self.numbers:
            self._draw_numbers()
        self.pair = rng.choice(("BS", "BS", "SB", "BH", "HS", "SD"))
        self.table: dict[Dim, list[str]] = {}
        names = "BSHD"
        for count in (1, 2, 3):
            for chosen in itertools.combinations(names, count):
                self._add_size(" * ".join(chosen))
        for number in (*SIZES, 5, 12, 16):
            self._add_size(str(number))

    def _draw_numbers(self) -> None:
        """Ints that change from call to call, at first small ones."""
        while len(self.worlds) < 4:
            self.worlds.append(World(dict(self.worlds[0].sizes)))
        for i, world in enumerate(self.worlds):
            numbers = {name: self.rng.choice((2, 3, 5, -2, -3) if i == 0 else NUMBERS) for name in self.numbers}
            world.sizes.update(numbers)
            world.eager.update(numbers)
            world.exact.update(numbers)

    def _add_size(self, text: str) -> None:
        self.table.setdefault(self.dim_of(text), []).append(text)

    # ---- what kinds ask

    def value(self, name: str) -> torch.Tensor:
        return self.worlds[0].eager[name]

    def dims(self, name: str) -> list[Dim]:
        return list(zip(*[world.eager[name].shape for world in self.worlds]))

    def rank(self, name: str) -> int:
        return self.value(name).dim()

    def number(self, value: int) -> Dim:
        return (value,) * len(self.worlds)

    def is_fixed(self, dim: Dim) -> bool:
        return len(set(dim)) == 1

    def pick(self, types: str = "float", low: int = 0, high: int = MOST_RANK, when=None) -> str:
        """A value: of "float", "int" (i64, i32), "bool", or "any"; the last ones more often."""
        def suits(name: str) -> bool:
            tensor = self.value(name)
            return of_types(tensor, types) and low <= tensor.dim() <= high \
                and (when is None or when(name))
        names = [name for name in self.names if suits(name)]
        if not names or len(self.inputs) < 5 and self.rng.random() < 0.12:
            return self.made(types, low, high, when)
        weights = [1 + 5 * (name not in self.used and name[0] == "v") + 2 * i / len(names)
                   for i, name in enumerate(names)]
        return self.rng.choices(names, weights)[0]

    def made(self, types: str, low: int, high: int, when=None) -> str:
        rank = self.rng.randint(low, max(low, min(high, 4)))
        dims = [self.any_dim() for _ in range(rank)]
        chance = self.rng.random()
        if rank >= 3 and chance < 0.5:  # such as [batch, tokens, ...], beside [batch * tokens, ...]
            dims[:2] = [self.dim_of(name) for name in self.pair]
        elif rank >= 1 and chance < 0.7:
            dims[0] = self.dim_of(" * ".join(self.pair))
        if types == "any":
            types = "float"
        name = self.input(types, dims)
        if when is not None and not when(name):
            raise Reject
        return name

    def any_dim(self) -> Dim:
        rng = self.rng
        return self.dim_of(rng.choice(("B", "S", "H", "D", "B", "S", "D", "H * D", "S * H", "B * H",
                                       "1", "2", "3", "4", *self.pair, " * ".join(self.pair),
                                       " * ".join(self.pair))))

    def dim_of(self, text: str) -> Dim:
        return tuple(eval(text, {}, world.sizes) for world in self.worlds)

    def text_of(self, dim: Dim) -> str:
        """A size as an expression of the program's sizes."""
        texts = self.table.get(dim)
        if not texts:
            if not self.is_fixed(dim):
                raise Reject
            return str(dim[0])
        return self.rng.choice(texts)

    def input(self, types: str, dims: list[Dim], high: Dim | None = None, low: int = 0,
              dtype: str | None = None, maker: str | None = None) -> str:
        """A new input. Integers are below `high`; without it small ones, or near the edges."""
        rng = self.rng
        count = max(self._elements(dims))
        if len(self.inputs) >= 9 or count > MOST_ELEMENTS or len(dims) > MOST_RANK:
            raise Reject
        if dtype is None:
            dtype = {"float": self.float if rng.random() < 0.9 else rng.choice(list(FLOATS)),
                     "int": rng.choice(("i64", "i64", "i32")), "bool": "b1"}[types]
        numbers: tuple[str, ...] = ()
        if maker is None and types == "float":
            maker = "normal" if rng.random() < 0.85 else "integers"
            numbers = () if maker == "normal" else ("-2", "3")
        elif maker is None and types == "bool":
            maker = "bools"
        elif maker is None and high is not None:
            maker, numbers = "integers", (str(low), self.text_of(high))
        elif maker is None:
            maker = "edges" if rng.random() < 0.4 else "integers"
            numbers = () if maker == "edges" else ("-5", "6")
        elif maker == "distinct":
            numbers = (self.text_of(high),)
        one = Input(f"x{len(self.inputs)}", maker, rng.randrange(1000),
                    tuple(self.text_of(dim) for dim in dims), dtype, numbers)
        for world in self.worlds:
            tensor = one.make(world.sizes)
            world.eager[one.name], world.exact[one.name] = tensor, double(tensor)
        self.inputs.append(one)
        self.names.append(one.name)
        self.exact.add(one.name)
        return one.name

    def _elements(self, dims: list[Dim]) -> list[int]:
        counts = [1] * len(self.worlds)
        for dim in dims:
            counts = [count * size for count, size in zip(counts, dim)]
        return counts

    def like(self, dims: list[Dim], types: str = "float", **options) -> str:
        """A value of this shape, there already or new."""
        names = [name for name in self.names if self.dims(name) == dims
                 and of_types(self.value(name), types)]
        if names and not options and self.rng.random() < 0.6:
            return self.rng.choice(names)
        return self.input(types, dims, **options)

    def operand(self, dims: list[Dim], **options) -> str:
        """A float of this shape as an expression: a value, or one with its axes in another order."""
        if len(dims) < 2 or self.rng.random() < 0.6:
            return self.like(dims, "float", **options)
        order = list(range(len(dims)))
        self.rng.shuffle(order)
        name = self.like([dims[order.index(axis)] for axis in range(len(dims))], "float", **options)
        return f"{name}.permute({', '.join(map(str, order))})"

    def broadcasting(self, dims: list[Dim], types: str = "float", **options) -> str:
        """A value that broadcasts to a shape."""
        one = self.number(1)
        names = [name for name in self.names if of_types(self.value(name), types)
                 and all(a in (b, one) for a, b in zip(reversed(self.dims(name)), reversed(dims)))
                 and self.rank(name) <= len(dims)]
        if names and not options and self.rng.random() < 0.7:
            return self.rng.choice(names)
        kept = [dim if self.rng.random() < 0.7 else one for dim in dims]
        return self.like(kept[self.rng.choice((0, 0, 0, 1, 2)):], types, **options)

    def axis(self, name: str) -> int:
        rank = self.rank(name)
        if rank == 0:
            raise Reject
        return self.rng.randrange(-rank, rank)

    def axes(self, name: str, most: int = 3) -> tuple[int, ...]:
        rank = self.rank(name)
        count = self.rng.randint(1, max(1, min(rank, most)))
        if rank == 0:
            raise Reject
        axes = self.rng.sample(range(rank), count)
        return tuple(axis - rank if self.rng.random() < 0.4 else axis for axis in axes)

    def fixed_axis(self, name: str) -> int:
        """An axis of one size in all worlds; seldom another one."""
        axes = [i for i, dim in enumerate(self.dims(name)) if self.is_fixed(dim)]
        if self.rng.random() < 0.15 or len(axes) == self.rank(name):
            return self.axis(name)
        if not axes:
            raise Reject
        axis = self.rng.choice(axes)
        return axis - self.rank(name) if self.rng.random() < 0.4 else axis

    def size(self, name: str, axis: int) -> int:
        return min(self.dims(name)[axis])

    def scalar(self) -> str:
        return self.rng.choice(("0.5", "2", "-1", "1.5", "3", "0.1", "-0.25", "1"))

    def need_margin(self, expression: str, *operands: str) -> None:
        """A step of a function where `expression` is 0: no element may be near it, unless the
        operands have no roundings."""
        if all(name in self.exact or not is_float(self.value(name)) for name in operands):
            return
        if len(self.worlds) > 1:
            raise Reject
        with double_by_default():
            distance = eval(expression, DOUBLE_SCOPE, self.worlds[0].exact)
        if distance.numel() and not distance.abs().min() > MARGIN * EPS[DTYPES[self.widest()]]:
            raise Reject

    def widest(self) -> str:
        """The float type of the program that rounds most."""
        names = {NAMES[self.value(name).dtype] for name in self.names
                 if is_float(self.value(name))}
        return next((name for name in ("bf16", "f16") if name in names), "f32")

    # ---- statements

    def add(self, kind: str, draw: Draw) -> bool:
        """Runs a statement in all worlds, and keeps it if its results are good."""
        read = re.findall(r"\b[xv]\d+\b", "\n".join([*draw.lines, draw.expression]))
        first = len(self.names)
        trial = compile("\n".join([*draw.lines, f"result = {draw.expression}"]), "<trial>", "exec")
        for world in self.worlds:
            try:
                world.run(trial)
            except (RuntimeError, TypeError, ValueError, IndexError, ZeroDivisionError,
                    NotImplementedError, OverflowError, AttributeError):
                return False
        results = [world.eager["result"] for world in self.worlds]
        if isinstance(results[0], (list, tuple)):
            count = len(results[0])
            if not 1 <= count <= 6 or any(len(result) != count for result in results):
                return False
            names = [f"v{first + i}" for i in range(count)]
            line = f"{', '.join(names)}{',' if count == 1 else ''} = {draw.expression}"
        else:
            names = [f"v{first}"]
            line = f"{names[0]} = {draw.expression}"
        lines = [*draw.lines, line]
        for position, name in enumerate(names):
            scale = self._scale_of(results[0], position)
            if scale is None:
                return False
            if scale:
                lines.append(f"{name} = {name} * {scale}")
        code = compile("\n".join(lines), "<statement>", "exec")
        for world in self.worlds:
            world.run(code)
        if not all(self._is_good(name) for name in names):
            for world in self.worlds:
                for name in names:
                    del world.eager[name], world.exact[name]
            return False
        self.statements.append(Statement(kind, tuple(lines), tuple(names)))
        self.names += names
        self.used.update(read)
        for name in names:
            if draw.moves and all(name in self.exact for name in read) \
                    or not is_float(self.value(name)):
                self.exact.add(name)
        return True

    def _scale_of(self, result, position: int) -> str | None:
        """An op that brings the numbers of a result into range; "": none is needed; None: the result is of no use."""
        tensor = result[position] if isinstance(result, (list, tuple)) else result
        if not isinstance(tensor, torch.Tensor) or tensor.dtype not in NAMES:
            return None
        if tensor.numel() > MOST_ELEMENTS or tensor.dim() > MOST_RANK:
            return None
        if not is_float(tensor) or not tensor.numel():
            return ""
        finite = tensor[tensor.isfinite()]
        if finite.numel() < tensor.numel() and self.rng.random() < 0.8:
            return None
        largest = finite.abs().max().item() if finite.numel() else 0.0
        if largest <= LARGEST:
            return ""
        if largest > 2000:
            return None
        return "0.125" if largest < 8 * LARGEST else "0.015625"

    def _is_good(self, name: str) -> bool:
        for world in self.worlds:
            eager, exact = world.eager[name], world.exact[name]
            if not isinstance(exact, torch.Tensor) or eager.shape != exact.shape:
                return False
            if eager.numel() > MOST_ELEMENTS:
                return False
            if not is_float(eager):
                if not torch.equal(eager, exact):
                    return False
                continue
            if not eager.numel():
                continue
            a, b = eager.double(), exact
            if not torch.equal(a.isfinite(), b.isfinite()):
                return False
            difference = (a - b)[b.isfinite()]
            scale = max(1.0, b[b.isfinite()].abs().max().item() if difference.numel() else 0.0)
            if difference.numel() and difference.abs().max() > 64 * EPS[DTYPES[self.widest()]] * scale:
                return False
        return True

    def program(self, kinds: dict) -> Program:
        names, weights = list(kinds), [weight for _, weight in kinds.values()]
        tries = 0
        while len(self.statements) < self.length and tries < 12 * self.length:
            tries += 1
            kind = self.rng.choices(names, weights)[0]
            before = len(self.inputs)
            try:
                draw = kinds[kind][0](self)
                done = draw is not None and self.add(kind, draw)
            except Reject:
                done = False
            if not done:
                self._forget_inputs(before)
        if not self.statements:
            self.add("neg", Draw(f"-{self.made('float', 1, 3)}"))
        made = [name for statement in self.statements for name in statement.results]
        last = [name for name in made if name not in self.used]
        others = [name for name in made if name in self.used and self.rng.random() < 0.15]
        return Program(self.worlds[0].sizes, tuple(self.inputs), tuple(self.statements),
                       tuple((last + others)[:8]), self.backward, self.dynamic,
                       tuple(world.sizes for world in self.worlds[1:]), self.seed, self.numbers)

    def _forget_inputs(self, count: int) -> None:
        for one in self.inputs[count:]:
            self.names.remove(one.name)
            for world in self.worlds:
                del world.eager[one.name], world.exact[one.name]
        del self.inputs[count:]


def of_types(tensor: torch.Tensor, types: str) -> bool:
    if types == "any":
        return True
    if types == "float":
        return is_float(tensor)
    return tensor.dtype == torch.bool if types == "bool" \
        else tensor.dtype in (torch.int64, torch.int32)
