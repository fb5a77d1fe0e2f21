"""A training in a process of its own; states and minibatches cross by shared memory.

The process is a plain one, started without fork, with its own pipe for small messages, and keeps
nothing between trainings. If it is killed or hangs, the next training starts another. If none can
be started, the training takes place here, with the same result.
"""

from __future__ import annotations

import contextlib
import logging
import subprocess
from dataclasses import dataclass

import torch

from keisei.processes.line import start_process
from keisei.processes.nursery import Forked
from keisei.processes.shared_memory import Layout, SharedArrays
from keisei.worlds.algorithm import Algorithm, Trained
from keisei.worlds.learning import HereLearning, Outcome, TrainingFailed
from keisei.worlds.memory import Arrays
from keisei.worlds.stack import State, assign

log = logging.getLogger(__name__)

START_TIMEOUT = 120.0
STOP_TIMEOUT = 10.0
STARTS = 3  # that may fail before no other is tried


@dataclass(frozen=True)
class Welcome:
    """Parent to a new process: what it learns, and how the memory is laid out."""

    algorithm: Algorithm
    chunk: int
    layout: Layout


@dataclass(frozen=True)
class Train:
    """Parent to process: the memory holds states and this many minibatches."""

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

    process: Forked | None = None
    _is_new = True  # it has not answered yet
    _failed_starts = 0  # one after another

    def begin(self, state: State, batches: Arrays) -> None:
        if self._failed_starts >= STARTS:
            super().begin(state, batches)
            return
        self._given = (state, batches)
        steps = batches["action"].shape[1]
        if self.process is not None and self.process.poll() is not None:
            log.warning("the process of %s died; starting another one", self.name)
        if self.process is None or self.process.poll() is not None or steps > self._room:
            self.close()
            try:
                self._start(state, batches)
            except OSError as error:  # no memory, no descriptor, no process to be had
                self._train_here(f"{self.name} could not be started: {error}")
                return
        assign(states_in(self._memory), state)
        for name, array in batches.items():
            self._memory[f"batch.{name}"][:, :steps] = array
        with contextlib.suppress(OSError):  # it is gone: `finish` will see, and say so
            self._connection.send(Train(steps))

    def _train_here(self, problem: str) -> None:
        self._failed_starts += 1
        when = "from now on" if self._failed_starts >= STARTS else "this time"
        log.warning("%s; its agents learn in this process %s", problem, when)
        super().begin(*self._given)

    def finish(self, timeout: float) -> Outcome:
        if self._outcome is None:
            try:
                return self._answer(timeout)
            except TrainingFailed as error:
                if not self._is_new:
                    raise
                self._train_here(str(error))
        return super().finish(timeout)

    def _answer(self, timeout: float) -> Outcome:
        try:
            # A new process must load PyTorch first; that is not the training's time.
            if not self._connection.poll(timeout + (START_TIMEOUT if self._is_new else 0)):
                raise TrainingFailed(f"{self.name} did not finish within {timeout:.0f} s")
            answer = self._connection.recv()
        except (EOFError, OSError):
            self.close()
            raise TrainingFailed(f"{self.name} was killed or crashed") from None
        except TrainingFailed:
            self.close()  # one that hangs is replaced
            raise
        self._is_new, self._failed_starts = False, 0
        if isinstance(answer, Failed):
            raise TrainingFailed(f"{self.name} failed: {answer.reason}")
        # In place: nobody writes there before the next `begin`.
        return Outcome(states_in(self._memory), answer.trained, answer.start, answer.end)

    def close(self) -> None:
        """End the process and give the memory back."""
        if self.process is None:
            return
        # It keeps nothing, so nothing is lost; and a kill cannot be waited for in vain.
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
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
        try:
            self.process, self._connection = start_process(
                "keisei.worlds.learner_worker", {"memory": [self._memory.fd]}, START_TIMEOUT
            )
        except OSError:
            self._memory.close()
            raise
        self._is_new = True
        with contextlib.suppress(OSError):  # it is gone already: `finish` will see, and say so
            self._connection.send(Welcome(self._algorithm, self._chunk, layout))


def states_in(memory: SharedArrays) -> State:
    """The states in the shared memory, in place."""
    prefix = "state."
    return {
        name.removeprefix(prefix): torch.from_numpy(memory[name])
        for name in memory.layout
        if name.startswith(prefix)
    }


def batches_in(memory: SharedArrays, steps: int) -> Arrays:
    """The minibatches in the shared memory, in place."""
    prefix = "batch."
    return {
        name.removeprefix(prefix): memory[name][:, :steps]
        for name in memory.layout
        if name.startswith(prefix)
    }
