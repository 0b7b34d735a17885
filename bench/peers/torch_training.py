"""Training steps by torch.compile(backend="sinter") beside Inductor and eager, on a CUDA device.

    python bench/peers/torch_training.py --out FILE [--rows a,b] [--modes eager,sinter] [--at-once 4]
        [--seconds 400] [--device cpu --tiny]

A step: forward in autocast to bf16 with float32 weights, backward, torch's AdamW with fused=True. The
"recorded" modes are mode="reduce-overhead"; in the "step" modes the whole step is one CUDA graph that torch
captured; in the "adamw" modes, such as sinter-adamw-step, the optimizer is compiled too. Each row and mode
has a process of its own. `--at-once` of them compile at a time; then they are measured one after the other,
with the device for themselves. The file is written after each; what it has is skipped, so that a run goes on
where one ended. Of each it says milliseconds of a step between two events (the median), and of one of ten
that are queued together; the sum of its kernels, by class of work; launches; the peak of tensors in memory
during a step, and what torch's allocator holds between steps, without its cache: what recordings hold is in
the latter alone; the first losses.

Two rows are no models: "loss ..." has cross-entropy and its gradient beside one copy of the logits, by
kernels alone, and "200 steps" compares losses with eager's from the same weights and batches.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import report  # noqa: E402
import sinter.pytorch  # noqa: E402
from gpu import lift_recompile_limits, machine  # noqa: E402
from torch_models import (LLAMA_1B, MODES, QWEN3_MOE, DiT, between_events, device_work,  # noqa: E402
                          synchronize, tokens, widths)

WHOLE = "-step"  # at the end of a mode: the step is one CUDA graph
UPDATE = "-adamw"  # before that: the optimizer's step is compiled, too
USUAL_MODES = ("inductor", "sinter", "inductor-recorded", "sinter-recorded")
STEPS, QUEUED = 8, 10  # samples of a step, and steps that are queued together
COMPILING = 0.75  # of the time that is given: what has not compiled by then is left for another run
# The class of a kernel is the first that its name fits, in lower case; what fits none is memory-bound
# work that a compiler wrote.
CLASSES = {
    "copies": ("memcpy", "memset", "copy_kernel", "direct_copy", "fillfunctor", "catarray"),
    "optimizer": ("multi_tensor_apply", "adamw"),
    "attention": ("attention", "sdpa", "flash", "fmha", "compute_dot_do_o", "convert_dq"),
    "products": ("nvjet", "gemm", "cutlass", "splitk", "xmma", "cublas", "tiled_linear"),
}


# ---- a transformer as courses write it

class GPT2Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for t in self.attn(self.norm1(x)).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout)
        x = x + F.dropout(self.proj(a.transpose(1, 2).flatten(-2)), self.dropout)
        return x + F.dropout(self.out(F.gelu(self.fc(self.norm2(x)), approximate="tanh")), self.dropout)


class GPT2(nn.Module):
    def __init__(self, vocabulary=50257, context=1024, width=768, layers=12, heads=12, dropout=0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(GPT2Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for module in self.modules():  # GPT-2's own, so that the loss begins at the vocabulary's logarithm
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        x = F.dropout(x, self.dropout)
        for layer in self.blocks:
            x = layer(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


class Objective(nn.Module):
    """A model of transformers that computes its own loss of labels."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, **arguments):
        return self.model(**arguments).loss


class Denoising(nn.Module):
    """The mean square of a model's result less a target."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x, c, target):
        return F.mse_loss(self.model(x, c).float(), target)


@dataclass
class Row:
    """A model that returns its loss, what it is called with, and how many tokens or pictures that are."""

    model: nn.Module
    arguments: dict[str, torch.Tensor]
    units: int


def gpt2(batch: int, length: int = 1024, **sizes) -> Callable[[bool], Row]:
    def make(tiny: bool) -> Row:
        small = dict(vocabulary=256, context=32, width=64, layers=2, heads=4)
        model = GPT2(**(sizes | small if tiny else sizes))
        shape, vocabulary = ((2, 32), 256) if tiny else ((batch, length), 50257)
        return Row(model, {name: torch.randint(0, vocabulary, shape) for name in ("ids", "targets")},
                   shape[0] * shape[1])
    return make


def llama_1b(tiny: bool) -> Row:
    from transformers import LlamaConfig, LlamaForCausalLM

    length = 32 if tiny else 1024
    config = LlamaConfig(**widths(tiny, **LLAMA_1B), max_position_embeddings=length, use_cache=False,
                         pad_token_id=0, bos_token_id=None, eos_token_id=None)
    ids = tokens(1, length, config.vocab_size)
    return Row(Objective(LlamaForCausalLM(config)), {"input_ids": ids, "labels": ids}, length)


def qwen3_moe(tiny: bool) -> Row:
    """Parameters in bf16: torch multiplies runs of rows of no other type by one kernel."""
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    length = 32 if tiny else 1024
    config = Qwen3MoeConfig(**widths(tiny, **QWEN3_MOE), max_position_embeddings=length,
                            use_cache=False, pad_token_id=0, bos_token_id=None, eos_token_id=None)
    ids = tokens(1, length, config.vocab_size)
    return Row(Objective(Qwen3MoeForCausalLM(config).bfloat16()), {"input_ids": ids, "labels": ids}, length)


def bert(tiny: bool) -> Row:
    """Texts of one length, so that no mask hides padding; the loss of all tokens' labels."""
    from transformers import BertConfig, BertForMaskedLM

    batch, length = (2, 16) if tiny else (32, 128)
    config = BertConfig(**widths(tiny, hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
                                 intermediate_size=3072, vocab_size=30522),
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    make = lambda: tokens(batch, length, config.vocab_size)
    return Row(Objective(BertForMaskedLM(config)), {"input_ids": make(), "labels": make()},
               batch * length)


def vit(tiny: bool) -> Row:
    from transformers import ViTConfig, ViTForImageClassification

    batch, size = (2, 32) if tiny else (64, 224)
    config = ViTConfig(**widths(tiny, hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
                                intermediate_size=3072), image_size=size, patch_size=16, num_labels=1000)
    return Row(Objective(ViTForImageClassification(config)),
               {"pixel_values": torch.randn(batch, 3, size, size),
                "labels": torch.randint(0, 1000, (batch,))}, batch)


def dit(tiny: bool) -> Row:
    layers, width, heads = (2, 64, 4) if tiny else (12, 1152, 16)
    batch, length = (2, 16) if tiny else (8, 256)
    make = lambda: torch.randn(batch, length, width)
    return Row(Denoising(DiT(layers, width, heads)),
               {"x": make(), "c": torch.randn(batch, width), "target": make()}, batch)


ROWS: dict[str, Callable[[bool], Row]] = {
    "gpt2 32x1024": gpt2(32), "gpt2 16x1024": gpt2(16), "gpt2 16x1024 dropout": gpt2(16, dropout=0.1), "llama-3.2-1b 1x1024": llama_1b,
    "qwen3-moe 4 layers 1x1024": qwen3_moe,
    "bert-base 32x128": bert, "vit-b/16 64": vit, "dit 12x1152 8x256": dit,
}


# ---- measuring

class Step:
    """A training step of a row in a mode."""

    def __init__(self, row: Row, optimizer, mode: str, device: str) -> None:
        mode = mode.removesuffix(WHOLE)
        arguments = MODES[mode.removesuffix(UPDATE)]
        compiled = (lambda x: x) if arguments is None else \
            (lambda x: torch.compile(x, dynamic=False, **arguments))
        self._forward = compiled(row.model)
        self._update = compiled(optimizer.step) if mode.endswith(UPDATE) else optimizer.step
        self._row, self._optimizer, self._device = row, optimizer, device

    def __call__(self) -> torch.Tensor:
        torch.compiler.cudagraph_mark_step_begin()
        with torch.autocast(self._device, torch.bfloat16):
            loss = self._forward(**self._row.arguments)
        loss.backward()
        self._update()
        self._optimizer.zero_grad(set_to_none=True)
        return loss


class WholeStep:
    """Steps that are replays of one CUDA graph, which has forward, backward and optimizer. Three steps prepare
    the capture in its stream. The loss is the same tensor each time."""

    def __init__(self, step: Step) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=stream):
            self._loss = step().detach()

    def __call__(self) -> torch.Tensor:
        self._graph.replay()
        return self._loss


def class_of(kernel: str) -> str:
    name = kernel.lower()
    return next((of for of, parts in CLASSES.items() if any(part in name for part in parts)), "other")


def kernels_of(step: Callable, device: str) -> dict:
    if device != "cuda":
        return {}
    work = device_work(step)
    classes: dict[str, float] = {}
    for name, milliseconds, _ in work:
        classes[class_of(name)] = classes.get(class_of(name), 0.0) + milliseconds
    return {"kernels_ms": sum(classes.values()), "classes_ms": classes,
            "launches": sum(count for name, _, count in work if not name.startswith("Mem")),
            "longest": [[name[:90], milliseconds, count] for name, milliseconds, count in work[:40]]}


def queued_milliseconds(step: Callable, device: str) -> float:
    def several():
        for _ in range(QUEUED):
            step()
    return between_events(several, device) / QUEUED


def measure(step: Callable, device: str) -> dict:
    losses = [step().item() for _ in range(3)]
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    losses.append(step().item())
    facts = {"losses": losses}
    if device == "cuda":
        facts["peak_gigabytes"] = torch.cuda.max_memory_allocated() / 1e9
    samples = []
    for _ in range(STEPS):
        samples.append(between_events(step, device))
        synchronize(device)
    facts |= {"step_ms": statistics.median(samples), "samples": samples,
              "queued_ms": queued_milliseconds(step, device), **kernels_of(step, device)}
    if device == "cuda":
        torch.cuda.empty_cache()
        facts["held_gigabytes"] = torch.cuda.memory_reserved() / 1e9
    return facts


def measure_row(name: str, mode: str, device: str, tiny: bool, turn: Callable[[], None]) -> dict:
    """A row in a mode. `turn` returns when it has the device for itself."""
    torch.manual_seed(1)
    with torch.device(device):
        row = ROWS[name](tiny)
    row.model.train()
    is_whole = mode.endswith(WHOLE) and device == "cuda"
    if UPDATE in mode:
        optimizer = torch.optim.AdamW(row.model.parameters(), lr=torch.tensor(1e-4, device=device), capturable=True)
    else:
        optimizer = torch.optim.AdamW(row.model.parameters(), lr=1e-4, fused=True, capturable=is_whole)
    step = Step(row, optimizer, mode, device)
    begin = time.perf_counter()
    try:
        step()
    except torch.OutOfMemoryError:
        pass  # beside others that compile
    synchronize(device)
    facts = {"units": row.units, "first_step_s": time.perf_counter() - begin}
    if device == "cuda":
        torch.cuda.empty_cache()
    turn()
    facts |= measure(WholeStep(step) if is_whole else step, device)
    if mode.startswith("sinter"):
        facts["in_eager"] = [f"{op.op}: {op.reason}" for graph in sinter.pytorch.tools.report.REPORTS
                             for op in graph.eager]
    return facts


# ---- rows that are no models

def loss_row(device: str, tiny: bool, turn: Callable[[], None]) -> dict:
    """Cross-entropy with its gradient, of bf16 logits that a product makes, beside a copy of the logits. `loss_ms`
    has all kernels but products. The largest error is taken over the first tokens' gradients."""
    (count, classes), width = (64, 512) if tiny else (32768, 50304), 64
    tokens, head = (torch.randn(size, width, device=device, dtype=torch.bfloat16) for size in (count, classes))
    labels = torch.randint(0, classes, (count,), device=device)
    result: dict = {"shape": (count, classes)}
    loss = lambda x, w, y: F.cross_entropy((x @ w.T).float(), y)
    functions = {mode: torch.compile(loss, dynamic=False, **MODES[mode]) for mode in ("inductor", "sinter")}
    turn()
    leaves = tokens.requires_grad_(), head.requires_grad_()
    exact = None
    for mode, function in functions.items():
        def both(function=function):
            for leaf in leaves:
                leaf.grad = None
            function(*leaves, labels).backward()
        for _ in range(3):
            both()
        kernels = kernels_of(both, device)
        result[mode] = kernels | {"loss_ms": kernels.get("kernels_ms", 0)
                                  - kernels.get("classes_ms", {}).get("products", 0)}
        if exact is None:
            rows = min(256, count)
            part = tokens[:rows].detach().double().requires_grad_()
            F.cross_entropy(part @ head.detach().double().T, labels[:rows]).backward()
            exact = part.grad * (rows / count)
        result[mode]["largest_error"] = ((tokens.grad[:rows].double() - exact).abs().max()
                                         / exact.abs().max()).item()
    for leaf in leaves:
        leaf.grad = None
    logits = torch.randn((count, classes), device=device, dtype=torch.bfloat16)
    target = torch.empty_like(logits)
    copy = lambda: target.copy_(logits)
    for _ in range(3):
        copy()
    samples = [between_events(copy, device) for _ in range(STEPS)]
    result["copy_ms"] = statistics.median(samples)
    return result


def steps_row(device: str, tiny: bool, turn: Callable[[], None]) -> dict:
    """Losses of 200 steps of GPT-2 124M, 4x1,024 tokens of ten batches: the backend twice, and eager with
    two kernels of attention, whose difference is what roundings alone make."""
    count = 5 if tiny else 200
    losses = {}
    for name in ("sinter", "sinter again", "eager", "eager, other attention"):
        torch.manual_seed(1)
        model = gpt2(4)(tiny).model.to(device)
        draw = torch.Generator().manual_seed(2)
        shape, vocabulary = ((2, 32), 256) if tiny else ((4, 1024), 50257)
        batches = [torch.randint(0, vocabulary, shape, generator=draw).to(device) for _ in range(10)]
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
        torch._dynamo.reset()
        forward = model if name.startswith("eager") else \
            torch.compile(model, dynamic=False, **MODES["sinter"])
        is_other = name.endswith("attention") and device == "cuda"
        kept = []
        for number in range(count):
            batch = batches[number % len(batches)]
            with torch.autocast(device, torch.bfloat16), \
                    sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION) if is_other else contextlib.nullcontext():
                loss = forward(batch, batch.roll(-1, 1))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            kept.append(loss.detach())
            if number == 0 and name == "sinter":
                turn()
        losses[name] = torch.stack(kept).tolist()
        del model, optimizer, forward
    def largest_difference(name: str) -> float:
        """From eager's losses, as a part of them."""
        return max(abs(a - b) / abs(b) for a, b in zip(losses[name], losses["eager"]))
    return {"largest_relative_difference": largest_difference("sinter"),
            "largest_of_other_attention": largest_difference("eager, other attention"),
            "equal_bits": losses["sinter"] == losses["sinter again"],
            "losses": {name: values[::20] + values[-1:] for name, values in losses.items()}}


OTHERS = {"loss 32768x50304": loss_row, "200 steps": steps_row}
BOTH = "both"  # the mode of these rows


def to_text(name: str, mode: str, one: dict) -> str:
    title = f"{name:20} {mode:18} "
    if "error" in one:
        return title + one["error"]
    if "step_ms" not in one:
        return title + str({key: {k: v for k, v in value.items() if k != "longest"}
                            if isinstance(value, dict) else value for key, value in one.items()})
    return title + (
        f"{one['step_ms']:8.2f} ms, queued {one['queued_ms']:8.2f}, kernels {one.get('kernels_ms', 0):8.2f} "
        f"in {one.get('launches', 0):5} launches, peak {one.get('peak_gigabytes', 0):6.2f} GB, held "
        f"{one.get('held_gigabytes', 0):6.2f} GB, first "
        f"{one['first_step_s']:5.1f} s, "
        + " ".join(f"{key} {value:.2f}" for key, value in one.get("classes_ms", {}).items()))


# ---- a process for each row and mode

def run_alone(given: argparse.Namespace) -> None:
    """In a process of its own: says "ready", and waits for a line before it measures."""
    def turn() -> None:
        print("ready", flush=True)
        sys.stdin.readline()
    lift_recompile_limits()
    torch.backends.cuda.matmul.allow_tf32 = False
    name = given.row
    try:
        one = OTHERS[name](given.device, given.tiny, turn) if name in OTHERS else \
            measure_row(name, given.modes, given.device, given.tiny, turn)
    except Exception as error:
        one = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
    report.write_json(given.out, one)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rows", help="names, or beginnings of names: " + ", ".join([*ROWS, *OTHERS]))
    parser.add_argument("--row", help=argparse.SUPPRESS)
    parser.add_argument("--modes", default=",".join(USUAL_MODES), help="of " + ", ".join(MODES) + f", each also with {WHOLE}")
    parser.add_argument("--at-once", type=int, default=1, help="processes that compile at a time")
    parser.add_argument("--seconds", type=float, default=480, help="begin to measure nothing after that time")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--tiny", action="store_true", help="small models, to test the script")
    return parser.parse_args()


def start(name: str, mode: str, given: argparse.Namespace, out: pathlib.Path) -> subprocess.Popen:
    command = [sys.executable, __file__, "--out", str(out), "--row", name, "--modes", mode,
               "--device", given.device] + ["--tiny"] * given.tiny
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def main() -> int:
    given = parse_arguments()
    if given.row:
        run_alone(given)
        return 0
    begin = time.perf_counter()
    spent = lambda: time.perf_counter() - begin
    kept = report.read_json(given.out) if given.out.is_file() else {"rows": {}}
    kept |= {"machine": machine(), "sinter": sinter.version(), "tiny": given.tiny}
    starts = tuple(given.rows.split(",")) if given.rows else ("",)
    wanted = [(name, mode) for name in ROWS for mode in given.modes.split(",")]
    wanted += [(name, BOTH) for name in OTHERS]
    remaining = [(name, mode) for name, mode in wanted
                 if name.startswith(starts) and mode not in kept["rows"].get(name, {})]
    while remaining and spent() < given.seconds:
        group, remaining = remaining[:given.at_once], remaining[given.at_once:]
        outs = [given.out.with_suffix(f".{number}.part") for number in range(len(group))]
        runs = [start(*one, given, out) for one, out in zip(group, outs)]
        ready = [threading.Thread(target=run.stdout.readline, daemon=True) for run in runs]
        for thread in ready:
            thread.start()
        for thread in ready:  # all have compiled before one is measured
            thread.join(max(0.0, COMPILING * given.seconds - spent()))
        for thread, run in zip(ready, runs):
            if thread.is_alive():
                run.kill()
        report.progress(f"compiled after {spent():.0f} s")
        for (name, mode), run, out in zip(group, runs, outs):
            if spent() > given.seconds:
                run.kill()
            try:
                run.communicate("go\n")
            except BrokenPipeError:
                run.wait()
            if not out.is_file():
                continue
            one = report.read_json(out)
            out.unlink()
            kept["rows"].setdefault(name, {})[mode] = one
            print(to_text(name, mode, one), flush=True)
            report.write_json(given.out, kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
