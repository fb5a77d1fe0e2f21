"""PPO with a central critic, as in MAPPO: the value is learned from what all agents see.

Yu et al. (2022), "The surprising effectiveness of PPO in cooperative multi-agent games". Each agent
has a critic of its own; only what the critic looks at is shared. Policies see their own part alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from keisei.worlds.config import PPOSettings
from keisei.worlds.memory import Arrays
from keisei.worlds.networks import Network
from keisei.worlds.ppo import PPO
from keisei.worlds.stack import Inputs, State
from keisei.worlds.view import View

CRITIC = "critic."  # before the names of its weights


States = Sequence[npt.NDArray[Any]] | npt.NDArray[Any]  # by agent


def together(states: States, agent: int) -> npt.NDArray[Any]:
    """What an agent sees, and then what the others see [copies, agents, ...].

    >>> together([np.array([[1]]), np.array([[2]]), np.array([[3]])], agent=1).tolist()
    [[[2], [1], [3]]]
    """
    others = [state for number, state in enumerate(states) if number != agent]
    return np.stack([states[agent], *others], axis=1)


class CentralPPO(PPO):
    """Its view is that of all agents; the network of the policy is made for its own part of it."""

    def __init__(self, view: View, num_actions: int, settings: PPOSettings) -> None:
        assert view.own is not None, "a central critic needs a view of all agents"
        super().__init__(view.own, num_actions, settings)
        self.view, self._own_inputs = view, view.own.inputs
        self._critic = Network(view, 1, settings)
        self.layout |= {f"{CRITIC}{name}": size for name, size in self._critic.layout.items()}

    @property
    def outputs(self) -> int:
        return self.num_actions  # of the policy's network: the value comes from the critic

    def inputs_of(self, observations: npt.NDArray[Any]) -> torch.Tensor:
        return self.tensor(self.view.encode(observations))  # of which the policy gets a part

    def answer(
        self, state: State, inputs: Inputs, carried: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        assert isinstance(inputs, torch.Tensor)
        scores, carried = super().answer(state, inputs[..., : self._own_inputs], carried)
        return torch.cat([scores, self._values(state, inputs)], dim=-1), carried

    def _outputs(self, weights: State, inputs: torch.Tensor, batch: Arrays) -> torch.Tensor:
        own = super()._outputs(weights, inputs[..., : self._own_inputs], batch)
        return torch.cat([own, self._values(weights, inputs.flatten(1, -2))], dim=-1)

    def _values(self, weights: State, inputs: torch.Tensor) -> torch.Tensor:
        features, _ = self._critic.features(weights, inputs, inputs, CRITIC)
        return self._critic.last(weights, features, CRITIC)
