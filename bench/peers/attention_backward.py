"""Attention's gradient beside torch's: times of the backward pass's kernels, errors against float64.

    python bench/peers/attention_backward.py [--json FILE] [--rows NAME,...]

The time is that in which kernels of a backward pass run, by torch's profile, the median of 20 passes; the error
the largest of q, k and v, over the largest element, beside eager's, on a call of one sequence and one
head of keys. Tokens are the second axis of operands and of the result, and heads the third, as the
products around an attention have them.
"""

import argparse
import json
import statistics

import sinter.pytorch  # noqa: F401  (registers the backend)
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile

# batch, tokens, query heads, key heads, elements of a head, causal
ROWS = {
    "gpt2 32x1024": (32, 1024, 12, 12, 64, True),
    "bert 32x128": (32, 128, 12, 12, 64, False),
    "vit 64x197": (64, 197, 12, 12, 64, False),
    "llama-3.2-1b 1x1024": (1, 1024, 32, 8, 64, True),
    "heads of 128 8x2048": (8, 2048, 32, 32, 128, True),
    "heads of 128 2x8192": (2, 8192, 32, 32, 128, True),
}
KERNELS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


def operands(batch, tokens, heads, kv_heads, width, dtype=torch.bfloat16):
    make = lambda count: torch.randn((batch, tokens, count, width), device="cuda", dtype=dtype)
    return make(heads), make(kv_heads), make(kv_heads), make(heads)


def attention(q, k, v, causal):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                          enable_gqa=q.shape[1] != k.shape[1]).transpose(1, 2)


def gradients(function, q, k, v, grad, causal):
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    function(*leaves, causal).backward(grad)
    return [x.grad for x in leaves]


def busy_time(events):
    """Microseconds in which a kernel runs. A kernel that is launched before its predecessor's end waits for
    that end, so that a sum over kernels would count the wait twice."""
    spans = sorted((event.time_range.start, event.time_range.end) for event in events
                   if event.device_type == torch.autograd.DeviceType.CUDA)
    total, end = 0.0, float("-inf")
    for start, stop in spans:
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def kernel_times(function, q, k, v, grad, causal, passes=20):
    """Microseconds in which kernels of a forward and of a backward pass run, and the time of each."""
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    parts = {"forward": [], "backward": []}
    names = {}
    for number in range(passes + 3):
        for x in leaves:
            x.grad = None
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as forward:
            result = function(*leaves, causal)
            torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as backward:
            result.backward(grad)
            torch.cuda.synchronize()
        if number < 3:
            continue
        for part, one in (("forward", forward), ("backward", backward)):
            parts[part].append(busy_time(one.events()))
            for event in one.key_averages():
                if event.self_device_time_total:
                    names[f"{part} {event.key[:60]}"] = round(event.self_device_time_total, 1)
    return {part: statistics.median(times) for part, times in parts.items()}, names


def row(batch, tokens, heads, kv_heads, width, causal):
    torch.manual_seed(0)
    torch._dynamo.reset()
    compiled = torch.compile(attention, backend="sinter", dynamic=False)
    small = operands(1, min(tokens, 2048), heads // kv_heads, 1, width)
    exact = gradients(attention, *[x.double() for x in small], causal)
    error = lambda found: max(((x.double() - y).abs().max() / y.abs().max()).item()
                              for x, y in zip(found, exact))
    found = {"error": {"sinter": error(gradients(compiled, *small, causal))}}
    inputs = operands(batch, tokens, heads, kv_heads, width)
    again = [gradients(compiled, *inputs, causal) for _ in range(2)]
    found["equal bits"] = all(torch.equal(x, y) for x, y in zip(*again))
    del again
    times, names = kernel_times(compiled, *inputs, causal)
    found["sinter"], found["kernels"] = times, names
    for name, kernel in KERNELS.items():
        with sdpa_kernel(kernel):
            try:
                found["error"][name] = error(gradients(attention, *small, causal))
                found[name], _ = kernel_times(attention, *inputs, causal)
            except RuntimeError as reason:
                found[name] = str(reason).splitlines()[0]
    if isinstance(found["cudnn"], dict):
        found["ratio"] = found["sinter"]["backward"] / found["cudnn"]["backward"]
    pairs = batch * heads * tokens * tokens * (0.5 if causal else 1)
    found["TFLOP/s"] = 10 * pairs * width / found["sinter"]["backward"] / 1e6
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--rows", default=",".join(ROWS))
    given = parser.parse_args()
    found = {"device": torch.cuda.get_device_name()}
    for name in given.rows.split(","):
        found[name] = row(*ROWS[name])
        print(name, json.dumps(found[name], indent=1), flush=True)
        if given.json:
            with open(given.json, "w") as out:
                json.dump(found, out, indent=1)


if __name__ == "__main__":
    main()
