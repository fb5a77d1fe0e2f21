"""From a network's scores to probabilities over the legal actions, and to actions drawn from them.

Legal actions come as in `VectorShogi`: all games' end to end, with the offset where each begins.
The softmax is taken over them alone, so an illegal action has no probability at all.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from keisei.core.neural_network import ActorCriticResTower
from keisei.core.runtime import Forward
from keisei.shogi import features

Number = TypeVar("Number", np.int16, np.float32)


class Evaluation(NamedTuple):
    """What a network says of N positions: log-probabilities of the legal actions, and values."""

    log_probs: npt.NDArray[np.float32]  # [sum], one for each legal action
    values: npt.NDArray[np.float32]  # [N]


class Policy(Protocol):
    """Positions with their legal actions to log-probabilities and values."""

    def __call__(
        self,
        observations: features.Observations,
        legal: npt.NDArray[np.int16],
        offsets: npt.NDArray[np.int64],
        /,
    ) -> Evaluation: ...


def evaluate(
    network: ActorCriticResTower,
    observations: features.Observations,
    legal: npt.NDArray[np.int16],
    offsets: npt.NDArray[np.int64],
    device: torch.device | str = "cpu",
    forward: Forward | None = None,
) -> Evaluation:
    """The network's policy and value for positions with these legal actions.

    `forward` is a faster form of the same network, such as `runtime.traced`.
    """
    rows = torch.from_numpy(segment_rows(offsets)).to(device)
    actions = torch.from_numpy(legal.astype(np.int64)).to(device)
    with torch.inference_mode():
        planes = torch.from_numpy(features.planes(observations)).to(device)
        policy, values = (forward or network)(planes)
        scores = network.scores(policy, rows, actions).float().cpu().numpy()
    return Evaluation(segment_log_softmax(scores, offsets), values.float().cpu().numpy())


def uniform(
    observations: features.Observations,
    legal: npt.NDArray[np.int16],
    offsets: npt.NDArray[np.int64],
) -> Evaluation:
    """The policy of the random player: every legal action has the same chance."""
    counts = np.diff(offsets)
    log_probs = np.repeat(-np.log(counts), counts).astype(np.float32)
    return Evaluation(log_probs, np.zeros(len(counts), np.float32))


def segment_rows(offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The number of its segment for each element: [0, 2, 5] gives 0 0 1 1 1."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def take_segments(
    flat: npt.NDArray[Number], offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[Number], npt.NDArray[np.int64]]:
    """The segments `rows`, end to end in that order, with their own offsets.

    >>> take_segments(np.array([7, 8, 9], np.int16), np.array([0, 2, 3]), np.array([1, 0]))
    (array([9, 7, 8], dtype=int16), array([0, 1, 3]))
    """
    starts = offsets[rows]
    counts = offsets[rows + 1] - starts
    taken = np.concatenate([[0], np.cumsum(counts)])
    return flat[np.arange(taken[-1]) + np.repeat(starts - taken[:-1], counts)], taken


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
