"""Stopping a run on SIGINT, SIGTERM or SIGHUP, so that nothing is lost and nothing hangs."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

SIGNALS = [signal.SIGINT, signal.SIGTERM]
HANGUP = getattr(signal, "SIGHUP", None)  # the terminal is closed; not on Windows


class StopRequested(BaseException):
    """The user wants the run to stop. Not an Exception: no handler of errors may swallow it."""


class Stopper:
    """Turns the first signal into `StopRequested`, and the second into an exit at once.

    A terminal that is closed may hang up twice (the system does, and its shell): a second SIGHUP
    counts for nothing. Under nohup, SIGHUP is ignored and stays so.

    SIGUSR1 is another wish: `wants_workers` says that the workers are to be tried again.

    The exception comes only inside `with stopper.interruptible():`, where work may be thrown away.
    Elsewhere (a checkpoint is being written) the signal waits until the next such block.
    """

    def __init__(self) -> None:
        self.requested: int | None = None
        self.wants_workers = False
        self._interruptible = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Stopper:
        if threading.current_thread() is not threading.main_thread():
            return self  # only the main thread hears signals; its program has to end this one
        for number in SIGNALS:
            self._previous[number] = signal.signal(number, self._handle)
        if HANGUP is not None and signal.getsignal(HANGUP) != signal.SIG_IGN:
            self._previous[HANGUP] = signal.signal(HANGUP, self._handle)
        if hasattr(signal, "SIGUSR1"):
            self._previous[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, self._handle_wish)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.requested is not None:
            if number == HANGUP:
                return
            if sys.stdout.isatty():
                os.write(1, b"\x1b[?25h")  # the cursor, which a live view had hidden
            os._exit(128 + number)
        self.requested = number
        if self._interruptible:
            raise StopRequested

    def _handle_wish(self, _number: int, _frame: FrameType | None) -> None:
        self.wants_workers = True

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """A block that a signal may cut short."""
        if self.requested is not None:
            raise StopRequested
        self._interruptible = True
        try:
            yield
        except SystemError as error:
            # Ray's C code may return a result although the handler has just raised in it; Python
            # then says that this must not be, with what was raised as the cause.
            if isinstance(error.__cause__, StopRequested):
                raise StopRequested from error
            raise
        finally:
            self._interruptible = False
