"""Memory of intermediate values that the graphs of one compiled function share.

A function may become several graphs, and a graph several entries, which run one after the other in a
stream. In each stream they have one arena, as large as the largest call needs.
"""

from __future__ import annotations

import threading
import types
import weakref
from typing import Any

from ..._bindings import lib, sinter_session
from ...handles import created, symbol_arrays
from ...plan import Plan
from ...session import Executable, Session


class StreamSession(Session):
    """A session of an entry in one stream. lock: one thread at a time, from addresses to launches, results
    of groups of steps are made within; all sessions that share memory have the same."""

    def __init__(self, plan: Plan, executable: Executable, stream: int | None,
                 other: StreamSession | None) -> None:
        if other is None:
            super().__init__(plan, executable, stream)
            self.lock = threading.Lock()
            return
        pointer = created(sinter_session, lib.sinter_session_create_beside, other.pointer,
                          executable.pointer, *symbol_arrays(None))
        self._take(pointer, plan, executable)
        self.lock = other.lock


class SharedMemory:
    """The memory of a function in all streams.

    turn: of recordings, which all have the memory of the stream in which they were captured: one at a time, and each
    follows the one before, wherever it runs. stream: of the last one, as a number and as the recorder's."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.stream: int | None = None
        self.recorder_stream: Any = None
        self._recordings: SharedMemory | None = None
        self._lock = threading.Lock()
        self._sessions: dict[int | None, weakref.WeakSet[StreamSession]] = {}

    @property
    def recordings(self) -> SharedMemory:
        """The memory of the function's recorded calls."""
        with self._lock:
            self._recordings = self._recordings or SharedMemory()
            return self._recordings

    def session(self, plan: Plan, executable: Executable, stream: int | None) -> StreamSession:
        """A new session in that stream, in the memory of those that are there."""
        with self._lock:
            sessions = self._sessions.setdefault(stream, weakref.WeakSet())
            other = next(iter(sessions), None)
            if other is None:
                session = StreamSession(plan, executable, stream, None)
            else:
                with other.lock:
                    session = StreamSession(plan, executable, stream, other)
            sessions.add(session)
            return session


_MEMORIES: dict[tuple[int, ...], SharedMemory] = {}
_LOCK = threading.Lock()


def memory_of(owner: Any) -> SharedMemory:
    """The memory of the function or module that torch.compile was given; a new one if it is not known."""
    if owner is None:
        return SharedMemory()
    if isinstance(owner, types.MethodType):
        kept, key = owner.__self__, (id(owner.__self__), id(owner.__func__))
    else:
        kept, key = owner, (id(owner),)
    with _LOCK:
        if key not in _MEMORIES:
            _MEMORIES[key] = SharedMemory()
            weakref.finalize(kept, _MEMORIES.pop, key, None).atexit = False
        return _MEMORIES[key]
