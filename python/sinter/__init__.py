"""Sinter: a graph compiler with kernel fusion."""

from sinter._bindings import Code, lib
from sinter.errors import SinterError
from sinter.module import GraphBuilder, Model, ModuleBuilder, Value

__version__ = "0.1.0"

__all__ = ["Code", "GraphBuilder", "Model", "ModuleBuilder", "SinterError", "Value", "version"]


def version() -> str:
    """The version of the library that is loaded."""
    return lib.sinter_version().decode()
