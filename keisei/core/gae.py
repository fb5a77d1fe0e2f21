"""Generalised advantage estimation for two players who take turns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def zero_sum_gae(
    rewards: Floats,
    values: Floats,
    dones: npt.NDArray[np.bool_],
    last_values: Floats,
    gamma: float,
    lam: float,
) -> tuple[Floats, Floats]:
    """Advantages and returns [T, G] of G streams of play, each seen from its mover's side.

    `rewards` and `values` are the mover's at each step, and the next step's mover is the opponent:
    what comes after a move counts with its sign turned, both in the value and in the trace.
    `dones` marks moves that ended a game (nothing after them counts), and `last_values` [G] are
    the values of the positions after the last step, for games that the rollout cuts.

    >>> decided = [np.array([[0], [0], [0], [1]], np.float32), np.zeros((4, 1), np.float32)]
    >>> end = np.array([[False], [False], [False], [True]])
    >>> advantages, _ = zero_sum_gae(*decided, end, np.zeros(1, np.float32), 1.0, 1.0)
    >>> advantages[:, 0].tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """
    advantages = np.empty_like(rewards)
    next_values, trace = last_values, np.zeros_like(last_values)
    for t in range(len(rewards) - 1, -1, -1):
        goes_on = np.where(dones[t], np.float32(0), np.float32(gamma))
        delta = rewards[t] - goes_on * next_values - values[t]
        trace = delta - goes_on * np.float32(lam) * trace
        advantages[t] = trace
        next_values = values[t]
    return advantages, advantages + values
