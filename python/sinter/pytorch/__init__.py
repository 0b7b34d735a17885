"""Sinter for PyTorch: the backend of torch.compile, and modules made by torch.export."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    from ..extras import REQUIREMENTS

    raise ImportError(f"torch is not installed; pip install '{REQUIREMENTS['torch']}'") from error

from .backend import OPTIONS, compile_graph, register
from .export import TorchModel, from_torch
from .runtime.graph_report import GraphReport
from .runtime.recorded_module import RecordedModule
from .tools.bisection import Bisection, WrongFusion, WrongOp, bisect
from .tools.comparison import CheckReport, check
from .tools.report import Explanation, explain, reset

__all__ = ["Bisection", "CheckReport", "Explanation", "GraphReport", "OPTIONS", "RecordedModule", "TorchModel",
           "WrongFusion", "WrongOp", "bisect", "check", "compile_graph", "explain", "from_torch", "reset"]

register()
