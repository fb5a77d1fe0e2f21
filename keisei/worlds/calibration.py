"""How to train the learners of a team: measured on this machine, with these networks.

A stack saves the cost of many small calls; for large steps it is slower than a plain loop, because
more numbers than the processor's cache holds are walked through at once. Where the one becomes the
other depends on the machine, so a few steps are timed at the start. And where a training takes
long, processes share it out over the cores.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from keisei.worlds.algorithm import Algorithm
from keisei.worlds.learning import train_chunks
from keisei.worlds.memory import Arrays
from keisei.worlds.stack import State, clone

ROUNDS = 3
WORTH_PROCESSES = 0.3  # seconds of a training; below that, handing it over costs what it saves


@dataclass(frozen=True)
class Plan:
    """How a team is trained."""

    chunk: int  # agents in one stack: 1 is a plain loop
    in_processes: bool


def calibrate(algorithm: Algorithm, state: State, batches: Arrays, cores: int) -> Plan:
    """The fastest plan for these batches [agents, steps, batch, ...]; the state is not changed."""
    agents, steps = batches["action"].shape[:2]
    times = _time_chunks(algorithm, state, batches)
    chunk = min(times, key=lambda size: times[size])
    several = min(agents, cores) > 1
    return Plan(chunk, several and times[chunk] * steps > WORTH_PROCESSES)


def _time_chunks(algorithm: Algorithm, state: State, batches: Arrays) -> dict[int, float]:
    """Seconds that one training step of all agents takes, in stacks of each size."""
    agents = len(batches["action"])
    sizes = sorted({1, *(size for size in (4, 16, 64) if size < agents), agents})
    one_step = {name: array[:, :1] for name, array in batches.items()}
    spare = clone(state)
    times = dict.fromkeys(sizes, np.inf)
    for round_number in range(ROUNDS + 1):
        for size in sizes:
            start = time.perf_counter()
            train_chunks(algorithm, spare, one_step, size)
            if round_number:  # the first calls set up PyTorch's kernels
                times[size] = min(times[size], time.perf_counter() - start)
    return times
