"""Language models: text in, text out, streamed."""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any, Sequence, Union, cast

from sinter._bindings import lib, sinter_language_model
from sinter.batch import Batch
from sinter.chat import ChatTemplate, Message
from sinter.devices import Device, device_of
from sinter.errors import check, usage
from sinter.generation import STARTING, Generation, Stream
from sinter.handles import Handle, encoded, taken_text
from sinter.integers import index_of, integers
from sinter.opening import opened
from sinter.options import Progress, sampling_options

Prompt = Union[str, Sequence[int]]


class LanguageModel(Handle):
    """A decoder-only language model on a device, compiled and loaded. One thread at a time
    generates, or works with a batch of the model; any may encode and decode.

    path: a Hugging Face folder, a llama2.c file, a spec (.json) or a plan's folder. device: "cpu",
    "cuda", "cuda:N" or "auto": the first GPU, else the CPU. dtype: f32, f16 or bf16. context:
    tokens of the longest text. sequences: that decode together at most, 1 to 256; usually 8. kv:
    "sink=4,window=1024", a streaming cache. random_weights: a seed
    of stand-in weights. ignore_keys: keys of config.json that are not known and change no result.
    progress: stages "model", and "weights" in bytes.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        device: str | Device = "auto",
        dtype: str | None = None,
        *,
        context: int | None = None,
        kv: str | None = None,
        sequences: int | None = None,
        random_weights: int | None = None,
        ignore_keys: list[str] | None = None,
        weights: str | os.PathLike[str] | None = None,
        numerics: str | None = None,
        progress: Progress = None,
    ) -> None:
        values = {
            "dtype": dtype,
            "context": context,
            "kv": kv,
            "sequences": sequences,
            "random-weights": random_weights,
            "ignore-key": ignore_keys,
            "weights": weights,
            "numerics": numerics,
        }
        self.device = device_of(device)
        functions = lib.sinter_language_model_open, lib.sinter_language_model_free
        pointer = opened(sinter_language_model(), functions, path, self.device, values, progress)
        super().__init__(pointer, lib.sinter_language_model_free)
        self.path = os.fspath(path)
        self._chat: ChatTemplate | None = None
        self._running: weakref.WeakSet[Stream] = weakref.WeakSet()

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, with the special tokens that begin one."""
        tokens = ctypes.POINTER(ctypes.c_int32)()
        count = ctypes.c_size_t()
        check(
            lib.sinter_language_model_encode(
                self.pointer, encoded(text), ctypes.byref(tokens), ctypes.byref(count)
            )
        )
        try:
            return tokens[: count.value]
        finally:
            lib.sinter_free(ctypes.cast(tokens, ctypes.c_void_p))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of token ids, without special tokens."""
        ids = list(tokens)
        decode = lib.sinter_language_model_decode_all
        return taken_text(decode, self.pointer, ids, len(ids), sized=True)

    def generate(
        self,
        prompt: Prompt | Sequence[Prompt],
        *,
        count: int = 64,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        stop: str | Sequence[str] = (),
        end_tokens: Sequence[int] = (),
        stop_at_end: bool = True,
        activation_memory: str | None = None,
        prefill_chunk: int | None = None,
    ) -> Generation:
        """Continues one prompt, or several at once; a prompt is a text or token ids.

        count: tokens for each, at most. temperature: 0 takes the likeliest token; without one it is
        1 where top_k, top_p or seed is given, else 0. top_k: 0 means all. seed: of the draws. stop:
        texts that end a sequence, and are not given. end_tokens: further tokens that do.
        stop_at_end: whether the model's own end tokens do, those of its chat template among them.
        activation_memory: what the intermediate values of a call may take at most ("2GB"); longer
        prompts are fed in several calls. prefill_chunk: tokens of prompts that a call takes at
        most.

        Nothing runs before the result is iterated over or read.
        """
        alone = isinstance(prompt, str) or (
            len(prompt) > 0 and all(index_of(token) is not None for token in prompt)
        )
        prompts = cast("list[Prompt]", [prompt] if alone else list(prompt))
        ids = [
            self.encode(one)
            if isinstance(one, str)
            else integers(one, f"prompt {number}", ctypes.c_int32)
            for number, one in enumerate(prompts)
        ]
        options = {
            "count": count,
            **sampling_options(temperature, top_k, top_p, seed),
            "stop-at-end": stop_at_end,
            "end": list(end_tokens) or None,
            "activation-memory": activation_memory,
            "prefill-chunk": prefill_chunk,
        }
        stops = [stop] if isinstance(stop, str) else list(stop)
        if "" in stops:
            raise usage('an empty text is given for "stop"', hint="leave it out")
        return Generation(self, ids, options, stops, alone)

    def batch(
        self,
        places: int,
        capacity: int,
        *,
        activation_memory: str | None = None,
        prefill_chunk: int | None = None,
    ) -> Batch:
        """Places for sequences that decode together and come and go: `places` at a time, as many at
        most as the model was opened for (`sequences`), each of up to `capacity` tokens, prompt and
        continuation. Takes the memory of all caches. Other options: as generate()."""
        values = {"activation-memory": activation_memory, "prefill-chunk": prefill_chunk}
        return Batch(self, places, capacity, values)

    def chat(self, messages: Sequence[Message], **options: Any) -> Generation:
        """The model's answer to a conversation, by the chat template that its folder brings.

        messages: [{"role": "user", "content": "Hello"}, ...]. Options: as generate(), and
        `template_options`, a dict of further variables of the template. Needs jinja2.
        """
        template_options = options.pop("template_options", {})
        if self._chat is None:
            self._chat = ChatTemplate(self.path)
        text = self._chat.render(messages, **template_options)
        begin = self.encode("")
        ids = self._without(begin, self.encode(text))
        if self._chat.eos_token and options.get("stop_at_end", True):
            end = self._without(begin, self.encode(self._chat.eos_token))
            if len(end) == 1:
                options["end_tokens"] = [*options.get("end_tokens", ()), *end]
        return self.generate(ids, **options)

    @staticmethod
    def _without(begin: list[int], ids: list[int]) -> list[int]:
        """Templates write the tokens that begin a text themselves."""
        return ids[len(begin) :] if begin and ids[: len(begin)] == begin else ids

    def close(self) -> None:
        """Ends what is being generated, with an error for those who read it, and frees the model."""
        with STARTING:
            super().close()
            running = list(self._running)
        for stream in running:
            stream.stop()

    def __repr__(self) -> str:
        return f"<sinter.LanguageModel {self.path} on {self.device.name}>"
