"""Names of values, made of the names of the user's modules, and places in the user's source."""

from __future__ import annotations

import functools
import operator
import os
import re

import torch
from torch import fx

LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)\n\s*(?P<code>.*)')
TORCH_FOLDER = os.path.dirname(torch.__file__)


def name_of(node: fx.Node) -> str:
    """The path of the module that made a node, `layers.0.attn.q`; of a value that the module does not return, the op
    follows, `layers.0.add`."""
    path = module_path(node)
    if is_returned(node):
        return path
    op = re.sub(r"_\d+$", "", node.name) if node.op == "call_function" else node.name
    return f"{path}.{op}" if path else op


def is_returned(node: fx.Node) -> bool:
    """Whether a node is a result of the innermost module that made it: neither it nor a module inside of
    it reads the node."""
    path = module_path(node)
    return bool(path) and all(path not in module_paths(reader) for reader in readers(node))


def readers(node: fx.Node) -> list[fx.Node]:
    """The nodes that read a node or one of its results."""
    return [reader for user in node.users
            for reader in (readers(user) if user.target is operator.getitem else [user])]


def module_path(node: fx.Node) -> str:
    """The path of the innermost module that made a node; "" for the outermost, or none."""
    paths = module_paths(node)
    return paths[-1] if paths else ""


def module_paths(node: fx.Node) -> list[str]:
    """The paths of the modules that made a node, the innermost last."""
    stack = node.meta.get("nn_module_stack")
    return [plain_path(path) for path, *_ in stack.values()] if stack else []


@functools.lru_cache(maxsize=4096)
def plain_path(path: str) -> str:
    """A path of torch without the marks that torch writes around it."""
    path = re.sub(r"^L\['\w+'\]\.?|^L__self___?", "", path)
    path = re.sub(r"\._modules\['([^']+)'\]", r".\1", path)
    path = re.sub(r"\['?([^'\]]+)'?\]", r".\1", path)
    return re.sub(r"[^A-Za-z0-9_.]", "_", path).strip(".")


def location_of(node: fx.Node) -> str:
    """The user's line that made a node: "model.py:42: q = self.q(x)"; "" if it is not known."""
    trace = node.meta.get("stack_trace") or node.stack_trace or ""
    lines = [match for match in LINE.finditer(trace) if not match["file"].startswith(TORCH_FOLDER)]
    if not lines:
        return ""
    last = lines[-1]
    code = last["code"].strip()
    return f"{os.path.basename(last['file'])}:{last['line']}" + (f": {code}" if code else "")
