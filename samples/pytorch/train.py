"""Trains a small language model through torch.compile(backend="sinter"), beside eager.

    python samples/pytorch/train.py [--steps 200] [--device cuda] [--width 768 --layers 12 ...]

Forward, backward and the optimizer's step are three graphs, without a graph break and without an op
in eager. Prints the loss beside eager's from the same weights and batches, what Sinter made of the
graphs, and on a GPU the time of kernels by class.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import defaultdict
from pathlib import Path

import torch

import sinter.pytorch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tiny-llama")]

from stories import story  # noqa: E402
from transformer import AdamW, Config, Transformer, cosine  # noqa: E402


def text_bytes(stories: int, seed: int) -> torch.Tensor:
    """The bytes of stories, one behind another."""
    rng = random.Random(seed)
    text = "\n".join(story(rng) for _ in range(stories))
    return torch.tensor(list(text.encode("ascii")))


def batches(data: torch.Tensor, steps: int, batch: int, length: int, seed: int):
    """(tokens, targets) [batch, length] for each step."""
    draw = torch.Generator().manual_seed(seed)
    offsets = torch.arange(length + 1)
    for _ in range(steps):
        starts = torch.randint(len(data) - length, (batch, 1), generator=draw)
        window = data[starts + offsets]
        yield window[:, :-1].contiguous(), window[:, 1:].contiguous()


class Trainer:
    """A model with its optimizer. `options` None: eager; else the backend's options."""

    def __init__(self, config: Config, seed: int = 1, options: dict | None = None,
                 device: str = "cpu", autocast: bool = False) -> None:
        torch.manual_seed(seed)
        self.model = Transformer(config).to(device)
        self.device, self.autocast = device, autocast

        def compiled(function):
            return function if options is None else torch.compile(
                function, backend=sinter.pytorch.compile_graph, fullgraph=True, options=options)

        self.loss = compiled(self.model)
        self.optimizer = AdamW(self.model.parameters(), compile=compiled)

    def gradients(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Leaves gradients in the parameters; returns the loss."""
        self.model.zero_grad(set_to_none=True)
        with torch.autocast(self.device.split(":")[0], torch.bfloat16, enabled=self.autocast):
            loss = self.loss(tokens.to(self.device), targets.to(self.device))
        loss.backward()
        return loss.detach()

    def step(self, tokens: torch.Tensor, targets: torch.Tensor, rate: float) -> torch.Tensor:
        loss = self.gradients(tokens, targets)
        self.optimizer.step(rate)
        return loss


def loss_curve(trainer: Trainer, data: torch.Tensor, config: Config, steps: int,
               batch: int) -> tuple[list[float], float]:
    """The loss of each step, and the seconds of a step but for the first two, which compile."""
    losses, begin = [], 0.0
    for number, (tokens, targets) in enumerate(batches(data, steps, batch, config.context, seed=2)):
        if number == 2:
            synchronize(trainer.device)
            begin = time.perf_counter()
        losses.append(trainer.step(tokens, targets, cosine(number, steps)))
    synchronize(trainer.device)
    seconds = (time.perf_counter() - begin) / max(1, steps - 2)
    return [loss.item() for loss in losses], seconds


def synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


# Classes of kernels by their names; the first that fits. Sinter's kernels are named by their ops.
CLASSES = [
    ("products", r"gemm|gemv|cutlass|xmma|nvjet|cublas|linear|einsum|split_?k"),
    ("attention", r"attention|flash|fmha"),
    ("copies", r"memcpy|memset|^copy_|copy_kernel|CatArray"),
    ("reductions, norms, softmax", r"reduce|softmax|norm|nll"),
    ("embedding and scatter", r"embedding|scatter|gather|index"),
    ("elementwise", r""),
]


def kernel_times(function, calls: int = 10) -> dict[str, tuple[float, float]]:
    """By class: (microseconds, launches) of one call of a function on a GPU."""
    from torch.profiler import ProfilerActivity, profile
    function()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(calls):
            function()
        torch.cuda.synchronize()
    times = defaultdict(lambda: (0.0, 0.0))
    for event in profiler.key_averages():
        microseconds = getattr(event, "self_device_time_total", 0.0)
        if not microseconds:
            continue
        name = next(name for name, pattern in CLASSES if re.search(pattern, event.key, re.I))
        spent, launches = times[name]
        times[name] = spent + microseconds / calls, launches + event.count / calls
    return dict(times)


def print_kernel_times(trainers: dict[str, Trainer], tokens, targets) -> None:
    for part, function in (("forward and backward", lambda t: t.gradients(tokens, targets)),
                           ("optimizer", lambda t: t.optimizer.step(1e-4))):
        tables = {name: kernel_times(lambda: function(one)) for name, one in trainers.items()}
        print(f"\n{part}: microseconds of kernels (launches)")
        print(f"  {'':28}" + "".join(f"{name:>20}" for name in tables))
        for kind in [name for name, _ in CLASSES] + ["all"]:
            cells = ""
            for table in tables.values():
                spent, launches = table.get(kind, (0.0, 0.0)) if kind != "all" else (
                    sum(us for us, _ in table.values()), sum(n for _, n in table.values()))
                cells += f"{f'{spent:.1f} ({launches:.0f})':>20}"
            print(f"  {kind:28}" + cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--autocast", action="store_true", help="bfloat16 in the forward pass")
    default = Config()
    for name in ("width", "layers", "heads", "hidden", "context"):
        parser.add_argument(f"--{name}", type=int, default=getattr(default, name))
    given = parser.parse_args()
    config = Config(default.vocabulary, given.width, given.layers, given.heads, given.hidden,
                    given.context)
    data = text_bytes(2000, seed=1)
    make = lambda options: Trainer(config, 1, options, given.device, given.autocast)
    trainers = {"eager": make(None), "sinter": make({})}
    curves, seconds = {}, {}
    for name, trainer in trainers.items():
        curves[name], seconds[name] = loss_curve(trainer, data, config, given.steps, given.batch)
    print("step    eager   sinter   difference")
    for number in range(0, given.steps, max(1, given.steps // 20)):
        a, b = curves["eager"][number], curves["sinter"][number]
        print(f"{number:4}  {a:.5f}  {b:.5f}   {b - a:+.1e}")
    worst = max(abs(b - a) / a for a, b in zip(*curves.values()))
    print(f"last  {curves['eager'][-1]:.5f}  {curves['sinter'][-1]:.5f}; "
          f"largest relative difference {worst:.1e}\n")
    print("milliseconds a step: "
          + ", ".join(f"{name} {1e3 * one:.1f}" for name, one in seconds.items()))
    print()
    print(sinter.pytorch.explain())
    if given.device.startswith("cuda"):
        print_kernel_times(trainers, *next(batches(data, 1, given.batch, config.context, seed=3)))


if __name__ == "__main__":
    main()
