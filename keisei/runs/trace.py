"""A timeline of what each process did when, for https://ui.perfetto.dev or chrome://tracing."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any, TextIO

from keisei.errors import KeiseiError

log = logging.getLogger(__name__)


def check_trace_file(path: Path | None) -> None:
    """Refuse what cannot be, or must not become, a trace; before a run is made for nothing."""
    if path is None:
        return
    if path.is_file() or path.is_dir():  # /dev/null may be written to
        raise KeiseiError(f"{path} already exists: choose another name, or remove it")
    if not path.parent.is_dir():
        raise KeiseiError(f"cannot write the trace {path}: {path.parent} is not a folder")


class Trace:
    """Writes spans of time, one row of the picture for each name in `row`.

    Times are `time.monotonic()`, which is one clock for all processes of a machine. The file is
    flushed after each event and readable at any moment, also after a kill: viewers do not ask for
    the closing bracket. It is made for the first event, so that a training that cannot begin leaves
    none. Without a path nothing is written. A file that cannot be written is said once, and the
    work goes on without it.

    >>> with Trace(None).span("learn"):
    ...     pass
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: TextIO | None = None
        self._rows: dict[str, int] = {}
        self._lock = Lock()

    @contextlib.contextmanager
    def span(self, name: str, row: str = "learner") -> Iterator[None]:
        """Write the time of the block."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.add(row, name, start, time.monotonic())

    def add(self, row: str, name: str, start: float, end: float) -> None:
        """Write a span that is over."""
        self._write(row, {"name": name, "ph": "X", "ts": start * 1e6, "dur": (end - start) * 1e6})

    def mark(self, row: str, name: str) -> None:
        """Write a moment: something happened."""
        self._write(row, {"name": name, "ph": "i", "s": "t", "ts": time.monotonic() * 1e6})

    def close(self) -> None:
        """End the file."""
        with self._lock, self._never_failing():
            if self._file:
                self._file.write("\n]\n")
                self._file.close()
            self._path = self._file = None

    def _write(self, row: str, event: dict[str, Any]) -> None:
        with self._lock, self._never_failing():
            if self._path is None:
                return
            if self._file is None:
                self._file = self._path.open("w", encoding="utf-8")
                self._file.write("[")
            if row not in self._rows:
                self._rows[row] = len(self._rows) + 1
                self._line(row, {"name": "thread_name", "ph": "M", "args": {"name": row}})
            self._line(row, event)
            self._file.flush()

    def _line(self, row: str, event: dict[str, Any]) -> None:
        assert self._file is not None
        separator = "," if self._file.tell() > 1 else ""
        self._file.write(f"{separator}\n{json.dumps({**event, 'pid': 1, 'tid': self._rows[row]})}")

    @contextlib.contextmanager
    def _never_failing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            log.warning("the trace %s ends here: %s", self._path, error.strerror or error)
            if self._file:
                with contextlib.suppress(OSError):  # it tries to write what is in its buffer
                    self._file.close()
            self._path = self._file = None
