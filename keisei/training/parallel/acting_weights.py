"""The weights that play: the learner's own, or older ones until the next synchronisation."""

from __future__ import annotations

import copy
from typing import Any

from keisei.core.learner import Learner
from keisei.core.neural_network import load_grown
from keisei.core.precision import in_precision

_MOST_COST = 0.02  # share of the time that handing over weights may take


class ActingWeights:
    """The newest version that workers were given.

    If they get every version, it is the learner's own network. Otherwise it is a copy, and part of
    a run's state, so that a resumed run plays with the same weights.
    """

    def __init__(self, agent: Learner, least: int, most: int) -> None:
        self._agent = agent
        self._least, self._most = least, most
        self.interval = least  # updates between two synchronisations
        precision = agent.config.training.precision
        self._are_own = most == 1
        shared = self._are_own and precision == "float32"
        self.network = (
            agent.network if shared else in_precision(copy.deepcopy(agent.network), precision)
        )
        self.version = agent.version

    @property
    def are_due(self) -> bool:
        """Is the learner so far ahead that workers should get its weights?"""
        return self._agent.version - self.version >= self.interval

    @property
    def adapts(self) -> bool:
        """May the interval change?"""
        return self._least != self._most

    def adapt(self, cost: float) -> None:
        """Be handed over less often if that takes too much of the time, else more often."""
        if cost > _MOST_COST:
            self.interval = min(2 * self.interval, self._most)
        elif cost < _MOST_COST / 4:  # half as often costs half as much: no going to and fro
            self.interval = max(self.interval // 2, self._least)

    def take(self) -> None:
        """Take the learner's current weights."""
        if self.network is not self._agent.network:
            self.network.load_state_dict(self._agent.network.state_dict())
        self.version = self._agent.version

    def state_dict(self) -> dict[str, Any]:
        """What is not in the learner's state."""
        if self._are_own:
            return {}
        return {"version": self.version, "network": self.network.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict()`; without one, from the learner's current weights."""
        if self._are_own or not state:
            self.take()
        else:
            load_grown(self.network, state["network"])
            self.version = int(state["version"])
