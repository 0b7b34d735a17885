"""Attention under random masks through the backend "sinter", beside float64.

    python random_masks.py --seed 0 --count 300 [--device cpu|cuda]

A seed gives a script: a function that makes a mask of positions, of data, or of both, and attends under
it. Prints the script of each seed that fails. Exit code 1 if one fails.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import warnings
from dataclasses import dataclass
from typing import Any, Callable

import torch
import torch.nn.functional as F
from beside_eager import compiled, reset

LENGTHS = (1, 4, 17, 33, 64, 65, 96, 128, 150, 200)
DTYPES = (torch.float32, torch.float32, torch.bfloat16, torch.float16)


# ---- masks as text. A condition is an expression of `row` [S, 1] and `column` [1, T], or of arguments of
# the function, which it adds to `Draw.data` as expressions.

class Draw:
    """The random choices of a seed, and the text that they make."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.dtype = self.one_of(DTYPES)
        self.batch, self.width = self.one_of((1, 2, 3)), self.one_of((8, 16, 64))
        self.groups, repeats = self.one_of((1, 2)), self.one_of((1, 1, 2, 4))
        self.heads = self.groups * repeats
        self.tokens = self.one_of(LENGTHS)
        self.keys = self.tokens if self.chance(0.6) else self.one_of(LENGTHS)
        self.data: dict[str, str] = {}
        self.lines: list[str] = []

    def one_of(self, choices: Any) -> Any:
        return self.random.choice(choices)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, max(low, high))

    def length(self) -> int:
        """One of few keys, of half of them or of nearly all of them."""
        return self.number(1, self.one_of((4, self.keys // 2, self.keys + 2)))

    def add_data(self, name: str, value: str) -> str:
        """A further argument of the function; its name."""
        name = f"{name}{len(self.data)}"
        self.data[name] = value
        return name

    def add_line(self, name: str, value: str) -> str:
        """A further local variable of the function; its name."""
        name = f"{name}{len(self.lines)}"
        self.lines.append(f"{name} = {value}")
        return name


def causal(draw: Draw) -> str:
    return draw.one_of(("column <= row + {}", "row + {} >= column", "column - row < {}",
                        "~(column > row + {})")).format(draw.one_of((0, 0, 0, 1, -1, 2)))


def window(draw: Draw) -> str:
    return draw.one_of(("row - column < {}", "row - column <= {}", "column > row - {}",
                        "(row - column).abs() < {}", "(row - column).abs() <= {}")).format(draw.length())


def sink(draw: Draw) -> str:
    """A number of first keys beside a range, which nearly all tokens see behind them."""
    count, size = draw.number(1, draw.one_of((4, 4, draw.keys))), draw.length()
    kept = draw.one_of((f"(column < {count})", f"(column <= {count - 1})", f"~(column >= {count})"))
    near = draw.one_of((f"(row - column < {size})", f"((row - column).abs() < {size})",
                        f"(column // {size} == row // {size})"))
    return draw.one_of(("({0} | {1}) & (column <= row)", "{1} & (row >= column) | {0} & (row >= column)",
                        "{0} | {1}", "~(~{1} & ~{0}) & (column <= row)")).format(kept, near)


def chunk(draw: Draw) -> str:
    size = draw.length()
    return draw.one_of((f"row // {size} == column // {size}", f"column // {size} <= row // {size}",
                        f"row // {size} - column // {size} < {draw.number(1, 3)}"))


def prefix(draw: Draw) -> str:
    return draw.one_of(("column < {}", "column <= {}", "column >= {}", "column != {}",
                        "(column < {}) | (column == row)")).format(draw.number(0, draw.keys))


def stripes(draw: Draw) -> str:
    period = draw.number(2, 9)
    rest = draw.number(0, period - 1)
    return draw.one_of((f"(row - column) % {period} == {rest}", f"(row - column) % {period} != {rest}",
                        f"column % {period} <= {rest}", f"(row + column) % {period} > {rest}"))


def counted_documents(draw: Draw) -> str:
    """Documents that begin at every n-th position."""
    size = draw.number(2, max(2, draw.keys // 2))
    ids = draw.add_line("ids", f"(torch.arange({max(draw.tokens, draw.keys)}, device=q.device) % {size} == 0)"
                               ".long().cumsum(0)")
    sign = draw.one_of(("==", "==", ">="))
    return f"{ids}[:{draw.tokens}, None] {sign} {ids}[None, :{draw.keys}]"


def padding(draw: Draw) -> str:
    lengths = [draw.number(0 if draw.chance(0.1) else 1, draw.keys) for _ in range(draw.batch)]
    ends = f"torch.tensor({lengths})[:, None]"
    side = draw.one_of((f"torch.arange({draw.keys}) < {ends}",
                        f"torch.arange({draw.keys}) >= {draw.keys} - {ends}"))
    if draw.chance(0.5):
        return draw.add_data("padding", side) + "[:, None, None]"
    return "(" + draw.add_data("padding", f"({side}).long()") + "[:, None, None, :] != 0)"


def lengths(draw: Draw) -> str:
    values = [draw.number(1, draw.keys) for _ in range(draw.batch)]
    return f"column < {draw.add_data('length', f'torch.tensor({values})')}[:, None, None, None]"


def documents(draw: Draw) -> str:
    size = max(draw.tokens, draw.keys)
    ids = draw.add_data("document", f"torch.randint(0, 2, ({draw.batch}, {size})).cumsum(1) // "
                                    f"{draw.number(1, 20)}")
    return f"({ids}[:, None, :{draw.tokens}, None] == {ids}[:, None, None, :{draw.keys}])"


def broadcast_shape(draw: Draw) -> tuple[int, ...]:
    """The shape of a mask: some axes are 1, or leading ones are missing."""
    full = (draw.batch, draw.heads, draw.tokens, draw.keys)
    shape = [size if draw.chance(0.6) else 1 for size in full]
    return tuple(shape[draw.one_of((0, 0, 1, 2)):])


def any_mask(draw: Draw) -> str:
    return draw.add_data("mask", f"torch.rand({broadcast_shape(draw)}) < {draw.one_of((0.3, 0.9))}")


CONDITIONS: tuple[Callable[[Draw], str], ...] = (
    causal, causal, window, window, sink, sink, chunk, prefix, stripes, counted_documents, padding, padding, lengths,
    documents, any_mask)


def alibi(draw: Draw) -> str:
    slopes = draw.add_data("slope", f"(0.5 ** torch.arange(1, {draw.heads + 1})).to({draw.dtype})")
    distance = draw.one_of(("(column - row)", "-(row - column).abs()"))
    return f"{slopes}[:, None, None] * {distance}"


def bias(draw: Draw) -> str:
    return draw.add_data("bias", f"torch.randn({broadcast_shape(draw)}).to({draw.dtype})")


BIASES = (alibi, bias)


def condition(draw: Draw) -> str:
    """One condition, or up to three together."""
    parts = [f"({draw.one_of(CONDITIONS)(draw)})" for _ in range(draw.one_of((1, 1, 2, 2, 3)))]
    text = parts[0]
    for part in parts[1:]:
        text = f"{text} & {part}" if draw.chance(0.8) else f"({text} | {part})"
    return text


def mask_lines(draw: Draw) -> list[str]:
    """Lines that set `mask`: bool, or numbers of the operands' type."""
    kind = draw.one_of(("bool", "bool", "numbers", "bias", "both"))
    seen = condition(draw) if kind != "bias" else ""
    biases = draw.one_of(BIASES)(draw) if kind in ("bias", "both") else ""
    lines = list(draw.lines)
    if kind == "bool":
        return [*lines, f"mask = {seen}"]
    if kind == "bias":
        return [*lines, f"mask = {biases}"]
    lines.append(f"seen = {seen}")
    if kind == "both":
        return [*lines, f"mask = torch.where(seen, {biases}, -torch.inf)"]
    return [*lines, "mask = " + draw.one_of((
        "torch.where(seen, 0.0, -torch.inf).to(q.dtype)",
        "torch.zeros_like(seen, dtype=q.dtype).masked_fill(~seen, -torch.inf)"))]


def attention_lines(draw: Draw, is_fused: bool) -> list[str]:
    """Lines that return the attention: torch's function, or products and a softmax."""
    scale = 3 / math.sqrt(draw.width)  # scores that differ by several: a wrong key shows
    grouped = draw.heads != draw.groups
    if is_fused:
        return [f"return F.scaled_dot_product_attention(q, k, v, mask, scale={scale:.4f}"
                + ", enable_gqa=True)" * grouped + ")" * (not grouped)]
    repeat = [f"k, v = (x.repeat_interleave({draw.heads // draw.groups}, 1) for x in (k, v))"]
    return repeat * grouped + [
        f"s = q @ k.mT * {scale:.4f}",
        "s = s.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else s + mask",
        "return torch.softmax(s, -1, torch.float32).to(q.dtype) @ v"]


@dataclass(frozen=True)
class Case:
    """A seed and its script, which defines `arguments`, `mask_of` and `attend`."""

    seed: int
    dtype: torch.dtype
    is_fused: bool
    script: str


def case_of(seed: int) -> Case:
    draw = Draw(seed)
    is_fused = draw.chance(0.75)
    mask, attention = mask_lines(draw), attention_lines(draw, is_fused)
    shapes = [(draw.batch, heads, length, draw.width) for heads, length in (
        (draw.heads, draw.tokens), (draw.groups, draw.keys), (draw.groups, draw.keys))]
    names = ["q", "k", "v", *draw.data]
    values = [f"torch.randn({shape}).to({draw.dtype})" for shape in shapes] + list(draw.data.values())
    is_at_end = draw.keys != draw.tokens and draw.chance(0.5)  # the last token is at the last key
    positions = [f"row = torch.arange({draw.tokens}, device=q.device)[:, None]"
                 + f" + {draw.keys - draw.tokens}" * is_at_end,
                 f"column = torch.arange({draw.keys}, device=q.device)[None]"]
    return Case(seed, draw.dtype, is_fused, "\n".join([
        "import torch", "import torch.nn.functional as F", "",
        "def arguments():", f"    torch.manual_seed({seed})",
        *[f"    {name} = {value}" for name, value in zip(names, values)],
        f"    return [{', '.join(names)}]", "",
        f"def mask_of({', '.join(names)}):", *["    " + line for line in [*positions, *mask]],
        "    return mask", "",
        f"def attend({', '.join(names)}):", f"    mask = mask_of({', '.join(names)})",
        *["    " + line for line in attention]]))


# ---- running

def exact_result(case: Case, q, k, v, mask) -> tuple[torch.Tensor, torch.Tensor]:
    """The attention in float64, and the error that each of its elements may have.

    p is rounded to the operands' type, and so is the result; products and sums are in float32. An error
    d of a score is a factor 1 + d of its p. In primitives the scores are rounded twice, too."""
    q, k, v = (x.double() for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = q @ k.mT * round(3 / math.sqrt(q.shape[-1]), 4)
    s = s.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else s + mask.double()
    p = torch.softmax(s, -1)
    sizes = s.abs().masked_fill(p.nan_to_num() == 0, 0)
    sizes = sizes + (p.nan_to_num() * sizes).sum(-1, keepdim=True)
    low, high = torch.finfo(case.dtype).eps, torch.finfo(torch.float32).eps
    of_scores = (0 if case.is_fused else 2 * low) + 4 * high
    sums = 4 * high * (math.sqrt(q.shape[-1]) + math.sqrt(k.shape[-2]))
    bound = (p.nan_to_num() * (3 * low + sums + of_scores * sizes)) @ v.abs()
    return (p.nan_to_num() if case.is_fused else p) @ v, bound


def fault_of(case: Case, device: str = "cpu") -> str | None:
    """How the result of a case is wrong; None: it is right."""
    names: dict[str, Any] = {}
    exec(compile(case.script, f"<seed {case.seed}>", "exec"), names)
    given = [x.to(device) for x in names["arguments"]()]
    reset()
    with torch.no_grad():
        exact, bound = exact_result(case, *given[:3], names["mask_of"](*given))
        try:
            ours = compiled(names["attend"])(*given)
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:2000]}"
    if ours.dtype != case.dtype or ours.shape != exact.shape:
        return f"{ours.dtype}{list(ours.shape)}, wanted {case.dtype}{list(exact.shape)}"
    if not torch.equal(ours.isnan(), exact.isnan()):
        return f"{ours.isnan().sum()} elements are NaN, {exact.isnan().sum()} in float64"
    excess = ((ours.double() - exact).abs() - bound).nan_to_num()
    if (excess > 0).any():
        place = tuple(int(i) for i in torch.unravel_index(excess.argmax(), excess.shape))
        return (f"{int((excess > 0).sum())} of {excess.numel()} elements differ; most at {list(place)}: "
                f"{ours[place].item():.6g}, float64 {exact[place].item():.6g}, "
                f"bound {bound[place].item():.1e}")
    return None


def run_many(seed: int, count: int, device: str) -> int:
    """How many of the seeds fail, whose scripts it prints."""
    failed = []
    for case in map(case_of, range(seed, seed + count)):
        fault = fault_of(case, device)
        if fault is not None:
            failed.append(case.seed)
            print(f"{'=' * 80}\nseed {case.seed}: {fault}\n\n{case.script}\n", flush=True)
    if failed:
        print("failing seeds: " + " ".join(map(str, failed)))
    print(f"masks: {count - len(failed)} passed, {len(failed)} failed")
    return len(failed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    return 1 if run_many(given.seed, given.count, given.device) else 0


if __name__ == "__main__":
    sys.exit(main())
