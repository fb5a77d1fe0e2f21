"""The learner: proximal policy optimisation of one network that plays both sides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from keisei.core.experience_buffer import Batch, ExperienceBuffer
from keisei.core.learner import Figures, Learner, Metrics, left, mean_metrics
from keisei.core.rollout import Rollout


class PPOAgent(Learner):
    """A network with its optimiser, which plays and learns.

    >>> from keisei.config_schema import AppConfig
    >>> agent = PPOAgent(AppConfig(), "cpu")
    >>> agent.version
    0
    """

    def update(self, rollouts: Sequence[Rollout], progress: float = 0.0) -> Metrics:
        """Estimate advantages, and learn from the moves that are to be learned from."""
        settings = self.config.training
        buffer = ExperienceBuffer.of(rollouts, settings.gamma, settings.lambda_gae)
        return self.learn(buffer, progress)

    def learn(self, buffer: ExperienceBuffer, progress: float = 0.0) -> Metrics:
        """One PPO update from the buffer; `progress` (0 to 1) of the run drives the schedules."""
        settings = self.config.training
        self.set_learning_rate(progress)
        entropy_coef = settings.entropy_coef * left(progress, settings.entropy_coef_end)
        history: list[Figures] = []
        stopped = False
        for _ in range(settings.ppo_epochs):
            for batch in buffer.minibatches(
                settings.minibatch_size, self.rng, settings.share_learned
            ):
                loss = partial(self._loss, entropy_coef=entropy_coef)
                history.append(self.descend(self._normalized(batch), loss))
                stopped = 0 < settings.target_kl < float(history[-1]["kl"])
                if stopped:
                    break
            if stopped:
                break
        self.finish_update()
        metrics = mean_metrics(history)
        metrics["first_ratio_error"] = float(history[0]["largest_ratio_error"])
        metrics["first_clip_fraction"] = float(history[0]["clip_fraction"])
        metrics["minibatches"] = len(history)
        metrics["learning_rate"] = self.optimizer.param_groups[0]["lr"]
        metrics["explained_variance"] = _explained_variance(buffer.get_batch())
        del metrics["largest_ratio_error"]
        return metrics

    def _loss(
        self, part: Batch, count: int, policy: Tensor, values: Tensor, entropy_coef: float
    ) -> tuple[Tensor, Figures]:
        """What these moves of a minibatch of `count` add to its loss, and to its figures."""
        settings = self.config.training
        old_log_probs, old_values, advantages, returns, weights = (
            torch.from_numpy(column).to(self.device)
            for column in (part.log_probs, part.values, part.advantages, part.returns, part.weights)
        )
        log_probs, entropies = self._log_probs(policy, part)
        log_ratio = log_probs - old_log_probs
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - settings.clip_epsilon, 1 + settings.clip_epsilon)
        policy_loss = -(weights * torch.min(ratio * advantages, clipped * advantages)).sum() / count
        # Shaped returns may leave [-1, 1], the range of values; there is nothing to win beyond it.
        errors = self._value_errors(values.float(), old_values, returns.clamp(-1, 1))
        value_loss = (weights * errors).sum() / count
        entropy = entropies.sum() / count
        loss = policy_loss + settings.value_loss_coef * value_loss - entropy_coef * entropy
        with torch.no_grad():
            far = (ratio - 1).abs()
            figures = {
                "policy_loss": policy_loss.detach(),
                "value_loss": value_loss.detach(),
                "entropy": entropy.detach(),
                "kl": (weights * (ratio - 1 - log_ratio)).sum() / count,
                "clip_fraction": (far > settings.clip_epsilon).sum() / count,
                "largest_ratio_error": far.max(),
            }
        return loss, figures

    def _log_probs(self, policy: Tensor, part: Batch) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the moves played among the legal ones, and terms of the entropy."""
        log_probs, positions = self.log_probs(policy, part.positions), part.positions
        played = np.flatnonzero(positions.legal == part.actions[positions.rows()])
        of_played = log_probs[torch.from_numpy(played).to(self.device)]
        return of_played, -log_probs.exp() * log_probs

    def _normalized(self, batch: Batch) -> Batch:
        """Advantages as they are, or with mean 0 and deviation 1 over all that they stand for."""
        if not self.config.training.normalize_advantages or len(batch.advantages) == 1:
            return batch
        advantages, weights = torch.from_numpy(batch.advantages), torch.from_numpy(batch.weights)
        if self.config.training.share_learned == 1:
            mean, spread = advantages.mean(), advantages.std()
        else:
            shares = weights / weights.sum()
            mean = (shares * advantages).sum()
            spread = (shares * (advantages - mean).square()).sum().sqrt()
        return batch._replace(advantages=((advantages - mean) / (spread + 1e-8)).numpy())

    def _value_errors(self, values: Tensor, old: Tensor, returns: Tensor) -> Tensor:
        error = (values - returns).square()
        limit = self.config.training.value_clip
        if limit:
            held = old + (values - old).clamp(-limit, limit)
            error = torch.max(error, (held - returns).square())
        return error


def _explained_variance(batch: Batch) -> float:
    """How much of the returns' variance the values explain: 1 is all, 0 nothing."""
    variance = float(np.var(batch.returns))
    return 1 - float(np.var(batch.returns - batch.values)) / variance if variance else 0.0
