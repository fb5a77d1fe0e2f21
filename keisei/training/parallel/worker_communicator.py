"""The manager's line to each worker: its process, and a pipe for small messages.

Every worker has a pipe of its own and nothing is shared between workers, no queue and no lock. So a
worker that is killed in the middle of anything can hold nobody up: its pipe just ends.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait

from keisei.training.parallel.messages import Stop

STOP_TIMEOUT = 3.0


@dataclass(eq=False)
class WorkerLine:
    """One worker as the manager sees it."""

    index: int
    incarnation: int
    process: subprocess.Popen[bytes]
    connection: Connection
    slots: list[int] = field(default_factory=list)  # given to it, and not yet full
    started: float = field(default_factory=time.monotonic)
    ready: bool = False
    paused: bool = False

    @property
    def name(self) -> str:
        """As process lists show it."""
        return f"keisei-worker-{self.index}"


def start_worker(index: int, incarnation: int, memory: dict[str, int]) -> WorkerLine:
    """Start a worker process that sees the given descriptors of shared memory.

    A plain process, not `multiprocessing`: nothing is forked, and the user's main module is not
    imported a second time, so scripts need no `if __name__ == "__main__"`.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        fds = {**memory, "connection": theirs.fileno()}
        options = [f"--{name}={fd}" for name, fd in fds.items()]
        process = subprocess.Popen(
            [sys.executable, "-m", "keisei.training.parallel.self_play_worker", *options],
            pass_fds=list(fds.values()),
            stdin=subprocess.DEVNULL,
            # One thread each, told before PyTorch is loaded; waiting threads must not spin.
            env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
            start_new_session=True,  # Ctrl-C reaches the manager alone
        )
        return WorkerLine(index, incarnation, process, Connection(ours.detach()))


class WorkerCommunicator:
    """Sends to and receives from all workers; every wait has a limit."""

    def __init__(self) -> None:
        self.lines: dict[int, WorkerLine] = {}

    def send(self, line: WorkerLine, message: object) -> bool:
        """Send a small message; False if the worker is gone."""
        try:
            line.connection.send(message)
        except OSError:
            return False
        return True

    def receive(self, timeout: float) -> list[tuple[WorkerLine, object | None]]:
        """What workers said within `timeout` seconds; None for one whose pipe has ended."""
        by_connection = {line.connection: line for line in self.lines.values()}
        messages: list[tuple[WorkerLine, object | None]] = []
        for connection in wait(list(by_connection), timeout):
            line = by_connection[connection]  # type: ignore[index]
            try:
                messages.append((line, line.connection.recv()))
            except (EOFError, OSError):
                messages.append((line, None))
        return messages

    def get_queue_info(self) -> dict[str, int]:
        """How much is on its way: slots being filled, and workers by state."""
        lines = self.lines.values()
        return {
            "workers": len(self.lines),
            "ready": sum(line.ready for line in lines),
            "paused": sum(line.paused for line in lines),
            "slots_in_work": sum(len(line.slots) for line in lines),
        }

    def kill(self, line: WorkerLine) -> int:
        """End a worker at once; returns its exit code."""
        line.process.kill()
        code = line.process.wait(timeout=STOP_TIMEOUT)
        line.connection.close()
        return code

    def stop(self, lines: Iterable[WorkerLine]) -> None:
        """Ask workers to leave, and end those that do not."""
        lines = list(lines)
        for line in lines:
            self.send(line, Stop())
        deadline = time.monotonic() + STOP_TIMEOUT
        for line in lines:
            try:
                line.process.wait(timeout=max(deadline - time.monotonic(), 0.01))
            except subprocess.TimeoutExpired:
                line.process.kill()
                line.process.wait(timeout=STOP_TIMEOUT)
            line.connection.close()
            self.lines.pop(line.index, None)


def describe_exit(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    hint = {"SIGKILL": " (killed, or out of memory)", "SIGBUS": " (shared memory is full)"}
    return name + hint.get(name, "")
