"""Double DQN: the network chooses the next action, a slower copy of it says what that is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import smooth_l1_loss

from keisei.random_streams import RandomStreams
from keisei.worlds.algorithm import Algorithm, Ints
from keisei.worlds.config import DoubleDQNSettings
from keisei.worlds.memory import Arrays, Buffer
from keisei.worlds.stack import State, mlp


class DoubleDQN(Algorithm):
    """Learns the value of each action from remembered steps, drawn at random."""

    settings: DoubleDQNSettings

    def new_state(self, generator: torch.Generator) -> State:
        state = super().new_state(generator)
        return state | {f"target.{name}": state[name].clone() for name in self.weights}

    def memory_turns(self, copies: int, turns_per_training: int) -> int:
        return max(self.settings.memory // copies, 2)

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
        chance = (drawn / max(epsilon, 1e-9) * self.num_actions).astype(np.int64)
        return np.where(drawn < epsilon, chance, scores.argmax(axis=1)), {}

    def draw(self, memory: Buffer, steps: int, turns: int, rng: np.random.Generator) -> Arrays:
        size = self.settings.batch_size
        flat = memory.sample(steps * size, rng)
        return {name: array.reshape(steps, size, *array.shape[1:]) for name, array in flat.items()}

    def loss(self, leaves: State, state: State, batch: Arrays) -> torch.Tensor:
        after = torch.from_numpy(self.view.encode(batch["next_state"]))
        with torch.no_grad():
            best = mlp(state, after).argmax(dim=-1, keepdim=True)
            future = mlp(state, after, "target.").gather(-1, best).squeeze(-1)
            goes_on = torch.from_numpy(~batch["done"])
            goal = torch.from_numpy(batch["reward"]) + self.settings.gamma * goes_on * future
        values = mlp(leaves, torch.from_numpy(self.view.encode(batch["state"])))
        taken = values.gather(-1, torch.from_numpy(batch["action"])[..., None]).squeeze(-1)
        return smooth_l1_loss(taken, goal, reduction="none").mean(dim=1)

    def measure(self, state: State, batch: Arrays) -> dict[str, torch.Tensor]:
        values = mlp(state, torch.from_numpy(self.view.encode(batch["state"])))
        return {"q": values.max(dim=-1).values.mean(dim=1)}

    def epoch_measures(self, epoch: int) -> dict[str, float]:
        return {"epsilon": self.epsilon(epoch)}

    def after_step(self, state: State) -> None:
        due = state["steps"] % self.settings.target_interval == 0
        step = self.settings.target_step * due.view(-1, 1, 1)
        for name in self.weights:
            state[f"target.{name}"].lerp_(state[name], step)
