"""The mark of a session and of its calls that a thread uses them."""

from __future__ import annotations

import threading

from sinter.errors import usage


class Turn:
    """`with turn:` marks the session as in use. It refuses a second thread, and a function that was
    called back, until the block ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise usage(
                "the session is in use, by another thread or by the function that called back",
                hint="give each thread a session of its own",
            )

    def __exit__(self, *error: object) -> None:
        self._lock.release()
