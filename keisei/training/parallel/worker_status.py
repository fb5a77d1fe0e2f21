"""What each process is doing, written by it into shared memory and read by the manager."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from keisei.processes.shared_memory import Layout, SharedArrays
from keisei.training.parallel.messages import Span

ACTIVITIES = ("busy", "waiting", "syncing")
FIELDS = ("beat", "steps", "games", "evaluations", *ACTIVITIES)


def status_layout(capacity: int) -> Layout:
    """A row for each worker, and the last one for the inference process."""
    return {"status": ((capacity + 1, len(FIELDS)), np.float64)}


def shared_row(fd: int, capacity: int, index: int) -> npt.NDArray[np.float64]:
    """A process's row in the memory that it shares with the manager."""
    return SharedArrays(status_layout(capacity), fd)["status"][index]


class WorkerStatus:
    """One process's row: its last sign of life, and its counters."""

    def __init__(self, row: npt.NDArray[np.float64]) -> None:
        self._row = row
        self._spans: list[Span] = []
        self.beat()

    def beat(self) -> None:
        """Say that the process is alive (the clock is the same in all processes)."""
        self._row[0] = time.monotonic()

    def count_steps(self, steps: int) -> None:
        """Count moves that were played."""
        self._row[FIELDS.index("steps")] += steps

    def count(self, games: int = 0, evaluations: int = 0) -> None:
        """Count games that ended, and positions that the network saw."""
        self._row[FIELDS.index("games")] += games
        self._row[FIELDS.index("evaluations")] += evaluations

    @contextlib.contextmanager
    def spending(self, activity: str) -> Iterator[None]:
        """Add the time of the block to an activity."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.spent(activity, start)

    def spent(self, activity: str, start: float) -> None:
        """Add the time since `start` to an activity."""
        self.beat()
        self._row[FIELDS.index(activity)] += self._row[0] - start
        self._spans.append((activity, start, float(self._row[0])))

    def take_spans(self) -> list[Span]:
        """What was done since the last call."""
        spans, self._spans = self._spans, []
        return spans
