"""IQN: double DQN that learns how the worth of an action is spread, not only its mean.

The network is also told a chance tau, and says below which worth the outcome lies with that chance
(its quantile). The mean over many taus is the value by which it acts.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.nn.functional import smooth_l1_loss

from keisei.worlds.config import IQNSettings
from keisei.worlds.double_dqn import DoubleDQN
from keisei.worlds.memory import Arrays, Buffer
from keisei.worlds.novelty import Novelty
from keisei.worlds.stack import State, dense
from keisei.worlds.view import View

COSINES = 64  # numbers that a tau is turned into
EVEN = 16  # taus, evenly spaced, whose mean is an action's value
_TAUS = (torch.arange(EVEN) + 0.5)[None, None] / EVEN


class IQN(DoubleDQN):
    """Learns quantiles of what each action is worth, at taus drawn at random."""

    settings: IQNSettings

    def __init__(self, view: View, num_actions: int, settings: IQNSettings) -> None:
        super().__init__(view, num_actions, settings)
        self.layout["we"] = (COSINES, self.network.width, (6 / COSINES) ** 0.5)
        self.layout["be"] = (1, self.network.width, 0.0)

    def say(self, weights: State, features: torch.Tensor) -> torch.Tensor:
        # The last layer is linear: the mean of what it says is what it says of the mean.
        told = self._told(weights, _TAUS.to(self.device), features.shape[0]).mean(dim=2)
        return self.network.last(weights, features * told)

    def quantiles(
        self, weights: State, features: torch.Tensor, taus: torch.Tensor, prefix: str = ""
    ) -> torch.Tensor:
        """Quantiles [agents, batch, taus, actions]; taus [agents, batch, taus] or [1, 1, taus]."""
        agents, batch, _ = features.shape
        mixed = features[:, :, None] * self._told(weights, taus, agents, prefix)
        said = self.network.last(weights, mixed.flatten(1, 2), prefix)
        return said.view(agents, batch, -1, self.num_actions)

    def _told(
        self, weights: State, taus: torch.Tensor, agents: int, prefix: str = ""
    ) -> torch.Tensor:
        """What the features are multiplied by for each tau [agents, batch or 1, taus, width]."""
        waves = torch.cos(math.pi * torch.arange(COSINES, device=taus.device) * taus[..., None])
        waves = waves.expand(agents, -1, -1, -1)
        told = torch.relu(dense(weights, "e", waves.flatten(1, 2), prefix))
        return told.view(agents, *waves.shape[1:3], self.network.width)

    def draw(
        self,
        memory: Buffer,
        steps: int,
        turns: int,
        rng: np.random.Generator,
        novelty: Novelty | None = None,
    ) -> Arrays:
        drawn = super().draw(memory, steps, turns, rng, novelty)
        *shape, last = drawn["action"].shape
        shape += [last - 1 if self.network.carried else last, self.settings.quantiles]
        for name in ("tau", "tau_after"):
            drawn[name] = rng.random(shape, np.float32)
        return drawn

    def loss(self, leaves: State, state: State, batch: Arrays) -> torch.Tensor:
        steps = self._steps(leaves, state, batch)
        tau, tau_after = (self.tensor(batch[n]).flatten(1, -2) for n in ("tau", "tau_after"))
        with torch.no_grad():
            values = self.only_possible(self.say(state, steps.after), steps.seen_after)
            best = values.argmax(dim=-1)
            future = _of(best, self.quantiles(state, steps.slow, tau_after, "target."))
            goes_on = self.settings.gamma * steps.goes_on[..., None]
            goal = steps.reward[..., None] + goes_on * future
        taken = _of(steps.action, self.quantiles(leaves, steps.now, tau))
        error = goal[:, :, None] - taken[..., None]  # each quantile beside each goal
        # Too low a quantile costs tau, too high a one 1 - tau: so a share of tau ends up below it.
        side = (tau[..., None] - (error < 0).float()).abs()
        losses = side * smooth_l1_loss(error, torch.zeros_like(error), reduction="none")
        return steps.mean(losses.mean(dim=3).sum(dim=2))


def _of(actions: torch.Tensor, quantiles: torch.Tensor) -> torch.Tensor:
    """The quantiles [agents, batch, taus] of these actions [agents, batch]."""
    index = actions[..., None, None].expand(*quantiles.shape[:3], 1)
    return quantiles.gather(-1, index).squeeze(-1)
