"""Sinter for PyTorch: the backend of torch.compile, and modules made by torch.export."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    from ..extras import REQUIREMENTS

    raise ImportError(f"torch is not installed; pip install '{REQUIREMENTS['torch']}'") from error

from .backend import OPTIONS, compile_graph, register
from .bisection import Bisection, WrongFusion, WrongOp, bisect
from .comparison import CheckReport, check
from .export import TorchModel, from_torch
from .recorded_module import RecordedModule
from .report import Explanation, GraphReport, explain, reset

__all__ = ["Bisection", "CheckReport", "Explanation", "GraphReport", "OPTIONS", "RecordedModule", "TorchModel",
           "WrongFusion", "WrongOp", "bisect", "check", "compile_graph", "explain", "from_torch", "reset"]

register()
