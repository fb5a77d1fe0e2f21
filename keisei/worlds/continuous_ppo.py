"""PPO for actions that are numbers: a normal distribution for each, whose width is learned as well.

The numbers of an action are a *move*, from -1 to 1, which the world stretches to what it asks for.
The action of such a step is 0: memories know by it that there was one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from keisei.random_streams import RandomStreams
from keisei.worlds.algorithm import Ints
from keisei.worlds.config import PPOSettings
from keisei.worlds.memory import Arrays
from keisei.worlds.ppo import PPO, Floats
from keisei.worlds.stack import Inputs, State
from keisei.worlds.view import View

WIDTH = "log_std"  # the weights that are the widths' logarithms: the same in every state
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def normal(streams: RandomStreams, count: int) -> Floats:
    """So many normal numbers of every stream [streams, count], two uniform ones for each.

    >>> drawn = normal(RandomStreams(seed=1, count=1000), 3)
    >>> drawn.shape, bool(abs(drawn.mean()) < 0.1), bool(abs(drawn.std() - 1) < 0.1)
    ((1000, 3), True, True)
    """
    sizes, angles = streams.uniforms(2 * count).reshape(2, count, -1)
    numbers = np.sqrt(-2 * np.log1p(-sizes)) * np.cos(2 * np.pi * angles)
    return numbers.T.astype(np.float32)


class ContinuousPPO(PPO):
    """The network gives the means and the value."""

    def __init__(self, view: View, num_actions: int, settings: PPOSettings) -> None:
        self._size = view.moves
        super().__init__(view, num_actions, settings)
        self.layout |= {WIDTH: (1, self._size, 0.0)}

    @property
    def extras(self) -> dict[str, tuple[int, ...]]:
        return super().extras | {"move": (self._size,)}

    @property
    def outputs(self) -> int:
        return self._size + 1

    def answer(
        self, state: State, inputs: Inputs, carried: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        said, carried = super().answer(state, inputs, carried)
        widths = state[WIDTH].expand(*said.shape[:2], -1)
        return torch.cat([said[..., :-1], widths, said[..., -1:]], dim=-1), carried

    def choose(
        self, scores: Floats, streams: RandomStreams, epoch: int
    ) -> tuple[Ints, dict[str, Any]]:
        scores = np.where(np.isfinite(scores), scores, np.float32(0))
        means, widths, values = np.split(scores, [self._size, 2 * self._size], axis=1)
        noise = normal(streams, self._size)
        log_prob = (-0.5 * noise**2 - widths - np.float32(HALF_LOG_TWO_PI)).sum(axis=1)
        moves = means + np.exp(widths) * noise
        told = {"move": moves, "log_prob": log_prob, "value": values[:, 0]}
        return np.zeros(len(scores), np.int64), told

    def extras_of(self, scores: Floats) -> dict[str, Any]:
        return super().extras_of(scores) | {"move": 0}

    def _judge(
        self, weights: State, outputs: torch.Tensor, batch: Arrays
    ) -> tuple[torch.Tensor, torch.Tensor]:
        means, widths = outputs[..., :-1], weights[WIDTH]
        moves = self.tensor(batch["move"]).view(means.shape)
        noise = (moves - means) * (-widths).exp()
        chosen = (-0.5 * noise.square() - widths - HALF_LOG_TWO_PI).sum(dim=-1)
        entropy = (widths + 0.5 + HALF_LOG_TWO_PI).sum(dim=-1).expand_as(chosen)
        return chosen, entropy
