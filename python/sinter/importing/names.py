"""Unique names of values."""

from __future__ import annotations


class Names:
    """Gives each value of a module a name of its own: `name`, then `name_1`, `name_2`, ..."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}  # the number that a name is tried with next

    def take(self, name: str) -> None:
        self._taken.add(name)

    def unique(self, name: str) -> str:
        candidate, number = name, self._next.get(name, 1)
        while candidate in self._taken:
            candidate = f"{name}_{number}"
            number += 1
        self._next[name] = number
        self._taken.add(candidate)
        return candidate

    def free(self, name: str) -> None:
        """Gives a name back, of a value that has another now."""
        self._taken.discard(name)
