"""ONNX files as modules of Sinter. docs/onnx.md leads through it."""

from .model import OnnxModel, from_onnx

__all__ = ["OnnxModel", "from_onnx"]
