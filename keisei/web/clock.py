"""The clock of a game against a human, kept by the server."""

from __future__ import annotations

import time
from collections.abc import Callable

from keisei.shogi.actions import Side
from keisei.web.schema import ClockNow, ClockSettings


class Clock:
    """Main time, then seconds for each move (byoyomi).

    >>> now = [0.0]
    >>> clock = Clock(ClockSettings(main=60, byoyomi=10), lambda: now[0])
    >>> clock.start("black")
    >>> now[0] = 65.0
    >>> clock.left("black"), clock.has_fallen()
    (5.0, False)
    >>> clock.stop()
    >>> clock.state().black
    0.0
    """

    def __init__(
        self, settings: ClockSettings, time_now: Callable[[], float] = time.monotonic
    ) -> None:
        self._byoyomi = settings.byoyomi
        self._main: dict[Side, float] = {"black": settings.main, "white": settings.main}
        self._now = time_now
        self._running: Side | None = None
        self._since = 0.0

    def start(self, side: Side) -> None:
        """Start the clock of the player to move."""
        self._running, self._since = side, self._now()

    def stop(self) -> None:
        """A move was made: take its time off the main time."""
        if self._running:
            passed = self._now() - self._since
            self._main[self._running] = max(self._main[self._running] - passed, 0.0)
            self._running = None

    def left(self, side: Side) -> float:
        """Seconds that a side has left for its move, including byoyomi."""
        passed = self._now() - self._since if self._running == side else 0.0
        return max(self._main[side] + self._byoyomi - passed, 0.0)

    def has_fallen(self) -> bool:
        """Has the player to move run out of time?"""
        return self._running is not None and self.left(self._running) <= 0

    def state(self) -> ClockNow:
        """What the page shows."""
        main = {side: round(self._main_left(side), 2) for side in self._main}
        running = self._running
        return ClockNow(
            black=main["black"],
            white=main["white"],
            byoyomi=self._byoyomi,
            running=running,
            left=round(self.left(running), 2) if running else None,
        )

    def _main_left(self, side: Side) -> float:
        passed = self._now() - self._since if self._running == side else 0.0
        return max(self._main[side] - passed, 0.0)
