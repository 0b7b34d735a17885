"""Weights of 8 and 4 bits in graphs of torch, as torchao's layouts of int8, int4 and float8 give them, or a
module's own ops: matrices that a graph computes of codes and scales.

    w = codes.to(float32) * scale              becomes      w = dequantize(packed)
    y = mm(x, w.t())                                        y = mm(x, w.t())

`packed` is a new argument of the graph, behind the others: codes and scales in the order in which kernels
read them, made of the parameters when the graph first runs (`CodedFunction`), or when a module is exported.

Codes are parameters or buffers, which `Finder` follows through casts, views, the subtraction of zero points
and one product with scales, and torchao's op dequantize_affine. A matrix that is rounded to 16 bits, as in
`(codes.to(float32) * scale).to(bfloat16)`, is rounded in Sinter, too: strict numerics keep what eager
computes. Codes without a scale are exact in 16 bits, so that `mm(x, codes.to(bfloat16).t())` reads them as
they are. Scales that are computed of parameters are computed by torch, once.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, replace
from typing import Callable, Sequence

import torch
from torch import fx

from ...errors import bad_input
from ...importing.code_format import largest_group
from ..graphs.dtypes import CASTS
from ..graphs.layout import RESHAPES, with_sources
from ..graphs.nodes import call
from .packed_codes import DTYPES, SCALES, CodeFormat, pack

aten = torch.ops.aten

CODES = {torch.int8: "int8", torch.uint8: "uint8", torch.float8_e4m3fn: "e4m3"}  # of a byte
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
TRANSPOSES = {aten.t.default: [], aten.permute.default: [[1, 0]], aten.transpose.int: [0, 1]}


@dataclass(frozen=True)
class Factor:
    """Scales or zero points: the value of a node, reshaped to `sizes`, which has one for each block of codes.
    Where the codes are transposed, so is it: `sizes` are before that."""

    node: fx.Node
    sizes: tuple[int, int]
    transposed: bool = False

    @property
    def blocks(self) -> tuple[int, int]:
        """How many along the rows, and along the columns of the codes."""
        return self.sizes[::-1] if self.transposed else self.sizes

    def spread(self, value: torch.Tensor, rows: int, groups: int) -> torch.Tensor:
        """The value [rows, groups]."""
        value = value.reshape(self.sizes)
        value = value.t() if self.transposed else value
        for axis, size in enumerate((rows, groups)):
            value = value.repeat_interleave(-(-size // value.shape[axis]), axis)
        return value[:rows, :groups]


@dataclass(frozen=True)
class Coded:
    """A matrix that a node computes of codes: scale * (code - zero).

    node: of the codes [M, K]. view: how the value's axes map to the axes of the codes; "rows" [M, K], "columns" [K, M],
    or "groups" [M, K / g, g]. group: g. dtype: of the value's elements. is_rounded: they were rounded to that type.
    code: of the format, where the graph says that codes have fewer bits than a byte."""

    node: fx.Node
    dtype: torch.dtype
    view: str = "rows"
    group: int = 0
    scale: Factor | None = None
    zero: Factor | None = None
    is_rounded: bool = False
    code: str | None = None

    @property
    def sizes(self) -> tuple[int, int]:
        return tuple(self.node.meta["val"].shape)

    def factor(self, node: fx.Node) -> Factor | None:
        """The value of a node as it is broadcast against this one's: None, if it has one for each column or for
        parts of groups."""
        rows, columns = self.sizes
        axes = {"rows": (rows, columns), "columns": (columns, rows),
                "groups": (rows, columns // (self.group or columns), self.group)}[self.view]
        shape = tuple(node.meta["val"].shape)
        if len(shape) > len(axes) or any(not isinstance(size, int) for size in shape):
            return None
        shape = (1,) * (len(axes) - len(shape)) + shape
        if any(size not in (1, axis) for size, axis in zip(shape, axes)):
            return None
        if self.view == "groups":
            return Factor(node, shape[:2]) if shape[2] == 1 else None
        factor = Factor(node, shape, self.view == "columns")
        return factor if factor.blocks[1] == 1 or columns == 1 else None

    def format(self) -> CodeFormat | None:
        """None: the groups are none of Sinter's, or the scales of another type."""
        rows, columns = self.sizes
        factors = [factor for factor in (self.scale, self.zero) if factor is not None]
        blocks = [-(-columns // factor.blocks[1]) for factor in factors]
        if any(block != columns and columns % block for block in blocks):
            return None
        least = min(blocks, default=columns)
        group = 0 if least >= columns else largest_group(least)
        scale = torch.float32 if self.scale is None else self.scale.node.meta["val"].dtype
        code = self.code or CODES[self.node.meta["val"].dtype]
        if group is None or scale not in SCALES or any(block % (group or 1) for block in blocks):
            return None
        return CodeFormat(code, group, SCALES[scale], self.zero is not None)


class Finder:
    """The coded values of a graph. is_kept: whether an argument keeps its value from call to call."""

    def __init__(self, graph: fx.Graph, is_kept: Callable[[fx.Node], bool]) -> None:
        self.kept: set[fx.Node] = set()  # nodes that are computed of such arguments alone
        self.coded: dict[fx.Node, Coded] = {}
        for node in graph.nodes:
            fake = node.meta.get("val")
            if not isinstance(fake, torch.Tensor):
                continue
            if node.op == "placeholder" and is_kept(node):
                self.kept.add(node)
                if fake.dtype in CODES and fake.dim() == 2 and fake.numel() \
                        and all(isinstance(size, int) for size in fake.shape):
                    self.coded[node] = Coded(node, fake.dtype)
            elif node.op == "call_function":
                if node.all_input_nodes and self.kept.issuperset(node.all_input_nodes) and not node.is_impure():
                    self.kept.add(node)
                found = self._found(node)
                if found is not None:
                    self.coded[node] = found

    def _found(self, node: fx.Node) -> Coded | None:
        first = self.coded.get(node.args[0]) if node.args and isinstance(node.args[0], fx.Node) else None
        if node.target is aten.mul.Tensor:
            return self._scaled(node, *node.args) or self._scaled(node, *reversed(node.args))
        if first is None:
            return None
        if node.target in CASTS:
            return self._cast(node, first)
        if node.target in TRANSPOSES and list(node.args[1:]) == TRANSPOSES[node.target]:
            view = {"rows": "columns", "columns": "rows"}.get(first.view)
            return replace(first, view=view) if view else None
        if node.target in RESHAPES:
            return self._viewed(node, first)
        if node.target is aten.sub.Tensor and not node.kwargs:
            return self._shifted(first, node)
        if str(node.target) == "torchao.dequantize_affine.default":
            return self._affine(node, first)
        return None

    def _cast(self, node: fx.Node, value: Coded) -> Coded | None:
        dtype = node.meta["val"].dtype
        if dtype == value.dtype:
            return value
        if value.scale is None:  # codes less their zero points: integers up to 255, or 4 bits of a mantissa
            is_exact = dtype in SCALES or (dtype in INTEGERS[2:] and value.dtype in INTEGERS)
            return replace(value, dtype=dtype) if is_exact else None
        if value.dtype == torch.float32 and dtype in SCALES:
            return replace(value, dtype=dtype, is_rounded=True)
        return None

    def _viewed(self, node: fx.Node, value: Coded) -> Coded | None:
        shape, (rows, columns) = tuple(node.meta["val"].shape), value.sizes
        if value.view == "columns":
            return value if shape == (columns, rows) else None
        if shape == (rows, columns):
            return replace(value, view="rows")
        if len(shape) == 3 and shape[0] == rows and shape[1] * shape[2] == columns and shape[2] > 0 \
                and value.group in (0, shape[2]):
            return replace(value, view="groups", group=shape[2])
        return None

    def _shifted(self, value: Coded, node: fx.Node) -> Coded | None:
        """The codes less integer zero points."""
        zero = node.args[1]
        if value.scale is not None or value.zero is not None or not isinstance(zero, fx.Node) \
                or zero not in self.kept or value.node.meta["val"].dtype not in INTEGERS \
                or value.dtype in CODES or node.meta["val"].dtype != value.dtype or not is_integer(zero):
            return None
        factor = value.factor(zero)
        return None if factor is None else replace(value, zero=factor)

    def _scaled(self, node: fx.Node, codes, scale) -> Coded | None:
        value = self.coded.get(codes) if isinstance(codes, fx.Node) else None
        if value is None or value.scale is not None or value.dtype not in SCALES \
                or not isinstance(scale, fx.Node) or scale not in self.kept \
                or scale.meta["val"].dtype not in SCALES:
            return None
        factor, dtype = value.factor(scale), node.meta["val"].dtype
        if factor is None:
            return None
        return replace(value, scale=factor, dtype=dtype, is_rounded=dtype != torch.float32)

    def _affine(self, node: fx.Node, value: Coded) -> Coded | None:
        """torchao's op: (code - zero) * scale for blocks of codes, in float32 or in 16 bits, where the
        difference is exact; then rounded to the type of the result."""
        if value.dtype not in CODES or value.view != "rows":
            return None
        block, scale, zero = node.args[1:4]
        rows, columns = value.sizes
        dtype = node.meta["val"].dtype
        if rows % block[0] or columns % block[1] or dtype not in SCALES:
            return None
        sizes = (rows // block[0], columns // block[1])
        factors = [factor for factor in (scale, zero) if factor is not None]
        if not self.kept.issuperset(factors) or any(factor.meta["val"].numel() != sizes[0] * sizes[1]
                                                    for factor in factors) \
                or (zero is not None and not is_integer(zero)):
            return None
        low, high = (*node.args[5:7], None, None)[:2]
        fewer = {(-8, 7, torch.int8): "int4", (0, 15, torch.uint8): "uint4"}
        return replace(value, scale=Factor(scale, sizes), dtype=dtype, is_rounded=dtype != torch.float32,
                       zero=None if zero is None else Factor(zero, sizes),
                       code=fewer.get((low, high, value.dtype)))


def is_integer(node: fx.Node) -> bool:
    """Whether a node's elements come from a tensor of 8-bit integers, perhaps as another type."""
    while node.target in (*CASTS, *RESHAPES, *TRANSPOSES, aten.unsqueeze.default, aten.expand.default):
        node = node.args[0]
    return node.meta["val"].dtype in (torch.int8, torch.uint8)


@dataclass(frozen=True)
class Pack:
    """An argument that is made of others: `parts` computes codes, scales and zero points of the values of
    `sources`."""

    node: fx.Node
    sources: tuple[fx.Node, ...]
    parts: fx.GraphModule
    coded: Coded
    form: CodeFormat

    def make(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        """The packed matrix, in memory of its own."""
        with torch.inference_mode(False), torch.no_grad():
            codes, scales, zeros = self.parts(*[value.detach() for value in values])
            (rows, columns), groups = self.coded.sizes, self.form.groups(self.coded.sizes[1])
            scales = codes.new_ones((rows, groups), dtype=DTYPES[self.form.scale]) if scales is None else \
                self.coded.scale.spread(scales, rows, groups)
            zeros = None if zeros is None else self.coded.zero.spread(zeros, rows, groups)
            try:
                return pack(self.form, codes, scales, zeros)
            except ValueError as error:
                raise bad_input(str(error), self.sources[0].name) from None


def take_codes(graph: fx.Graph, is_kept: Callable[[fx.Node], bool]) -> list[Pack]:
    """Lets a graph read packed matrices, in place, and returns them: new arguments, behind the others."""
    finder = Finder(graph, is_kept)
    packs: dict[tuple, Pack] = {}
    readings: list[tuple] = []
    for node, value in finder.coded.items():
        form = value.format() if value.dtype in SCALES and value.view != "groups" else None
        for reader in node.users if form is not None else ():
            if reader not in finder.coded and reader.op != "output":
                key = (value.node, value.scale, value.zero, form)
                if key not in packs:
                    packs[key] = add_pack(graph, value, form)
                readings.append((reader, node, value, packs[key]))
    for reader, *rest in readings:
        with graph.inserting_before(reader):
            read_packed(graph, reader, *rest)
    if packs:
        graph.eliminate_dead_code()
    for pack in packs.values():
        if not pack.node.users:  # zero points of others
            graph.erase_node(pack.node)
    return [pack for pack in packs.values() if pack.node.users]


def is_plain_product(node: fx.Node, matrix: fx.Node, value: Coded) -> bool:
    """Whether a node is x by the transpose of a matrix, plus at most a bias."""
    places = {aten.mm.default: (1, "columns"), aten.addmm.default: (2, "columns"), aten.linear.default: (1, "rows")}
    place, view = places.get(node.target, (0, ""))
    return node.args[place] is matrix and value.view == view and not node.kwargs \
        and operand_of(node) is not matrix and operand_of(node).meta["val"].dtype == value.dtype \
        and (bias_of(node) is None or bias_of(node).meta["val"].dim() == 1)


def operand_of(node: fx.Node) -> fx.Node:
    return node.args[1 if node.target is aten.addmm.default else 0]


def bias_of(node: fx.Node) -> fx.Node | None:
    if node.target is aten.addmm.default:
        return node.args[0]
    return node.args[2] if len(node.args) > 2 else None


def read_packed(graph: fx.Graph, node: fx.Node, replaced: fx.Node, value: Coded, pack: Pack) -> None:
    """Lets a node read the packed matrix instead of one of its operands."""
    ops, is_wide = torch.ops.sinter, value.dtype == torch.float32
    if value.scale is None and not is_wide and is_plain_product(node, replaced, value):
        product = call(graph, node, ops.linear_of_codes.default, operand_of(node), pack.node, bias_of(node),
                       str(pack.form))
        node.replace_all_uses_with(product)
        graph.erase_node(node)
        return
    matrix = call(graph, node, ops.dequantize.default, pack.node, str(pack.form), value.sizes[1])
    if node.target is aten.embedding.default and value.view == "rows" and not is_wide:  # rows alone are rounded
        rows = call(graph, node, node.target, matrix, *node.args[1:], **node.kwargs)
        node.target, node.args, node.kwargs = aten._to_copy.default, (rows,), {"dtype": value.dtype}
        return
    if not is_wide:
        matrix = call(graph, node, aten._to_copy.default, matrix, dtype=value.dtype)
    if value.view == "columns":
        matrix = call(graph, node, aten.permute.default, matrix, [1, 0])
    node.replace_input_with(replaced, matrix)


def add_pack(graph: fx.Graph, value: Coded, form: CodeFormat) -> Pack:
    """A new argument for a packed matrix."""
    wanted = [value.node, *(factor.node if factor is not None else None for factor in (value.scale, value.zero))]
    parts, copies, sources = fx.Graph(), {}, []

    def copied(node: fx.Node) -> fx.Node:
        if node not in copies:
            if node.op == "placeholder":
                sources.append(node)
                copies[node] = parts.placeholder(node.name)
            else:
                for operand in node.all_input_nodes:
                    copied(operand)
                copies[node] = parts.node_copy(node, copies.__getitem__)
        return copies[node]

    leaves = leaves_of([node for node in wanted if node is not None])
    for leaf in leaves:
        copied(leaf)
    parts.output(tuple(None if node is None else copied(node) for node in wanted))
    arguments = [node for node in graph.nodes if node.op == "placeholder"]
    with graph.inserting_after(arguments[-1]):
        node = graph.placeholder(f"{value.node.name}_packed")
    fake = value.node.meta["val"]
    with fake.fake_mode:
        node.meta["val"] = fake.new_empty((value.sizes[0], form.row_words(value.sizes[1])), dtype=torch.int32)
    return Pack(node, tuple(sources), fx.GraphModule(torch.nn.Module(), parts), value, form)


def leaves_of(nodes: Sequence[fx.Node]) -> list[fx.Node]:
    """The arguments that nodes are computed of, each once."""
    return [node for node in with_sources(nodes) if node.op == "placeholder"]


class CodedFunction:
    """A graph's function that makes the packed arguments itself, once for the parameters of each module that it
    is called with, and again where one of them was changed in place. They live as long as the parameters. A
    tensor of inference mode does not tell that it was changed."""

    def __init__(self, function: Callable, packs: Sequence[Pack], arguments: Sequence[fx.Node]) -> None:
        place = {node: i for i, node in enumerate(arguments)}
        self._function, self._packs = function, packs
        self._places = [[place[source] for source in pack.sources] for pack in packs]
        self._made: list[dict[tuple[int, ...], Made]] = [{} for _ in packs]
        self._lock = threading.Lock()

    def __call__(self, *arguments):
        return self._function(*arguments, *(self._packed(i, [arguments[place] for place in places])
                                            for i, places in enumerate(self._places)))

    def _packed(self, i: int, sources: list[torch.Tensor]) -> torch.Tensor:
        key = tuple(map(id, sources))
        made = self._made[i].get(key)
        state = [(source.data_ptr(), 0 if source.is_inference() else source._version) for source in sources]
        if made is None or made.state != state or any(one() is None for one in made.sources):
            with self._lock:
                forget = lambda _, table=self._made[i]: table.pop(key, None)
                made = Made(state, [weakref.ref(source, forget) for source in sources],
                            self._packs[i].make(sources))
                self._made[i][key] = made
        return made.packed


@dataclass
class Made:
    """A packed matrix, and the tensors that it was made of."""

    state: list[tuple[int, int]]  # address and version of each
    sources: list[weakref.ref]
    packed: torch.Tensor
