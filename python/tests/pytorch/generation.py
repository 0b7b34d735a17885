"""Texts that transformers generates with a StaticCache through the backend, beside eager.

    python generation.py [--device cuda] [--prompts 20] [--length 40]

Greedy, in float32, with small models of random weights, with and without recorded calls. Exit code 1 if
a token differs.
"""

from __future__ import annotations

import argparse
import sys

import torch

LLAMA = ("Llama", dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                       num_key_value_heads=2, head_dim=16, vocab_size=512, tie_word_embeddings=True))
QWEN3 = ("Qwen3", dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                       num_key_value_heads=2, head_dim=32, vocab_size=512, tie_word_embeddings=False))


def model_of(kind: str, sizes: dict, device: str) -> torch.nn.Module:
    import transformers

    torch.manual_seed(3)
    config = getattr(transformers, kind + "Config")(
        **sizes, max_position_embeddings=128, pad_token_id=0, bos_token_id=None, eos_token_id=None)
    model = getattr(transformers, kind + "ForCausalLM")(config).eval().requires_grad_(False).to(device)
    for parameter in model.parameters():  # logits that are far apart
        if parameter.dim() > 1:
            parameter.mul_(6)
    return model


def prompts_of(model: torch.nn.Module, count: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    lengths = torch.randint(3, 12, (count,), generator=generator).tolist()
    draw = lambda length: torch.randint(1, model.config.vocab_size, (1, length), generator=generator)
    return [draw(length).to(model.device) for length in lengths]


def generated(model: torch.nn.Module, prompt: torch.Tensor, length: int, is_compiled: bool,
              mode: str) -> list[int]:
    """Greedy tokens behind a prompt, up to `length` with it."""
    from transformers import CompileConfig

    from sinter.pytorch import compile_graph

    config = CompileConfig(backend=compile_graph, mode=mode, fullgraph=True)
    config._compile_all_devices = True
    chosen = {"compile_config": config} if is_compiled else {"disable_compile": True}
    result = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_length=length,
                            do_sample=False, cache_implementation="static", **chosen)
    return result[0, prompt.shape[1]:].tolist()


def differences(model: torch.nn.Module, count: int, length: int, mode: str = "default") -> list[str]:
    """A line for each of `count` prompts whose texts differ."""
    lines, seen = [], set()
    for i, prompt in enumerate(prompts_of(model, count)):
        eager, compiled = (generated(model, prompt, length, flag, mode) for flag in (False, True))
        seen.update(eager)
        if compiled != eager:
            lines.append(f"prompt {i}: {compiled}, in eager {eager}")
    if len(seen) < 2 * count:
        lines.append(f"{len(seen)} different tokens tell little")
    return lines


def main() -> int:
    import sinter

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--length", type=int, default=40)
    given = parser.parse_args()
    lines = []
    for kind, sizes in (LLAMA, QWEN3):
        for mode in ("default", "reduce-overhead"):
            torch._dynamo.reset()
            wrong = differences(model_of(kind, sizes, given.device), given.prompts, given.length, mode)
            graphs = sinter.explain().graphs
            print(f"{kind}, {mode}: {given.prompts} prompts, {len(wrong)} differ, {len(graphs)} graphs, "
                  f"{sum(len(graph.eager) for graph in graphs)} ops in eager")
            print("\n".join(str(call) for graph in graphs for call in graph.recorded))
            sinter.pytorch.reset()
            lines += wrong
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
