"""Printing where the reader may be gone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, TextIO


class QuietOutput:
    """A stream that goes quiet when its other end is gone: a run does not stop for that."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with self._never_failing():
            encoding = self._stream.encoding or "utf-8"
            self._stream.write(text.encode(encoding, "replace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        with self._never_failing():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextlib.contextmanager
    def _never_failing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError):  # a ValueError is a stream that was closed
            # What is still in the stream's buffer would fail again when Python exits.
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)
