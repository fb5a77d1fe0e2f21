"""From a network's scores to probabilities over the legal actions, and to actions drawn from them.

The softmax is taken over the legal actions alone, so an illegal one has no probability at all. They
stand end to end (see `Positions`); a segment is what belongs to one position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from keisei.core.neural_network import ActorCriticResTower
from keisei.core.runtime import Forward
from keisei.shogi import Positions


class Evaluation(NamedTuple):
    """A network's view of N positions: log-probabilities of the legal actions, and values."""

    log_probs: npt.NDArray[np.float32]  # [sum], one for each legal action
    values: npt.NDArray[np.float32]  # [N]


Policy = Callable[[Positions], Evaluation]
"""What turns positions into log-probabilities of the legal actions, and values."""


def evaluate(
    network: ActorCriticResTower, positions: Positions, forward: Forward | None = None
) -> Evaluation:
    """The network's policy and values.

    `forward` is a faster form of the same network, such as `runtime.traced`.
    """
    with torch.inference_mode():
        planes = network.planes(positions.observations)
        rows = torch.from_numpy(positions.rows()).to(planes.device)
        actions = torch.from_numpy(positions.legal.astype(np.int64)).to(planes.device)
        policy, values = (forward or network)(planes)
        scores = network.scores(policy, rows, actions).float().cpu().numpy()
    log_probs = segment_log_softmax(scores, positions.offsets)
    return Evaluation(log_probs, values.float().cpu().numpy())


def uniform(positions: Positions) -> Evaluation:
    """The policy of the random player: every legal action has the same chance."""
    counts = np.diff(positions.offsets)
    log_probs = np.repeat(-np.log(counts), counts).astype(np.float32)
    return Evaluation(log_probs, np.zeros(len(counts), np.float32))


def segment_log_softmax(
    scores: npt.NDArray[np.float32], offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """The log-softmax within each segment `offsets[i]:offsets[i + 1]`; none may be empty.

    >>> probs = np.exp(segment_log_softmax(np.zeros(3, np.float32), np.array([0, 1, 3])))
    >>> probs.tolist()
    [1.0, 0.5, 0.5]
    """
    counts, starts = np.diff(offsets), offsets[:-1]
    shifted = scores - np.repeat(np.maximum.reduceat(scores, starts), counts)
    total = np.add.reduceat(np.exp(shifted, dtype=np.float64), starts)
    result: npt.NDArray[np.float32] = shifted - np.repeat(np.log(total), counts).astype(np.float32)
    return result


def sample(
    log_probs: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.int64],
    uniforms: npt.NDArray[np.float64],
) -> npt.NDArray[np.int64]:
    """Where in each segment's log-probabilities the drawn action stands; `uniforms` in [0, 1)."""
    ends = np.cumsum(np.exp(log_probs, dtype=np.float64))
    before = np.concatenate([[0.0], ends])[offsets]
    targets = before[:-1] + uniforms * (before[1:] - before[:-1])
    return np.clip(np.searchsorted(ends, targets, side="right"), offsets[:-1], offsets[1:] - 1)


def best(
    log_probs: npt.NDArray[np.float32], offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Where in each segment's log-probabilities the most likely action stands."""
    top = np.repeat(np.maximum.reduceat(log_probs, offsets[:-1]), np.diff(offsets))
    hits = np.flatnonzero(log_probs == top)
    first: npt.NDArray[np.int64] = hits[np.searchsorted(hits, offsets[:-1])]
    return first
