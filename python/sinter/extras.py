"""Packages that extras of this one bring along, imported where they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from sinter.errors import usage

# Requirements of pyproject.toml. Errors name them and no extra of this package, since the package
# index has another package called sinter.
REQUIREMENTS = {
    "numpy": "numpy",
    "onnx": "onnx>=1.17",
    "ml_dtypes": "ml_dtypes>=0.5",
    "jinja2": "jinja2>=3.1",
    "torch": "torch>=2.11",
    "safetensors": "safetensors",
}


def needed(module: str, where: str = "") -> Any:
    """A module of such a package."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if (error.name or package).partition(".")[0] != package:
            raise  # it is there, and something of its own fails
        raise usage(
            f"{package} is not installed", where, f"pip install '{REQUIREMENTS[package]}'"
        ) from None
