"""Texts of a language model, piece by piece."""

from __future__ import annotations

import atexit
import ctypes
import queue
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Iterator

from sinter._bindings import lib, sinter_on_text
from sinter.errors import Interrupts, SinterError, usage
from sinter.integers import array_of
from sinter.options import Options

if TYPE_CHECKING:
    from sinter.language_model import LanguageModel


class Generation:
    """A generation in progress. Iterating gives pieces of text for one prompt; for several, pairs
    (number of the prompt, piece). Leaving the loop ends the generation.

        for piece in model.generate("Once"):
            print(piece, end="", flush=True)

    text (texts, of several prompts): all of it, which waits for the end; once it is iterated over, so
    far. tokens (token_lists): their ids, so far; the end token is not among them.
    """

    def __init__(
        self,
        model: LanguageModel,
        prompts: list[list[int]],
        options: dict[str, Any],
        stops: list[str],
        alone: bool,
    ) -> None:
        self._model, self._prompts, self._options = model, prompts, options
        self._stops, self._alone = stops, alone
        self._started = False
        self._error: SinterError | None = None  # with which it ended
        self._reading = threading.RLock()  # while the text is read to its end
        self.token_lists: list[list[int]] = [[] for _ in prompts]
        self._texts = ["" for _ in prompts]

    @property
    def tokens(self) -> list[int]:
        return self.token_lists[0]

    @property
    def texts(self) -> list[str]:
        with self._reading:
            if not self._started:
                for _ in self:
                    pass
            if self._error is not None:
                raise self._error
            return self._texts

    @property
    def text(self) -> str:
        return self.texts[0]

    def __str__(self) -> str:
        return self.text

    def __iter__(self) -> Iterator[Any]:
        with self._reading:
            if self._started:
                raise usage(
                    "this generation has run", "generate", "read .text, or call generate again"
                )
            self._started = True
        return self._pieces()

    def _pieces(self) -> Iterator[Any]:
        try:
            yield from self._pieces_of(Stream(self._model, self._prompts, self._options))
        except SinterError as error:
            self._error = error
            raise

    def _pieces_of(self, stream: Stream) -> Iterator[Any]:
        filters = [_StopFilter(self._stops) for _ in self._prompts]
        try:
            for sequence, token, text in stream:
                one = filters[sequence]
                if one.stopped:
                    continue
                self.token_lists[sequence].append(token)
                yield from self._piece(sequence, one.push(text))
                if all(each.stopped for each in filters):
                    break
            for sequence, one in enumerate(filters):
                yield from self._piece(sequence, one.rest())
        finally:
            stream.stop()

    def _piece(self, sequence: int, text: str) -> Iterator[Any]:
        if text:
            self._texts[sequence] += text
            yield text if self._alone else (sequence, text)


class _StopFilter:
    """Text of a sequence up to the first of the stop texts. Holds back what may begin one."""

    def __init__(self, stops: list[str]) -> None:
        self._stops, self._held, self.stopped = stops, "", False

    def push(self, text: str) -> str:
        self._held += text
        places = [at for at in (self._held.find(stop) for stop in self._stops) if at >= 0]
        if places:
            self.stopped = True
            certain, self._held = self._held[: min(places)], ""
            return certain
        keep = max(
            (
                length
                for stop in self._stops
                for length in range(1, min(len(stop), len(self._held) + 1))
                if self._held.endswith(stop[:length])
            ),
            default=0,
        )
        at = len(self._held) - keep
        certain, self._held = self._held[:at], self._held[at:]
        return certain

    def rest(self) -> str:
        certain, self._held = self._held, ""
        return certain


_streams: weakref.WeakSet[Stream] = weakref.WeakSet()  # whose threads may run
STARTING = threading.RLock()  # held until a stream's thread has started
_SECONDS_TO_END = 5.0  # for all of them together, when the interpreter ends


class Stream:
    """A generation that runs in a thread, as an iterator of (sequence, token, text)."""

    def __init__(
        self, model: LanguageModel, prompts: list[list[int]], options: dict[str, Any]
    ) -> None:
        self._model, self._prompts, self._options = model, prompts, options
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._stopped = self._was_cut = False
        self._thread = threading.Thread(target=self._run, name="sinter generate", daemon=True)
        with STARTING:
            model.check_open()
            model._running.add(self)
            _streams.add(self)
            self._thread.start()

    def _run(self) -> None:
        try:
            self._generate()
            self._queue.put(None)
        except BaseException as error:
            self._queue.put(error)

    def _generate(self) -> None:
        arrays = [array_of(ids, "prompt", ctypes.c_int32) for ids in self._prompts]
        pointers = (ctypes.POINTER(ctypes.c_int32) * len(arrays))(
            *(ctypes.cast(array, ctypes.POINTER(ctypes.c_int32)) for array in arrays)
        )
        lengths = [*map(len, arrays)]
        interrupts = Interrupts()

        def is_cut() -> bool:
            self._was_cut = self._stopped
            return self._was_cut

        def take(sequence: int, token: int, text: int, size: int) -> bool:
            cut = is_cut()
            if not cut:
                self._queue.put((sequence, token, ctypes.string_at(text, size).decode()))
            return cut

        with Options(self._options, interrupts, lambda *progress: not is_cut()) as options:
            error = lib.sinter_language_model_generate_text(
                self._model.pointer,
                pointers,
                lengths,
                len(arrays),
                options.pointer,
                sinter_on_text(lambda user, *item: interrupts.guard(take, *item)),
                None,
            )
        if self._was_cut:
            lib.sinter_error_free(error)
            self._model.check_open()  # else the reader has stopped it
        else:
            interrupts.check(error)

    def __iter__(self) -> Iterator[tuple[int, int, str]]:
        while True:
            item = self._queue.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    def stop(self) -> None:
        """Ends the generation at its next token, and waits for that. The garbage collector may call
        it in the generation's own thread."""
        self._stopped = True
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()


@atexit.register
def _stop_streams() -> None:
    """Generations that nobody read to their end are stopped. A thread that is in a long call of the
    library after that time is left behind."""
    with STARTING:
        streams = list(_streams)
    for stream in streams:
        stream._stopped = True
    end = time.monotonic() + _SECONDS_TO_END
    for stream in streams:
        if stream._thread.is_alive():
            stream._thread.join(max(0.0, end - time.monotonic()))
