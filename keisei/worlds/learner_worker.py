"""The other side of `ProcessLearning`: a process that trains whenever it is asked to."""

from __future__ import annotations

import argparse
import contextlib
import signal
import time
from multiprocessing.connection import Connection

import torch

from keisei.processes.machine import keep_freed_memory
from keisei.processes.shared_memory import SharedArrays
from keisei.worlds.learner_process import Done, Failed, Train, Welcome, batches_in, states_in
from keisei.worlds.learning import train_chunks
from keisei.worlds.stack import assign, clone


def serve(connection: Connection, memory_fd: int) -> None:
    """Train whenever asked, until the parent closes the pipe."""
    welcome = connection.recv()
    assert isinstance(welcome, Welcome)
    memory = SharedArrays(welcome.layout, memory_fd)
    while True:
        message = connection.recv()
        assert isinstance(message, Train)
        try:
            start = time.monotonic()
            new = clone(states_in(memory))
            batches = batches_in(memory, message.steps)
            trained = train_chunks(welcome.algorithm, new, batches, welcome.chunk)
            assign(states_in(memory), new)
            answer: Done | Failed = Done(trained, start, time.monotonic())
        except Exception as error:
            answer = Failed(f"{type(error).__name__}: {error}")
        connection.send(answer)


def main() -> None:
    """Run a learner's process; `ProcessLearning` starts this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    parser = argparse.ArgumentParser()
    parser.add_argument("--connection", type=int)
    parser.add_argument("--memory", type=int)
    fds = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    with contextlib.suppress(EOFError, OSError):  # the parent is gone: nobody to work for
        serve(Connection(fds.connection), fds.memory)
