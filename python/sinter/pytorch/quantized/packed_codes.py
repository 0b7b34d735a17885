"""Quantized matrices as Sinter's kernels read them: rows of codes and scales, packed by ops of torch on
the device of the codes (ir/packed_codes.h has the layout).

A chunk is 8 neighbouring codes of a row, a round 32 chunks, and a step the rounds of which a lane has 16
bytes of codes. A step has the codes of each lane, then the scales, then the zero points; a row has its
steps, and a tail where one scale belongs to all of it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch

from ...facts import facts

ALIGNMENT = 16  # bytes, of a step
GROUPS = (128, 64, 32, 16)  # codes that may share a scale
SCALES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
# By the name of a code: the smallest and the largest value of an integer.
CODES = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15), "e4m3": (None, None)}


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


@dataclass(frozen=True)
class CodeFormat:
    """code: of CODES. group: codes of a scale, of GROUPS; 0: all of a row. scale: the type of scales.
    zeros: a zero point belongs to each scale."""

    code: str
    group: int
    scale: torch.dtype
    zeros: bool

    def __str__(self) -> str:
        """As the attribute `codes` has it."""
        group = f"g{self.group}" if self.group else "row"
        return f"{self.code} {group} {SCALES[self.scale]}{' zeros' if self.zeros else ''}"

    @classmethod
    def parse(cls, text: str) -> CodeFormat:
        code, group, scale, *zeros = text.split()
        types = {name: dtype for dtype, name in SCALES.items()}
        return cls(code, 0 if group == "row" else int(group[1:]), types[scale], bool(zeros))

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
        return [part for part in ((0, whole, of_step), (whole * of_step, 1, left)) if part[1] and part[2]]

    def step_bytes(self, rounds: int) -> int:
        of_round = layout().round // self.group * (self.scale.itemsize + 2 * self.zeros) if self.group else 0
        size = (layout().lanes * self.bits + of_round) * rounds
        return -(-size // ALIGNMENT) * ALIGNMENT

    def row_words(self, length: int) -> int:
        """int32 words of a packed row."""
        steps = sum(count * self.step_bytes(rounds) for _, count, rounds in self.steps(length))
        return (steps + (0 if self.group else layout().tail_bytes)) // 4


def pack(form: CodeFormat, codes: torch.Tensor, scales: torch.Tensor,
         zeros: torch.Tensor | None) -> torch.Tensor:
    """int32 [M, words] of codes [M, K], scales [M, G] and zero points [M, G]. Codes are integers, or elements of
    float8_e4m3fn. Raises ValueError where an integer is no code of the format."""
    length = codes.shape[1]
    low, high = CODES[form.code]
    if low is not None and codes.numel() and not bool(((codes >= low) & (codes <= high)).all()):
        raise ValueError(f"codes of {form.code} are {low} .. {high}, and a weight has others")
    chunks = padded(code_bytes(form, codes), -(-length // layout().round) * layout().lanes * form.bits)
    chunks = chunks.unflatten(1, (-1, layout().lanes, form.bits))  # [M, rounds, lanes, bytes]
    numbers = [scales.to(form.scale)] + ([zeros.to(torch.int16)] if form.zeros else [])
    parts = []
    for first, count, rounds in form.steps(length):
        own = chunks[:, first:first + count * rounds].unflatten(1, (count, rounds))
        step = [own.transpose(2, 3).flatten(2)]
        if form.group:
            step += [of_steps(form, x, first, count, rounds) for x in numbers]
        parts.append(padded(torch.cat(step, 2), form.step_bytes(rounds)).flatten(1))
    if not form.group:
        tail = [padded(bytes_of(x), 4) for x in numbers]
        parts.append(padded(torch.cat(tail, 1), layout().tail_bytes))
    return torch.cat(parts, 1).view(torch.int32)


def code_bytes(form: CodeFormat, codes: torch.Tensor) -> torch.Tensor:
    """uint8 [M, bytes]: the codes of each row, the first in the lowest bits."""
    if form.bits == 8:
        return bytes_of(codes)
    codes = (codes.to(torch.int16) + (8 if form.code == "int4" else 0)).to(torch.uint8)
    codes = padded(codes, -(-codes.shape[1] // 2) * 2)
    return codes[:, 0::2] | (codes[:, 1::2] << 4)


def of_steps(form: CodeFormat, numbers: torch.Tensor, first: int, count: int, rounds: int) -> torch.Tensor:
    """uint8 [M, count, bytes]: the numbers of the steps, with the numbers for one place of a round side by side."""
    of_round = layout().round // form.group
    begin, end = first * of_round, (first + count * rounds) * of_round
    numbers = padded(numbers, end)[:, begin:end].unflatten(1, (count, rounds, of_round))
    return bytes_of(numbers.transpose(2, 3).flatten(2))


def padded(x: torch.Tensor, size: int) -> torch.Tensor:
    """Zeros behind the last axis up to `size`; a longer one stays."""
    missing = size - x.shape[-1]
    return x if missing <= 0 else torch.cat((x, x.new_zeros(*x.shape[:-1], missing)), -1)


def bytes_of(x: torch.Tensor) -> torch.Tensor:
    """The bytes of the elements, along the last axis."""
    return x.contiguous().view(torch.uint8)


def unpack(form: CodeFormat, packed: torch.Tensor, length: int) -> torch.Tensor:
    """float32 [M, length]: scale * (code - zero) of packed rows."""
    data, at = bytes_of(packed), 0
    codes, scales, zeros = [], [], []
    for _, count, rounds in form.steps(length):
        size = form.step_bytes(rounds)
        step = data[:, at:at + count * size].unflatten(1, (count, size))
        at += count * size
        place = layout().lanes * form.bits * rounds
        lanes = step[:, :, :place].unflatten(2, (layout().lanes, rounds, form.bits))
        codes.append(lanes.transpose(2, 3).flatten(1))
        for numbers, dtype in ((scales, form.scale), (zeros, torch.int16))[:1 + form.zeros] if form.group else ():
            of_round = layout().round // form.group
            end = place + of_round * rounds * dtype.itemsize
            own = step[:, :, place:end].contiguous().view(dtype).unflatten(2, (of_round, rounds))
            numbers.append(own.transpose(2, 3).flatten(1))
            place = end
    if not form.group:
        scales = [bytes_of(data[:, at:at + form.scale.itemsize]).view(form.scale)]
        zeros = [bytes_of(data[:, at + 4:at + 6]).view(torch.int16)]
    values = code_values(form, torch.cat(codes, 1))[:, :length]
    of_codes = lambda numbers: torch.cat(numbers, 1).float().repeat_interleave(form.group or length, 1)[:, :length]
    return of_codes(scales) * (values - of_codes(zeros) if form.zeros else values)


def code_values(form: CodeFormat, data: torch.Tensor) -> torch.Tensor:
    """float32: the values of codes, given their bytes along the last axis."""
    if form.code == "e4m3":
        return data.contiguous().view(torch.float8_e4m3fn).float()
    if form.bits == 8:
        return (data.contiguous().view(torch.int8) if form.code == "int8" else data).float()
    values = torch.stack((data & 0xf, data >> 4), -1).flatten(-2).float()
    return values - 8 if form.code == "int4" else values
