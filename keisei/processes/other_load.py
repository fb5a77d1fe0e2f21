"""What other programs take of this machine's cores."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import psutil

from keisei.processes.machine import cores

_INTERVAL = 2.0  # seconds between two looks; the kernel counts in hundredths


class OtherLoad:
    """How many cores other programs take, on average.

    >>> others = OtherLoad()
    >>> total = sum(range(1000))
    >>> others.look() >= 0
    True
    """

    def __init__(self) -> None:
        self._time, self._busy = time.perf_counter(), self._seconds()

    def look(self) -> float:
        """The cores that they took since the last look."""
        before, was_busy = self._time, self._busy
        self._time, self._busy = time.perf_counter(), self._seconds()
        return max((self._busy - was_busy) / (self._time - before), 0.0)

    def _seconds(self) -> float:
        """Seconds that all cores were busy with other work than this process and its children."""
        times = psutil.cpu_times()
        busy: float = sum(times) - times.idle - getattr(times, "iowait", 0.0)
        busy -= getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # counted twice
        me = psutil.Process()
        for process in (me, *me.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                own = process.cpu_times()
                busy -= own.user + own.system
                busy -= own.children_user + own.children_system  # of those that have ended
        return busy


class FreeCores:
    """How many cores other programs leave us, looked up now and then; always at least one.

    >>> free = FreeCores(lambda: 1.7, own=8)
    >>> free.count(now=3.0)
    6
    """

    def __init__(self, look: Callable[[], float] | None = None, own: int | None = None) -> None:
        self._look = look or OtherLoad().look
        self._cores = own or cores()
        self._free, self._looked = self._cores, 0.0

    def count(self, now: float) -> int:
        """The cores that are free at this time (of `time.monotonic`)."""
        if now - self._looked >= _INTERVAL:
            self._looked = now
            self._free = max(1, round(self._cores - self._look()))
        return self._free
