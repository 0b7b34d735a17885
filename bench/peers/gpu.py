"""Helpers of the peers' scripts on the GPU: facts about the machine, CUDA graphs, their timing."""

import collections
import dataclasses
import gc
import platform
from collections.abc import Callable

import torch

from report import progress

WARM_UP = 3  # calls before a capture, and replays before the timing


def machine() -> dict:
    facts = {"torch": torch.__version__, "cuda": torch.version.cuda,
             "python": platform.python_version()}
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        facts |= {"device": properties.name, "multiprocessors": properties.multi_processor_count,
                  "l2_bytes": properties.L2_cache_size, "memory_bytes": properties.total_memory}
    return facts


def lift_recompile_limits() -> None:
    """Many shapes go through one function here. Beyond the limit a call would run eagerly in
    silence and pass for a compiled one."""
    config = torch._dynamo.config
    for name in ("recompile_limit", "cache_size_limit", "accumulated_recompile_limit",
                 "accumulated_cache_size_limit"):
        if hasattr(config, name):
            setattr(config, name, 1 << 20)
    if hasattr(config, "fail_on_recompile_limit_hit"):
        config.fail_on_recompile_limit_hit = True


@dataclasses.dataclass(frozen=True)
class Captured:
    graph: torch.cuda.CUDAGraph
    calls: int
    call: Callable[[int], object]  # keeps the tensors alive that the graph works on


def capture(call: Callable[[int], object], sets: int, calls: int) -> Captured:
    """A graph of `calls` calls; call i works on input set i mod `sets`. The results of the last
    `sets` calls stay alive during the capture, so that results rotate through memory as the
    inputs do."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for i in range(WARM_UP):
            call(i % sets)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    alive: collections.deque = collections.deque(maxlen=sets)
    with torch.cuda.graph(graph):
        for i in range(calls):
            alive.append(call(i % sets))
    return Captured(graph, calls, call)


def time_calls(captured: dict[str, Captured], samples: int) -> dict[str, list[float]]:
    """Microseconds of a call, one sample for each replay. The graphs take turns, so that a drift
    of the clocks meets all of them."""
    for one in captured.values():
        for _ in range(WARM_UP):
            one.graph.replay()
    torch.cuda.synchronize()
    times: dict[str, list[float]] = {name: [] for name in captured}
    for _ in range(samples):
        for name, one in captured.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            one.graph.replay()
            end.record()
            end.synchronize()
            times[name].append(1000 * begin.elapsed_time(end) / one.calls)
    return times


def free_memory() -> None:
    """Between cases: forgets compiled code and returns memory that nothing holds."""
    torch.compiler.reset()
    gc.collect()
    torch.cuda.empty_cache()


def require_cuda() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("this script measures a GPU; torch finds none")
    progress(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
