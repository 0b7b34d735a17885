"""Groups of a call's steps, between which memory changes hands.

A backward pass reads what the forward pass has kept, and writes gradients. Its results get memory before the
first group that writes them, and an argument that nobody else holds gives its memory back behind the last group
that reads it: gradients then lie where activations were. A group is as long as the peak of memory allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

MIN_BYTES = 64 << 20  # of arguments and results; calls with fewer run as a whole
MAX_GROUPS = 24
SLACK = 1 / 2048  # of the arguments and results: by how much a group may exceed the least possible peak


@dataclass(frozen=True)
class Group:
    """The steps [first, last). made: the results that get memory before them. ended: the arguments that no later
    step reads, which no group before has ended."""

    first: int
    last: int
    made: list[int]
    ended: list[int]


def groups_of(steps: int, ends: Sequence[int], argument_bytes: Sequence[int], begins: Sequence[int],
              result_bytes: Sequence[int], are_recorded: bool = False) -> list[Group]:
    """The groups of a call. ends: of each argument that can give its memory back, the number of steps that have run
    when it is not read any more. begins: of each result, the first step that writes it; `steps`: it is copied behind the last one.
    are_recorded: groups cost no time, so that each step that writes a new result begins one."""
    if steps == 0:
        return [Group(0, 0, [*range(len(begins))], [*range(len(ends))])]
    begins = [min(begin, steps - 1) for begin in begins]
    held = running(steps, [(end, size) for end, size in zip(ends, argument_bytes)])
    made = running(steps, [(begin + 1, size) for begin, size in zip(begins, result_bytes)])
    total = held[steps] + made[steps]
    # While steps [first, last) run there are arguments that end behind `first`, and results that begin before `last`.
    bytes_in = lambda first, last: held[steps] - held[first] + made[last]
    cuts, slack = [0, steps], total * SLACK
    if are_recorded:
        cuts = sorted({0, steps, *begins})
    elif total >= MIN_BYTES:
        least = max(bytes_in(step, step + 1) for step in range(steps))
        cuts = cut(steps, bytes_in, least + slack)
        while len(cuts) > MAX_GROUPS + 1:
            slack *= 2
            cuts = cut(steps, bytes_in, least + slack)
    groups, over = [], -1  # over: arguments whose end is at most that have been let go of
    for first, last in zip(cuts, cuts[1:]):
        groups.append(Group(first, last, [i for i, begin in enumerate(begins) if first <= begin < last],
                            [i for i, end in enumerate(ends) if over < end <= last]))
        over = last
    return groups


def running(steps: int, changes: list[tuple[int, int]]) -> list[int]:
    """The sums of the sizes of all changes (step, size) up to each step."""
    sums = [0] * (steps + 1)
    for step, size in changes:
        sums[step] += size
    for step in range(steps):
        sums[step + 1] += sums[step]
    return sums


def cut(steps: int, bytes_in, most: float) -> list[int]:
    """The beginnings of groups that are as long as `most` bytes allow, and the number of steps."""
    cuts = [0]
    for step in range(1, steps):
        if bytes_in(cuts[-1], step + 1) > most:
            cuts.append(step)
    return [*cuts, steps]
