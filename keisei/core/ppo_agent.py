"""The learner: proximal policy optimisation of one network that plays both sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from keisei.core.experience_buffer import Batch, ExperienceBuffer
from keisei.core.learner import Learner, Metrics, left, mean_metrics
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
        history: list[dict[str, Tensor]] = []
        stopped = False
        for _ in range(settings.ppo_epochs):
            for batch in buffer.minibatches(
                settings.minibatch_size, self.rng, settings.share_learned
            ):
                history.append(self._step(batch, entropy_coef))
                stopped = 0 < settings.target_kl < float(history[-1]["kl"])
                if stopped:
                    break
            if stopped:
                break
        self.finish_update()
        metrics = mean_metrics(history)
        metrics["first_ratio_error"] = float(history[0]["ratio_error"])
        metrics["first_clip_fraction"] = float(history[0]["clip_fraction"])
        metrics["minibatches"] = len(history)
        metrics["learning_rate"] = self.optimizer.param_groups[0]["lr"]
        metrics["explained_variance"] = _explained_variance(buffer.get_batch())
        del metrics["ratio_error"]
        return metrics

    def _step(self, batch: Batch, entropy_coef: float) -> dict[str, Tensor]:
        """One gradient step on one minibatch."""
        with self.precision():
            loss, metrics = self._loss(batch, entropy_coef)
        metrics["gradient_norm"] = self.descend(loss)
        return metrics

    def _loss(self, batch: Batch, entropy_coef: float) -> tuple[Tensor, dict[str, Tensor]]:
        settings = self.config.training
        old_log_probs, old_values, returns, weights = (
            torch.from_numpy(column).to(self.device)
            for column in (batch.log_probs, batch.values, batch.returns, batch.weights)
        )
        policy, values = self.network(self.network.planes(batch.positions.observations))
        log_probs, entropy = self._log_probs(policy, batch)
        advantages = self._advantages(torch.from_numpy(batch.advantages).to(self.device), weights)
        log_ratio = log_probs - old_log_probs
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - settings.clip_epsilon, 1 + settings.clip_epsilon)
        policy_loss = -(weights * torch.min(ratio * advantages, clipped * advantages)).mean()
        # Shaped returns may leave [-1, 1], the range of values; there is nothing to win beyond it.
        errors = self._value_errors(values.float(), old_values, returns.clamp(-1, 1))
        value_loss = (weights * errors).mean()
        loss = policy_loss + settings.value_loss_coef * value_loss - entropy_coef * entropy
        with torch.no_grad():
            metrics = {
                "policy_loss": policy_loss.detach(),
                "value_loss": value_loss.detach(),
                "entropy": entropy.detach(),
                "kl": (weights * (ratio - 1 - log_ratio)).mean(),
                "clip_fraction": ((ratio - 1).abs() > settings.clip_epsilon).float().mean(),
                "ratio_error": (ratio - 1).abs().max(),
            }
        return loss, metrics

    def _log_probs(self, policy: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the batch's actions among the legal ones, and the mean entropy."""
        log_probs, positions = self.log_probs(policy, batch.positions), batch.positions
        played = np.flatnonzero(positions.legal == batch.actions[positions.rows()])
        entropy = -(log_probs.exp() * log_probs).sum() / len(positions)
        return log_probs[torch.from_numpy(played).to(self.device)], entropy

    def _advantages(self, advantages: Tensor, weights: Tensor) -> Tensor:
        """As they are, or with mean 0 and deviation 1 over what the minibatch stands for."""
        if not self.config.training.normalize_advantages or len(advantages) == 1:
            return advantages
        if self.config.training.share_learned == 1:
            return (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        shares = weights / weights.sum()
        mean = (shares * advantages).sum()
        spread = (shares * (advantages - mean).square()).sum().sqrt()
        return (advantages - mean) / (spread + 1e-8)

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
