"""The other side of `ProcessPool`: a process that does what it is sent while its parent lives."""

from __future__ import annotations

import argparse
import os
import queue
import signal
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any


def serve(connection: Connection) -> None:
    """Do one piece of work after another; what goes wrong is the answer."""
    function = connection.recv()
    if "torch" in sys.modules:  # it came with the function; other work need not wait for it
        from keisei.processes.machine import keep_freed_memory

        keep_freed_memory()
    work: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
    # Another thread listens, so that work for a parent that is gone ends at once.
    threading.Thread(target=_listen, args=(connection, work), daemon=True).start()
    while True:
        try:
            answer = function(*work.get())
        except Exception as error:
            answer = error
        connection.send(answer)


def _listen(connection: Connection, work: queue.SimpleQueue[tuple[Any, ...]]) -> None:
    while True:
        try:
            work.put(connection.recv())
        except (EOFError, OSError):
            os._exit(0)  # engines that this process runs end with their input


def main() -> None:
    """Run one process of a pool; `ProcessPool` starts this."""
    # Ctrl-C is the parent's business; engines that are started here inherit that.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parser = argparse.ArgumentParser()
    parser.add_argument("--connection", type=int)
    fds = parser.parse_args()
    serve(Connection(fds.connection))
