"""Facts of a compiled plan: entries, costs, kernels, verdicts of fusion."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Iterable

from sinter._bindings import lib, sinter_costs, sinter_decision, sinter_plan
from sinter.errors import SinterError, check, usage
from sinter.handles import Handle, created, encoded, symbol_arrays
from sinter.module import split_type

if TYPE_CHECKING:
    from sinter.compiled import Compiled


@dataclass(frozen=True)
class Symbol:
    """An extent that a call tells: low .. high, divisible by `multiple`."""

    low: int
    high: int
    multiple: int


@dataclass(frozen=True)
class Costs:
    """The cost of one call of an entry.

    launches: kernels, library calls and copies; kernels: distinct generated kernels among them;
    products: library calls among them. moved_bytes: read and written by all launches. arena_bytes:
    memory of intermediate values. predicted_seconds: on the plan's target, by the cost model; None
    for a plan that was opened from a folder.
    """

    launches: int
    kernels: int
    products: int
    moved_bytes: int
    arena_bytes: int
    predicted_seconds: float | None

    def __str__(self) -> str:
        time = f", {self.predicted_seconds * 1e6:.1f} us" if self.predicted_seconds else ""
        noun = "launch" if self.launches == 1 else "launches"
        return f"{self.launches} {noun}, {self.moved_bytes:,} bytes{time}"


@dataclass(frozen=True)
class Step:
    """A launch. kind: "kernel", "gemm" (a call of the library) or "copy"; values: what it computes,
    "%norm, %sum"; kernel: its index among Compiled.kernels, or None."""

    kind: str
    values: str
    kernel: int | None


@dataclass(frozen=True)
class Kernel:
    """A generated kernel. source: CUDA C++ text; of a plan that was opened from a folder ""."""

    name: str
    source: str

    def __repr__(self) -> str:
        return f"<sinter.Kernel {self.name}, {len(self.source.splitlines())} lines>"


@dataclass(frozen=True)
class Decision:
    """A verdict of fusion about two values.

    reason: an id that stays between versions, "convexity.path" (docs/reasons.md). text: what it
    means. detail: the values and sizes that decided. path: the witness of a refusal, values from
    one to the other. saved_bytes: memory traffic that the fusion saves in a call of usual sizes;
    savings: the same for people, "32.8 KB" or "a launch". change: what would have to change for the
    two to share a kernel. launches: the places among the entry's steps of those that compute the
    two values; None: no step does, as of an input. An answer of `why` also has, where others stand
    between the two, path_launches, the same of the path's values, and first_refusal, why the first
    two neighbours on the path that share no kernel do not.
    """

    a: str
    b: str
    fused: bool
    reason: str
    text: str
    detail: str
    path: tuple[str, ...]
    saved_bytes: int
    savings: str = ""
    change: str = ""
    launches: tuple[int | None, int | None] = (None, None)
    path_launches: tuple[int | None, ...] = ()
    first_refusal: Decision | None = None

    def __str__(self) -> str:
        if self.fused:
            saved = f"; saves {self.saved_bytes:,} bytes" if self.saved_bytes > 0 else ""
            return f"{self.a} and {self.b} share a kernel{saved}"
        line = f"{self.a} and {self.b} do not share a kernel: {self.text} ({self.reason})"
        if self.detail:
            line += f"\n{self.detail}"
        if self.path:
            line += "\n" + " → ".join(self.path)
        if self.change:
            line += "\n" + self.change
        if self.first_refusal is not None:
            line += f"\nfirst on the path, {self.first_refusal}"
        return line

    def __bool__(self) -> bool:
        return self.fused


def decision_of(handle: sinter_decision) -> Decision:
    path = range(lib.sinter_decision_path_count(handle))
    first = lib.sinter_decision_first_refusal(handle)
    return Decision(
        lib.sinter_decision_a(handle).decode(),
        lib.sinter_decision_b(handle).decode(),
        bool(lib.sinter_decision_fused(handle)),
        lib.sinter_decision_reason(handle).decode(),
        lib.sinter_decision_text(handle).decode(),
        lib.sinter_decision_detail(handle).decode(),
        tuple(lib.sinter_decision_path(handle, index).decode() for index in path),
        lib.sinter_decision_saved_bytes(handle),
        lib.sinter_decision_savings(handle).decode(),
        lib.sinter_decision_change(handle).decode(),
        (
            _launch(lib.sinter_decision_launch(handle, 0)),
            _launch(lib.sinter_decision_launch(handle, 1)),
        ),
        tuple(_launch(lib.sinter_decision_path_launch(handle, index)) for index in path)
        if first
        else (),
        decision_of(first) if first else None,
    )


def _launch(number: int) -> int | None:
    return None if number < 0 else number


@dataclass(frozen=True)
class VariantRange:
    """An entry may have variants, each for some values of a symbol: low .. high."""

    symbol: str
    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.symbol} in [{self.low}, {self.high}]"


@dataclass(frozen=True)
class Signature:
    """Types of inputs and outputs of entry `index`, by name, in the entry's order. An output that
    the entry names twice counts twice in `output_count`. `range`: of a variant."""

    index: int
    name: str
    range: VariantRange | None
    inputs: dict[str, str]
    outputs: dict[str, str]
    output_count: int

    @property
    def title(self) -> str:
        """The name; of a variant with its values: "main, N in [1, 8]"."""
        return f"{self.name}, {self.range}" if self.range else self.name

    @property
    def symbols(self) -> set[str]:
        return symbols_in((*self.inputs.values(), *self.outputs.values()))


def symbols_in(types: Iterable[str]) -> set[str]:
    return {dim for type in types for dim in split_type(type)[1] if isinstance(dim, str)}


class Plan(Handle):
    """The handle of a plan, and what it says of calls.

    told: the error of a run in the words of the one who made the module."""

    def __init__(self, pointer: sinter_plan) -> None:
        super().__init__(pointer, lib.sinter_plan_free)
        self.told: Callable[[SinterError], SinterError] = lambda error: error
        self.symbols = {
            lib.sinter_plan_symbol_name(pointer, index).decode(): _symbol(pointer, index)
            for index in range(lib.sinter_plan_symbol_count(pointer))
        }
        self.states: dict[str, str] = {
            lib.sinter_plan_state_name(pointer, index).decode(): lib.sinter_plan_state_type(
                pointer, index
            ).decode()
            for index in range(lib.sinter_plan_state_count(pointer))
        }
        signatures = (_signature(pointer, i) for i in range(lib.sinter_plan_entry_count(pointer)))
        self.signatures = {signature.title: signature for signature in signatures}

    def signature(self, name: str | None) -> Signature:
        """The signature of an entry; the plan's only entry needs no name. The first variant's, for
        an entry with variants: their inputs and outputs are the same."""
        names = list(dict.fromkeys(signature.name for signature in self.signatures.values()))
        if name is None and len(names) != 1:
            raise usage(f"the plan has {len(names)} entries", hint=f"name one: {', '.join(names)}")
        wanted = names[0] if name is None else name
        for title, signature in self.signatures.items():
            if wanted in (title, signature.name):
                return signature
        raise usage(f'no entry is called "{name}"', hint=f"the plan has {', '.join(names)}")


def _symbol(plan: sinter_plan, index: int) -> Symbol:
    low, high, multiple = ctypes.c_int64(), ctypes.c_int64(), ctypes.c_int64()
    lib.sinter_plan_symbol_range(
        plan, index, ctypes.byref(low), ctypes.byref(high), ctypes.byref(multiple)
    )
    return Symbol(low.value, high.value, multiple.value)


def _signature(plan: sinter_plan, index: int) -> Signature:
    inputs = {
        lib.sinter_plan_input_name(plan, index, i).decode(): lib.sinter_plan_input_type(
            plan, index, i
        ).decode()
        for i in range(lib.sinter_plan_input_count(plan, index))
    }
    output_count = lib.sinter_plan_output_count(plan, index)
    outputs = {
        lib.sinter_plan_output_name(plan, index, i).decode(): lib.sinter_plan_output_type(
            plan, index, i
        ).decode()
        for i in range(output_count)
    }
    name = lib.sinter_plan_entry_name(plan, index).decode()
    return Signature(index, name, _range(plan, index), inputs, outputs, output_count)


def may_share(plan: sinter_plan, entry: str, output: int, input: int) -> bool:
    """Whether calls of an entry may bind an output to the memory of an input, both by number, in
    all of its variants."""
    indices = [
        i
        for i in range(lib.sinter_plan_entry_count(plan))
        if lib.sinter_plan_entry_name(plan, i).decode() == entry
    ]
    return all(lib.sinter_plan_may_share(plan, i, output, input) for i in indices)


def _range(plan: sinter_plan, index: int) -> VariantRange | None:
    symbol, low, high = ctypes.c_char_p(), ctypes.c_int64(), ctypes.c_int64()
    is_variant = lib.sinter_plan_entry_range(
        plan, index, ctypes.byref(symbol), ctypes.byref(low), ctypes.byref(high)
    )
    if not is_variant or symbol.value is None:
        return None
    return VariantRange(symbol.value.decode(), low.value, high.value)


class Entry:
    """An entry of a plan.

    inputs, outputs: types by name, in the entry's order: {"x": "f16[N, 768]"}.
    symbols: those that are in these types.
    range: of a variant, one of several entries of this name: the values of a symbol that it is for.
    title: the name; of a variant with its range: "main, N in [1, 8]".
    """

    def __init__(self, compiled: Compiled, signature: Signature) -> None:
        self._compiled, self._index = compiled, signature.index
        self.name, self.inputs, self.outputs = signature.name, signature.inputs, signature.outputs
        self.range, self.title = signature.range, signature.title
        self.symbols: dict[str, Symbol] = {
            name: symbol for name, symbol in compiled.symbols.items() if name in signature.symbols
        }

    @property
    def steps(self) -> list[Step]:
        """The launches, in order."""
        plan = self._compiled.plan.pointer
        steps = []
        for step in range(lib.sinter_plan_step_count(plan, self._index)):
            kernel = lib.sinter_plan_step_kernel(plan, self._index, step)
            steps.append(
                Step(
                    lib.sinter_plan_step_kind(plan, self._index, step).decode(),
                    lib.sinter_plan_step_values(plan, self._index, step).decode(),
                    None if kernel < 0 else kernel,
                )
            )
        return steps

    def costs(self, symbols: dict[str, int] | None = None) -> Costs:
        """Costs of the fused plan at these sizes. Symbols that are not named have usual values: 512
        tokens of a prefill, one of a decode step, 1024 rows of a cache."""
        handle = created(
            sinter_costs,
            lib.sinter_plan_costs,
            self._compiled.plan.pointer,
            self._index,
            *symbol_arrays(symbols),
        )
        try:
            predicted = lib.sinter_costs_predicted_seconds(handle)
            return Costs(
                lib.sinter_costs_launches(handle),
                lib.sinter_costs_kernels(handle),
                lib.sinter_costs_products(handle),
                lib.sinter_costs_moved_bytes(handle),
                lib.sinter_costs_arena_bytes(handle),
                None if predicted < 0 else predicted,
            )
        finally:
            lib.sinter_costs_free(handle)

    def unfused_costs(self, symbols: dict[str, int] | None = None) -> Costs:
        """Costs of the same module where every op has a launch of its own. The first call compiles
        that plan."""
        return self._compiled.unfused().entry(self.title).costs(symbols)

    def decisions(self) -> list[Decision]:
        """The decisions of fusion: acceptances in their order, then refusals."""
        plan, count = self._compiled.plan.pointer, ctypes.c_size_t()
        check(lib.sinter_plan_decision_count(plan, self._index, ctypes.byref(count)))
        return [
            decision_of(lib.sinter_plan_decision(plan, self._index, index))
            for index in range(count.value)
        ]

    def why(self, a: str, b: str) -> Decision:
        """Why two values share a kernel or not. A module's name, "layers.0.mlp", stands for its last
        value."""
        handle = created(
            sinter_decision,
            lib.sinter_plan_why,
            self._compiled.plan.pointer,
            encoded(self.title),
            encoded(a),
            encoded(b),
        )
        try:
            return decision_of(handle)
        finally:
            lib.sinter_decision_free(handle)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}: {type}" for name, type in self.inputs.items())
        outputs = ", ".join(f"{name}: {type}" for name, type in self.outputs.items())
        return f"<sinter.Entry {self.name}({inputs}) -> ({outputs})>"
