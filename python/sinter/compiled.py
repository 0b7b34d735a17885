"""Compiling models, and what one does with the result."""

from __future__ import annotations

import ctypes
import html
import json
import os
import threading
from typing import Any, Iterable, Mapping

from sinter._bindings import lib, sinter_plan
from sinter.devices import Device, device_of
from sinter.errors import Interrupts, SinterError
from sinter.handles import encoded, taken_text, text_of
from sinter.module import Model
from sinter.opening import Source, open_source
from sinter.options import Options, Progress
from sinter.plan import Decision, Entry, Kernel, Plan, Symbol, symbols_in
from sinter.session import Executable, Session, Weights
from sinter.tensors import place_of, torch_stream
from sinter.verify import Report, verify

Pairs = Iterable["tuple[str, str]"]


def compile(
    source: Source,
    *,
    dtype: str | None = None,
    target: str | Device | None = None,
    numerics: str | None = None,
    attention: str | None = None,
    products: str | None = None,
    invariant: bool | None = None,
    fuse: bool | None = None,
    entries: list[str] | None = None,
    random_weights: int | None = None,
    ignore_keys: list[str] | None = None,
    weights: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    context: int | None = None,
    kv: str | None = None,
    require: Pairs = (),
    forbid: Pairs = (),
    device_inputs: bool | None = None,
    progress: Progress = None,
) -> Compiled:
    """Compiles a model into a fused plan.

    source: the path of a Hugging Face folder, a llama2.c file, a spec (.json), a module (.sir) or a
    plan's folder; the text of a module (a str with line breaks); a Model or a ModuleBuilder.
    dtype: f32, f16 or bf16, of a language model. target: what to compile for, "sm_90a" (the
    default) or a Device. numerics: "strict" (the default: fused equals unfused bit for bit) or
    "fast". attention: "tiled" (the default), "composed", or "relaxed", which takes attention in
    primitives whose scores are rounded to 16 bits. products, of more than eight tokens: "auto" (the
    default), "library", by cuBLASLt, or "own", by Sinter's kernel with an epilogue, from five tokens
    on; auto takes that in strict numerics where it was measured to be faster. invariant: a token's
    results do not depend, bit for bit, on the other sequences of a call, nor on how its text was cut
    into calls (docs/invariance.md). fuse: False compiles
    every op to a launch of its own. entries: the default is all. random_weights: a seed of stand-in
    weights. ignore_keys: keys of config.json that are not known and change no result. weights: a
    safetensors file or folder, or tensors by name. context: tokens of the longest text. kv:
    "sink=4,window=1024", a streaming cache. require, forbid: pairs of values or modules that must
    share a kernel, or must not. device_inputs: whether kernels check row numbers in inputs, as
    inputs on a GPU need; the default is True for modules.

    A required pair that stays apart is a SinterError with the reason (Code.CHECK_FAILED).
    """
    tensors = None if weights is None or isinstance(weights, (str, os.PathLike)) else weights
    model = open_source(
        source,
        {
            "dtype": dtype,
            "random-weights": random_weights,
            "ignore-key": ignore_keys,
            "weights": weights if tensors is None else None,
            "context": context,
            "kv": kv,
        },
    )
    options = {
        "target": target.target if isinstance(target, Device) else target,
        "numerics": numerics,
        "attention": attention,
        "products": products,
        "invariant": invariant,
        "fuse": fuse,
        "entries": entries,
        "device-inputs": device_inputs,
    }
    given = None if tensors is None else Weights(tensors)
    return Compiled(model, options, list(require), list(forbid), given, progress)


def open_plan(folder: str | os.PathLike[str]) -> Compiled:
    """The plan in a folder, as `Compiled.save` and `sinter compile -o` write it."""
    return compile(folder)


# The element of a page in which the lines of the user's source stand.
_NO_SOURCES = '<script type="application/json" id="sinter-sources">{}</script>'


class Compiled:
    """A compiled plan of all entries. Immutable; several threads may use it, and one may close it
    meanwhile.

    model: what was compiled. plan: its handle in the library. symbols: those whose values calls
    have. states: types by name. sources: lines of the user's source by the name of the value that
    they made, for explain_html(); of PyTorch's graphs.
    """

    def __init__(
        self,
        model: Model,
        options: dict[str, Any],
        require: list[tuple[str, str]],
        forbid: list[tuple[str, str]],
        weights: Weights | None,
        progress: Progress,
    ) -> None:
        with (
            Interrupts() as interrupts,
            Options(options, interrupts, progress, require, forbid) as given,
        ):
            pointer = sinter_plan()
            interrupts.check(
                lib.sinter_compile(model.pointer, given.pointer, ctypes.byref(pointer)),
                lambda: lib.sinter_plan_free(pointer),
            )
            self.model, self.plan = model, Plan(pointer)
        self.symbols: dict[str, Symbol] = self.plan.symbols
        self.states: dict[str, str] = self.plan.states
        self.sources: dict[str, str] = {}
        self._options, self._weights = options, weights
        self._lock = threading.RLock()  # of the fields below; a progress function may come back
        self._unfused: Compiled | None = None
        self._executables: dict[str, Executable] = {}
        self._idle: dict[tuple[str, int | None], list[Session]] = {}  # sessions of run()

    @property
    def entries(self) -> dict[str, Entry]:
        """By name, in their order."""
        return {name: Entry(self, one) for name, one in self.plan.signatures.items()}

    def entry(self, name: str | None = None) -> Entry:
        """An entry by name; the only one, if there is one, needs no name."""
        return Entry(self, self.plan.signature(name))

    def close(self) -> None:
        """Frees the plan, and what run() keeps for it on devices, when the calls that use them have
        returned. Sessions that were made go on."""
        self.plan.close()
        with self._lock:
            sessions = [session for idle in self._idle.values() for session in idle]
            for handle in (*sessions, *self._executables.values()):
                handle.close()
            if self._unfused is not None:
                self._unfused.close()
            self._idle, self._executables, self._unfused = {}, {}, None

    def __enter__(self) -> Compiled:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- what the plan says ------------------------------------------------------------------

    @property
    def target(self) -> str:
        """The device that the plan was compiled for: "sm_90a"."""
        return text_of(lib.sinter_plan_target(self.plan.pointer))

    @property
    def text(self) -> str:
        """The module before the passes, in the text form."""
        return self.model.text

    @property
    def optimized_text(self) -> str:
        """The module after all passes, of which the plan is made."""
        return self._text("module")

    @property
    def ledger_text(self) -> str:
        """The decisions of fusion in all entries, as text for people."""
        return self._text("ledger.txt")

    @property
    def ledger(self) -> dict[str, Any]:
        """The same as data, in the format of docs/schemas/fusion.json."""
        ledger: dict[str, Any] = json.loads(self._text("ledger.json"))
        return ledger

    def explain_html(self, with_text: bool = False) -> str:
        """A page with the kernels as a picture and the answer about any two values: one file that loads
        nothing. It has no weights, and the module's text only `with_text`."""
        page = self._text("ledger-with-module.html" if with_text else "ledger.html")
        if not self.sources:
            return page
        # Characters that end a script element are escaped.
        lines = json.dumps(self.sources).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
        return page.replace(_NO_SOURCES, _NO_SOURCES.replace("{}", lines), 1)

    def _repr_html_(self) -> str:
        # In a frame, so that neither page's style reaches the other.
        page = html.escape(self.explain_html(), quote=True)
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" '
            'style="width: 100%; height: 640px; border: 1px solid #ccc"></iframe>'
        )

    @property
    def kernels(self) -> list[Kernel]:
        """The generated kernels, to which steps of the entries refer."""
        plan = self.plan.pointer
        return [
            Kernel(
                lib.sinter_plan_kernel_name(plan, index).decode(),
                lib.sinter_plan_kernel_source(plan, index).decode(),
            )
            for index in range(lib.sinter_plan_kernel_count(plan))
        ]

    def why(self, a: str, b: str, entry: str | None = None) -> Decision:
        """Why two values share a kernel or not. A module's name, "layers.0.mlp", stands for its last
        value. Without `entry`: in the first one that has both."""
        if entry is not None or len(self.plan.signatures) == 1:
            return self.entry(entry).why(a, b)
        missing: SinterError | None = None
        for one in self.entries.values():
            try:
                return one.why(a, b)
            except SinterError as error:
                missing = missing or error
        assert missing is not None
        raise missing

    def decisions(self, entry: str | None = None) -> list[Decision]:
        """The decisions of fusion in an entry: acceptances in their order, then refusals."""
        return self.entry(entry).decisions()

    def unfused(self) -> Compiled:
        """The same module with a launch for every op. Compiled once, when it is asked for."""
        with self._lock:
            if self._unfused is None:
                options = {**self._options, "fuse": False}
                unfused = Compiled(self.model, options, [], [], self._weights, None)
                self.plan.check_open()
                unfused.plan.told = self.plan.told
                self._unfused = unfused
            return self._unfused

    def _text(self, what: str) -> str:
        return taken_text(lib.sinter_plan_text, self.plan.pointer, encoded(what))

    # ---- running -----------------------------------------------------------------------------

    def load(self, device: str | Device = "auto", progress: Progress = None) -> Executable:
        """Loads the plan on a device with its weights, once: kernels are compiled, weights
        computed. `run` and `session` do it where it was not done."""
        opened = device_of(device)
        with self._lock:
            if opened.name not in self._executables:
                executable = Executable(self.plan, opened, self._weights, progress)
                self.plan.check_open()
                self._executables.setdefault(opened.name, executable)
            return self._executables[opened.name]

    def session(
        self,
        device: str | Device = "auto",
        stream: int | None = None,
        symbols: dict[str, int] | None = None,
    ) -> Session:
        """A session, for states that several calls share, or for calls that are bound once.

        stream: a CUstream as a number (torch.cuda.Stream.cuda_stream); None: torch's current one
        where the program has torch, else a stream of its own. symbols: values of the symbols in
        types of states.
        """
        return Session(self.plan, self.load(device), stream, symbols)

    def run(
        self,
        entry: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        device: str | Device = "auto",
        symbols: dict[str, int] | None = None,
        out: Mapping[str, Any] | None = None,
        check: bool = False,
        **tensors: Any,
    ) -> Any:
        """Runs an entry on tensors by name: `run(x=x)`, or `run("main", {"layer.0.x": x})`.

        Tensors are NumPy arrays, torch tensors or objects with __dlpack__, and are not copied. They
        must be on the device; "auto" is where they are. Returns the output, in the kind of array
        that was given, or a dict where there are several; `out` names tensors to write instead.
        States are zeros at the beginning, and lost at the end. `symbols`: values of symbols that no
        shape tells.

        On a GPU, torch tensors are used in torch's current stream, and nothing waits: row numbers
        that name no row raise only with `check`, which waits. Other tensors are used in the legacy
        default stream, and the call waits.
        """
        given = {**(inputs or {}), **tensors}
        place, kind = _place_of(given, out or {}, self.plan.signature(entry).name)
        opened = device_of(place if device == "auto" else device)
        of_states = symbols_in(self.states.values())
        state_symbols = {k: v for k, v in (symbols or {}).items() if k in of_states}
        call_symbols = {k: v for k, v in (symbols or {}).items() if k not in of_states}
        stream = None
        if opened.place != "cpu":
            stream = torch_stream(opened.place) if kind == "torch" else 0
        session = self._take_session(opened, stream, state_symbols)
        try:
            results = session.run(entry, given, symbols=call_symbols, out=out, check=check)
            if opened.place != "cpu" and kind != "torch":
                session.synchronize()
            return results
        finally:
            session.forget()  # what is enqueued runs before what reuses the memory
            with self._lock:
                is_kept = not self.states and not self.plan.is_closed
                if is_kept:
                    self._idle.setdefault((opened.name, stream), []).append(session)
            if not is_kept:
                session.close()

    def _take_session(self, device: Device, stream: int | None, symbols: dict[str, int]) -> Session:
        """A session that no thread uses; a new one where states would remember."""
        with self._lock:
            idle = self._idle.get((device.name, stream))
            if idle:
                return idle.pop()
        return Session(self.plan, self.load(device), stream, symbols)

    def verify(
        self,
        device: str | Device = "auto",
        *,
        seed: int | None = None,
        repeat: int | None = None,
        symbols: dict[str, int] | None = None,
    ) -> Report:
        """Calls every entry in one session on random inputs, fused beside unfused, bit for bit
        (fast numerics: within their bounds), and beside float64 where that takes no time. A broken
        promise is a report that is False. For modules."""
        options = {
            "seed": seed,
            "repeat": repeat,
            "numerics": self._options.get("numerics"),
            "target": self._options.get("target"),
        }
        return verify(self.model, device_of(device), self._weights, options, symbols or {})

    def save(
        self,
        folder: str | os.PathLike[str],
        machine_code: list[str] | None = None,
        progress: Progress = None,
    ) -> None:
        """Writes the folder of the plan, which must be absent, empty or hold a plan. It appears as
        a whole or not at all. machine_code: architectures to compile the kernels for, ["sm_90a"],
        which needs NVRTC."""
        with (
            Interrupts() as interrupts,
            Options({"machine-code": machine_code}, interrupts, progress) as options,
        ):
            interrupts.check(
                lib.sinter_plan_save(self.plan.pointer, encoded(folder), options.pointer)
            )

    def __repr__(self) -> str:
        entries = ", ".join(self.plan.signatures)
        return f"<sinter.Compiled {self.model.name} for {self.target}: {entries}>"


def _place_of(given: Mapping[str, Any], out: Mapping[str, Any], entry: str) -> tuple[str, str]:
    """Device and kind of the first tensor; of a call without any the CPU's."""
    for kind, values in (("input", given), ("output", out)):
        for name, value in values.items():
            return place_of(value, f"entry {entry}, {kind} {name}")
    return "cpu", "numpy"
