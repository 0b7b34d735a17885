"""Groups of a call's steps, between which memory changes hands.

A backward pass reads what the forward pass has kept, and writes gradients. Its results get memory before the
first group that writes it, and an argument that nobody else holds gives its memory back behind the last group
that reads it: gradients then lie where activations were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

MIN_BYTES = 64 << 20  # of arguments and results; calls with fewer run as a whole
MOST_PARTS = 24  # of these bytes, a group has one, or what a single step has


@dataclass(frozen=True)
class Group:
    """The steps [first, last). made: the results that get memory before them. ended: the arguments that no later
    step reads, which no group before has ended."""

    first: int
    last: int
    made: list[int]
    ended: list[int]


def groups_of(steps: int, ends: Sequence[int], argument_bytes: Sequence[int], begins: Sequence[int],
              result_bytes: Sequence[int]) -> list[Group]:
    """ends: of each argument, the number of steps that have run when it is not read any more. begins: of each
    result, the first step that writes it; `steps`: it is copied behind the last one."""
    changing = [0] * (steps + 1)  # bytes that change hands because of a step
    for begin, size in zip(begins, result_bytes):
        changing[min(begin, steps - 1)] += size
    for end, size in zip(ends, argument_bytes):
        changing[max(end - 1, 0)] += size
    total = sum(changing)
    most = total // MOST_PARTS if total >= MIN_BYTES else total
    firsts, size = [0], 0
    for step in range(steps):
        if size and size + changing[step] > most:
            firsts.append(step)
            size = 0
        size += changing[step]
    groups, done = [], 0  # done: ends up to there are over
    for first, last in zip(firsts, [*firsts[1:], steps]):
        made = [i for i, begin in enumerate(begins) if first <= min(begin, steps - 1) < last]
        ended = [i for i, end in enumerate(ends) if done <= end <= last]
        groups.append(Group(first, last, made, ended))
        done = last + 1
    return groups
