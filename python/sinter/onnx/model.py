"""`sinter.from_onnx`: a file of ONNX as a Sinter module with its weights."""

from __future__ import annotations

import math
import os
import re
import threading
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

import numpy as np

from ..compiled import Compiled, compile
from ..errors import SinterError, printable, usage
from ..importing.row_checks import library_error
from ..module import Model, split_type
from ..opening import open_source
from ..tensor_file import FileTensor, write_tensors
from .dims import DimSize
from .importer import Imported, Importer, Signature
from .reader import TensorReader, read_model

FILES = ("model.sir", "model.safetensors")
PARTS = tuple(f"{name}.part" for name in FILES)  # of a save that was interrupted


def shaped(result: Any, counts: Sequence[int]) -> Any:
    """A result whose axes are products of the entry's, as [batch * tokens, width] is."""
    if all(count == 1 for count in counts):
        return result
    ends = [sum(counts[:i]) for i in range(len(counts) + 1)]
    return result.reshape([math.prod(result.shape[a:b]) for a, b in zip(ends, ends[1:])])


def sums_of(signature: Signature, sizes: Mapping[str, int], types: Iterable[str]) -> dict[str, int]:
    """The values of symbols that are sums, where no input of these types has them as its size."""
    told = {dim for text in types for dim in split_type(text)[1]}
    result = {}
    for symbol, size in signature.sums.items():
        if not size.symbols <= set(sizes):
            continue  # an input is missing, which the library names
        value = size.evaluate(sizes)
        if sizes.get(symbol, value) != value:
            raise usage(
                f"a size of {sizes[symbol]} where {size} is {value}", "run", "check the inputs"
            )
        if symbol not in told:
            result[symbol] = value
    return result


class OnnxModel:
    """A model of ONNX in Sinter's text form, and its weights.

    text: the module. The entry is called `main`. inputs, outputs: names in the file with their types in the
    module, "f32[batch, 128]". weights: arrays by the names of the tensors that the module's weights are made of.
    notes: what is computed in another way than the file says."""

    def __init__(self, imported: Imported) -> None:
        self._imported, self.notes = imported, imported.notes
        with imported.module as module:
            text = imported.weights.text_of(module.text())
            self.model: Model = (
                open_source(text, {}) if imported.weights.functions else module.model()
            )
        self.text = self.model.text
        self.weights: dict[str, np.ndarray] = {}
        arrays = imported.weights.arrays
        while arrays:  # one by one: a transposed weight is copied, and what it was made of goes
            weight = next(iter(arrays))
            self.weights[weight] = np.ascontiguousarray(arrays.pop(weight))
        self._lock = threading.Lock()
        self._compiled: Compiled | None = None
        entry, main = self.compile().entry("main"), imported.entries["main"]
        self.inputs = {name: entry.inputs[own] for name, own in main.inputs.items()}
        self.outputs = {name: entry.outputs[own] for name, own in main.outputs.items()}

    def compile(self, **options: Any) -> Compiled:
        """`sinter.compile` of the module with its weights."""
        if not options and self._compiled is not None:
            return self._compiled
        compiled = compile(self.model, weights=self.weights, **options)
        compiled.plan.told = lambda error: library_error(error, self._imported.row_checks)
        if not options:
            self._compiled = compiled
        return compiled

    def run(
        self, names: Sequence[str] | None, feeds: Mapping[str, Any], **options: Any
    ) -> list[Any]:
        """Outputs by name (None: all) for inputs by name, as a session of ONNX Runtime gives them. Options
        are those of `Compiled.run`."""
        wanted = list(self.outputs if names is None else names)
        for kind, given, known in (("output", wanted, self.outputs), ("input", feeds, self.inputs)):
            for name in given:
                if name not in known:
                    raise usage(
                        f'no {kind} is called "{name}"', "run", f"it has {', '.join(known)}"
                    )
        sizes = self._sizes(feeds)
        is_first = any(sizes.get(symbol) == 0 for symbol in self._imported.may_be_zero)
        entry = "first" if is_first else "main"
        signature = self._imported.entries[entry]
        tensors = {signature.inputs[name]: value for name, value in feeds.items()}
        sums = sums_of(signature, sizes, self.compile().entry(entry).inputs.values())
        results = self.compile().run(entry, tensors, symbols=sums, **options)
        if len(self.outputs) == 1:
            results = {next(iter(signature.outputs.values())): results}
        return [shaped(results[signature.outputs[name]], signature.axes[name]) for name in wanted]

    def _sizes(self, feeds: Mapping[str, Any]) -> dict[str, int]:
        """The values of the symbols of `main` that are sizes of inputs; the first input that has one decides."""
        sizes: dict[str, int] = {}
        for name, tensor in feeds.items():
            _, dims = split_type(self.inputs[name])
            for dim, size in zip(dims, getattr(tensor, "shape", ())):
                if isinstance(dim, str):
                    sizes.setdefault(dim, int(size))
        return sizes

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes model.sir and model.safetensors. Every command of the program `sinter` takes the folder,
        which must be absent, empty or hold these files of another module."""
        path = Path(folder)
        if path.exists() and (
            not path.is_dir() or {one.name for one in path.iterdir()} - {*FILES, *PARTS}
        ):
            raise usage(
                "it has other files", str(path), "give a folder that is empty or not there yet"
            )
        path.mkdir(parents=True, exist_ok=True)
        write_tensors(
            path / "model.safetensors.part",
            [file_tensor(name, array) for name, array in self.weights.items()],
        )
        (path / "model.sir.part").write_text(self.text, encoding="utf-8")
        for name in reversed(FILES):
            os.replace(path / f"{name}.part", path / name)
        return path


def file_tensor(name: str, array: np.ndarray) -> FileTensor:
    return FileTensor(name, array.dtype.name, array.shape, array.reshape(-1).view(np.uint8).data)


def from_onnx(
    model: Any, *, sizes: Mapping[str, DimSize] | None = None, name: str | None = None
) -> OnnxModel:
    """Imports a file of ONNX, or an onnx.ModelProto.

    sizes: of dynamic dims by name: a size, the least and the largest one (1 .. 4096
    without), or the name of a dim that is always as large. name: of the module. An op, a type or a size
    that Sinter lacks is a SinterError that names the node with its op and opset."""
    is_path = isinstance(model, (str, os.PathLike))
    title = name or (Path(model).stem if is_path else str(model.graph.name)) or "model"
    checked = {dim: checked_size(dim, size) for dim, size in (sizes or {}).items()}
    try:
        return OnnxModel(imported_from(model, is_path, title, checked))
    except SinterError as error:
        where = ": ".join(filter(None, [printable(title, 200), error.where]))
        raise SinterError(error.code, error.what, where, error.hint) from None


def imported_from(model: Any, is_path: bool, title: str, sizes: Mapping[str, DimSize]) -> Imported:
    """The entry of a model, whose protobuf is free when it is imported."""
    proto = read_model(model) if is_path else model
    reader = TensorReader(Path(model).parent if is_path else None)
    name = re.sub(r"\W", "_", title, flags=re.ASCII)
    return Importer(proto, reader, name, sizes).run()


def checked_size(name: str, size: DimSize) -> DimSize:
    if isinstance(size, str):
        return size
    low, high = (size, size) if isinstance(size, int) else size
    if not 0 <= low <= high < 2**31:
        raise usage(f'sizes {low} .. {high} of "{name}"', "from_onnx", "give the least one first")
    return size
