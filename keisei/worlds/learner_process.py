"""A training in a process of its own; states and minibatches cross by shared memory.

The process is a plain one, started without fork, with its own pipe for small messages, and keeps
nothing between trainings. If it is killed or hangs, the next training starts another.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch

from keisei.training.parallel.shared_memory import Layout, SharedArrays
from keisei.worlds.algorithm import Algorithm, Trained
from keisei.worlds.learning import HereLearning, Outcome, TrainingFailed, train_chunks
from keisei.worlds.memory import Arrays
from keisei.worlds.stack import State, assign, clone

START_TIMEOUT = 120.0
STOP_TIMEOUT = 3.0


@dataclass(frozen=True)
class Welcome:
    """Parent to a new process: what it learns, and how the memory is laid out."""

    algorithm: Algorithm
    chunk: int
    layout: Layout


@dataclass(frozen=True)
class Train:
    """Parent to process: the memory holds states and so many minibatches."""

    steps: int


@dataclass(frozen=True)
class Done:
    """Process to parent: the memory holds the new states."""

    trained: Trained
    start: float
    end: float


@dataclass(frozen=True)
class Failed:
    """Process to parent: an error."""

    reason: str


class ProcessLearning(HereLearning):
    """Trains in a process of its own while the caller goes on."""

    process: subprocess.Popen[bytes] | None = None

    def begin(self, state: State, batches: Arrays) -> None:
        steps = batches["action"].shape[1]
        if self.process is None or self.process.poll() is not None or steps > self._room:
            self.close()
            self._start(state, batches)
        assign(_states(self._memory), state)
        for name, array in batches.items():
            self._memory[f"batch.{name}"][:, :steps] = array
        with contextlib.suppress(OSError):  # it is gone: `finish` will see, and say so
            self._connection.send(Train(steps))

    def finish(self, timeout: float) -> Outcome:
        try:
            # A new process must load PyTorch first; that is not the training's time.
            if not self._connection.poll(timeout + (START_TIMEOUT if self._is_new else 0)):
                raise TrainingFailed(f"{self.name} did not end within {timeout:.0f} s")
            answer = self._connection.recv()
        except (EOFError, OSError):
            self.close()
            raise TrainingFailed(f"{self.name} was killed or crashed") from None
        except TrainingFailed:
            self.close()  # who hangs is replaced
            raise
        self._is_new = False
        if isinstance(answer, Failed):
            raise TrainingFailed(f"{self.name} failed: {answer.reason}")
        return Outcome(clone(_states(self._memory)), answer.trained, answer.start, answer.end)

    def close(self) -> None:
        """End the process and give the memory back."""
        if self.process is None:
            return
        # It keeps nothing, so nothing is lost; and a kill cannot be waited for in vain.
        self.process.kill()
        self.process.wait(STOP_TIMEOUT)
        self._connection.close()
        self._memory.close()
        self.process = None

    def _start(self, state: State, batches: Arrays) -> None:
        self._room = batches["action"].shape[1] + 1  # what is owed varies by one
        layout: dict[str, tuple[tuple[int, ...], object]] = {
            f"state.{name}": (tuple(tensor.shape), tensor.numpy().dtype)
            for name, tensor in state.items()
        }
        for name, array in batches.items():
            agents, _, *rest = array.shape
            layout[f"batch.{name}"] = ((agents, self._room, *rest), array.dtype)
        self._memory = SharedArrays(layout)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            fds = (theirs.fileno(), self._memory.fd)
            self.process = subprocess.Popen(
                [sys.executable, "-m", "keisei.worlds.learner_process", *map(str, fds)],
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                # One thread, told before PyTorch loads; waiting threads must not spin.
                env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
                start_new_session=True,  # Ctrl-C reaches the parent alone
            )
            self._connection = Connection(ours.detach())
        self._connection.send(Welcome(self._algorithm, self._chunk, layout))
        self._is_new = True


def _states(memory: SharedArrays) -> State:
    """The states in the shared memory, in place."""
    prefix = "state."
    return {
        name.removeprefix(prefix): torch.from_numpy(memory[name])
        for name in memory.layout
        if name.startswith(prefix)
    }


def _batches(memory: SharedArrays, steps: int) -> Arrays:
    """The minibatches in the shared memory, in place."""
    prefix = "batch."
    return {
        name.removeprefix(prefix): memory[name][:, :steps]
        for name in memory.layout
        if name.startswith(prefix)
    }


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
            new = clone(_states(memory))
            batches = _batches(memory, message.steps)
            trained = train_chunks(welcome.algorithm, new, batches, welcome.chunk)
            assign(_states(memory), new)
            answer: Done | Failed = Done(trained, start, time.monotonic())
        except Exception as error:
            answer = Failed(f"{type(error).__name__}: {error}")
        connection.send(answer)


def main() -> None:
    """Run a learner's process; `ProcessLearning` starts this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    parser = argparse.ArgumentParser()
    parser.add_argument("connection", type=int)
    parser.add_argument("memory", type=int)
    fds = parser.parse_args()
    torch.set_num_threads(1)
    with contextlib.suppress(EOFError, OSError):  # the parent is gone: nobody to work for
        serve(Connection(fds.connection), fds.memory)


if __name__ == "__main__":
    main()
