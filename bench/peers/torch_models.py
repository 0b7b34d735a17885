"""Whole models by torch.compile(backend="sinter") beside Inductor and eager.

    python bench/peers/torch_models.py --out FILE [--rows a,b] [--modes eager,sinter] [--seconds 480]
        [--device cpu --tiny]

Random weights in bf16, without gradients. The modes take turns in one run; "sinter-recorded" and
"inductor-recorded", which are run where they are named, are mode="reduce-overhead", "sinter-tuned"
is mode="max-autotune". The file is written after each row; rows that it has are skipped, so that a
run goes on where one ended. For each mode it has the time on the device between two events around a
call and the sum of its kernels, the time of the host to queue a call, the time of the first call,
the peak of memory, launches, and the errors beside eager in float64, which computes a part of the
batch where float64 needs more memory than there is. `--tiny` runs the same code with small models,
also on a CPU.
"""

from __future__ import annotations

import argparse
import copy
import functools
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import report  # noqa: E402
import sinter.pytorch  # noqa: E402
from gpu import free_memory, lift_recompile_limits, machine  # noqa: E402
from sinter.pytorch import compile_graph  # noqa: E402
from torch_backend import LlamaBlock  # noqa: E402

# Arguments of torch.compile, or None.
MODES = {"eager": None, "inductor": {"backend": "inductor"}, "sinter": {"backend": compile_graph},
         "inductor-recorded": {"backend": "inductor", "mode": "reduce-overhead"},
         "sinter-recorded": {"backend": compile_graph, "mode": "reduce-overhead"},
         "sinter-tuned": {"backend": compile_graph, "mode": "max-autotune"},
         "sinter-library": {"backend": compile_graph, "options": {"graphs": True, "products": "library"}}}
USUAL_MODES = ("eager", "inductor", "sinter")
TURNS, CALLS = 5, 4  # samples of a mode, and calls whose queueing a sample times


@dataclass
class Row:
    """A model of random weights and what it is called with. exact: how many of the batch float64
    computes; None: all."""

    model: nn.Module
    arguments: dict[str, torch.Tensor]
    exact: int | None = None

    def restart(self) -> None:
        """Restores the state that a model keeps from call to call."""
        if hasattr(self.model, "restart"):
            self.model.restart()


# ---- the rows: each makes a Row on a device; `tiny` has 2 layers and small widths

def widths(tiny: bool, **full) -> dict:
    """Arguments of a configuration: small numbers where `tiny`."""
    small = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "d_model": 64,
             "num_attention_heads": 4, "vocab_size": 512, "num_key_value_heads": 2, "head_dim": 16,
             "d_ff": 128, "d_kv": 16, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4,
             "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 128}
    return {key: small.get(key, value) if tiny else value for key, value in full.items()}


def tokens(batch: int, length: int, vocabulary: int) -> torch.Tensor:
    return torch.randint(1, vocabulary, (batch, length))


def decoder(kind: str, batch: int, length: int, tiny: bool, exact: int | None = None, **full) -> Row:
    """A causal language model of transformers, all logits."""
    import transformers

    length = 32 if tiny else length
    config = getattr(transformers, kind + "Config")(
        **widths(tiny, **full), max_position_embeddings=max(length, 64), use_cache=False,
        pad_token_id=0, bos_token_id=None, eos_token_id=None)
    model = getattr(transformers, kind + "ForCausalLM")(config)
    return Row(model, {"input_ids": tokens(batch, length, config.vocab_size)}, exact)


LLAMA_1B = dict(vocab_size=128256, hidden_size=2048, num_hidden_layers=16, intermediate_size=8192,
                num_attention_heads=32, num_key_value_heads=8, head_dim=64, tie_word_embeddings=True)
QWEN3_MOE = dict(vocab_size=32000, hidden_size=1024, num_hidden_layers=4, num_attention_heads=16,
                 num_key_value_heads=4, head_dim=64, moe_intermediate_size=512, num_experts=32,
                 num_experts_per_tok=4, norm_topk_prob=True)
OLMOE = dict(vocab_size=32000, hidden_size=1024, num_hidden_layers=4, num_attention_heads=16,
             num_key_value_heads=16, intermediate_size=1024, num_experts=64, num_experts_per_tok=8)
QWEN3 = dict(vocab_size=151936, hidden_size=1024, num_hidden_layers=28, intermediate_size=3072,
             num_attention_heads=16, num_key_value_heads=8, head_dim=128, tie_word_embeddings=True)


def llama_1b(tiny: bool) -> Row:
    return decoder("Llama", 1, 2048, tiny, **LLAMA_1B)


def qwen3(tiny: bool) -> Row:
    return decoder("Qwen3", 4, 1024, tiny, 1, **QWEN3)


def qwen3_moe(tiny: bool) -> Row:
    return decoder("Qwen3Moe", 2, 512, tiny, **QWEN3_MOE)


def olmoe(tiny: bool) -> Row:
    return decoder("Olmoe", 1, 64, tiny, **OLMOE)


class DecodeStep(nn.Module):
    """A token of each sequence behind a prompt, whose keys and values are in a StaticCache. `start` runs
    the prompt; `restart` forgets the tokens behind it."""

    MORE = 128  # tokens that the cache has room for behind the prompt

    def __init__(self, model: nn.Module, prompt: torch.Tensor) -> None:
        super().__init__()
        self.model, self.prompt = model, prompt
        self.cache, self.counters = None, []

    def start(self, batch: int) -> None:
        from transformers import StaticCache

        prompt = self.prompt[:batch].to(next(self.model.parameters()).device)
        self.cache = StaticCache(self.model.config, max_cache_len=prompt.shape[1] + self.MORE)
        with torch.no_grad():
            self.model(input_ids=prompt, past_key_values=self.cache, logits_to_keep=1)
        counters = [value for layer in self.cache.layers for value in vars(layer).values()
                    if isinstance(value, torch.Tensor) and value.numel() == 1]
        self.counters = [(counter, counter.clone()) for counter in counters]
        self.position = torch.full((1,), prompt.shape[1], device=prompt.device)

    def restart(self) -> None:
        for counter, value in self.counters:
            counter.copy_(value)

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, past_key_values=self.cache,
                          cache_position=self.position).logits


def decode(kind: str, batch: int, sizes: dict) -> Callable[[bool], Row]:
    def make(tiny: bool) -> Row:
        row = decoder(kind, batch, 1024, tiny, 1, **sizes)
        prompt = row.arguments["input_ids"]
        row.model.config.use_cache = True
        row.model.config.max_position_embeddings = prompt.shape[1] + DecodeStep.MORE
        return Row(DecodeStep(row.model, prompt), {"input_ids": prompt[:, -1:].clone()}, 1)
    return make


class OneOp(nn.Module):
    """A function of tensors as a model, for the time of the host."""

    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def forward(self, **tensors):
        return self.function(*tensors.values())


def one_op(count: int, function: Callable) -> Callable[[bool], Row]:
    """A function of `count` small tensors."""
    return lambda tiny: Row(OneOp(function), {f"x{i}": torch.randn(64, 64) for i in range(count)})


def gemma2(tiny: bool) -> Row:
    return decoder("Gemma2", 1, 1024, tiny, vocab_size=256000, hidden_size=2304, num_hidden_layers=4,
                   intermediate_size=9216, num_attention_heads=8, num_key_value_heads=4, head_dim=256,
                   tie_word_embeddings=True)


def bert(tiny: bool) -> Row:
    from transformers import BertConfig, BertModel

    batch, length = (2, 16) if tiny else (32, 128)
    config = BertConfig(**widths(tiny, hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
                                 intermediate_size=3072, vocab_size=30522))
    lengths = torch.randint(length // 2, length + 1, (batch, 1))
    mask = (torch.arange(length) < lengths).long()
    return Row(BertModel(config), {"input_ids": tokens(batch, length, config.vocab_size),
                                   "attention_mask": mask})


def modern_bert(tiny: bool) -> Row:
    from transformers import ModernBertConfig, ModernBertModel

    batch, length = (2, 32) if tiny else (16, 512)
    config = ModernBertConfig(**widths(tiny, hidden_size=768, num_hidden_layers=8, vocab_size=50368,
                                       num_attention_heads=12, intermediate_size=1152),
                              pad_token_id=0, attn_implementation="sdpa")
    return Row(ModernBertModel(config), {"input_ids": tokens(batch, length, config.vocab_size),
                                         "attention_mask": torch.ones(batch, length).long()}, 2)


def vit(tiny: bool) -> Row:
    from transformers import ViTConfig, ViTModel

    batch, size = (2, 32) if tiny else (64, 224)
    config = ViTConfig(**widths(tiny, hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
                                intermediate_size=3072), image_size=size, patch_size=16)
    return Row(ViTModel(config), {"pixel_values": torch.randn(batch, 3, size, size)}, 8)


def swin_v2(tiny: bool) -> Row:
    from transformers import Swinv2Config, Swinv2Model

    batch, size = (2, 32) if tiny else (16, 256)
    sizes = dict(embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4) if tiny else \
        dict(embed_dim=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24], window_size=8)
    config = Swinv2Config(image_size=size, patch_size=4 if not tiny else 2, **sizes)
    return Row(Swinv2Model(config), {"pixel_values": torch.randn(batch, 3, size, size)}, 4)


def t5(tiny: bool) -> Row:
    from transformers import T5Config, T5ForConditionalGeneration

    batch, length = (2, 16) if tiny else (32, 128)
    config = T5Config(**widths(tiny, d_model=512, d_ff=2048, d_kv=64, num_layers=6,
                               num_decoder_layers=6, num_heads=8, vocab_size=32128),
                      use_cache=False, decoder_start_token_id=0)
    ids = lambda: tokens(batch, length, config.vocab_size)
    return Row(T5ForConditionalGeneration(config), {"input_ids": ids(), "decoder_input_ids": ids()}, 4)


def whisper(tiny: bool) -> Row:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    batch, positions = (2, 20) if tiny else (8, 1500)
    config = WhisperConfig(**widths(tiny, d_model=512, encoder_layers=6, encoder_attention_heads=8,
                                    encoder_ffn_dim=2048), max_source_positions=positions,
                           num_mel_bins=80)
    return Row(WhisperEncoder(config), {"input_features": torch.randn(batch, 80, 2 * positions)}, 1)


class DiTBlock(nn.Module):
    """A block of a diffusion transformer: norms that a condition scales and shifts, and gates."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
                                  for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.condition = nn.Linear(width, 6 * width)

    def forward(self, x, c):
        parts = self.condition(F.silu(c)).unsqueeze(1).chunk(6, -1)
        shift1, scale1, gate1, shift2, scale2, gate2 = parts
        y = self.norm1(x) * (1 + scale1) + shift1
        q, k, v = self.qkv(y).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)
        x = x + gate1 * self.out(y)
        y = self.norm2(x) * (1 + scale2) + shift2
        return x + gate2 * self.fc2(F.gelu(self.fc1(y), approximate="tanh"))


class DiT(nn.Module):
    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(DiTBlock(width, heads) for _ in range(layers))

    def forward(self, x, c):
        for block in self.blocks:
            x = block(x, c)
        return x


def dit(tiny: bool) -> Row:
    layers, width, heads = (2, 64, 4) if tiny else (12, 1152, 16)
    batch, length = (2, 16) if tiny else (8, 256)
    return Row(DiT(layers, width, heads), {"x": torch.randn(batch, length, width),
                                           "c": torch.randn(batch, width)})


def llama_2_block(tiny: bool) -> Row:
    width, heads, inner, length = (64, 4, 128, 32) if tiny else (4096, 32, 11008, 2048)
    angle = torch.rand(length, width // heads)
    return Row(LlamaBlock(width, heads, inner), {
        "x": torch.randn(1, length, width) * 0.1, "cos": angle.cos(), "sin": angle.sin()})


class SelectiveScan(nn.Module):
    """The recurrence of a state-space layer in primitives, by running sums in chunks."""

    CHUNK = 32

    def __init__(self, width: int, states: int) -> None:
        super().__init__()
        self.states = states
        self.rates = nn.Parameter(torch.arange(1, states + 1).float().log().repeat(width, 1))
        self.project, self.step = nn.Linear(width, 2 * states + 1), nn.Linear(1, width)
        self.skip = nn.Parameter(torch.ones(width))

    def forward(self, x):
        b, c, dt = self.project(x).split((self.states, self.states, 1), -1)
        dt = F.softplus(self.step(dt).float()) * 0.1
        decay = dt.unsqueeze(-1) * -self.rates.float().exp()  # [B, T, width, states]
        value = (dt * x.float()).unsqueeze(-1) * b.float().unsqueeze(2)
        state, results = torch.zeros_like(value[:, 0]), []
        for d, v in zip(decay.split(self.CHUNK, 1), value.split(self.CHUNK, 1)):
            total = d.cumsum(1)
            h = total.exp() * (state.unsqueeze(1) + ((-total).exp() * v).cumsum(1))
            state = h[:, -1]
            results.append(h)
        y = (torch.cat(results, 1) * c.float().unsqueeze(2)).sum(-1)
        return (y + x.float() * self.skip.float()).to(x.dtype)


def selective_scan(tiny: bool) -> Row:
    batch, length, width, states = (2, 64, 16, 4) if tiny else (4, 512, 1024, 16)
    return Row(SelectiveScan(width, states), {"x": torch.randn(batch, length, width)}, 1)


ROWS: dict[str, Callable[[bool], Row]] = {
    "llama-3.2-1b 1x2048": llama_1b, "qwen3-0.6b 4x1024": qwen3, "bert-base 32x128": bert,
    "vit-b/16 64": vit, "dit 12x1152 8x256": dit, "modernbert 8 layers 16x512": modern_bert,
    "llama-2-7b block 2048": llama_2_block, "t5-small 32x128": t5, "whisper-base encoder 8x1500": whisper,
    "swinv2-tiny 16": swin_v2, "gemma-2-2b 4 layers 1x1024": gemma2,
    "selective scan 4x512x1024": selective_scan,
    "qwen3-moe 4 layers 2x512": qwen3_moe, "olmoe 4 layers 1x64": olmoe,
    "decode llama-3.2-1b 1 after 1024": decode("Llama", 1, LLAMA_1B),
    "decode llama-3.2-1b 8 after 1024": decode("Llama", 8, LLAMA_1B),
    "decode qwen3-0.6b 1 after 1024": decode("Qwen3", 1, QWEN3),
    "decode qwen3-0.6b 8 after 1024": decode("Qwen3", 8, QWEN3),
    "one op, gelu 64x64": one_op(1, F.gelu),
    "sum of ten inputs, 64x64": one_op(10, lambda *x: functools.reduce(torch.add, x)),
}


# ---- measuring

def tensor_of(result) -> torch.Tensor:
    """The first tensor of a model's result."""
    return result if isinstance(result, torch.Tensor) else \
        next(iter(result.values())) if isinstance(result, dict) else result[0]


def placed(row: Row, device: str, dtype: torch.dtype) -> Row:
    move = lambda x: x.to(device, dtype if x.is_floating_point() else None)
    arguments = {name: move(x) for name, x in row.arguments.items()}
    model = row.model.eval().requires_grad_(False).to(device, dtype)
    if hasattr(model, "start"):
        model.start(len(next(iter(arguments.values()))))
    return Row(model, arguments, row.exact)


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def first_call(row: Row, call: Callable, device: str) -> tuple[torch.Tensor, dict]:
    """The result on the host, and facts: seconds of the first call, and the peak of memory of the
    second one, in which calls are recorded."""
    row.restart()
    synchronize(device)
    begin = time.perf_counter()
    call()
    synchronize(device)
    facts = {"first_call_s": time.perf_counter() - begin}
    row.restart()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    result = tensor_of(call()).detach()
    synchronize(device)
    if device == "cuda":
        facts["peak_gigabytes"] = torch.cuda.max_memory_allocated() / 1e9
    return result.cpu(), facts


def queued(call: Callable, device: str) -> float:
    """Microseconds of the host for a call whose work is queued."""
    synchronize(device)
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    spent = (time.perf_counter() - begin) / CALLS * 1e6
    synchronize(device)
    return spent


def between_events(call: Callable, device: str) -> float:
    """Milliseconds of a call; on the CPU, of the host's clock."""
    if device != "cuda":
        begin = time.perf_counter()
        call()
        return (time.perf_counter() - begin) * 1e3
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def device_work(call: Callable) -> list[tuple[str, float, int]]:
    """Name, milliseconds and launches of each kernel and copy of a call, the longest first. A kernel's time
    counts from the end of those that began before it: it may have begun while they ran, and waited."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        call()
        torch.cuda.synchronize()
    work = [event for event in trace.events() if event.device_type == torch.autograd.DeviceType.CUDA
            and not getattr(event, "is_user_annotation", False)
            and not event.name.startswith(("Optimizer", "Activity"))]
    times: dict[str, list[float]] = {}
    end = 0.0
    for event in sorted(work, key=lambda event: (event.time_range.start, -event.time_range.end)):
        added = max(0.0, event.time_range.end - max(event.time_range.start, end))
        end = max(end, event.time_range.end)
        times.setdefault(event.name, []).append(added / 1e3)
    return sorted(((name, sum(milliseconds), len(milliseconds)) for name, milliseconds in times.items()),
                  key=lambda one: -one[1])


def kernels_of(call: Callable, device: str) -> dict:
    """The sum of a call's kernels, and how many it launches, without copies of memory; the longest."""
    if device != "cuda":
        return {}
    work = device_work(call)
    return {"kernels_ms": sum(time for _, time, _ in work),
            "launches": sum(count for name, _, count in work if not name.startswith("Mem")),
            "longest": [[name[:90], time, count] for name, time, count in work[:12]]}


def errors(result: torch.Tensor, exact: torch.Tensor) -> dict:
    """Errors in the part of the batch that float64 computed."""
    difference = result[:len(exact)].double() - exact
    return {"max_error": difference.abs().max().item(),
            "rms_error": difference.square().mean().sqrt().item()}


def exact_result(row: Row, device: str) -> torch.Tensor:
    """Eager's results in float64 with the rounded weights and inputs."""
    short = lambda name, x: x if row.exact is None or name in ("cos", "sin") else x[:row.exact]
    arguments = {name: short(name, x) for name, x in row.arguments.items()}
    double = placed(Row(copy.deepcopy(row.model), arguments), device, torch.float64)
    if hasattr(getattr(double.model, "config", None), "num_experts"):
        double.model.set_experts_implementation("eager")  # no kernel multiplies runs of float64
    return tensor_of(double.model(**double.arguments)).cpu()


def backend_facts(graphs: list) -> dict:
    """The backend's report of its graphs. backend_s: its part of the first call, without Dynamo and
    aot_autograd. parts: entries, which share their memory for intermediate values. arena_bytes: of the
    largest, its results included."""
    return {"recorded": [str(call) for graph in graphs for call in graph.recorded],
            "in_eager": [f"{op.op}: {op.reason}" for graph in graphs for op in graph.eager],
            "backend_s": sum(graph.seconds for graph in graphs),
            "parts": sum(len(graph.entries) for graph in graphs),
            "arena_bytes": max((entry.compiled.entry().costs().arena_bytes
                                for graph in graphs for entry in graph.entries), default=0),
            "packed_bytes": sum(graph.packing.nbytes for graph in graphs)}


def measure(make: Callable[[bool], Row], modes: list[str], device: str, tiny: bool) -> dict:
    torch.manual_seed(1)
    sinter.pytorch.reset()
    row = placed(make(tiny), device, torch.bfloat16)
    exact = exact_result(row, device)
    free_memory()
    calls, facts, failed = {}, {}, {}
    for mode in modes:
        known = len(sinter.pytorch.tools.report.REPORTS)
        arguments = MODES[mode]
        function = row.model if arguments is None else torch.compile(row.model, **arguments)
        call = lambda function=function: function(**row.arguments)
        try:
            result, facts[mode] = first_call(row, call, device)
        except Exception as error:  # the other modes go on
            failed[mode] = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
            continue
        facts[mode] |= errors(result, exact)
        if mode.startswith("sinter"):
            facts[mode] |= backend_facts(sinter.pytorch.tools.report.REPORTS[known:])
        calls[mode] = call
    samples: dict = {mode: ([], []) for mode in calls}
    for _ in range(TURNS):
        for mode, call in calls.items():
            row.restart()
            call()
            samples[mode][0].append(between_events(call, device))
            samples[mode][1].append(queued(call, device))
    for mode, call in calls.items():
        row.restart()
        facts[mode] |= {"device_ms": statistics.median(samples[mode][0]), "device_samples": samples[mode][0],
                        "host_us": statistics.median(samples[mode][1]), **kernels_of(call, device)}
    return {"largest": exact.abs().max().item(), "float64_batch": len(exact), "modes": facts | failed}


def to_text(name: str, row: dict) -> str:
    lines = [name]
    for mode, one in row["modes"].items():
        lines.append(f"  {mode:17} " + (one["error"] if "error" in one else (
            f"{one['device_ms']:9.3f} ms, kernels {one.get('kernels_ms', 0):9.3f} ms, "
            f"host {one['host_us']:8.0f} us, first {one['first_call_s']:6.1f} s, "
            f"{one.get('peak_gigabytes', 0):6.2f} GB, {one.get('launches', 0):5} launches, "
            f"errors {one['max_error']:.2e} {one['rms_error']:.2e}")))
    return "\n".join(lines)


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rows", help="names, or beginnings of names: " + ", ".join(ROWS))
    parser.add_argument("--modes", default=",".join(USUAL_MODES), help="of " + ", ".join(MODES))
    parser.add_argument("--seconds", type=float, default=480, help="start no row after that time")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--tiny", action="store_true", help="small models, to test the script")
    return parser.parse_args(argv)


def main() -> int:
    given = parse_arguments()
    begin = time.perf_counter()
    lift_recompile_limits()
    kept = report.read_json(given.out) if given.out.is_file() else {"rows": {}}
    kept |= {"machine": machine(), "sinter": sinter.version(), "tiny": given.tiny}
    starts = tuple(given.rows.split(",")) if given.rows else ("",)
    remaining = [name for name in ROWS if name.startswith(starts) and name not in kept["rows"]]
    while remaining and time.perf_counter() - begin < given.seconds:
        name = remaining.pop(0)
        try:
            with torch.no_grad():
                kept["rows"][name] = measure(ROWS[name], given.modes.split(","), given.device, given.tiny)
        except Exception as error:  # the other rows go on
            kept["rows"][name] = {"modes": {"all": {"error": f"{type(error).__name__}: {str(error)[:300]}"}}}
        print(to_text(name, kept["rows"][name]), flush=True)
        report.write_json(given.out, kept)
        free_memory()
    if remaining:
        print("remaining rows: " + ",".join(remaining))
    return 0


if __name__ == "__main__":
    sys.exit(main())
