"""Packages that extras of this one bring along, imported where they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from sinter.errors import usage

# The extra of pyproject.toml that has a package.
EXTRAS = {"numpy": "numpy", "jinja2": "chat", "torch": "torch", "safetensors": "torch"}


def needed(module: str, where: str = "", extra: str | None = None) -> Any:
    """A module of such a package. extra: that of the caller, where several have the package."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if (error.name or package).partition(".")[0] != package:
            raise  # it is there, and something of its own fails
        raise usage(
            f"{package} is not installed",
            where,
            f"pip install 'sinter[{extra or EXTRAS[package]}]'",
        ) from None
