"""What every learner is: a network that plays, and a way to improve it from rollouts.

A new learner is a subclass in a module of its own and a line in `config_schema.LEARNERS`: managers,
trainer, checkpoints and settings know no more of it than this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from keisei.config_schema import LEARNERS, AppConfig, ModelConfig
from keisei.core.neural_network import PRESETS, ActorCriticResTower
from keisei.core.policy import Evaluation, evaluate, sample
from keisei.core.rollout import Rollout
from keisei.errors import KeiseiError
from keisei.shogi import Positions, features

Metrics = dict[str, float]


def make_learner(config: AppConfig) -> Learner:
    """The learner that the settings name."""
    module, _, name = LEARNERS[config.training.algorithm].partition(":")
    learner: Learner = getattr(import_module(module), name)(config)
    return learner


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
    """The weights or gradients became NaN or infinite."""


class Learner(ABC):
    """A network that plays, and learns from what was played."""

    def __init__(self, config: AppConfig, device: torch.device | str | None = None) -> None:
        self.config = config
        self.device = torch.device(device) if device else choose_device(config.env.device)
        # The weights follow from the seed, and nothing else in the process is disturbed.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.env.seed)
            self.network = build_network(config.model)
        self.network.to(self.device)
        self.rng = np.random.default_rng(config.env.seed)
        self.version = 0  # grows by one with every update

    # -- learning ----------------------------------------------------------------------------

    @abstractmethod
    def update(self, rollouts: Sequence[Rollout], progress: float = 0.0) -> Metrics:
        """Improve the network by these rollouts, and count the version up.

        `progress` (0 to 1) of the run drives schedules. The rollouts may look at memory that is
        used again afterwards: keep copies of what is needed later.
        """

    def state_dict(self) -> dict[str, Any]:
        """Everything that the learner's future depends on."""
        return {
            "network": self.network.state_dict(),
            "rng": self.rng.bit_generator.state,
            "version": self.version,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict()`; a network of another shape is refused by name."""
        self.network.load_state_dict(state["network"])
        self.rng.bit_generator.state = state["rng"]
        self.version = int(state["version"])

    # -- playing -----------------------------------------------------------------------------

    def evaluate(self, positions: Positions) -> Evaluation:
        """Log-probabilities of the legal actions, and values: a `Policy` for shards."""
        with self.precision():
            return evaluate(self.network, positions)

    def select_actions(
        self, positions: Positions, uniforms: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Actions drawn from the policy with these random numbers, their log-probs, and values."""
        seen = self.evaluate(positions)
        picks = sample(seen.log_probs, positions.offsets, uniforms)
        return positions.legal[picks], seen.log_probs[picks], seen.values

    def select_action(
        self, observation: features.Observations, legal: npt.NDArray[np.integer]
    ) -> tuple[int, float, float]:
        """An action for one position, its log-probability, and the position's value."""
        positions = Positions.of([observation], [legal])
        actions, log_probs, values = self.select_actions(positions, self.rng.random(1))
        return int(actions[0]), float(log_probs[0]), float(values[0])

    def precision(self) -> Any:
        """The arithmetic that the settings want, for the time of a `with` block."""
        if self.config.training.mixed_precision and self.device.type == "cuda":
            return torch.autocast("cuda", dtype=torch.bfloat16)
        return nullcontext()
