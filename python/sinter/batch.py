"""Sequences of a language model that decode together and come and go."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Sequence

from sinter._bindings import lib, sinter_batch
from sinter.errors import check
from sinter.handles import Handle, Turn
from sinter.integers import integer, limits
from sinter.options import Interrupts, Options, Progress, sampling_options

if TYPE_CHECKING:
    from sinter.language_model import LanguageModel


class Batch(Handle):
    """Made by `LanguageModel.batch`. Each sequence has a place in the caches; one step gives every
    sequence its next token, and a sequence that is removed leaves its place to another. What a
    sequence is continued by does not depend on its place. It depends on the others only through the
    number of sequences of a step, which decides how products round: with the usual options 1 to 8
    are alike on a CPU and 2 to 8 on a GPU, and so are 9 to 64 of a 16-bit model on a Hopper GPU;
    above, a library's products may round each number and each row differently. One thread at a
    time: a second one, and a progress function, gets an error; free_places alone answers any."""

    def __init__(self, model: LanguageModel, places: int, capacity: int, values: dict[str, Any]):
        self.places = integer(places, "places", *limits(ctypes.c_size_t))
        pointer = sinter_batch()
        with Options(values) as options:
            check(
                lib.sinter_batch_create(
                    model.pointer, self.places, capacity, options.pointer, ctypes.byref(pointer)
                )
            )
        super().__init__(pointer, lib.sinter_batch_free, Turn("batch"))
        self.model = model

    @property
    def free_places(self) -> int:
        return int(lib.sinter_batch_free_places(self.pointer))

    def add(
        self,
        prompt: str | Sequence[int],
        *,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        progress: Progress = None,
    ) -> int:
        """Feeds a prompt, a text or token ids, into a free place: the sequence's number, by which
        step() names it. Options of the choice of tokens: as generate(). progress: stage "prompts", tokens."""
        ids = self.model.encode(prompt) if isinstance(prompt, str) else list(prompt)
        values = sampling_options(temperature, top_k, top_p, seed)
        sequence = ctypes.c_int64()
        with (
            self._turn,
            Interrupts() as interrupts,
            Options(values, interrupts, progress) as options,
        ):
            interrupts.check(
                lib.sinter_batch_add(
                    self.pointer, ids, len(ids), options.pointer, ctypes.byref(sequence)
                )
            )
        return sequence.value

    def remove(self, sequence: int) -> None:
        """Frees the sequence's place."""
        with self._turn:
            check(lib.sinter_batch_remove(self.pointer, sequence))

    def step(self) -> dict[int, int]:
        """The next token of each sequence, in the order in which they were added. An error, which
        leaves all as they are, if one fills its place or has logits that are not finite: remove it.
        """
        sequences, tokens = (ctypes.c_int64 * self.places)(), (ctypes.c_int32 * self.places)()
        count = ctypes.c_size_t(self.places)
        with self._turn:
            check(lib.sinter_batch_step(self.pointer, sequences, tokens, ctypes.byref(count)))
        return dict(zip(sequences[: count.value], tokens[: count.value]))
