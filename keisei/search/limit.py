"""When a search ends."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """When a search ends: as soon as one of these is reached."""

    nodes: int | None = None  # visits to each tree, on top of those that it has
    seconds: float | None = None
    stop: Callable[[], bool] | None = None  # asked after every batch

    @classmethod
    def by_clock(
        cls, left: float, increment: float, byoyomi: float, overhead: float, nodes: int | None
    ) -> Limit:
        """The share of the mover's clock for one move; `overhead` is lost on the way. All seconds.

        >>> Limit.by_clock(left=60, increment=0, byoyomi=1, overhead=0.2, nodes=None).seconds
        2.3
        """
        # A game has some 60 moves of one side; later ones matter less.
        return cls(nodes, max(left / 40 + increment + byoyomi - overhead, 0.01))

    @property
    def timed(self) -> bool:
        """Does time have a say in when it ends? If not, the same is found every time."""
        return self.nodes is None or self.seconds is not None

    def start(self) -> Callable[[], bool]:
        """Start the time; what is returned says, after each batch, whether the search is over."""
        if self == Limit():
            raise ValueError("a limit needs nodes, seconds or stop: else the search never ends")
        last = time.monotonic()
        end = last + (math.inf if self.seconds is None else self.seconds)

        def is_over() -> bool:
            nonlocal last
            now = time.monotonic()
            batch, last = now - last, now
            # The next batch must fit in, too: on a busy machine one may take tenths of a second.
            return (self.stop is not None and self.stop()) or now + batch >= end

        return is_over
