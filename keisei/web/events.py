"""Server-sent events: one watcher per thing that is watched, however many listen.

A watcher checks every second whether something has changed (a few `stat` calls), makes the messages
once, and sends the same bytes to all listeners. It lives as long as it has any.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from weakref import WeakSet

from keisei.errors import KeiseiError
from keisei.web.schema import Message
from keisei.web.threads import Busy, NotFound

log = logging.getLogger(__name__)

MAX_STREAMS = 100
INTERVAL = 1.0  # seconds between two looks
HEARTBEAT = 15.0  # seconds of silence after which a listener hears that the stream is alive
_QUEUED = 8  # messages that a slow listener may be behind

Messages = dict[str, Message]  # by the event's name
Look = Callable[[], Awaitable[Messages | None]]  # None: nothing new


@dataclass(eq=False)
class _Listener:
    queue: asyncio.Queue[bytes | None] = field(default_factory=lambda: asyncio.Queue(_QUEUED))

    def put(self, message: bytes | None) -> None:
        """Every message holds the whole state, so a slow listener may miss the oldest ones."""
        if self.queue.full():
            self.queue.get_nowait()
        self.queue.put_nowait(message)


class _Watcher:
    def __init__(self, look: Look) -> None:
        self._look = look
        # Weak: of a stream that was never begun, its end is not told either.
        self.listeners: WeakSet[_Listener] = WeakSet()
        self._last: dict[str, bytes] = {}
        self.task = asyncio.create_task(self._run())

    def add(self, listener: _Listener) -> None:
        self.listeners.add(listener)
        for message in self._last.values():
            listener.put(message)

    async def _run(self) -> None:
        try:
            while self.listeners:
                for name, message in (await self._try_to_look() or {}).items():
                    self._tell(name, message)
                await asyncio.sleep(INTERVAL)
        except NotFound:  # the run was removed
            for listener in self.listeners:
                listener.put(None)

    async def _try_to_look(self) -> Messages | None:
        try:
            return await self._look()
        except NotFound:
            raise
        except (KeiseiError, OSError, RuntimeError) as error:  # the next look may succeed
            log.debug("a look failed: %s", error)
            return None

    def _tell(self, name: str, message: Message) -> None:
        data = encode(name, message)
        if data == self._last.get(name):
            return
        self._last[name] = data
        for listener in self.listeners:
            listener.put(data)


class Hub:
    """All watchers; only the event loop's thread uses it."""

    def __init__(self) -> None:
        self._watchers: dict[Hashable, _Watcher] = {}
        self._closed = False

    def open(self, key: Hashable, make_look: Callable[[], Look]) -> AsyncIterator[bytes]:
        """A stream of what is new in `key`, beginning with what is known."""
        if sum(len(watcher.listeners) for watcher in self._watchers.values()) >= MAX_STREAMS:
            raise Busy(f"{MAX_STREAMS} windows are already watching")
        listener = _Listener()  # counted from now on, not from when the stream begins
        watcher = self._watchers.get(key)
        if watcher is None or watcher.task.done():
            watcher = self._watchers[key] = _Watcher(make_look())
        watcher.add(listener)
        return self._listen(key, listener)

    async def _listen(self, key: Hashable, listener: _Listener) -> AsyncIterator[bytes]:
        try:
            while not self._closed:
                message = await _next(listener)
                if message is None:
                    return
                yield message
        finally:
            self._leave(key, listener)

    def _leave(self, key: Hashable, listener: _Listener) -> None:
        watcher = self._watchers.get(key)
        if watcher:
            watcher.listeners.discard(listener)
            if not watcher.listeners:
                watcher.task.cancel()
                del self._watchers[key]

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        for watcher in self._watchers.values():
            for listener in watcher.listeners:
                listener.put(None)


async def _next(listener: _Listener) -> bytes | None:
    with contextlib.suppress(asyncio.TimeoutError):
        return await asyncio.wait_for(listener.queue.get(), HEARTBEAT)
    return b": alive\n\n"


def encode(name: str, message: Message) -> bytes:
    """An event as it is sent."""
    return f"event: {name}\ndata: {message.model_dump_json(by_alias=True)}\n\n".encode()
