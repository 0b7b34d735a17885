"""Comparing the fused and the unfused plan of a module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sinter._bindings import lib, sinter_report
from sinter.devices import Device
from sinter.handles import created
from sinter.module import Model
from sinter.options import Options
from sinter.session import Weights


@dataclass(frozen=True)
class Report:
    """The result of comparing the fused with the unfused plan. True where every promise holds.

    difference: the first value that differs, and how; "". values, elements: how many were compared.
    fused_error, unfused_error: largest absolute error of an output against float64; None where it
    was not measured.
    """

    passed: bool
    difference: str
    values: int
    elements: int
    fused_launches: int
    unfused_launches: int
    fused_error: float | None
    unfused_error: float | None

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        if not self.passed:
            return f"not verified: {self.difference}"
        return (
            f"verified: {self.elements:,} elements of {self.values} values, fused in "
            f"{self.fused_launches} launches, unfused in {self.unfused_launches}"
        )


def verify(
    model: Model,
    device: Device,
    weights: Weights | None,
    options: dict[str, Any],
    symbols: dict[str, int],
) -> Report:
    """Compiled.verify, with the options of sinter_verify."""
    values = {**options, **{f"symbol.{name}": value for name, value in symbols.items()}}
    with Options(values) as given:
        handle = created(
            sinter_report,
            lib.sinter_verify,
            model.pointer,
            device.pointer,
            None if weights is None else weights.pointer,
            given.pointer,
        )
    try:
        errors = [lib.sinter_report_fused_error(handle), lib.sinter_report_unfused_error(handle)]
        return Report(
            bool(lib.sinter_report_passed(handle)),
            lib.sinter_report_difference(handle).decode(),
            lib.sinter_report_values(handle),
            lib.sinter_report_elements(handle),
            lib.sinter_report_fused_launches(handle),
            lib.sinter_report_unfused_launches(handle),
            *(None if error < 0 else error for error in errors),
        )
    finally:
        lib.sinter_report_free(handle)
