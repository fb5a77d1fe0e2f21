"""What the episodes of an epoch came to: returns, and the measures of social dilemmas.

The four measures are those of Perolat et al. (2017), "A multi-agent reinforcement learning model of
common-pool resource appropriation". Of an episode of T turns with N agents whose returns are R:

- efficiency: what all agents get in a turn, the sum of R over T;
- equality: 1 - Gini coefficient of R; only of episodes in which all agents together gained;
- sustainability: the mean turn in which rewards above 0 come, over the agents that had any: late
  ones mean that something was left;
- peace: how many agents were not timed out, on average over the turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Episodes:
    """Counts the turns of an epoch, in all copies; an episode may be over before the epoch is.

    >>> episodes = Episodes(num_agents=2, copies=1)
    >>> for reward in (0.0, 2.0):
    ...     episodes.add(np.array([[reward], [0.0]]), np.array([reward > 0]))
    >>> episodes.returns().tolist(), episodes.measures()["equality"]
    ([2.0, 0.0], 0.5)
    """

    def __init__(self, num_agents: int, copies: int) -> None:
        self._agents = num_agents
        self._total: Doubles = np.zeros((num_agents, copies))
        self._gains: Doubles = np.zeros((num_agents, copies))  # turns with a reward above 0
        self._gain_turns: Doubles = np.zeros((num_agents, copies))  # the sum of their numbers
        self._away: Doubles = np.zeros(copies)  # turns of agents that were timed out
        self._length: Doubles = np.zeros(copies)
        self.begin()

    def begin(self) -> None:
        """An epoch begins, with a new episode in every copy."""
        self._turns = 0
        self._finished: list[tuple[Doubles, Doubles, Doubles, Doubles]] = []
        self._forget(np.ones(len(self._length), np.bool_))

    def add(self, rewards: npt.NDArray[Any], over: Bools, away: Bools | None = None) -> None:
        """A turn: rewards [agents, copies], where the episode is over [copies], who was away."""
        self._turns += 1
        self._length += 1
        self._total += rewards
        gains = rewards > 0
        self._gains += gains
        self._gain_turns += gains * self._length
        if away is not None:
            self._away += away.sum(axis=0)
        if over.any():
            self._finish(over)

    def returns(self) -> Doubles:
        """What each agent got in an episode, on average over those that were whole [agents].

        One that began within the epoch and was cut off by its end does not count.
        """
        mean: Doubles = self.each().mean(axis=1)
        return mean

    def each(self) -> Doubles:
        """What each agent got in each episode that was whole [agents, episodes]."""
        self._finish(self._length == self._turns)
        returns: Doubles = np.concatenate([total for total, *_ in self._finished], axis=1)
        return returns

    def measures(self) -> dict[str, float]:
        """The four measures, on average over the episodes for which they are defined."""
        self._finish(self._length == self._turns)
        joined = [np.concatenate(parts, axis=-1) for parts in zip(*self._finished, strict=True)]
        total, gain_turn, away, length = joined
        each = {
            "efficiency": total.sum(axis=0) / length,
            "equality": equality(total),
            "sustainability": gain_turn[~np.isnan(gain_turn)],
            "peace": self._agents - away / length,
        }
        known = {name: values[~np.isnan(values)] for name, values in each.items()}
        return {name: float(values.mean()) for name, values in known.items() if len(values)}

    def _finish(self, over: Bools) -> None:
        gains = self._gains[:, over]
        gain_turn = np.where(gains > 0, self._gain_turns[:, over] / np.maximum(gains, 1), np.nan)
        episode = (self._total[:, over], gain_turn, self._away[over], self._length[over])
        self._finished.append(episode)
        self._forget(over)

    def _forget(self, over: Bools) -> None:
        for array in (self._total, self._gains, self._gain_turns, self._away, self._length):
            array[..., over] = 0


def equality(returns: Doubles) -> Doubles:
    """1 - the Gini coefficient of returns [agents, episodes]; nan where their sum is not above 0.

    >>> equality(np.array([[1.0, 4.0], [1.0, 0.0]])).tolist()
    [1.0, 0.5]
    """
    agents, total = len(returns), returns.sum(axis=0)
    weights = 2 * np.arange(1, agents + 1) - agents - 1  # of the least, the next, ... the most
    differences = weights @ np.sort(returns, axis=0)  # half the sum of those of all pairs
    gini = differences / (agents * np.where(total > 0, total, np.nan))
    fair: Doubles = 1 - gini
    return fair


def by_agent(metrics: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A world's own `metrics()`: means for all, and for each agent where they are [agents, copies].

    >>> by_agent({"dirt": [0.25, 0.75], "cleaned": [[2, 4], [0, 0]]})
    ({'dirt': 0.5}, {'cleaned': [3.0, 0.0]})
    """
    arrays = {name: np.asarray(value, np.float64) for name, value in metrics.items()}
    each = {n: a.mean(axis=1).tolist() for n, a in arrays.items() if a.ndim == 2}
    return {n: float(a.mean()) for n, a in arrays.items() if a.ndim < 2}, each
