"""What each worker is doing, written by it into shared memory and read by the manager."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import numpy as np

from keisei.training.parallel.shared_memory import Layout, SharedArrays

MAX_WORKERS = 1024
ACTIVITIES = ("busy", "waiting", "syncing")
FIELDS = ("beat", "steps", "games", *ACTIVITIES)
STATUS_LAYOUT: Layout = {"status": ((MAX_WORKERS, len(FIELDS)), np.float64)}


class WorkerStatus:
    """One worker's row: its last sign of life, and its counters."""

    def __init__(self, fd: int, index: int) -> None:
        self._row = SharedArrays(STATUS_LAYOUT, fd)["status"][index]
        self.beat()

    def beat(self) -> None:
        """Say that the worker is alive (the clock is the same in all processes)."""
        self._row[0] = time.monotonic()

    def count(self, steps: int, games: int) -> None:
        """Count what was played."""
        self._row[FIELDS.index("steps")] += steps
        self._row[FIELDS.index("games")] += games

    @contextlib.contextmanager
    def spending(self, activity: str) -> Iterator[None]:
        """Add the time of the block to an activity."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.beat()
            self._row[FIELDS.index(activity)] += time.monotonic() - start
