"""Numbers of Python's that change from call to call, as values of the graph.

torch traces such a number as a SymInt or a SymFloat. One that an argument tells is an input of the entry without axes.
Any other is an expression of sizes and of such numbers, computed in the graph: integers in i64, as torch computes
them, all else in f32.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from typing import Callable, Iterator

import sympy
import torch
from torch import fx
from torch.fx.experimental import symbolic_shapes

from ...importing.emitter import Emitter
from ...importing.row_ops import nonzero
from ...importing.tensor import Tensor
from ...importing.unsupported import Unsupported
from ..graphs.symbols import factors_of, sizes_of

# The exception for a forbidden guard; a torch that forbids none lacks it.
GuardError = getattr(symbolic_shapes, "_ShapeEnvGuardError", ())

# The ops of the graph for functions of numbers, by the name of the class of sympy or torch.
OPS = {"Add": "add", "Mul": "mul", "Max": "maximum", "Min": "minimum", "FloorDiv": "div_floor", "CleanDiv": "div_floor",
       "Mod": "mod_floor", "PythonMod": "mod_floor"}
OPS_OF_FLOATS = {"IntTrueDiv": "div", "FloatTrueDiv": "div", "FloatPow": "pow", "OpaqueUnaryFn_sqrt": "sqrt"}
DIVISIONS = ("FloorDiv", "CleanDiv", "Mod", "PythonMod")
POWERS = ("Pow", "PowByNatural")
FUNCTIONS = (*OPS, *OPS_OF_FLOATS, *POWERS, "ToFloat")
MAX_POWER = 8


def scalar_of(g: Emitter, expression: sympy.Expr, given: Callable[[sympy.Expr], Tensor | None]) -> Tensor:
    """A number as a tensor without axes, i64 or f32. given: the input that a number is; None: no argument tells it."""
    product = g.extents.known_product(expression)
    if product is not None:
        return g._extent_of((product.number, *product.symbols), "i64")
    told = given(expression)
    if told is not None:
        return told
    if expression.is_Float:
        return g.number(float(expression), "f32")
    name = type(expression).__name__
    operands = [scalar_of(g, operand, given) for operand in expression.args] if name in FUNCTIONS else []
    if name in POWERS:
        count = expression.args[1]
        if count.is_Integer and 0 < count <= MAX_POWER:
            return functools.reduce(operator.mul, [operands[0]] * int(count))
    elif name == "ToFloat":
        return operands[0].f32()
    elif name in OPS_OF_FLOATS:
        return g.map(OPS_OF_FLOATS[name], *[operand.f32() for operand in operands])
    elif name in OPS:
        if any(operand.dtype == "f32" for operand in operands):
            operands = [operand.f32() for operand in operands]
        elif name in DIVISIONS:
            operands[1] = nonzero(operands[1])
        return functools.reduce(lambda a, b: g.map(OPS[name], a, b), operands)
    raise Unsupported(f"the number {expression}, which the graph cannot compute")


@functools.cache
def operands_of(target) -> frozenset[int | str]:
    """The places and names of an op's arguments that are tensors or numbers to compute with. Others are sizes, axes,
    places and the like."""
    schema = getattr(target, "_schema", None)
    kinds = [(i, one.name, str(one.real_type)) for i, one in enumerate(schema.arguments if schema else ())]
    return frozenset(key for i, name, kind in kinds for key in (i, name)
                     if kind in ("Tensor", "number", "Optional[Tensor]", "Optional[number]"))


def is_factor_of_sizes(node: fx.Node, nodes: set[fx.Node]) -> bool:
    """Whether a number is a size, or a factor of sizes, of what these nodes make of it, or that of an axis that their
    indices count. Others are numbers alone."""
    if not isinstance(node.meta["val"], torch.SymInt):
        return False
    users = [user for user in node.users if user in nodes]
    numbers = [user for user in users if isinstance(user.meta["val"], torch.SymInt)]
    sizes = [size for user in users if user not in numbers for size in sizes_of(user.meta["val"])]
    return factors_of(node.meta["val"]) <= set().union(*map(factors_of, sizes)) \
        or any(user.target is torch.ops.sinter.row_numbers.default for user in users) \
        or any(is_factor_of_sizes(user, nodes) for user in numbers
               if factors_of(node.meta["val"]) <= factors_of(user.meta["val"]))


@contextlib.contextmanager
def without_guards(environment: symbolic_shapes.ShapeEnv | None) -> Iterator[None]:
    """Refuses what asks torch for the value of a number that changes: torch would compile anew for each value."""
    try:
        with getattr(environment, "error_on_new_guards", contextlib.nullcontext)():
            yield
    except GuardError:
        raise Unsupported("a number that is known only when the graph runs") from None
