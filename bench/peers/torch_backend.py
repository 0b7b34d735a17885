"""torch.compile(backend="sinter") beside eager and torch.compile's default, on a CUDA device.

    python bench/peers/torch_backend.py [--json FILE] [--parts calls,kernels,block,models]

Each part prints a table and adds to the JSON file, so that parts can run one at a time.
  calls     host time of a call: an empty graph and a graph of one op, beside backend="aot_eager"
  kernels   memory-bound functions written in primitives, many calls in one CUDA graph
  block     a block of Llama-2-7B: prefill of 2,048 tokens, and a token with 1,024 in the cache
  models    the models of python/tests/pytorch/models.py on CUDA, beside eager
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import sinter.pytorch  # noqa: E402
from sinter.pytorch import compile_graph  # noqa: E402

BACKENDS = {"eager": None, "inductor": "inductor", "sinter": compile_graph}


def compiled(function, backend, **options):
    torch._dynamo.reset()
    return function if backend is None else torch.compile(function, backend=backend, **options)


def host_microseconds(function, *arguments, calls: int = 2000) -> float:
    """Host time of a call whose work is queued, in turns of 200 calls; the median."""
    function(*arguments)
    samples = []
    for _ in range(calls // 200):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(200):
            function(*arguments)
        samples.append((time.perf_counter() - begin) / 200 * 1e6)
    torch.cuda.synchronize()
    return statistics.median(samples)


def device_milliseconds(function, repeat: int = 10, warm: int = 3) -> float:
    """Time between two events around a call; the median."""
    for _ in range(warm):
        function()
    samples = []
    for _ in range(repeat):
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        begin.record()
        function()
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end))
    return statistics.median(samples)


def graph_milliseconds(function, sets: list[tuple], repeat: int = 10) -> float:
    """Time of a call in a CUDA graph of calls over rotating inputs."""
    for arguments in sets[:2]:
        function(*arguments)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        kept = [function(*arguments) for arguments in sets[:3]]
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for arguments in sets:
            kept = function(*arguments)
    del kept
    return device_milliseconds(graph.replay, repeat) / len(sets)


# ---- host time of a call

def calls() -> dict:
    x = torch.randn(64, device="cuda")
    result = {}
    for name, function in (("empty", lambda x: (x, x)), ("one op", lambda x: x + 1.0),
                           ("ten inputs", lambda *xs: sum(xs))):
        arguments = [x.clone() for _ in range(10)] if name == "ten inputs" else [x]
        with torch.no_grad():
            times = {backend: host_microseconds(compiled(function, given), *arguments)
                     for backend, given in (("eager", None), ("aot_eager", "aot_eager"),
                                            ("inductor", "inductor"), ("sinter", compile_graph))}
        result[name] = times
        print(f"{name:12}" + "".join(f"  {key} {value:6.1f} us" for key, value in times.items()),
              flush=True)
    return result


# ---- memory-bound kernels

def tanh_gelu(x):
    y = x.float()
    return (0.5 * y * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi)
                                        * (y + 0.044715 * y * y * y)))).to(x.dtype)


def softmax(x):
    y = x.float()
    e = torch.exp(y - y.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)).to(x.dtype)


def residual_layer_norm(x, r, w, b):
    s = x + r
    return s, F.layer_norm(s, s.shape[-1:], w, b)


def residual_rms_norm(x, r, w):
    s = x + r
    y = s.float()
    return s, (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * w


def silu_times(x, y):
    return F.silu(x) * y


KERNELS = [
    ("tanh-GELU", tanh_gelu, [(16384, 16384)], 2),
    ("SiLU(x) * y", silu_times, [(16384, 4096)] * 2, 3),
    ("SiLU(x) * y, 65536", silu_times, [(65536, 4096)] * 2, 3),
    ("softmax 8192 x 4096", softmax, [(8192, 4096)], 2),
    ("softmax 32768 x 1024", softmax, [(32768, 1024)], 2),
    ("softmax 4096 x 32768", softmax, [(4096, 32768)], 2),
    ("x + r, LayerNorm 2048 x 2560", residual_layer_norm,
     [(2048, 2560), (2048, 2560), (2560,), (2560,)], 4),
    ("x + r, LayerNorm 16384 x 4096", residual_layer_norm,
     [(16384, 4096), (16384, 4096), (4096,), (4096,)], 4),
    ("x + r, RMSNorm 16384 x 4096", residual_rms_norm,
     [(16384, 4096), (16384, 4096), (4096,)], 4),
]


def kernels() -> dict:
    result = {}
    for name, function, shapes, moved in KERNELS:
        size = math.prod(shapes[0]) * 2
        count = max(3, min(24, (256 << 20) // (size * len(shapes)) + 1))
        sets = [tuple(torch.randn(shape, device="cuda", dtype=torch.bfloat16)
                      for shape in shapes) for _ in range(count)]
        times = {}
        with torch.no_grad():
            for backend, given in BACKENDS.items():
                times[backend] = graph_milliseconds(compiled(function, given), sets)
        rate = {backend: moved * size / ms / 1e9 for backend, ms in times.items()}
        result[name] = {"milliseconds": times, "terabytes_per_second": rate}
        print(f"{name:32}" + "".join(f"  {key} {value * 1e3:8.1f} us {rate[key]:5.2f} TB/s"
                                     for key, value in times.items()), flush=True)
    return result


# ---- a block of Llama

class LlamaBlock(nn.Module):
    def __init__(self, width=4096, heads=32, inner=11008) -> None:
        super().__init__()
        self.heads, self.head = heads, width // heads
        self.norm1, self.norm2 = (nn.Parameter(torch.ones(width)) for _ in range(2))
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def norm(self, x, weight):
        y = x.float()
        return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * weight

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def forward(self, x, cos, sin, keys=None, values=None):
        h = self.norm(x, self.norm1)
        q, k, v = (layer(h).unflatten(-1, (self.heads, self.head)).transpose(1, 2)
                   for layer in (self.q, self.k, self.v))
        q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        if keys is not None:
            k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=keys is None)
        x = x + self.o(a.transpose(1, 2).flatten(-2))
        h = self.norm(x, self.norm2)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def block() -> dict:
    torch.manual_seed(1)
    dtype = torch.bfloat16
    model = LlamaBlock().cuda().to(dtype)
    result = {}
    for name, tokens, cached in (("prefill of 2,048", 2048, 0), ("a token after 1,024", 1, 1024)):
        x = torch.randn(1, tokens, 4096, device="cuda", dtype=dtype) * 0.1
        angle = torch.rand(tokens, 128, device="cuda")
        arguments = [x, angle.cos().to(dtype), angle.sin().to(dtype)]
        if cached:
            arguments += [torch.randn(1, 32, cached, 128, device="cuda", dtype=dtype)
                          for _ in range(2)]
        times, outputs = {}, {}
        with torch.no_grad():
            for backend, given in BACKENDS.items():
                function = compiled(model, given)
                outputs[backend] = function(*arguments)
                times[backend] = graph_milliseconds(function, [tuple(arguments)] * 4)
        exact = outputs["eager"].float()
        error = {key: (value.float() - exact).abs().max().item() / exact.abs().max().item()
                 for key, value in outputs.items()}
        result[name] = {"milliseconds": times, "difference from eager": error}
        print(f"{name:20}" + "".join(f"  {key} {value:7.3f} ms" for key, value in times.items())
              + f"  differs from eager by {error['sinter']:.1e} (inductor {error['inductor']:.1e})",
              flush=True)
    return result


# ---- models of the tests

def models() -> dict:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python/tests/pytorch"))
    import models as tests
    result = {}
    for name in tests.MODELS:
        for dtype in (torch.float32, torch.bfloat16):
            try:
                loss, grads, breaks = tests.compare(name, dtype, device="cuda")
            except Exception as error:
                print(f"{name:10} {dtype} FAILED {type(error).__name__}: {str(error)[:300]}",
                      flush=True)
                result[f"{name} {dtype}"] = {"error": str(error)[:300]}
                continue
            eager = [str(op) for one in sinter.pytorch.tools.report.REPORTS for op in one.eager]
            result[f"{name} {dtype}"] = {"loss": loss, "gradients": grads,
                                         "breaks": sum(breaks.values()), "eager": eager}
            print(f"{name:10} {str(dtype):15} loss {loss:.1e} gradients {grads:.1e} breaks "
                  f"{sum(breaks.values())} eager {len(eager)}", flush=True)
            for op in eager:
                print("    " + op[:160])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--parts", default="calls,kernels,block,models")
    parser.add_argument("--backends", default=",".join(BACKENDS))
    given = parser.parse_args()
    for name in set(BACKENDS) - set(given.backends.split(",")):
        del BACKENDS[name]
    torch.backends.cuda.matmul.allow_tf32 = False
    path = Path(given.json) if given.json else None
    kept = json.loads(path.read_text()) if path and path.is_file() else {}
    kept["device"] = torch.cuda.get_device_name()
    kept["versions"] = {"torch": torch.__version__, "cuda": torch.version.cuda,
                        "sinter": sinter.version()}
    for part in given.parts.split(","):
        print(f"== {part}", flush=True)
        try:
            kept[part] = globals()[part]()
        except Exception as error:  # the other parts go on
            import traceback
            traceback.print_exc()
            kept[part] = {"error": f"{type(error).__name__}: {error}"}
        if path:
            path.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
