"""Random ONNX graphs through `sinter.from_onnx`, beside onnx.reference in the graph's types and in float64.

    python random_graphs.py [--seed 0] [--count 2000]

Sizes are few, so that they coincide, and 0 now and then; a quarter of the graphs have dynamic dims. Ops that jump, such as
Floor and comparisons, read values alone that every order of computation has exactly. Prints each failure with the
smallest graph that still fails, and counts. Exit code 1 if any graph is wrong or crashes.
"""

from __future__ import annotations

import argparse
import collections
import sys
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import sinter

OPSET = 21
SIZES = (1, 2, 2, 3, 3, 4, 5)
FLOATS = TensorProto.FLOAT
Array = np.ndarray


@dataclass
class Value:
    """A tensor of a graph. is_exact: all orders of computation give these numbers."""

    name: str
    array: Array
    is_exact: bool = True

    @property
    def rank(self) -> int:
        return self.array.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def is_float(self) -> bool:
        return self.array.dtype == np.float32


@dataclass
class Graph:
    inputs: dict[str, Array] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    nodes: list[Any] = field(default_factory=list)
    is_dynamic: bool = False

    def proto(self, outputs: list[str], is_wide: bool = False, opset: int = OPSET) -> Any:
        """is_wide: with float64 for float32."""
        convert = lambda x: x.astype(np.float64) if is_wide and x.dtype == np.float32 else x
        kind = lambda x: helper.np_dtype_to_tensor_dtype(convert(x).dtype)
        inputs = [
            helper.make_tensor_value_info(name, kind(x), self.dims(x.shape))
            for name, x in self.inputs.items()
        ]
        stored = [numpy_helper.from_array(convert(x), name) for name, x in self.constants.items()]
        results = [helper.make_tensor_value_info(name, 0, None) for name in outputs]
        nodes = [widened(node) if is_wide else node for node in self.nodes]
        graph = helper.make_graph(nodes, "random", inputs, results, stored)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10
        )

    def dims(self, sizes: tuple[int, ...]) -> list[Any]:
        """Equal sizes from 2 on have one name."""
        return [f"d{size}" if self.is_dynamic and size > 1 else size for size in sizes]


def widened(node: Any) -> Any:
    result = onnx.NodeProto()
    result.CopyFrom(node)
    for one in result.attribute:
        if one.name == "to" and one.i == FLOATS:
            one.i = TensorProto.DOUBLE
    return result


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.graph = Graph(is_dynamic=seed % 4 == 1)
        self.values: list[Value] = []
        for _ in range(self.pick((1, 2, 3))):
            shape = tuple(self.size() for _ in range(self.pick((1, 2, 2, 3, 3, 4))))
            name = f"x{len(self.graph.inputs)}"
            kind = np.int64 if self.chance(0.15) else np.float32
            self.graph.inputs[name] = self.numbers(shape, kind)
            self.values.append(Value(name, self.graph.inputs[name]))

    def pick(self, options: Any) -> Any:
        return options[self.random.integers(len(options))]

    def chance(self, part: float) -> bool:
        return bool(self.random.random() < part)

    def size(self) -> int:
        return 0 if not self.graph.is_dynamic and self.chance(0.03) else self.pick(SIZES)

    def numbers(self, shape: tuple[int, ...], kind: Any = np.float32) -> Array:
        """Quarters, which float32 adds exactly."""
        numbers = self.random.integers(-12, 13, shape)
        return (numbers / 4 if kind == np.float32 else numbers).astype(kind)

    def constant(self, array: Any, dtype: Any = np.int64) -> str:
        """The name of an operand that no node computes: of dynamic sizes another input."""
        given = np.asarray(array, dtype)
        is_input = self.graph.is_dynamic and dtype == np.float32 and given.ndim > 0
        table = self.graph.inputs if is_input else self.graph.constants
        name = f"{'x' if is_input else 'c'}{len(table)}"
        table[name] = given
        return name

    def axis(self, rank: int) -> int:
        return int(self.random.integers(-rank, rank))

    def operand(
        self, is_exact: bool = False, is_float: bool = False, rank: int = 0
    ) -> Value | None:
        """A value that fits, of those made last more often."""
        fits = [
            one
            for one in self.values
            if (one.is_exact or not is_exact)
            and (one.is_float or not is_float)
            and one.rank >= rank
            and one.array.dtype != bool
        ]
        return self.pick(fits[-4:] if self.chance(0.7) else fits) if fits else None

    def other(self, x: Value) -> Value:
        """A value that broadcasts with x: another one, or a constant."""
        fits = [
            one for one in self.values if one.array.dtype == x.array.dtype and broadcasts(one, x)
        ]
        if fits and self.chance(0.6):
            return self.pick(fits)
        shape = tuple(1 if self.chance(0.4) else size for size in x.shape)
        array = self.numbers(shape[self.pick(range(x.rank + 1)) :], x.array.dtype)
        return Value(self.constant(array, array.dtype), array)

    def add(
        self, op: str, inputs: list[str], is_exact: bool, outputs: int = 1, **attributes: Any
    ) -> bool:
        """Adds a node, unless the reference refuses it or its results are large or infinite."""
        names = [f"v{len(self.graph.nodes)}_{i}" for i in range(outputs)]
        known = {one.name: one.array for one in self.values}
        known |= self.graph.inputs | self.graph.constants
        given = {name: known[name] for name in inputs if name}
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in given.items()
        ]
        node = helper.make_node(op, inputs, names, **attributes)
        results = [helper.make_tensor_value_info(name, 0, None) for name in names]
        graph = helper.make_graph([node], "one", infos, results)
        made = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10
        )
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                arrays = [np.asarray(one) for one in ReferenceEvaluator(made).run(None, given)]
        except Exception:
            return False
        if any(
            x.size > 4096 or x.ndim > 5 or not (np.abs(x.astype(np.float64)) < 1e4).all()
            for x in arrays
        ):
            return False
        self.graph.nodes.append(node)
        self.values += [Value(name, x, is_exact) for name, x in zip(names, arrays)]
        return True


def broadcasts(a: Value, b: Value) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a.shape[::-1], b.shape[::-1]))


Statement = Callable[[Generator], Any]
STATEMENTS: list[Statement] = []


def statement(count: int) -> Callable[[Statement], Statement]:
    """Registers a statement, which is drawn so often."""

    def register(function: Statement) -> Statement:
        STATEMENTS.extend([function] * count)
        return function

    return register


# ---- element by element


@statement(3)
def smooth(g: Generator) -> Any:
    x = g.operand(is_float=True)
    ops = (
        "Exp",
        "Tanh",
        "Sigmoid",
        "Erf",
        "Sin",
        "Cos",
        "Softplus",
        "Gelu",
        "Elu",
        "LeakyRelu",
        "Mish",
        "HardSwish",
        "Celu",
        "Selu",
        "Softsign",
        "Atan",
    )
    return x and g.add(g.pick(ops), [x.name], False)


@statement(2)
def kept_exact(g: Generator) -> Any:
    x = g.operand()
    return x and g.add(
        g.pick(
            ("Neg", "Abs", "Relu", "Identity", "Sign") if x.is_exact else ("Neg", "Abs", "Relu")
        ),
        [x.name],
        x.is_exact,
    )


@statement(2)
def jumps(g: Generator) -> Any:
    x = g.operand(is_exact=True, is_float=True)
    return x and g.add(g.pick(("Floor", "Ceil", "Round")), [x.name], True)


@statement(5)
def two_operands(g: Generator) -> Any:
    x = g.operand()
    if x is None:
        return False
    y = g.other(x)
    op = g.pick(("Add", "Sub", "Mul", "Max", "Min", "Div" if x.is_float else "Add"))
    names = [x.name, y.name] if g.chance(0.5) else [y.name, x.name]
    return g.add(op, names, x.is_exact and y.is_exact and op not in ("Mul", "Div"))


@statement(2)
def integers(g: Generator) -> Any:
    fits = [one for one in g.values if one.array.dtype == np.int64]
    if not fits:
        return False
    x = g.pick(fits)
    divisor = g.constant(g.pick((-3, -2, 1, 2, 5)))
    op = g.pick(("Div", "Mod", "Mod"))
    return g.add(
        op, [x.name, divisor], True, **({"fmod": 1} if op == "Mod" and g.chance(0.5) else {})
    )


@statement(2)
def choice(g: Generator) -> Any:
    x = g.operand(is_exact=True)
    if x is None:
        return False
    op = g.pick(("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"))
    if not g.add(op, [x.name, g.other(x).name], True):
        return False
    condition = g.values[-1]
    a = g.operand()
    b = g.other(a)
    return g.add("Where", [condition.name, a.name, b.name], a.is_exact and b.is_exact)


@statement(1)
def bounds(g: Generator) -> Any:
    x = g.operand(is_float=True)
    ends = [g.constant(number, np.float32) if g.chance(0.7) else "" for number in (-1.5, 0.75)]
    return x and g.add("Clip", [x.name, *ends], x.is_exact)


@statement(1)
def cast(g: Generator) -> Any:
    x = g.operand(is_exact=True)
    return x and g.add(
        "Cast", [x.name], True, to=g.pick((TensorProto.INT64, TensorProto.INT32, FLOATS))
    )


# ---- movement


@statement(3)
def other_shape(g: Generator) -> Any:
    x = g.operand(rank=1)
    if x is None:
        return False
    kind = g.pick(("Reshape", "Flatten", "Unsqueeze", "Squeeze", "Transpose"))
    if kind == "Transpose":
        return g.add(
            kind, [x.name], x.is_exact, perm=[int(i) for i in g.random.permutation(x.rank)]
        )
    if kind == "Flatten":
        return g.add(kind, [x.name], x.is_exact, axis=int(g.random.integers(-x.rank, x.rank + 1)))
    if kind == "Unsqueeze":
        return g.add(kind, [x.name, g.constant([g.axis(x.rank + 1)])], x.is_exact)
    if kind == "Squeeze":
        ones = [i - x.rank * g.chance(0.5) for i, size in enumerate(x.shape) if size == 1]
        return bool(ones) and g.add(kind, [x.name, g.constant(ones)], x.is_exact)
    sizes = list(x.shape)
    if x.rank > 1 and g.chance(0.5):
        i = g.pick(range(x.rank - 1))
        sizes[i : i + 2] = [sizes[i] * sizes[i + 1]]
    if sizes and g.chance(0.6):
        sizes[g.pick(range(len(sizes)))] = -1
    elif sizes and len(sizes) == x.rank and g.chance(0.6):
        sizes[g.pick(range(len(sizes)))] = 0
    return g.add(kind, [x.name, g.constant(sizes)], x.is_exact)


@statement(3)
def part(g: Generator) -> Any:
    x = g.operand(rank=1)
    if x is None:
        return False
    axis = g.axis(x.rank)
    size = x.shape[axis]
    step = g.pick((1, 1, 1, 2, -1, -2))
    far = 2**63 - 1
    begin, end = (
        (g.pick((-1, size - 1, far)), g.pick((-far, -size - 1, 0)))
        if step < 0
        else (g.pick((0, 1, -2)), g.pick((size, far, -1)))
    )
    operands = [g.constant([number]) for number in (begin, end, axis, step)]
    return g.add("Slice", [x.name, *operands], x.is_exact)


@statement(2)
def joined(g: Generator) -> Any:
    x = g.operand(rank=1)
    if x is None:
        return False
    axis = g.axis(x.rank)
    shape = list(x.shape)
    shape[axis] = g.pick((0, 1, 2))
    others = [
        one
        for one in g.values
        if one.array.dtype == x.array.dtype
        and one.rank == x.rank
        and all(m == n or i == axis % x.rank for i, (m, n) in enumerate(zip(one.shape, x.shape)))
    ]
    y = g.pick(others)
    z = g.constant(g.numbers(tuple(shape), x.array.dtype), x.array.dtype)
    return g.add("Concat", [x.name, y.name, z], x.is_exact and y.is_exact, axis=axis)


@statement(1)
def split(g: Generator) -> Any:
    x = g.operand(rank=1)
    if x is None:
        return False
    axis = g.axis(x.rank)
    first = int(g.random.integers(0, x.shape[axis] + 1))
    sizes = g.constant([first, x.shape[axis] - first])
    return g.add("Split", [x.name, sizes], x.is_exact, 2, axis=axis)


@statement(2)
def repeated(g: Generator) -> Any:
    x = g.operand()
    if x is None:
        return False
    kind = g.pick(("Expand", "Tile", "Pad"))
    if kind == "Expand":
        sizes = [g.pick((1, 3)) if size == 1 else g.pick((1, size)) for size in x.shape]
        return g.add(kind, [x.name, g.constant([2] * g.chance(0.3) + sizes)], x.is_exact)
    if kind == "Tile":
        return g.add(
            kind, [x.name, g.constant([g.pick((1, 1, 2, 3)) for _ in x.shape])], x.is_exact
        )
    mode = g.pick(("constant", "constant", "edge", "reflect", "wrap"))
    pads = [int(g.random.integers(0, max(1, min(size, 3)))) for size in x.shape * 2]
    return g.add(kind, [x.name, g.constant(pads)], x.is_exact, mode=mode)


@statement(1)
def triangle(g: Generator) -> Any:
    x = g.operand(rank=2)
    return x and g.add(
        "Trilu", [x.name, g.constant(g.pick((-1, 0, 1)))], x.is_exact, upper=int(g.chance(0.5))
    )


# ---- indices


def index(g: Generator, shape: tuple[int, ...], size: int) -> str:
    dtype = g.pick((np.int64, np.int64, np.int32))
    return g.constant(g.random.integers(-size, size, shape), dtype)


@statement(3)
def gathered(g: Generator) -> Any:
    x = g.operand(rank=1)
    if x is None or 0 in x.shape:
        return False
    axis, kind = g.axis(x.rank), g.pick(("Gather", "Gather", "GatherElements", "GatherND"))
    if kind == "Gather":
        shape = g.pick(((), (1,), (3,), (2, 2)))
        return g.add(kind, [x.name, index(g, shape, x.shape[axis])], x.is_exact, axis=axis)
    if kind == "GatherElements":
        shape = tuple(
            g.pick((1, 2, 4)) if i == axis % x.rank else size for i, size in enumerate(x.shape)
        )
        return g.add(kind, [x.name, index(g, shape, x.shape[axis])], x.is_exact, axis=axis)
    count = g.pick(range(1, x.rank + 1))
    parts = [g.random.integers(-size, size, (3, 1)) for size in x.shape[:count]]
    return g.add(kind, [x.name, g.constant(np.concatenate(parts, 1))], x.is_exact)


@statement(2)
def scattered(g: Generator) -> Any:
    x = g.operand(is_float=True, rank=1)
    if x is None or 0 in x.shape:
        return False
    way = g.pick(("none", "none", "add", "max", "min"))
    if g.chance(0.5):
        axis = g.axis(x.rank)
        shape = tuple(
            min(2, size) if i == axis % x.rank else size for i, size in enumerate(x.shape)
        )
        updates = g.constant(g.numbers(shape), np.float32)
        return g.add(
            "ScatterElements",
            [x.name, index(g, shape, x.shape[axis]), updates],
            x.is_exact,
            axis=axis,
            reduction=way,
        )
    count = g.pick(range(1, x.rank + 1))
    parts = [g.random.integers(-size, size, (3, 1)) for size in x.shape[:count]]
    updates = g.constant(g.numbers((3, *x.shape[count:])), np.float32)
    return g.add(
        "ScatterND",
        [x.name, g.constant(np.concatenate(parts, 1)), updates],
        x.is_exact,
        reduction=way,
    )


@statement(1)
def largest(g: Generator) -> Any:
    x = g.operand(is_exact=True, rank=1)
    if x is None or 0 in x.shape:
        return False
    axis = g.axis(x.rank)
    if g.chance(0.5) or not x.is_float:
        return g.add(
            g.pick(("ArgMax", "ArgMin")), [x.name], True, axis=axis, keepdims=int(g.chance(0.5))
        )
    count = g.constant([int(g.random.integers(1, x.shape[axis] + 1))])
    return g.add("TopK", [x.name, count], True, 2, axis=axis, largest=int(g.chance(0.5)))


# ---- rows and products


@statement(3)
def reduced(g: Generator) -> Any:
    x = g.operand(rank=1)
    if x is None or 0 in x.shape and (g.chance(0.5) or not x.is_float):
        return False
    ops = (
        "ReduceSum",
        "ReduceMean",
        "ReduceMax",
        "ReduceMin",
        "ReduceL1",
        "ReduceL2",
        "ReduceSumSquare",
        "ReduceLogSumExp",
    )
    op = g.pick(ops if x.is_float else ("ReduceSum", "ReduceMax", "ReduceMin"))
    axes = g.random.permutation(x.rank)[: g.pick(range(1, x.rank + 1))] - x.rank * g.chance(0.5)
    return g.add(
        op,
        [x.name, g.constant(axes)],
        x.is_exact and op in ("ReduceMax", "ReduceMin") or not x.is_float,
        keepdims=int(g.chance(0.5)),
    )


@statement(2)
def rows(g: Generator) -> Any:
    x = g.operand(is_float=True, rank=1)
    if x is None or 0 in x.shape:
        return False
    kind = g.pick(("Softmax", "LogSoftmax", "LayerNormalization", "CumSum"))
    axis = g.axis(x.rank)
    if kind == "CumSum":
        return g.add(
            kind,
            [x.name, g.constant(axis)],
            False,
            exclusive=int(g.chance(0.5)),
            reverse=int(g.chance(0.5)),
        )
    if kind != "LayerNormalization":
        return g.add(kind, [x.name], False, axis=axis)
    own = x.shape[axis % x.rank :]
    operands = [g.constant(g.numbers(own), np.float32) for _ in range(2)]
    return g.add(kind, [x.name, *operands], False, axis=axis)


@statement(3)
def product(g: Generator) -> Any:
    x = g.operand(is_float=True, rank=1)
    if x is None:
        return False
    fits = [
        one for one in g.values if one.is_float and one.rank and one.shape[-2:][0] == x.shape[-1]
    ]
    shape = g.pick(((x.shape[-1],), (x.shape[-1], 3), (x.shape[-1], 1), (1, x.shape[-1], 2)))
    if fits and g.chance(0.5):
        return g.add("MatMul", [x.name, g.pick(fits).name], False)
    matrix = g.constant(g.numbers(shape), np.float32)
    if x.rank == 2 and len(shape) == 2 and g.chance(0.5):
        bias = g.constant(
            g.numbers(g.pick(((), (shape[1],), (1, shape[1]), (x.shape[0], 1)))), np.float32
        )
        return g.add(
            "Gemm", [x.name, matrix, bias], False, alpha=g.pick((1.0, 0.5)), beta=g.pick((1.0, 2.0))
        )
    return g.add("MatMul", [x.name, matrix], False)


# ---- running


def graph_of(seed: int, count: int = 8) -> tuple[Graph, list[str]]:
    """The graph of a seed, and its outputs: what no node reads."""
    g = Generator(seed)
    for _ in range(8 * count):
        if len(g.graph.nodes) < count:
            g.pick(STATEMENTS)(g)
    read = {name for node in g.graph.nodes for name in node.input}
    made = [
        one.name for one in g.values if one.name not in g.graph.inputs and one.array.dtype != bool
    ]
    return g.graph, [name for name in made if name not in read]


def outcome_of(graph: Graph, outputs: list[str]) -> tuple[str, str]:
    """right, refused, wrong or crashed, and why."""
    if not outputs:
        return "refused", "no output"
    try:
        dims = {
            dim
            for x in graph.inputs.values()
            for dim in graph.dims(x.shape)
            if isinstance(dim, str)
        }
        model = sinter.from_onnx(graph.proto(outputs), sizes=dict.fromkeys(dims, (1, 8)))
        feeds = {name: graph.inputs[name] for name in model.inputs}
        ours = model.run(None, feeds, device="cpu")
    except sinter.SinterError as error:
        return "refused", error.what.split(";")[0][:100]
    except Exception as error:
        return "crashed", f"{type(error).__name__}: {str(error)[:300]}"
    with np.errstate(all="ignore"):
        wide = {
            k: x.astype(np.float64) if x.dtype == np.float32 else x for k, x in graph.inputs.items()
        }
        near = ReferenceEvaluator(graph.proto(outputs)).run(None, graph.inputs)
        exact = ReferenceEvaluator(graph.proto(outputs, True)).run(None, wide)
    for name, mine, theirs, wanted in zip(outputs, ours, near, exact):
        text = difference(np.asarray(mine), np.asarray(theirs), np.asarray(wanted, np.float64))
        if text:
            return "wrong", f"{name}: {text}"
    return "right", ""


def difference(ours: Array, theirs: Array, wanted: Array) -> str:
    """Where ours are farther from float64 than the reference's are, beyond a few roundings; "": nowhere."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{list(ours.shape)}, {theirs.dtype}{list(theirs.shape)} is wanted"
    if not ours.size:
        return ""
    if ours.dtype != np.float32:
        return (
            "" if np.array_equal(ours, theirs) else f"{ours.tolist()} for {theirs.tolist()}"[:300]
        )
    most = max(1.0, float(np.abs(wanted).max()))
    bound = 8 * np.abs(theirs - wanted).max() + 2e-5 * most
    off = np.abs(ours - wanted)
    return (
        ""
        if (off <= bound).all()
        else f"off by {np.nanmax(off)}, {bound} allowed; {int(np.isnan(off).sum())} NaN"
    )


def shrunk(graph: Graph, outputs: list[str], status: str) -> tuple[Graph, list[str]]:
    """The first values that fail alone, with the nodes that they need."""
    for node in graph.nodes:
        for name in node.output:
            small = needed(graph, name)
            if outcome_of(small, [name])[0] == status:
                return small, [name]
    return graph, outputs


def needed(graph: Graph, name: str) -> Graph:
    wanted, nodes = {name}, []
    for node in reversed(graph.nodes):
        if wanted & set(node.output):
            wanted |= set(node.input)
            nodes.insert(0, node)
    constants = {k: x for k, x in graph.constants.items() if k in wanted}
    inputs = {k: x for k, x in graph.inputs.items() if k in wanted}
    return Graph(inputs, constants, nodes, graph.is_dynamic)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    given = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    ops: collections.Counter[str] = collections.Counter()
    for seed in range(given.seed, given.seed + given.count):
        graph, outputs = graph_of(seed)
        status, reason = outcome_of(graph, outputs)
        counts[status] += 1
        if status == "right":
            ops.update(node.op_type for node in graph.nodes)
        elif status == "refused":
            reasons[reason] += 1
        else:
            small, names = shrunk(graph, outputs, status)
            print(
                f"seed {seed}: {status}: {reason}",
                onnx.printer.to_text(small.proto(names)),
                sep="\n",
                flush=True,
            )
    print(", ".join(f"{op} {count}" for op, count in ops.most_common()))
    for reason, count in reasons.most_common(20):
        print(f"{count:4} refused: {reason}")
    print(", ".join(f"{count} {status}" for status, count in sorted(counts.items())))
    return 1 if counts["wrong"] + counts["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
