"""Models of transformers from tiny configurations, forward and backward, beside eager on the CPU.

    python models.py [NAME ...]

Prints for each model: graphs, graph breaks, ops that run in eager, the largest differences of the
result and of the gradients.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Callable

import torch
import torch._dynamo
from torch import nn

from sinter.pytorch.tools import report
from sinter.pytorch.backend import compile_graph

BATCH, LENGTH, VOCABULARY = 2, 12, 96


def ids(*shape: int) -> torch.Tensor:
    return torch.randint(0, VOCABULARY, shape)


def language_model(make: Callable[[], nn.Module]) -> tuple[nn.Module, dict]:
    tokens = ids(BATCH, LENGTH)
    return make(), {"input_ids": tokens, "labels": tokens}


SMALL = dict(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
             num_attention_heads=4, max_position_embeddings=64)
TOKENS = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0)


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    return language_model(lambda: LlamaForCausalLM(LlamaConfig(num_key_value_heads=2, **SMALL)))


def qwen3():
    from transformers import Qwen3Config, Qwen3ForCausalLM
    return language_model(lambda: Qwen3ForCausalLM(
        Qwen3Config(num_key_value_heads=2, head_dim=16, **SMALL)))


def gemma2():
    from transformers import Gemma2Config, Gemma2ForCausalLM
    return language_model(lambda: Gemma2ForCausalLM(
        Gemma2Config(num_key_value_heads=2, head_dim=16, query_pre_attn_scalar=16,
                     sliding_window=8, **SMALL)))


def phi3():
    from transformers import Phi3Config, Phi3ForCausalLM
    return language_model(lambda: Phi3ForCausalLM(
        Phi3Config(num_key_value_heads=2, **SMALL, **TOKENS)))


def gpt_neox():
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM
    return language_model(lambda: GPTNeoXForCausalLM(GPTNeoXConfig(**SMALL, **TOKENS)))


def opt():
    from transformers import OPTConfig, OPTForCausalLM
    return language_model(lambda: OPTForCausalLM(OPTConfig(
        vocab_size=VOCABULARY, hidden_size=64, word_embed_proj_dim=64, ffn_dim=96,
        num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64, **TOKENS)))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_embd=64, n_layer=2, n_head=4,
                                       n_positions=64, **TOKENS))
    model.loss_type = "ForCausalLM"  # else transformers logs a warning in the middle of the graph
    return language_model(lambda: model)


def olmo2():
    from transformers import Olmo2Config, Olmo2ForCausalLM
    return language_model(lambda: Olmo2ForCausalLM(
        Olmo2Config(num_key_value_heads=2, **SMALL, **TOKENS)))


def mixtral():
    from transformers import MixtralConfig, MixtralForCausalLM
    config = MixtralConfig(num_key_value_heads=2, num_local_experts=4, **SMALL)
    config._experts_implementation = "batched_mm"
    return language_model(lambda: MixtralForCausalLM(config))


def bert():
    from transformers import BertConfig, BertForMaskedLM
    return language_model(lambda: BertForMaskedLM(BertConfig(**SMALL)))


def distilbert():
    from transformers import DistilBertConfig, DistilBertForMaskedLM
    return language_model(lambda: DistilBertForMaskedLM(DistilBertConfig(
        vocab_size=VOCABULARY, dim=64, hidden_dim=96, n_layers=2, n_heads=4,
        max_position_embeddings=64)))


def t5():
    from transformers import T5Config, T5ForConditionalGeneration
    config = T5Config(vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=96, num_layers=2,
                      num_heads=4, decoder_start_token_id=0, **{"pad_token_id": 0})
    return T5ForConditionalGeneration(config), {"input_ids": ids(BATCH, LENGTH),
                                                "labels": ids(BATCH, 7)}


def vit():
    from transformers import ViTConfig, ViTForImageClassification
    config = ViTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                       intermediate_size=96, image_size=32, patch_size=8, num_labels=5)
    return ViTForImageClassification(config), {"pixel_values": torch.randn(BATCH, 3, 32, 32),
                                               "labels": torch.randint(0, 5, (BATCH,))}


class Encoder(nn.Module):
    """Whisper's encoder, with the mean of its states as a loss."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import WhisperConfig
        from transformers.models.whisper.modeling_whisper import WhisperEncoder
        self.encoder = WhisperEncoder(WhisperConfig(
            vocab_size=VOCABULARY, num_mel_bins=16, d_model=64, encoder_layers=2,
            encoder_attention_heads=4, encoder_ffn_dim=96, max_source_positions=20))

    def forward(self, features: torch.Tensor):
        return self.encoder(features).last_hidden_state.square().mean()


def whisper():
    return Encoder(), {"features": torch.randn(BATCH, 16, 40)}


class DiTBlock(nn.Module):
    """A block of a diffusion transformer: a condition shifts, scales and gates both branches."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(width, elementwise_affine=False)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)
        self.modulation = nn.Linear(width, 6 * width)
        self.heads = heads

    def forward(self, x: torch.Tensor, condition: torch.Tensor):
        parts = self.modulation(nn.functional.silu(condition)).unsqueeze(1).chunk(6, -1)
        shift1, scale1, gate1, shift2, scale2, gate2 = parts
        h = self.norm1(x) * (1 + scale1) + shift1
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for t in self.qkv(h).chunk(3, -1))
        h = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + gate1 * self.proj(h.transpose(1, 2).flatten(-2))
        h = self.norm2(x) * (1 + scale2) + shift2
        h = self.fc2(nn.functional.gelu(self.fc1(h), approximate="tanh"))
        return (x + gate2 * h).square().mean()


def dit():
    return DiTBlock(), {"x": torch.randn(BATCH, LENGTH, 64), "condition": torch.randn(BATCH, 64)}


MODELS = {function.__name__: function for function in
          (llama, qwen3, gemma2, phi3, gpt2, gpt_neox, opt, olmo2, mixtral, bert, distilbert, t5,
           vit, whisper, dit)}


def loss_of(result) -> torch.Tensor:
    return result if isinstance(result, torch.Tensor) else result.loss


def gradients(model: nn.Module, run: Callable) -> tuple[torch.Tensor, list[torch.Tensor]]:
    model.zero_grad()
    loss = loss_of(run())
    loss.backward()
    return loss.detach(), [p.grad.clone() if p.grad is not None else torch.zeros_like(p)
                           for p in model.parameters()]


def compare(name: str, dtype: torch.dtype = torch.float32, dynamic: bool | None = None,
            device: str = "cpu"):
    """(largest difference of the loss, of the gradients relative to the largest, breaks, reports)"""
    torch.manual_seed(1)
    torch._dynamo.reset()
    report.REPORTS.clear()
    model, inputs = MODELS[name]()
    model = model.to(device, dtype).eval()
    inputs = {key: value.to(device, dtype if value.is_floating_point() else value.dtype)
              for key, value in inputs.items()}
    if hasattr(model, "config"):
        model.config.use_cache = False
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(model, backend=compile_graph, dynamic=dynamic)
    loss, grads = gradients(model, lambda: compiled(**inputs))
    wanted, wanted_grads = gradients(model, lambda: model(**inputs))
    breaks = dict(torch._dynamo.utils.counters["graph_break"])
    scale = max(g.abs().max().item() for g in wanted_grads)
    error = max((a.double() - b.double()).abs().max().item()
                for a, b in zip(grads, wanted_grads)) / scale
    return abs(loss.item() - wanted.item()) / abs(wanted.item()), error, breaks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--dynamic", action="store_true", default=None)
    parser.add_argument("--eager", action="store_true", help="list the ops that run in eager")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.names or MODELS:
        try:
            loss, grads, breaks = compare(name, getattr(torch, given.dtype), given.dynamic)
        except Exception as error:
            import traceback
            traceback.print_exc()
            print(f"{name:10} FAILED {type(error).__name__}: {str(error)[:600]}")
            continue
        reports = report.REPORTS
        eager = [op for r in reports for op in r.eager]
        print(f"{name:10} loss {loss:.1e}  gradients {grads:.1e}  graphs {len(reports)}  "
              f"breaks {sum(breaks.values())}  parts {sum(len(r.entries) for r in reports)}  "
              f"eager {len(eager)}  compiled in {sum(r.seconds for r in reports):.2f} s", flush=True)
        for reason, count in breaks.items():
            print(f"    break {count}: {reason.splitlines()[0]}")
        if given.eager:
            for op in eager:
                print(f"    {op.op} {op.location}: {op.reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
