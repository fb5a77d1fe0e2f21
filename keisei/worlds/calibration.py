"""How many learners to train in one stack: measured on this machine, with these networks.

A stack saves the cost of many small calls; for large steps it is slower than a plain loop, because
more numbers than the processor's cache holds are walked through at once. Where the one becomes the
other depends on the machine, so a few steps are timed at the start.
"""

from __future__ import annotations

import time

import numpy as np

from keisei.worlds.algorithm import Algorithm
from keisei.worlds.learning import train_chunks
from keisei.worlds.memory import Arrays
from keisei.worlds.stack import State, clone

ROUNDS = 3


def best_chunk(algorithm: Algorithm, state: State, batches: Arrays) -> int:
    """The number of agents to train in one stack: 1 is a loop, all of them one stack.

    The batches [agents, steps, batch, ...] are real ones; the state is not changed.
    """
    agents = len(batches["action"])
    sizes = sorted({1, *(size for size in (4, 16, 64) if size < agents), agents})
    if len(sizes) == 1:
        return 1
    one_step = {name: array[:, :1] for name, array in batches.items()}
    spare = clone(state)
    times = dict.fromkeys(sizes, np.inf)
    for round_number in range(ROUNDS + 1):
        for size in sizes:
            start = time.perf_counter()
            train_chunks(algorithm, spare, one_step, size)
            if round_number:  # the first calls set up PyTorch's kernels
                times[size] = min(times[size], time.perf_counter() - start)
    return min(sizes, key=lambda size: times[size])
