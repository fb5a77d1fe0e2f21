"""Connections, bounded so that nobody can use them up: those that only wait give way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from uvicorn import Config
    from uvicorn.server import ServerState

MAX_CONNECTIONS = 500
HEADER_SECONDS = 10.0  # for a request to arrive


class Connection(H11Protocol):
    """A connection that ends if no whole request comes in time.

    Uvicorn itself waits for ever. When there are too many connections, the one that has waited
    longest ends: a crowd that sends nothing, or half a header, keeps nobody out.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.since = self.loop.time()  # when it began to wait
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """Is no request under way?"""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look_again()
        if len(self.connections) > MAX_CONNECTIONS:
            waiting = [one for one in self.connections if isinstance(one, Connection)]
            waiting = [one for one in waiting if one.is_waiting] or [self]
            min(waiting, key=lambda one: one.since).end()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._timer:
            self._timer.cancel()

    def on_response_complete(self) -> None:
        self.since = self.loop.time()
        super().on_response_complete()

    def end(self) -> None:
        """Close it at once."""
        self.connections.discard(self)  # now, not when its transport gets to it
        self.transport.abort()

    def _look_again(self) -> None:
        if self.is_waiting and self.loop.time() >= self.since + HEADER_SECONDS:
            self.end()
        else:
            self._timer = self.loop.call_later(HEADER_SECONDS, self._look_again)
