"""Models in files, as text, and built."""

from __future__ import annotations

import ctypes
import os
import tempfile
from typing import Any, Callable, Union

from sinter._bindings import lib, sinter_model
from sinter.devices import Device
from sinter.errors import Interrupts, usage
from sinter.handles import created, encoded
from sinter.module import Model, ModuleBuilder
from sinter.options import Options, Progress

Source = Union[str, "os.PathLike[str]", Model, ModuleBuilder]


def opened(
    pointer: Any,
    functions: tuple[Callable[..., Any], Callable[..., None]],
    path: str | os.PathLike[str],
    device: Device,
    values: dict[str, Any],
    progress: Progress,
) -> Any:
    """`pointer`, set by the first of `functions`, which opens what lies at `path` for a device; the
    second frees it where Ctrl-C or `progress` ended the opening."""
    function, free = functions
    with Interrupts() as interrupts, Options(values, interrupts, progress) as options:
        interrupts.check(
            function(encoded(path), device.pointer, options.pointer, ctypes.byref(pointer)),
            lambda: free(pointer),
        )
    return pointer


def open_source(source: Source, options: dict[str, Any]) -> Model:
    given = [name for name, value in options.items() if value is not None]
    if isinstance(source, Model):
        if given:
            raise usage(f"{given[0]} is given for a model that is open already", "compile")
        return source
    if isinstance(source, ModuleBuilder):
        if not given:
            return source.model()
        source = source.text()
    if not isinstance(source, (str, os.PathLike)):
        raise usage(
            f"an object of type {type(source).__name__} is given, a model is wanted",
            "compile",
            "give a path, the text of a module, a Model or a ModuleBuilder",
        )
    if isinstance(source, str) and "\n" in source:
        return _open_text(source, options if given else None)
    return open_model(source, options)


def _open_text(text: str, options: dict[str, Any] | None) -> Model:
    if options is None:
        data = text.encode()
        return Model(created(sinter_model, lib.sinter_model_parse, data, len(data), b"module"))
    # Only models in files take options that say where weights come from.
    with tempfile.TemporaryDirectory(prefix="sinter-") as folder:
        path = os.path.join(folder, "module.sir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return open_model(path, options)


def open_model(path: str | os.PathLike[str], options: dict[str, Any] | None = None) -> Model:
    """Opens a model in files. Reads no weights. Options: as sinter_model_open."""
    with Options(options or {}) as given:
        return Model(created(sinter_model, lib.sinter_model_open, encoded(path), given.pointer))
