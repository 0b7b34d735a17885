"""Quantized matrices as Sinter's kernels read them: rows of codes and scales, packed by ops of torch on
the device of the codes (importing/code_format.py says how).
"""

from __future__ import annotations

import torch

from ...importing.code_format import CodeFormat, layout

SCALES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
DTYPES = {name: dtype for dtype, name in SCALES.items()}  # of scales
# By the name of a code: the smallest and the largest value of an integer.
CODES = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15), "e4m3": (None, None)}


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
    numbers = [scales.to(DTYPES[form.scale])] + ([zeros.to(torch.int16)] if form.zeros else [])
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
        for numbers, dtype in ((scales, DTYPES[form.scale]), (zeros, torch.int16))[:1 + form.zeros] if form.group else ():
            of_round = layout().round // form.group
            end = place + of_round * rounds * dtype.itemsize
            own = step[:, :, place:end].contiguous().view(dtype).unflatten(2, (of_round, rounds))
            numbers.append(own.transpose(2, 3).flatten(1))
            place = end
    if not form.group:
        scale = DTYPES[form.scale]
        scales = [bytes_of(data[:, at:at + scale.itemsize]).view(scale)]
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
