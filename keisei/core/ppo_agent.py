"""The learner: proximal policy optimisation of one network that plays both sides."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from keisei.config_schema import AppConfig, ModelConfig
from keisei.core.experience_buffer import Batch, ExperienceBuffer
from keisei.core.neural_network import PRESETS, ActorCriticResTower
from keisei.core.policy import Evaluation, evaluate, sample, segment_rows
from keisei.errors import KeiseiError
from keisei.shogi import features

Metrics = dict[str, float]


def build_network(config: ModelConfig) -> ActorCriticResTower:
    """A fresh network of the configured size."""
    preset = PRESETS[config.preset]
    return ActorCriticResTower(
        preset.depth if config.depth is None else config.depth,
        preset.width if config.width is None else config.width,
        preset.se_ratio if config.se_ratio is None else config.se_ratio,
        config.policy_head,
    )


def choose_device(name: str) -> torch.device:
    """The configured device; `auto` is CUDA where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(name)
    there = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= there:
        raise KeiseiError(
            f"env.device is {name}, but PyTorch sees {there} CUDA devices here; use auto or cpu"
        )
    return device


class DivergedError(KeiseiError):
    """The network's numbers are no numbers any more."""


class PPOAgent:
    """A network with its optimiser, which plays and learns.

    >>> from keisei.config_schema import AppConfig
    >>> agent = PPOAgent(AppConfig(), "cpu")
    >>> agent.version
    0
    """

    def __init__(self, config: AppConfig, device: torch.device | str | None = None) -> None:
        self.config = config
        self.device = torch.device(device) if device else choose_device(config.env.device)
        # The weights follow from the seed, and nothing else in the process is disturbed.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.env.seed)
            self.network = build_network(config.model)
        self.network.to(self.device)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=config.training.learning_rate, eps=1e-5
        )
        self.rng = np.random.default_rng(config.env.seed)
        self.version = 0  # grows by one with every update

    # -- playing -----------------------------------------------------------------------------

    def evaluate(
        self,
        observations: features.Observations,
        legal: npt.NDArray[np.int16],
        offsets: npt.NDArray[np.int64],
    ) -> Evaluation:
        """Log-probabilities of the legal actions, and values: a `Policy` for shards."""
        with self._precision():
            return evaluate(self.network, observations, legal, offsets, self.device)

    def select_actions(
        self,
        observations: features.Observations,
        legal: npt.NDArray[np.int16],
        offsets: npt.NDArray[np.int64],
        uniforms: npt.NDArray[np.float64],
    ) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Actions drawn from the policy with these random numbers, their log-probs, and values."""
        seen = self.evaluate(observations, legal, offsets)
        picks = sample(seen.log_probs, offsets, uniforms)
        return legal[picks], seen.log_probs[picks], seen.values

    def select_action(
        self, observation: features.Observations, legal: npt.NDArray[np.integer]
    ) -> tuple[int, float, float]:
        """An action for one position, its log-probability, and the position's value."""
        actions, log_probs, values = self.select_actions(
            observation[None],
            legal.astype(np.int16),
            np.array([0, len(legal)]),
            self.rng.random(1),
        )
        return int(actions[0]), float(log_probs[0]), float(values[0])

    def _precision(self) -> Any:
        if self.config.training.mixed_precision and self.device.type == "cuda":
            return torch.autocast("cuda", dtype=torch.bfloat16)
        return nullcontext()

    # -- learning ----------------------------------------------------------------------------

    def learn(self, buffer: ExperienceBuffer, progress: float = 0.0) -> Metrics:
        """One PPO update from the buffer; `progress` (0 to 1) of the run drives the schedules."""
        settings = self.config.training
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * _left(progress, settings.learning_rate_end)
        entropy_coef = settings.entropy_coef * _left(progress, settings.entropy_coef_end)
        history: list[Metrics] = []
        stopped = False
        for _ in range(settings.ppo_epochs):
            for batch in buffer.minibatches(settings.minibatch_size, self.rng):
                history.append(self._step(batch, entropy_coef))
                stopped = bool(settings.target_kl) and history[-1]["kl"] > settings.target_kl
                if stopped:
                    break
            if stopped:
                break
        self.version += 1
        metrics = {name: float(np.mean([m[name] for m in history])) for name in history[0]}
        metrics["first_ratio_error"] = history[0]["ratio_error"]
        metrics["first_clip_fraction"] = history[0]["clip_fraction"]
        metrics["minibatches"] = len(history)
        metrics["learning_rate"] = self.optimizer.param_groups[0]["lr"]
        metrics["explained_variance"] = _explained_variance(buffer.get_batch())
        del metrics["ratio_error"]
        return metrics

    def _step(self, batch: Batch, entropy_coef: float) -> Metrics:
        """One gradient step on one minibatch."""
        settings = self.config.training
        with self._precision():
            loss, metrics = self._loss(batch, entropy_coef)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), settings.max_grad_norm)
        if not torch.isfinite(norm):
            raise DivergedError(
                f"the gradient is {float(norm)} in update {self.version}: the network diverged; "
                "lower training.learning_rate, and resume from the last checkpoint"
            )
        self.optimizer.step()
        metrics["gradient_norm"] = norm
        return {name: float(value) for name, value in metrics.items()}

    def _loss(self, batch: Batch, entropy_coef: float) -> tuple[Tensor, dict[str, Tensor]]:
        settings = self.config.training
        planes = torch.from_numpy(features.planes(batch.observations)).to(self.device)
        old_log_probs, old_values, advantages, returns = (
            torch.from_numpy(column).to(self.device)
            for column in (batch.log_probs, batch.values, batch.advantages, batch.returns)
        )
        policy, values = self.network(planes)
        log_probs, entropy = self._log_probs(policy, batch)
        if settings.normalize_advantages and len(advantages) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        log_ratio = log_probs - old_log_probs
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - settings.clip_epsilon, 1 + settings.clip_epsilon)
        policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()
        # Shaped returns may leave [-1, 1], the range of a value: beyond it there is no more to win.
        value_loss = self._value_loss(values.float(), old_values, returns.clamp(-1, 1))
        loss = policy_loss + settings.value_loss_coeff * value_loss - entropy_coef * entropy
        with torch.no_grad():
            metrics = {
                "policy_loss": policy_loss.detach(),
                "value_loss": value_loss.detach(),
                "entropy": entropy.detach(),
                "kl": (ratio - 1 - log_ratio).mean(),
                "clip_fraction": ((ratio - 1).abs() > settings.clip_epsilon).float().mean(),
                "ratio_error": (ratio - 1).abs().max(),
            }
        return loss, metrics

    def _log_probs(self, policy: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the batch's actions among the legal ones, and the mean entropy."""
        rows_of = segment_rows(batch.offsets)
        rows = torch.from_numpy(rows_of).to(self.device)
        legal = torch.from_numpy(batch.legal.astype(np.int64)).to(self.device)
        played = torch.from_numpy(np.flatnonzero(batch.legal == batch.actions[rows_of]))
        scores = self.network.scores(policy, rows, legal).float()
        count = len(batch.actions)
        top = scores.new_full((count,), -torch.inf).scatter_reduce(0, rows, scores.detach(), "amax")
        log_probs = scores - top[rows]
        total = scores.new_zeros(count).index_add(0, rows, log_probs.exp())
        log_probs = log_probs - total.log()[rows]
        entropy = -(log_probs.exp() * log_probs).sum() / count
        return log_probs[played.to(self.device)], entropy

    def _value_loss(self, values: Tensor, old: Tensor, returns: Tensor) -> Tensor:
        error = (values - returns).square()
        limit = self.config.training.value_clip
        if limit:
            held = old + (values - old).clamp(-limit, limit)
            error = torch.max(error, (held - returns).square())
        return error.mean()

    # -- stop and go on ----------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimiser, counters and random state."""
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "rng": self.rng.bit_generator.state,
            "version": self.version,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict()`; a network of another shape is refused by name."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))  # it keeps what it gets
        self.rng.bit_generator.state = state["rng"]
        self.version = int(state["version"])


def _left(progress: float, end: float) -> float:
    """What is left of a quantity that falls in a line from 1 to `end`."""
    return 1 + (end - 1) * min(max(progress, 0.0), 1.0)


def _explained_variance(batch: Batch) -> float:
    """How much of the returns' variance the values foresaw: 1 all, 0 nothing."""
    variance = float(np.var(batch.returns))
    return 1 - float(np.var(batch.returns - batch.values)) / variance if variance else 0.0
