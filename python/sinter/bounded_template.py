"""Jinja templates of people whom nobody knows, rendered in a sandbox and within bounds.

jinja2's sandbox keeps a template from changing anything. It does not keep it from running for hours
or from taking all memory. So whatever a template does goes through an environment that counts: each
iteration, call, filter, test, attribute and output is a step, and no operation begins whose result
would be larger than a bound. Bounds are looked at between two operations; each operation takes time
in proportion to the values, whose sizes are bounded.
"""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import dataclass
from types import BuiltinMethodType, GeneratorType
from typing import Any, Callable, Iterable, Iterator, Mapping

from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.filters import make_attrgetter
from jinja2.parser import Parser
from jinja2.runtime import LoopContext, markup_join, str_join
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace, pass_context
from jinja2.visitor import NodeTransformer

from sinter.errors import bad_input

HINT = "give generate() a prompt in the model's format"
MOST_TEMPLATE_CHARACTERS = 1 << 20
_MOST_GIVEN = 1 << 26  # counting the variables ends here


@dataclass(frozen=True)
class Bounds:
    """steps, seconds: of one rendering. characters: of the text and of each value, or `growth`
    times the variables' characters, if that is more."""

    steps: int = 2_000_000
    seconds: float = 10.0
    characters: int = 1 << 20
    growth: int = 64


class Budget:
    """The budget that one rendering has left."""

    def __init__(self, bounds: Bounds, given: Any, where: str) -> None:
        self._bounds, self._where = bounds, where
        self._most = max(bounds.characters, bounds.growth * size_of(given, _MOST_GIVEN))
        self._steps = self._written = 0
        self._end = time.monotonic() + bounds.seconds

    def step(self) -> None:
        self._steps += 1
        if self._steps > self._bounds.steps:
            raise self._beyond(f"more than {self._bounds.steps:,} steps")
        if time.monotonic() > self._end:
            raise self._beyond(f"more than {self._bounds.seconds:g} seconds")

    def allow(self, size: float) -> None:
        """For a value of that many characters and elements."""
        if size > self._most:
            raise self._beyond(f"a value of more than {self._most:,} characters")

    def write(self, value: Any) -> None:
        self.step()
        self._written += len(value) if isinstance(value, str) else size_of(value, self._most)
        if self._written > self._most:
            raise self._beyond(f"a text of more than {self._most:,} characters")

    def checked(self, value: Any) -> Any:
        """A result. Values that are made one by one are counted as they come."""
        if isinstance(value, GeneratorType):
            return self._counted(value)
        self.allow(size_of(value, self._most))
        return value

    def _counted(self, values: Iterable[Any]) -> Iterator[Any]:
        size = 0
        for value in values:
            self.step()
            size += size_of(value, self._most)
            self.allow(size)
            yield value

    def each(self, values: Iterable[Any]) -> Iterator[Any]:
        """The values of a loop."""
        for value in values:
            self.step()
            yield value

    def _beyond(self, what: str) -> Exception:
        return bad_input(f"the chat template takes {what}", self._where, HINT)


def size_of(value: Any, most: int) -> int:
    """Characters and elements of a value with all that is in it; counting ends beyond `most`."""
    size, left = 0, [value]
    while left and size <= most:
        one = left.pop()
        size += 1
        if isinstance(one, (str, bytes)):
            size += len(one)
        elif isinstance(one, (list, tuple, set, frozenset)):
            left += one
        elif isinstance(one, dict):
            left += one
            left += one.values()
        elif isinstance(one, int):
            size += _digits(one.bit_length())
        elif isinstance(one, Mapping):
            left += [*one, *one.values()]
    return size


def _digits(bits: float) -> int:
    """Some operations on integers take the square of their length: 2^16 bits count as 2^20."""
    return int(bits * bits) >> 12


# ---- sizes of results, before they are made -------------------------------------------------------


def _format_size(form: Any, given: Any) -> float:
    """A bound of the length of `form % given` and form.format(given): widths, and each value in each place."""
    form = str(form)
    runs = re.findall(r"\d+", form)
    widths = sum(float(run) if len(run) < 10 else math.inf for run in runs)
    if re.search(r"%[^a-zA-Z%]*\*|\{[^{}]*\{", form):  # widths among the values
        values = [*given.values()] if isinstance(given, Mapping) else given
        values = values if isinstance(values, (list, tuple)) else [values]
        widths += float(sum(abs(one) for one in values if isinstance(one, int)))
    holes = form.count("%") + form.count("{")
    return float(len(form) + holes * (size_of(given, 1 << 40) + 320 + widths))


def _replaced_size(text: Any, old: Any, new: Any, *_: Any) -> float:
    return len(str(text)) + str(text).count(str(old)) * len(str(new))


def _joined_size(separator: Any, values: list[Any]) -> float:
    return size_of(values, 1 << 40) + len(values) * len(separator)


def _indented_size(text: str, width: int | str = 4, *_: Any, **__: Any) -> float:
    by = len(width) if isinstance(width, str) else width
    return float(len(text) + (len(text.splitlines()) + 1) * by)


def _searched(text: Any, part: Any = None, *_: Any) -> float:
    """Searches from the right, and stripping, compare every character of both."""
    return 0 if part is None else len(text) * len(part) >> 10


def _power_size(left: Any, right: Any) -> float:
    if isinstance(left, int) and isinstance(right, int) and right > 0:
        return _digits(left.bit_length() * right)
    return 0


def _product_size(left: Any, right: Any) -> float:
    if isinstance(left, int) and isinstance(right, int):
        return _digits(left.bit_length() + right.bit_length())
    for values, count in ((left, right), (right, left)):
        if isinstance(values, (str, bytes)) and isinstance(count, int):
            return len(values) * count
        if isinstance(values, (list, tuple)) and isinstance(count, int):
            return size_of(values, 1 << 40) * count
    return 0


def _sum_size(left: Any, right: Any) -> float:
    if isinstance(left, (str, bytes, list, tuple)):
        return size_of(left, 1 << 40) + size_of(right, 1 << 40)
    return 0


_OPERATOR_SIZES: dict[str, Callable[[Any, Any], float]] = {
    "*": _product_size,
    "**": _power_size,
    "+": _sum_size,
    "%": lambda left, right: _format_size(left, right) if isinstance(left, (str, bytes)) else 0,
}

# The sizes of the results of methods of str and bytes.
_METHOD_SIZES: dict[str, Callable[..., float]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), lambda text, width, *_: width),
    **dict.fromkeys(
        ("rfind", "rindex", "rsplit", "rpartition", "strip", "lstrip", "rstrip"), _searched
    ),
    "expandtabs": lambda text, tabsize=8: len(text) + text.count("\t") * tabsize,
    "replace": _replaced_size,
    "join": _joined_size,
    "format": lambda form, *given, **named: _format_size(form, {**dict(enumerate(given)), **named}),
    "format_map": _format_size,
}
_NAMES_OF_JINJA = {"_loop_vars", "_block_vars"}  # arguments that jinja2 adds in loops and blocks
_REFUSED_METHODS = {"encode", "decode", "translate", "to_bytes", "from_bytes", "fromhex"}

_FILTER_SIZES: dict[str, Callable[..., float]] = {
    "batch": lambda values, count, fill_with=None: count,
    "center": lambda text, width=80: width,
    "format": lambda form, *given, **named: _format_size(form, given or named),
    "indent": _indented_size,
    "join": lambda values, d="", attribute=None: _joined_size(str(d), values),
    "replace": lambda text, old, new, count=None: _replaced_size(text, old, new),
    "round": lambda value, precision=0, method="common": _digits(abs(precision) * 4),
    "slice": lambda values, slices, fill_with=None: slices,
    "trim": lambda text, chars=None: _searched(str(text), chars),
}
# No conversation needs them, and they take more time than their text is long.
_REFUSED_FILTERS = {"pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr"}


# ---- filters --------------------------------------------------------------------------------------


@pass_context
def _sum(context: Any, values: Iterable[Any], attribute: Any = None, start: Any = 0) -> Any:
    if attribute is not None:
        values = map(make_attrgetter(context.environment, attribute), values)
    total = start
    for value in values:
        total = context.environment.call_binop(context, "+", total, value)
    return total


@pass_context
def _tojson(
    context: Any,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    budget = context.environment.budget
    budget.allow(indent or 0)
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    pieces, size = [], 0
    for piece in encoder.iterencode(value):
        size += len(piece)
        budget.allow(size)
        pieces.append(piece)
    return "".join(pieces)


_LEADING: dict[str | None, Callable[[Any], tuple[Any, ...]]] = {
    None: lambda context: (),
    "context": lambda context: (context,),
    "eval_context": lambda context: (context.eval_ctx,),
    "environment": lambda context: (context.environment,),
}


def _bounded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The filter or test within the bounds. It takes the context, so nothing runs while the template
    is compiled."""
    wanted = getattr(function, "jinja_pass_arg", None)
    leading = _LEADING[None if wanted is None else wanted.name]
    size = _FILTER_SIZES.get(name)

    @pass_context
    def bounded(context: Any, value: Any, *arguments: Any, **named: Any) -> Any:
        budget = context.environment.budget
        budget.step()
        if name == "join":
            value = [*value]
        if size is not None:
            budget.allow(size(value, *arguments, **named))
        return budget.checked(function(*leading(context), value, *arguments, **named))

    return bounded


@pass_context
def _each(context: Any, values: Iterable[Any]) -> Any:
    return context.environment.budget.each(values)


@pass_context
def _made(context: Any, value: Any) -> Any:
    return context.environment.budget.checked(value)


@pass_context
def _joined(context: Any, parts: list[Any]) -> str:
    context.environment.budget.allow(size_of(parts, 1 << 40))
    return markup_join(parts) if context.eval_ctx.autoescape else str_join(parts)


@pass_context
def _written(context: Any, value: Any) -> Any:
    context.environment.budget.write(value)
    return value


class _Names(Namespace):
    """namespace() of templates. It shows none of its values, which may be in it again and again."""

    def __repr__(self) -> str:
        return "<Namespace>"


# ---- the environment ------------------------------------------------------------------------------


class _Counted(NodeTransformer):
    """Sends what an environment does not see to filters: loops, `~`, lists, tuples and dicts, and the
    template's own text, which is an output like others."""

    def _filter(self, node: Any, name: str) -> nodes.Filter:
        return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = self._filter(node.iter, "_each")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return self._filter(nodes.List(node.nodes, lineno=node.lineno), "_joined")

    def _visit_literal(self, node: Any) -> nodes.Node:
        self.generic_visit(node)
        is_target = getattr(node, "ctx", "load") != "load"
        return node if is_target or _is_constant(node) else self._filter(node, "_made")

    visit_List = visit_Tuple = visit_Dict = _visit_literal

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:
        text = nodes.Const(node.data, lineno=node.lineno)
        return nodes.MarkSafeIfAutoescape(text, lineno=node.lineno)


def _is_constant(node: nodes.Node) -> bool:
    literals = (nodes.Const, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair)
    return all(
        isinstance(child, literals) and _is_constant(child) for child in node.iter_child_nodes()
    )


class AssistantText(Extension):
    """`{% generation %}` of transformers marks what the model is trained to write. The text is its
    body's; what is set inside ends with it."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """The environment of one rendering, which spends its budget."""

    intercepted_binops = frozenset(_OPERATOR_SIZES)

    def __init__(self, budget: Budget) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", AssistantText],
            finalize=_written,
        )
        self.budget = budget
        own: dict[str, Callable[..., Any]] = {"sum": _sum, "tojson": _tojson}
        self.filters = {
            name: _bounded(name, own.get(name, function))
            for name, function in self.filters.items()
            if name not in _REFUSED_FILTERS
        }
        self.filters |= {"_each": _each, "_made": _made, "_joined": _joined}
        tests: dict[str, Any] = {**self.tests}
        self.tests = {name: _bounded("", function) for name, function in tests.items()}
        del self.globals["lipsum"]
        self.globals["namespace"] = _Names

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        template: nodes.Template = _Counted().visit(super()._parse(source, name, filename))
        template.set_environment(self)
        return template

    def getattr(self, obj: Any, attribute: str) -> Any:
        self.budget.step()
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        self.budget.step()
        return super().getitem(obj, argument)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        self.budget.step()
        self.budget.allow(_OPERATOR_SIZES[operator](left, right))
        return self.budget.checked(super().call_binop(context, operator, left, right))

    def call(__self, __context: Any, __callee: Any, *arguments: Any, **named: Any) -> Any:
        budget = __self.budget
        budget.step()
        method = getattr(__callee, "__wrapped__", __callee)
        if isinstance(method, BuiltinMethodType):
            arguments = __self._allowed(method, arguments, named)
        elif isinstance(__callee, LoopContext) and arguments:  # the values of a recursive loop
            arguments = (budget.each(arguments[0]), *arguments[1:])
        return budget.checked(super().call(__context, __callee, *arguments, **named))

    def _allowed(
        self, method: BuiltinMethodType, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[Any, ...]:
        """The arguments of a method whose result is within the bounds."""
        name = method.__name__
        if name in _REFUSED_METHODS:
            raise SecurityError(f"the method {name} is not there for chat templates")
        if not isinstance(method.__self__, (str, bytes)):
            return arguments
        if name == "join" and arguments:
            arguments = ([*arguments[0]], *arguments[1:])
        if name in _METHOD_SIZES:
            own = {key: value for key, value in named.items() if key not in _NAMES_OF_JINJA}
            self.budget.allow(_METHOD_SIZES[name](method.__self__, *arguments, **own))
        return arguments


class BoundedTemplate:
    """A template, compiled once. `names`: what it may use beside its variables. Renderings of several
    threads do not touch each other."""

    def __init__(
        self, text: str, names: Mapping[str, Any], where: str, bounds: Bounds = Bounds()
    ) -> None:
        if len(text) > MOST_TEMPLATE_CHARACTERS:
            raise bad_input(
                f"the chat template has {len(text):,} characters, "
                f"at most {MOST_TEMPLATE_CHARACTERS:,} are possible",
                where,
                HINT,
            )
        self._names, self._where, self._bounds = names, where, bounds
        self._code = self._environment({}).compile(text)

    def _environment(self, given: Mapping[str, Any]) -> BoundedEnvironment:
        environment = BoundedEnvironment(Budget(self._bounds, given, self._where))
        environment.globals.update(self._names)
        return environment

    def render(self, given: Mapping[str, Any]) -> str:
        environment = self._environment(given)
        template = environment.template_class.from_code(
            environment, self._code, environment.make_globals(None)
        )
        try:
            return "".join(template.root_render_func(template.new_context(dict(given))))
        except RecursionError:
            raise bad_input(
                "the calls of the chat template nest deeper than Python's stack", self._where, HINT
            ) from None
