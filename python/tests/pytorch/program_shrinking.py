"""Makes a failing program small: each change is kept if the same failure stays."""

from __future__ import annotations

import re
import time
from typing import Callable, Iterator

import torch
from programs import NAMES, Input, Program, Reference, Statement

MOST_SECONDS = 40.0


def shrink(program: Program, fails: Callable[[Program], bool],
           seconds: float = MOST_SECONDS) -> Program:
    """`fails`: whether a program is valid and fails as the first one does."""
    end = time.perf_counter() + seconds
    changed = True
    while changed:
        changed = False
        for candidate in candidates(program):
            if time.perf_counter() > end:
                return program
            if fails(candidate):
                program, changed = candidate, True
                break
    return program


def candidates(program: Program) -> Iterator[Program]:
    """Smaller programs, the much smaller ones first."""
    if program.dynamic:
        yield program.with_(dynamic=(), other_sizes=program.other_sizes if program.numbers else ())
    for i in range(len(program.other_sizes)):
        kept = program.other_sizes[:i] + program.other_sizes[i + 1:]
        yield program.with_(other_sizes=kept)
    if len(program.outputs) > 1:
        for output in program.outputs:
            yield needed(program.with_(outputs=(output,)))
        for i in range(len(program.outputs)):
            yield needed(program.with_(outputs=program.outputs[:i] + program.outputs[i + 1:]))
    if program.backward:
        yield program.with_(backward=False)
    yield from shorter(program)
    yield from smaller(program)


def needed(program: Program) -> Program:
    """Without statements and inputs that no output needs."""
    wanted = set(program.outputs)
    kept = []
    for statement in reversed(program.statements):
        if wanted & set(statement.results):
            kept.append(statement)
            wanted |= names_in("\n".join(statement.lines))
    inputs = tuple(one for one in program.inputs if one.name in wanted)
    return program.with_(statements=tuple(reversed(kept)), inputs=inputs)


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\b[xv]\d+\b", text))


def shorter(program: Program) -> Iterator[Program]:
    """A result becomes an output or an input, or another value takes its place."""
    try:
        values = values_of(program)
    except Exception:
        return
    for statement in program.statements[:-1]:  # the end is cut off
        for name in statement.results:
            if name not in program.outputs:
                yield needed(program.with_(outputs=(name,)))
    for i, statement in reversed(list(enumerate(program.statements))):
        for name in statement.results:
            tensor = values[name]
            if tensor.dtype not in NAMES or len(program.inputs) > 12:
                continue
            maker, numbers = ("normal", ()) if tensor.dtype.is_floating_point else \
                ("bools", ()) if tensor.dtype == torch.bool else ("integers", ("0", "2"))
            one = Input(f"x{90 + i}", maker, i, tuple(map(str, tensor.shape)), NAMES[tensor.dtype],
                        numbers)
            if not program.changes and name not in program.outputs:
                changed = replaced(program, name, one.name, i)
                yield needed(changed.with_(inputs=(*changed.inputs, one)))
            for other in values:
                if other in statement.results or not defined_before(program, other, i):
                    continue
                if values[other].shape == tensor.shape and values[other].dtype == tensor.dtype:
                    yield needed(replaced(program, name, other, i))


def replaced(program: Program, name: str, other: str, begin: int) -> Program:
    """`name` replaced by `other` after statement `begin`."""
    pattern = re.compile(rf"\b{name}\b")
    swap = lambda text: pattern.sub(other, text)
    statements = program.statements[:begin + 1] + tuple(
        Statement(one.kind, tuple(map(swap, one.lines)), one.results)
        for one in program.statements[begin + 1:])
    return program.with_(statements=statements, outputs=tuple(map(swap, program.outputs)))


def defined_before(program: Program, name: str, position: int) -> bool:
    made = {one.name for one in program.inputs}
    for statement in program.statements[:position]:
        made.update(statement.results)
    return name in made


def values_of(program: Program) -> dict[str, torch.Tensor]:
    names = [one.name for one in program.inputs] \
        + [name for statement in program.statements for name in statement.results]
    every = Reference.of(program.with_(outputs=tuple(names), backward=False), program.sizes)
    return dict(zip(names, every.eager))


def smaller(program: Program) -> Iterator[Program]:
    """Smaller sizes and numbers, plainer types, statements without a part."""
    for name, size in program.sizes.items():
        for less in sorted({1, 2, 3, size // 2} - {0}):
            if less < size and not program.changes:
                yield program.with_(sizes={**program.sizes, name: less})
    for i, one in enumerate(program.inputs):
        if one.dtype in ("f16", "bf16"):
            swap = lambda text: re.sub(r"\b(f16|bf16)\b", "f32", text)
            yield program.with_(
                inputs=tuple(Input(x.name, x.maker, x.seed, x.shape, swap(x.dtype), x.numbers)
                             for x in program.inputs),
                statements=tuple(Statement(s.kind, tuple(map(swap, s.lines)), s.results)
                                 for s in program.statements))
            break
    for i, statement in enumerate(program.statements):
        for j in range(len(statement.lines) - 1):
            lines = statement.lines[:j] + statement.lines[j + 1:]
            changed = Statement(statement.kind, lines, statement.results)
            yield program.with_(
                statements=program.statements[:i] + (changed,) + program.statements[i + 1:])
        if len(statement.lines) > 1 and re.fullmatch(r"(\w+) = \1 \* 0\.\d+", statement.lines[-1]):
            changed = Statement(statement.kind, statement.lines[:-1], statement.results)
            yield program.with_(
                statements=program.statements[:i] + (changed,) + program.statements[i + 1:])
