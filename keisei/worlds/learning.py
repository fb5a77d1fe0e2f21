"""Where a training runs: here, in a thread, or in a process of its own.

A training is a plain function: the agents' states and their minibatches in, new states out. So it
gives the same numbers wherever it runs, and nothing is lost when one is killed or hangs: the
states that it started from are still here.
"""

from __future__ import annotations

import queue
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keisei.errors import KeiseiError
from keisei.worlds.algorithm import Algorithm, Trained
from keisei.worlds.memory import NO_ACTION, Arrays
from keisei.worlds.stack import State, clone, rows


class TrainingFailed(KeiseiError):
    """A training came to nothing; the message says why."""


@dataclass(frozen=True)
class Outcome:
    """A training that is done."""

    state: State  # valid until the next training begins: copy it to keep it
    trained: Trained
    start: float  # time.monotonic()
    end: float


def train_chunks(algorithm: Algorithm, state: State, batches: Arrays, chunk: int) -> Trained:
    """Train all rows in place, `chunk` of them at a time: 1 is a plain loop over the agents."""
    agents = len(batches["action"])
    parts = []
    for first in range(0, agents, chunk):
        last = min(first + chunk, agents)
        part = {name: array[first:last] for name, array in batches.items()}
        parts.append(algorithm.learn(rows(state, first, last), part))
    return Trained(
        np.concatenate([part.losses for part in parts]),
        np.concatenate([part.failed for part in parts]),
        {n: np.concatenate([part.measures[n] for part in parts]) for n in parts[0].measures},
    )


def whole(drawn: Sequence[Arrays | None]) -> list[Arrays]:
    """All minibatches of a team; empty if nobody has any: equal learners are owed equally much.

    One that has none, because it was never there, gets steps that count nothing.
    """
    some = next((one for one in drawn if one is not None), None)
    if some is None:
        return []
    nothing = {**some, "action": np.full_like(some["action"], NO_ACTION)}
    return [nothing if one is None else one for one in drawn]


def merged(batches: Sequence[Arrays]) -> Arrays:
    """Minibatches [steps, batch, ...] of several agents as those of one [1, steps, batch, ...]."""
    return {
        name: np.concatenate([one[name] for one in batches], axis=1)[None] for name in batches[0]
    }


class HereLearning:
    """Trains at once, in the caller's thread."""

    def __init__(self, name: str, algorithm: Algorithm, chunk: int) -> None:
        self.name, self._algorithm, self._chunk = name, algorithm, chunk
        self._outcome: Outcome | None = None

    def begin(self, state: State, batches: Arrays) -> None:
        """Start a training, or raise `TrainingFailed`; `finish` gives what came of it."""
        start = time.monotonic()
        new = clone(state)
        trained = train_chunks(self._algorithm, new, batches, self._chunk)
        self._outcome = Outcome(new, trained, start, time.monotonic())

    def finish(self, timeout: float) -> Outcome:
        """Wait until the training is done; raises `TrainingFailed` if nothing came of it."""
        assert self._outcome, "finish without begin"
        outcome, self._outcome = self._outcome, None
        return outcome

    def close(self) -> None:
        """Let go."""


class ThreadLearning(HereLearning):
    """Trains in a thread, on a copy, while the caller goes on."""

    def begin(self, state: State, batches: Arrays) -> None:
        self._answer: queue.Queue[Outcome | str] = queue.Queue()
        # The answer's queue goes along: a thread that was given up on finds nobody listening.
        arguments = (clone(state), batches, self._answer)
        threading.Thread(target=self._train, args=arguments, name=self.name, daemon=True).start()

    def _train(self, new: State, batches: Arrays, answer: queue.Queue[Outcome | str]) -> None:
        try:
            start = time.monotonic()
            trained = train_chunks(self._algorithm, new, batches, self._chunk)
            answer.put(Outcome(new, trained, start, time.monotonic()))
        except Exception:
            answer.put(traceback.format_exc())

    def finish(self, timeout: float) -> Outcome:
        try:
            answer = self._answer.get(timeout=timeout)
        except queue.Empty:
            raise TrainingFailed(f"{self.name} did not finish within {timeout:.0f} s") from None
        if isinstance(answer, str):
            raise TrainingFailed(f"{self.name} failed: {answer.strip().splitlines()[-1]}")
        return answer
