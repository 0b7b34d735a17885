"""Sinter: a graph compiler with kernel fusion for NVIDIA GPUs.

    compiled = sinter.compile("samples/layer_norm_residual.sir", random_weights=1)
    print(compiled.why("norm", "sum"))
    y = compiled.run(x=x, residual=residual)

docs/python.md leads through the package.
"""

from typing import Any as _Any

from sinter._bindings import Code
from sinter._bindings import lib as _lib
from sinter.batch import Batch
from sinter.call import Call
from sinter.compiled import Compiled, compile, open_plan
from sinter.devices import Device
from sinter.encoder import Encoder
from sinter.errors import SinterError
from sinter.generation import Generation
from sinter.handles import text_of as _text_of
from sinter.language_model import LanguageModel
from sinter.module import GraphBuilder, Model, ModuleBuilder, Value
from sinter.opening import open_model
from sinter.plan import Costs, Decision, Entry, Kernel, Step, Symbol
from sinter.session import Executable, Session
from sinter.verify import Report

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "Call",
    "Code",
    "Compiled",
    "Costs",
    "Decision",
    "Device",
    "Encoder",
    "Entry",
    "Executable",
    "Generation",
    "GraphBuilder",
    "Kernel",
    "LanguageModel",
    "Model",
    "ModuleBuilder",
    "Report",
    "Session",
    "SinterError",
    "Step",
    "Symbol",
    "Value",
    "bisect",
    "compile",
    "explain",
    "from_onnx",
    "from_torch",
    "open_model",
    "open_plan",
    "version",
]


def version() -> str:
    """The version of the library that is loaded."""
    return _text_of(_lib.sinter_version())


def __dir__() -> list[str]:
    """The names that the package offers, without its modules."""
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> _Any:
    """`bisect`, `explain` and `from_torch` come from `sinter.pytorch`, which needs torch; `from_onnx`
    from `sinter.onnx`, which needs onnx."""
    if name == "from_onnx":
        from sinter.onnx import from_onnx

        return from_onnx
    if name in ("bisect", "explain", "from_torch"):
        from sinter import pytorch

        return getattr(pytorch, name)
    raise AttributeError(f"module 'sinter' has no attribute '{name}'")
