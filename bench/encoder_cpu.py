"""Vectors of texts on the CPU: sinter.Encoder beside transformers in eager, on one processor, in one run.

    python encoder_cpu.py FOLDER TEXTS     a sentence encoder; a file with a text on each line

Each of five turns measures both, the faster one of each is printed: seconds of a processor for all
texts, tokenizer included, without loading.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Callable

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

import sinter

TURNS = 5


def seconds(run: Callable[[], object]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    folder, texts = sys.argv[1], Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def eager() -> np.ndarray:
        inputs = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**inputs).last_hidden_state
        mask = inputs["attention_mask"].unsqueeze(-1)
        mean = (hidden * mask).sum(1) / mask.sum(1)
        return torch.nn.functional.normalize(mean).numpy()

    with sinter.Encoder(folder, "cpu", normalize=True) as encoder:
        difference = np.abs(encoder.encode(texts, truncate=True) - eager()).max()
        ours, theirs = [], []
        for _ in range(TURNS):
            ours.append(seconds(lambda: encoder.encode(texts, truncate=True)))
            theirs.append(seconds(eager))
    print(f"{len(texts)} texts, vectors differ by {difference:.1e} at most")
    print(f"sinter {min(ours):.3f} s, eager {min(theirs):.3f} s: {min(ours) / min(theirs):.2f} times")


if __name__ == "__main__":
    main()
