"""The format of a matrix of codes and scales, and the size of its packed rows (ir/packed_codes.h has the layout).

A chunk is 8 neighbouring codes of a row, a round 32 chunks, and a step the rounds of which a lane has 16
bytes of codes. A step has the codes of each lane, then the scales, then the zero points; a row has its
steps, and a tail where one scale belongs to all of it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ..facts import facts

ALIGNMENT = 16  # bytes, of a step
GROUPS = (128, 64, 32, 16)  # codes that may share a scale
SCALES = {"f32": 4, "f16": 2, "bf16": 2}  # bytes of the types of scales


@dataclass(frozen=True)
class Layout:
    """lanes: chunks of a round. tail: bytes, the scale at 0, the zero point at 4. bits: of each code."""

    chunk: int
    lanes: int
    tail_bytes: int
    bits: dict[str, int]

    @property
    def round(self) -> int:
        """Codes of a round."""
        return self.chunk * self.lanes


@functools.cache
def layout() -> Layout:
    """The layout of packed rows, as the library reads them."""
    return Layout(**facts()["codes"])


def largest_group(block: int) -> int | None:
    """The codes of a scale, of which a block has several with equal scales; None: Sinter has no such group."""
    return next((size for size in GROUPS if block % size == 0), None)


@dataclass(frozen=True)
class CodeFormat:
    """code: "int8", "uint4", ... group: codes of a scale, of GROUPS; 0: all of a row. scale: the type of scales.
    zeros: a zero point belongs to each scale."""

    code: str
    group: int
    scale: str
    zeros: bool

    def __str__(self) -> str:
        """As the attribute `codes` has it."""
        group = f"g{self.group}" if self.group else "row"
        return f"{self.code} {group} {self.scale}{' zeros' if self.zeros else ''}"

    @classmethod
    def parse(cls, text: str) -> CodeFormat:
        code, group, scale, *zeros = text.split()
        return cls(code, 0 if group == "row" else int(group[1:]), scale, bool(zeros))

    @property
    def bits(self) -> int:
        return layout().bits[self.code]

    def groups(self, length: int) -> int:
        """Scales of a row of `length` codes."""
        return -(-length // self.group) if self.group else 1

    def steps(self, length: int) -> list[tuple[int, int, int]]:
        """(first round, steps, rounds of each step): the whole steps of a row, and the last one if it has
        fewer rounds."""
        rounds, of_step = -(-length // layout().round), 16 // self.bits
        whole, left = divmod(rounds, of_step)
        parts = [(0, whole, of_step), (whole * of_step, 1, left)]
        return [part for part in parts if part[1] and part[2]]

    def step_bytes(self, rounds: int) -> int:
        of_group = SCALES[self.scale] + 2 * self.zeros
        of_round = layout().round // self.group * of_group if self.group else 0
        size = (layout().lanes * self.bits + of_round) * rounds
        return -(-size // ALIGNMENT) * ALIGNMENT

    def row_words(self, length: int) -> int:
        """int32 words of a packed row."""
        steps = sum(count * self.step_bytes(rounds) for _, count, rounds in self.steps(length))
        return (steps + (0 if self.group else layout().tail_bytes)) // 4
