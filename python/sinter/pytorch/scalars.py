"""Numbers of Python's that change from call to call, as values of the graph.

torch traces such a number as a SymInt or a SymFloat. One that an argument tells is an input of the entry without axes.
Any other is an expression of sizes and of such numbers, computed in the graph: integers in i64, as torch computes
them, all else in f32.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

import sympy

from .unsupported import Unsupported

if TYPE_CHECKING:
    from .emitter import Emitter
    from .tensor import Tensor

# The ops of the graph for functions of numbers, by the name of the class of sympy or torch.
OPS = {"Add": "add", "Mul": "mul", "Max": "maximum", "Min": "minimum", "FloorDiv": "div_floor", "CleanDiv": "div_floor",
       "Mod": "mod_floor", "PythonMod": "mod_floor"}
OPS_OF_FLOATS = {"IntTrueDiv": "div", "FloatTrueDiv": "div", "FloatPow": "pow", "OpaqueUnaryFn_sqrt": "sqrt"}
MAX_POWER = 8


def scalar_of(g: Emitter, expression: sympy.Expr) -> Tensor:
    """A number as a tensor without axes, i64 or f32."""
    product = g.extents.known_product(expression)
    if product is not None:
        return g._extent_of((product.number, *product.symbols), "i64")
    given = g.given_number(expression)
    if given is not None:
        return given
    if expression.is_Float:
        return g.number(float(expression), "f32")
    name, operands = type(expression).__name__, [scalar_of(g, operand) for operand in expression.args]
    if name in ("Pow", "PowByNatural"):
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
        return functools.reduce(lambda a, b: g.map(OPS[name], a, b), operands)
    raise Unsupported(f"the number {expression}, which the graph cannot compute")
