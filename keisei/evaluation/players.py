"""Players: each chooses one legal action for every position that it is shown."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from keisei.core.policy import Policy, best, sample, segment_log_softmax, segment_rows
from keisei.shogi import features
from keisei.shogi.actions import PROMOTE, TO_SQUARE
from keisei.shogi.material import piece_worth


class Player(Protocol):
    """Chooses among the legal actions of N positions (given as in `VectorShogi`)."""

    name: str

    def choose(
        self,
        observations: features.Observations,
        legal: npt.NDArray[np.int16],
        offsets: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        """Where in `legal` each position's chosen action stands."""
        ...


class RandomPlayer:
    """Plays any legal move with equal chance."""

    name = "random"

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def choose(
        self,
        observations: features.Observations,
        legal: npt.NDArray[np.int16],
        offsets: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        return _draw(np.zeros(len(legal), np.float32), offsets, self._rng)


class GreedyPlayer:
    """Takes the most valuable piece it can, or promotes; else plays at random."""

    name = "greedy"

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def choose(
        self,
        observations: features.Observations,
        legal: npt.NDArray[np.int16],
        offsets: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        rows = segment_rows(offsets)
        target = observations[rows, TO_SQUARE[legal]]
        gain = np.maximum(-piece_worth(target), 0) + 2 * PROMOTE[legal]
        top = np.repeat(np.maximum.reduceat(gain, offsets[:-1]), np.diff(offsets))
        return _draw(np.where(gain == top, np.float32(0), np.float32(-np.inf)), offsets, self._rng)


class PolicyPlayer:
    """Plays by a network's policy: its likeliest move, or a draw from it at a temperature."""

    def __init__(self, policy: Policy, name: str, seed: int, temperature: float = 0.0) -> None:
        self.name = name
        self._policy = policy
        self._temperature = temperature
        self._rng = np.random.default_rng(seed)

    def choose(
        self,
        observations: features.Observations,
        legal: npt.NDArray[np.int16],
        offsets: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        log_probs = self._policy(observations, legal, offsets).log_probs
        if not self._temperature:
            return best(log_probs, offsets)
        return _draw(log_probs / np.float32(self._temperature), offsets, self._rng)


def _draw(
    scores: npt.NDArray[np.float32], offsets: npt.NDArray[np.int64], rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    return sample(segment_log_softmax(scores, offsets), offsets, rng.random(len(offsets) - 1))
