"""Double DQN: the network chooses the next action, a slower copy of it says what that is worth."""

from __future__ import annotations

import logging
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import smooth_l1_loss

from keisei.random_streams import RandomStreams
from keisei.worlds.algorithm import IMPOSSIBLE, Algorithm, Ints, pick
from keisei.worlds.config import DoubleDQNSettings
from keisei.worlds.memory import Arrays, Buffer
from keisei.worlds.novelty import Novelty
from keisei.worlds.stack import State

log = logging.getLogger(__name__)


class Steps(NamedTuple):
    """Steps to learn from: features [agents, steps, width], all else [agents, steps]."""

    now: torch.Tensor
    after: torch.Tensor  # by the same network
    slow: torch.Tensor  # by its slower copy
    seen_after: torch.Tensor  # the inputs that these are of
    action: torch.Tensor
    counts: torch.Tensor  # a turn that only looks is not a step
    reward: torch.Tensor
    goes_on: torch.Tensor

    def mean(self, losses: torch.Tensor) -> torch.Tensor:
        """The mean over each agent's steps [agents]."""
        return (losses * self.counts).sum(dim=1) / self.counts.sum(dim=1).clamp(min=1)


class DoubleDQN(Algorithm):
    """Learns the value of each action from remembered steps, drawn at random."""

    settings: DoubleDQNSettings

    def new_state(self, generator: torch.Generator) -> State:
        state = super().new_state(generator)
        return state | {f"target.{name}": state[name].clone() for name in self.weights}

    @property
    def least_turns(self) -> int:
        return self.settings.sequence + 1 if self.network.carried else 2

    def memory_turns(self, copies: int, turns_per_training: int) -> int:
        extras = sum(4 * prod(shape) for shape in self.extras.values())
        size = prod(self.view.shape) * self.view.dtype.itemsize + 14 + extras  # bytes
        room = self.settings.memory_mb * 1_000_000 // size
        if room < self.settings.memory:
            log.warning(
                f"an experience takes {size:,} bytes: memory_mb={self.settings.memory_mb} leaves "
                f"room for {room:,} of them, not {self.settings.memory:,}"
            )
        return max(min(self.settings.memory, room) // copies, self.least_turns)

    def epsilon(self, epoch: int) -> float:
        """The share of random actions in an epoch.

        >>> from keisei.worlds.view import View
        >>> dqn = DoubleDQN(View((1,), np.dtype(np.float32)), 2, DoubleDQNSettings())
        >>> dqn.epsilon(0), dqn.epsilon(25), dqn.epsilon(1000)
        (1.0, 0.525, 0.05)
        """
        start, end = self.settings.epsilon_start, self.settings.epsilon_end
        share = min(epoch / self.settings.epsilon_epochs, 1.0)
        return start * (1 - share) + end * share

    def choose(
        self, scores: npt.NDArray[np.float32], streams: RandomStreams, epoch: int
    ) -> tuple[Ints, dict[str, Any]]:
        epsilon = self.epsilon(epoch)
        drawn = streams.uniform()
        # Below epsilon the number is as uniform as before: it chooses the random action too.
        share = drawn / max(epsilon, 1e-9)
        if self.view.mask:
            chance = pick(scores != IMPOSSIBLE, share)
        else:
            chance = (share * self.num_actions).astype(np.int64)
        return np.where(drawn < epsilon, chance, scores.argmax(axis=1)), {}

    def draw(
        self,
        memory: Buffer,
        steps: int,
        turns: int,
        rng: np.random.Generator,
        novelty: Novelty | None = None,
    ) -> Arrays:
        size = self.settings.batch_size
        if self.network.carried:
            size = max(size // self.settings.sequence, 1)
            flat = memory.sample_sequences(steps * size, self.settings.sequence, rng)
            flat["carried"] = flat["carried"][:, 0]
            after, reward, done = flat["state"][:, 1:], flat["reward"][:, :-1], flat["done"][:, :-1]
        else:
            flat = memory.sample(steps * size, rng)
            after, reward, done = flat["next_state"], flat["reward"], flat["done"]
        if novelty:
            reward += novelty.bonus(after) * ~done
        return {name: array.reshape(steps, size, *array.shape[1:]) for name, array in flat.items()}

    def _steps(self, leaves: State, state: State, batch: Arrays) -> Steps:
        """The steps of a batch, with the features of what was seen before and after each."""
        seen = self.tensor(self.view.encode(batch["state"]))
        now = self.features(leaves, seen, batch)
        if self.network.carried:  # what is seen after a turn of a sequence is its next turn
            with torch.no_grad():
                slow = self.features(state, seen, batch, "target.")
            now, after, slow = now[:, :, :-1], now[:, :, 1:].detach(), slow[:, :, 1:]
            seen = seen[:, :, 1:]
            batch = {name: batch[name][:, :, :-1] for name in ("action", "reward", "done")}
        else:
            seen = self.tensor(self.view.encode(batch["next_state"]))
            with torch.no_grad():
                after = self.features(state, seen, batch)
                slow = self.features(state, seen, batch, "target.")
        action, reward, done = (
            self.tensor(batch[name]).flatten(1) for name in ("action", "reward", "done")
        )
        now, after, slow, seen = (part.flatten(1, -2) for part in (now, after, slow, seen))
        return Steps(now, after, slow, seen, action.clamp(min=0), action >= 0, reward, ~done)

    def loss(self, leaves: State, state: State, batch: Arrays) -> torch.Tensor:
        steps, last = self._steps(leaves, state, batch), self.network.last
        with torch.no_grad():
            values = self.only_possible(last(state, steps.after), steps.seen_after)
            best = values.argmax(dim=-1, keepdim=True)
            future = last(state, steps.slow, "target.").gather(-1, best).squeeze(-1)
            goal = steps.reward + self.settings.gamma * steps.goes_on * future
        taken = last(leaves, steps.now).gather(-1, steps.action[..., None]).squeeze(-1)
        return steps.mean(smooth_l1_loss(taken, goal, reduction="none"))

    def measure(self, state: State, batch: Arrays) -> dict[str, torch.Tensor]:
        inputs = self.tensor(self.view.encode(batch["state"]))
        values = self.say(state, self.features(state, inputs, batch).flatten(1, -2))
        return {"q": values.max(dim=-1).values.mean(dim=1)}

    def epoch_measures(self, epoch: int) -> dict[str, float]:
        return {"epsilon": self.epsilon(epoch)}

    def after_step(self, state: State) -> None:
        due = state["steps"] % self.settings.target_interval == 0
        step = self.settings.target_step * due.view(-1, 1, 1)
        for name in self.weights:
            state[f"target.{name}"].lerp_(state[name], step)
