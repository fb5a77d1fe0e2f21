"""Rewards that agents learn from beside their own: shared, of social value orientation, and fair.

What a run measures (returns, equality, ...) is always what the world gave.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from pydantic import Field

from keisei.settings import Section

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]


class SocialSettings(Section):
    """How much agents care for each other; by default, each learns from its own reward alone."""

    shared: float = Field(
        0.0, ge=0, le=1, description="Share of every reward that is split equally among all agents."
    )
    orientation: float = Field(
        0.0,
        ge=-180,
        le=180,
        description="Social value orientation in degrees: an agent learns from cos of its own "
        "reward + sin of the others' mean. 0: selfish, 45: prosocial, 90: altruistic.",
    )
    envy: float = Field(0.0, ge=0, description="Inequity aversion: what it costs to have less.")
    guilt: float = Field(0.0, ge=0, description="Inequity aversion: what it costs to have more.")
    fading: float = Field(
        0.975, ge=0, lt=1, description="How much of past rewards is compared a turn later."
    )


class SocialRewards:
    """Turns the rewards of a turn into those that agents learn from.

    Inequity aversion is that of Hughes et al. (2018): rewards fade by a factor in each turn, and an
    agent is punished for the mean difference between its fading sum and the others'.

    >>> social = SocialRewards(SocialSettings(guilt=0.5), num_agents=2, copies=1)
    >>> social.felt(np.array([[2.0], [0.0]], np.float32)).tolist()
    [[1.0], [0.0]]
    """

    def __init__(self, settings: SocialSettings, num_agents: int, copies: int) -> None:
        self._settings, self._others = settings, max(num_agents - 1, 1)
        self._recent: Floats = np.zeros((num_agents, copies), np.float32)

    def begin(self) -> None:
        """A new episode in every copy: nobody remembers who had what."""
        self._recent[:] = 0

    def felt(self, rewards: Floats) -> Floats:
        """What agents learn from [agents, copies]; the rewards themselves, if nobody cares."""
        settings = self._settings
        felt = rewards
        if settings.shared:
            felt = felt + np.float32(settings.shared) * (felt.mean(axis=0) - felt)
        if settings.orientation:
            angle = math.radians(settings.orientation)
            others = (felt.sum(axis=0) - felt) / np.float32(self._others)
            felt = np.float32(math.cos(angle)) * felt + np.float32(math.sin(angle)) * others
        if settings.envy or settings.guilt:
            felt = felt - self._inequity(rewards)
        return felt

    def end(self, over: Bools) -> None:
        """Forget where an episode is over [copies]."""
        self._recent[:, over] = 0

    def _inequity(self, rewards: Floats) -> Floats:
        settings = self._settings
        self._recent *= np.float32(settings.fading)
        self._recent += rewards
        costs = np.zeros_like(rewards)
        for one in self._recent:  # one agent beside all others
            costs += np.float32(settings.envy) * np.maximum(one - self._recent, 0)
            costs += np.float32(settings.guilt) * np.maximum(self._recent - one, 0)
        return costs / np.float32(self._others)
