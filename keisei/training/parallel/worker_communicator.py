"""The manager's line to each of its processes: the process, and a pipe for small messages.

Every process has its own pipe, and they share nothing: no queue and no lock. So one that is killed
in the middle of anything cannot hold up the others: its pipe just ends.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait

from keisei.processes.line import start_process
from keisei.processes.nursery import Forked
from keisei.training.parallel.messages import Stop

STOP_TIMEOUT = 3.0
INFERENCE = -1  # in place of a worker's index: the process that answers them


@dataclass(eq=False)
class WorkerLine:
    """One process as the manager sees it."""

    index: int
    process: Forked
    connection: Connection
    slots: list[int] = field(default_factory=list)  # given to it, and not yet full
    started: float = field(default_factory=time.monotonic)
    ready: bool = False
    paused: bool = False
    leaving: bool = False  # it was told to, and will not be missed
    version: int = -1  # of the last weights sent to it (those in shared memory are not sent)
    rollouts: int = 0
    steps: int = 0
    games: int = 0

    @property
    def name(self) -> str:
        """As process lists show it."""
        return "keisei-inference" if self.index == INFERENCE else f"keisei-worker-{self.index}"

    @property
    def id(self) -> str:
        """Its name and its process, as logs have it."""
        return f"{self.name} (process {self.process.pid})"

    @property
    def is_idle(self) -> bool:
        """Is it waiting for work?"""
        return self.ready and not self.slots and not self.leaving


def start_worker(index: int, descriptors: dict[str, list[int]], timeout: float) -> WorkerLine:
    """Start a worker, or the inference process."""
    module = "inference_server" if index == INFERENCE else "self_play_worker"
    started = start_process(f"keisei.training.parallel.{module}", descriptors, timeout)
    return WorkerLine(index, *started)


class WorkerCommunicator:
    """Sends to and receives from all processes; every wait has a limit."""

    def __init__(self) -> None:
        self.lines: dict[int, WorkerLine] = {}
        self._bell, self._ring = socket.socketpair()

    @property
    def workers(self) -> list[WorkerLine]:
        """The lines to workers, in order."""
        return [self.lines[index] for index in sorted(self.lines) if index != INFERENCE]

    def wake(self) -> None:
        """Make a `receive` that waits in another thread return."""
        self._ring.send(b"!")

    def send(self, line: WorkerLine, message: object) -> bool:
        """Send a small message; False if the process is gone or does not listen."""
        try:
            line.connection.send(message)
        except OSError:
            return False
        return True

    def receive(self, timeout: float) -> list[tuple[WorkerLine, object | None]]:
        """What was said within `timeout` seconds; None for a line that has ended."""
        by_connection = {line.connection: line for line in self.lines.values()}
        messages: list[tuple[WorkerLine, object | None]] = []
        for heard in wait([*by_connection, self._bell], timeout):
            if heard is self._bell:
                self._bell.recv(4096)
                continue
            line = by_connection[heard]  # type: ignore[index]
            try:
                messages.append((line, line.connection.recv()))
            except (EOFError, OSError):
                messages.append((line, None))
        return messages

    def get_queue_info(self) -> dict[str, int]:
        """Slots being filled, and workers by state."""
        workers = self.workers
        return {
            "workers": len(workers),
            "ready": sum(line.ready for line in workers),
            "paused": sum(line.paused for line in workers),
            "slots_in_work": sum(len(line.slots) for line in workers),
        }

    def end(self, line: WorkerLine, timeout: float = 0) -> int:
        """End a process, which has `timeout` seconds to leave by itself; returns its exit code."""
        try:
            code = line.process.wait(timeout)
        except subprocess.TimeoutExpired:
            line.process.kill()
            code = -signal.SIGKILL
            # Who would tell may be halted itself. Nothing that was killed computes any more.
            with suppress(subprocess.TimeoutExpired):
                code = line.process.wait(STOP_TIMEOUT)
        line.connection.close()
        self.lines.pop(line.index, None)
        return code

    def stop(self, lines: Iterable[WorkerLine]) -> None:
        """Ask processes to leave, and end those that do not."""
        lines = list(lines)
        for line in lines:
            self.send(line, Stop())
        deadline = time.monotonic() + STOP_TIMEOUT
        for line in lines:
            self.end(line, max(deadline - time.monotonic(), 0))

    def close(self) -> None:
        """Give back what is left."""
        self._bell.close()
        self._ring.close()
