"""Learning from search: the network learns to play at once what a search of it would play."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from keisei.config_schema import AppConfig
from keisei.core.experience_buffer import Batch, ExperienceBuffer
from keisei.core.learner import Figures, Learner, Metrics, mean_metrics
from keisei.core.rollout import Rollout
from keisei.shogi import Positions
from keisei.shogi.mirror import MIRRORED_ACTION, mirrored


class GumbelLearner(Learner):
    """Fits the policy to what the search made of it, and the value to what came of the games.

    It draws from a window of recent rollouts, as many moves as are new, so that neighbours in a
    game are learned from among moves of other games and other weights.

    A position's value is learned from the search's values of the moves after it and, where the game
    ended, from its result, weighed by `lambda_gae`.
    """

    def __init__(self, config: AppConfig, device: torch.device | str | None = None) -> None:
        super().__init__(config, device)
        self._window: list[Rollout] = []  # of earlier updates

    def update(self, rollouts: Sequence[Rollout], progress: float = 0.0) -> Metrics:
        """Learn from positions, or from their mirror images, each about `ppo_epochs` times."""
        settings = self.config.training
        window = [*self._window, *rollouts]
        buffer = ExperienceBuffer.of(window, settings.gamma, settings.lambda_gae)
        new = sum(int(rollout.learned.sum()) for rollout in rollouts)
        self.set_learning_rate(progress)
        history = [
            self.descend(mirror_some(batch, self.rng), self._loss)
            for _ in range(settings.ppo_epochs)
            for batch in buffer.minibatches(settings.minibatch_size, self.rng, most=new)
        ]
        self._remember(rollouts)
        self.finish_update()
        metrics = mean_metrics(history)
        metrics["minibatches"] = len(history)
        metrics["learning_rate"] = self.optimizer.param_groups[0]["lr"]
        return metrics

    def _remember(self, rollouts: Sequence[Rollout]) -> None:
        """Keep what the next update learns from beside its own; without a window, nothing."""
        kept = (self.config.training.search.window - 1) * len(rollouts)
        copies = [rollout.copy() for rollout in rollouts] if kept else []
        self._window = [*self._window, *copies][-kept:] if kept else []

    def state_dict(self) -> dict[str, Any]:
        """As of every learner, and the window."""
        return {**super().state_dict(), "window": [vars(rollout) for rollout in self._window]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """As of every learner; a state of another one, or from before, has no window."""
        super().load_state_dict(state)
        self._window = [Rollout(**arrays) for arrays in state.get("window", [])]

    def _loss(
        self, part: Batch, count: int, policy: Tensor, values: Tensor
    ) -> tuple[Tensor, Figures]:
        """What these moves of a minibatch of `count` add to its loss, and to its figures."""
        improved = torch.from_numpy(part.improved).to(self.device)
        returns = torch.from_numpy(part.returns).to(self.device).clamp(-1, 1)
        log_probs = self.log_probs(policy, part.positions)
        policy_loss = -(improved * log_probs).sum() / count
        value_loss = (values.float() - returns).square().sum() / count
        loss = policy_loss + self.config.training.value_loss_coef * value_loss
        with torch.no_grad():
            gap = torch.where(improved > 0, improved * (improved.log() - log_probs), 0.0)
            figures = {
                "policy_loss": policy_loss.detach(),
                "value_loss": value_loss.detach(),
                "entropy": -(log_probs.exp() * log_probs).sum() / count,
                "search_kl": gap.sum() / count,
            }
        return loss, figures


def mirror_some(batch: Batch, rng: np.random.Generator) -> Batch:
    """The batch with half of its positions, drawn at random, mirrored with their moves."""
    turned = rng.random(len(batch.actions)) < 0.5
    old = batch.positions
    observations = old.observations.copy()
    observations[turned] = mirrored(observations[turned])
    legal = np.where(turned[old.rows()], MIRRORED_ACTION[old.legal], old.legal)
    actions = np.where(turned, MIRRORED_ACTION[batch.actions], batch.actions)
    return batch._replace(positions=Positions(observations, legal, old.offsets), actions=actions)
