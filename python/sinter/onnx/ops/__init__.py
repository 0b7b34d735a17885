"""Conversions of ONNX ops, registered when they are imported."""

from . import (  # noqa: F401
    attention,
    constants,
    elementwise,
    indexing,
    movement,
    norms,
    products,
    quantized,
    reductions,
    routing,
)
