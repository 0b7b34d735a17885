"""Caches of transformers as arguments of torch.export: which it takes, and what to give for the others."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import torch._dynamo
from torch.utils import _pytree as pytree

from ..errors import usage

_HALVES = ("give its self_attention_cache and cross_attention_cache as two arguments, and make "
           "EncoderDecoderCache(own, cross) of them in forward")
_REGISTER = "call transformers.integrations.executorch.register_dynamic_cache_export_support() before"
_WHOLE = "give a DynamicCache(), which keeps all tokens; the model's masks have the windows"


def is_cache(value: Any) -> bool:
    return any(base.__module__ == "transformers.cache_utils" and base.__name__ == "Cache"
               for base in type(value).__mro__)


def caches_in(arguments: Any) -> list:
    leaves = pytree.tree_leaves(arguments, is_leaf=is_cache)
    return [leaf for leaf in leaves if is_cache(leaf)]


@contextlib.contextmanager
def explained(arguments: Any, title: str) -> Iterator[None]:
    """torch.export within: what it says of caches says what to do, too."""
    caches = caches_in(arguments)
    for cache in caches:
        if pytree.tree_structure(cache).is_leaf():
            name = type(cache).__name__
            hint = _REGISTER if name == "DynamicCache" else _HALVES if hasattr(
                cache, "cross_attention_cache") else "give a DynamicCache"
            raise usage(f"torch.export takes no {name}", title, hint)
    try:
        yield
    except torch._dynamo.exc.UserError as error:
        if any(layer.is_sliding for cache in caches for layer in cache.layers):
            raise usage("torch.export fixes the number of tokens in a cache whose layers drop those "
                        f"outside their window: {str(error).splitlines()[0]}", title,
                        _WHOLE) from error
        raise
