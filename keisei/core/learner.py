"""What every learner is: a network that plays, and a way to improve it from rollouts.

A new learner is a subclass in its own module, and a line in `training_config.LEARNERS`: managers,
trainer, checkpoints and settings know only this interface.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from keisei.config_schema import AppConfig
from keisei.core.experience_buffer import Batch
from keisei.core.neural_network import build_network, depth_of, load_grown
from keisei.core.policy import Evaluation, evaluate, sample
from keisei.core.precision import autocast
from keisei.core.rollout import Rollout
from keisei.core.runtime import side_by_side
from keisei.errors import KeiseiError
from keisei.processes.machine import choose_device
from keisei.shogi import Positions, features
from keisei.training_config import LEARNERS

Metrics = dict[str, float]
Figures = dict[str, Tensor]  # of a gradient step; their means become metrics

Loss = Callable[[Batch, int, Tensor, Tensor], tuple[Tensor, Figures]]
"""What part of a minibatch of so many moves adds to its loss, and to its figures.

The tensors are what the network says of the part: its policy head's output, and values.
"""

# Two threads in NumPy hand the interpreter to and fro, and take longer than one after the other.
_making_planes = Lock()


def left(progress: float, end: float) -> float:
    """What is left of a quantity that falls in a line from 1 to `end`."""
    return 1 + (end - 1) * min(max(progress, 0.0), 1.0)


def mean_metrics(history: Sequence[Mapping[str, Tensor]]) -> Metrics:
    """The mean of each figure over the gradient steps of an update.

    Figures stay where they were computed until here: to read one on a GPU is to wait for it.
    """
    columns = {name: torch.stack([one[name] for one in history]) for name in history[0]}
    return {name: float(np.mean(column.tolist())) for name, column in columns.items()}


def of_all(parts: Sequence[Figures]) -> Figures:
    """The figures of a minibatch: what its parts add up to, or the largest where it is called so.

    >>> of_all([{"largest": torch.tensor(1), "kl": torch.tensor(1)}] * 2)
    {'largest': tensor(1), 'kl': tensor(2)}
    """
    columns = {name: torch.stack([part[name] for part in parts]) for name in parts[0]}
    return {
        name: column.amax(0) if name.startswith("largest") else column.sum(0)
        for name, column in columns.items()
    }


def make_learner(config: AppConfig) -> Learner:
    """The learner that the settings name."""
    module, _, name = LEARNERS[config.training.algorithm].partition(":")
    learner: Learner = getattr(import_module(module), name)(config)
    return learner


class DivergedError(KeiseiError):
    """The weights or gradients became NaN or infinite."""


class Learner(ABC):
    """A network that plays, and learns from what was played."""

    def __init__(self, config: AppConfig, device: torch.device | str | None = None) -> None:
        self.config = config
        self.device = torch.device(device) if device else choose_device(config.env.device)
        # The weights follow from the seed; the process's own random state is left alone.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.env.seed)
            self.network = build_network(config.model)
        self.network.to(self.device)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=config.training.learning_rate, eps=1e-5, fused=True
        )
        self.average = copy.deepcopy(self.network) if config.training.average else None
        self.rng = np.random.default_rng(config.env.seed)
        self.version = 0  # grows by one with every update

    # -- learning ----------------------------------------------------------------------------

    @abstractmethod
    def update(self, rollouts: Sequence[Rollout], progress: float = 0.0) -> Metrics:
        """Improve the network with these rollouts, and increase the version by one.

        `progress` (0 to 1) of the run drives schedules. The rollouts may be views of memory that
        is used again afterwards: copy what is needed later.
        """

    def set_learning_rate(self, progress: float) -> None:
        """The learning rate that the settings want after this share of the run."""
        settings = self.config.training
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * left(progress, settings.learning_rate_end)

    def log_probs(self, policy: Tensor, positions: Positions) -> Tensor:
        """Log-probabilities of the positions' legal actions, from the policy head's output."""
        rows = torch.from_numpy(positions.rows()).to(self.device)
        legal = torch.from_numpy(positions.legal.astype(np.int64)).to(self.device)
        scores = self.network.scores(policy, rows, legal).float()
        count = len(positions)
        top = scores.new_full((count,), -torch.inf).scatter_reduce(0, rows, scores.detach(), "amax")
        log_probs = scores - top[rows]
        total = scores.new_zeros(count).index_add(0, rows, log_probs.exp())
        return log_probs - total.log()[rows]

    def descend(self, batch: Batch, loss: Loss) -> Figures:
        """One step of the optimiser by the loss of a minibatch; returns its figures.

        With more than one thread on a CPU, two halves of the minibatch are computed side by side.
        """
        count = len(batch.actions)
        weights = list(self.network.parameters())

        def differentiate(part: Batch) -> tuple[tuple[Tensor, ...], Figures]:
            with self.precision():
                with _making_planes:
                    planes = self.network.planes(part.positions.observations)
                value, figures = loss(part, count, *self.network(planes))
            return torch.autograd.grad(value, weights, materialize_grads=True), figures

        if self.device.type != "cpu" or torch.get_num_threads() == 1 or count == 1:
            return self._follow([differentiate(batch)])
        with side_by_side() as compute:
            halves = [batch.take(rows) for rows in np.array_split(np.arange(count), 2)]
            return self._follow(compute(differentiate, halves))

    def _follow(self, parts: Sequence[tuple[tuple[Tensor, ...], Figures]]) -> Figures:
        """Go against the sum of the parts' gradients; returns all their figures, and its length."""
        slopes, figures = zip(*parts, strict=True)
        for weight, first, *second in zip(self.network.parameters(), *slopes, strict=True):
            if weight.grad is None:
                weight.grad = torch.empty_like(weight)  # in memory like it: fused Adam needs that
            torch.add(first, *second or [0], out=weight.grad)
        limit = self.config.training.max_grad_norm
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), limit)
        if not torch.isfinite(norm):
            raise DivergedError(
                f"the gradient is {float(norm)} in update {self.version}: the network diverged; "
                "lower training.learning_rate, and resume from the last checkpoint"
            )
        self.optimizer.step()
        return {**of_all(figures), "gradient_norm": norm}

    def finish_update(self) -> None:
        """Count the version up, and take the new weights into the average."""
        self.version += 1
        if self.average is not None:
            # At first the newest weights, and an average over more and more of them: early versions
            # are so much weaker that a long average would be far behind.
            share = max(1 - self.config.training.average, 9 / (self.version + 10))
            with torch.no_grad():
                for mean, new in zip(
                    self.average.parameters(), self.network.parameters(), strict=True
                ):
                    mean.lerp_(new, share)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the learner needs to continue exactly."""
        state = {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "rng": self.rng.bit_generator.state,
            "version": self.version,
        }
        if self.average is not None:
            state["average"] = self.average.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict()`; a network of another shape is an error that names it."""
        self.load_weights(state["network"], state.get("average"))
        if depth_of(state["network"]) == len(self.network.tower):  # else it has grown just now
            self.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))  # it keeps them
        self.rng.bit_generator.state = state["rng"]
        self.version = int(state["version"])

    def load_weights(
        self, weights: Mapping[str, Tensor], average: Mapping[str, Tensor] | None = None
    ) -> None:
        """Go on with these weights, and their average; without one, it begins with them."""
        load_grown(self.network, weights)
        if self.average is not None:
            load_grown(self.average, average or weights)

    # -- playing -----------------------------------------------------------------------------

    def evaluate(self, positions: Positions) -> Evaluation:
        """Log-probabilities of the legal actions, and values: a `Policy` for shards."""
        with self.precision():
            return evaluate(self.network, positions)

    def evaluate_average(self, positions: Positions) -> Evaluation:
        """The same by the averaged weights, where they are kept: what plays matches."""
        with self.precision():
            return evaluate(self.average or self.network, positions)

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
        return autocast(self.device, self.config.training.precision)
