"""Encoders: texts in, vectors out."""

from __future__ import annotations

import ctypes
import json
import os
import warnings
from typing import Any, Sequence

from sinter._bindings import lib, sinter_encoder
from sinter.devices import Device, device_of
from sinter.errors import Interrupts
from sinter.extras import needed
from sinter.handles import Handle, Turn, encoded, taken_text
from sinter.opening import opened
from sinter.options import Options, Progress


class Encoder(Handle):
    """An encoder of texts, such as BERT, on a device, compiled and loaded. One thread at a time.

    path: a Hugging Face folder or a plan's folder, with its tokenizer. device: "cpu", "cuda",
    "cuda:N" or "auto": the first GPU, else the CPU. dtype: f32, f16 or bf16. pooling: "mean" or
    "cls", how the vectors of tokens become one; the default is what the model's modules.json says,
    else "mean". normalize: vectors of length 1; the default is what modules.json says, else False.
    random_weights: a seed of stand-in weights. ignore_keys: keys of config.json that are not known
    and change no result. progress: stages "model", and "weights" in bytes.

    prompts: the model's own, by name, from its config_sentence_transformers.json.
    default_prompt_name: the one that encode() puts before each text unless it is told otherwise.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        device: str | Device = "auto",
        dtype: str | None = None,
        *,
        pooling: str | None = None,
        normalize: bool | None = None,
        random_weights: int | None = None,
        ignore_keys: list[str] | None = None,
        weights: str | os.PathLike[str] | None = None,
        numerics: str | None = None,
        progress: Progress = None,
    ) -> None:
        values = {
            "dtype": dtype,
            "pooling": pooling,
            "normalize": normalize,
            "random-weights": random_weights,
            "ignore-key": ignore_keys,
            "weights": weights,
            "numerics": numerics,
        }
        self.device = device_of(device)
        functions = lib.sinter_encoder_open, lib.sinter_encoder_free
        pointer = opened(sinter_encoder(), functions, path, self.device, values, progress)
        super().__init__(pointer, lib.sinter_encoder_free, Turn("encoder"))
        self.path = os.fspath(path)
        given = json.loads(taken_text(lib.sinter_encoder_prompts, self.pointer))
        self.prompts: dict[str, str] = given["prompts"]
        self.default_prompt_name: str | None = given["default_prompt_name"]

    @property
    def width(self) -> int:
        """Numbers of a vector."""
        return int(lib.sinter_encoder_width(self.pointer))

    def encode(
        self,
        texts: str | Sequence[str],
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        truncate: bool = False,
        activation_memory: str | None = None,
    ) -> Any:
        """A NumPy array of f32: [texts, width] of a sequence, [width] of one text.

        prompt: a text that is put before each text; "" is none. prompt_name: one of the model's
        prompts. Without both the model's default prompt counts, where it has one. truncate: a text
        of more tokens than the model takes keeps its first ones, with a warning; else it is an
        error. activation_memory: what the intermediate values of a call may take at most ("2GB").
        """
        numpy = needed("numpy", "encode")
        given = [texts] if isinstance(texts, str) else list(texts)
        values = {
            "prompt": prompt,
            "prompt-name": prompt_name,
            "truncate": truncate,
            "activation-memory": activation_memory,
        }
        vectors = numpy.empty((len(given), self.width), numpy.float32)
        cut = ctypes.c_size_t()
        with self._turn, Interrupts() as interrupts, Options(values, interrupts) as options:
            interrupts.check(
                lib.sinter_encoder_encode(
                    self.pointer,
                    (ctypes.c_char_p * len(given))(*(encoded(text) for text in given)),
                    len(given),
                    options.pointer,
                    vectors.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
                    ctypes.byref(cut),
                )
            )
        if cut.value:
            noun = "text was" if cut.value == 1 else "texts were"
            warnings.warn(f"{cut.value} {noun} truncated", stacklevel=2)
        return vectors[0] if isinstance(texts, str) else vectors

    def __repr__(self) -> str:
        name = self.default_prompt_name
        prompt = f", prompt {self.prompts[name]!r}" if name is not None else ""
        return f"<sinter.Encoder {self.path} on {self.device.name}{prompt}>"
