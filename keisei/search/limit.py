"""When a search ends."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """The clock of the player to move, in seconds; `overhead` is lost on the way to it.

    >>> Clock(left=60, byoyomi=1, overhead=0.2).share
    2.3
    """

    left: float = 0.0
    increment: float = 0.0
    byoyomi: float = 0.0
    overhead: float = 0.0

    @property
    def share(self) -> float:
        """How long to think about one move."""
        # A game has some 60 moves of one side; later ones matter less.
        wanted = self.left / 40 + self.increment + self.byoyomi
        return max(wanted - self.overhead, 0.01)


@dataclass(frozen=True)
class Limit:
    """When a search ends: as soon as one of these is reached.

    >>> Limit(seconds=5, clock=Clock(left=60)).time
    1.5
    """

    nodes: int | None = None  # visits to each tree, on top of those that it has
    seconds: float | None = None
    clock: Clock | None = None
    stop: Callable[[], bool] | None = None  # asked after every batch

    @property
    def time(self) -> float | None:
        """How many seconds the search may take."""
        share = self.clock.share if self.clock else None
        return min((time for time in (self.seconds, share) if time is not None), default=None)

    @property
    def timed(self) -> bool:
        """Does the time have a say in when it ends? If not, the same is found every time."""
        return self.nodes is None or self.time is not None

    def start(self) -> Callable[[], bool]:
        """Start the time; what is returned says, after each batch, whether the search is over."""
        if self.nodes is None and self.time is None and self.stop is None:
            raise ValueError("the limit has no nodes, time or stop: the search would never end")
        last = time.monotonic()
        end = math.inf if self.time is None else last + self.time

        def is_over() -> bool:
            nonlocal last
            now = time.monotonic()
            batch, last = now - last, now
            stopped = self.stop is not None and self.stop()
            # The next batch must fit in, too: on a busy machine one may take tenths of a second.
            return stopped or now + batch >= end

        return is_over
