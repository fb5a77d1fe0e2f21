"""Shogi as a PettingZoo AEC environment, for learners that speak that interface."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

from keisei.shogi.actions import NUM_ACTIONS
from keisei.shogi.features import NUM_PLANES
from keisei.shogi.rules import DEFAULT_MOVE_LIMIT
from keisei.shogi.shogi_game import ShogiGame

AGENTS = ["black", "white"]


def env(**settings: Any) -> AECEnv:
    """The environment with PettingZoo's usual guards against wrong use.

    >>> shogi = env()
    >>> shogi.reset(seed=1)
    >>> shogi.agent_selection
    'black'
    >>> shogi.observe("black")["action_mask"].sum().item()
    30
    """
    guarded = wrappers.TerminateIllegalWrapper(ShogiEnv(**settings), illegal_reward=-1)
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(guarded))


class ShogiEnv(AECEnv):  # type: ignore[misc]  # PettingZoo has no types
    """Two agents, "black" and "white"; actions and planes are those of `ShogiGame`.

    An observation is `{"observation": planes [46, 9, 9], "action_mask": [13527]}`. The planes show
    the position as the player to move sees it; the other player's mask is all zero. When the game
    ends, the winner gets +1 and the loser -1.
    """

    metadata = {  # noqa: RUF012  # PettingZoo reads it from the class
        "name": "keisei_shogi_v0",
        "render_modes": ["ansi"],
        "is_parallelizable": False,
    }

    def __init__(
        self,
        sfen: str | None = None,
        handicap: str | None = None,
        move_limit: int = DEFAULT_MOVE_LIMIT,
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        self._game = ShogiGame(sfen, handicap=handicap, move_limit=move_limit)
        self.render_mode = render_mode
        self.possible_agents = list(AGENTS)
        seen = spaces.Dict(
            {
                "observation": spaces.Box(0, 1, (NUM_PLANES, 9, 9), np.float32),
                "action_mask": spaces.Box(0, 1, (NUM_ACTIONS,), np.int8),
            }
        )
        self.observation_spaces = dict.fromkeys(AGENTS, seen)
        self.action_spaces = {agent: spaces.Discrete(NUM_ACTIONS) for agent in AGENTS}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start again; nothing here is random, so the seed changes nothing."""
        self._game.reset(self._game.start_sfen)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agent_selection: str = self._game.turn

    def observe(self, agent: str) -> dict[str, Any]:
        """What `agent` sees now."""
        mask = np.zeros(NUM_ACTIONS, dtype=np.int8)
        if agent == self._game.turn:
            mask[self._game.legal_actions()] = 1
        return {"observation": self._game.planes(), "action_mask": mask}

    def step(self, action: int | None) -> None:
        """Play for the selected agent (`None` once its game is over)."""
        if self.terminations[self.agent_selection] or self.truncations[self.agent_selection]:
            self._was_dead_step(action)
            return
        if action is None:
            raise ValueError("the game is not over: an action is needed, not None")
        self._cumulative_rewards[self.agent_selection] = 0
        self._game.step(action)
        self._clear_rewards()
        outcome = self._game.outcome
        if outcome:
            for agent in self.agents:
                if outcome.winner:
                    self.rewards[agent] = 1.0 if agent == outcome.winner else -1.0
                self.terminations[agent] = outcome.reason != "move limit"
                self.truncations[agent] = outcome.reason == "move limit"
                self.infos[agent] = {"outcome": str(outcome)}
        self.agent_selection = self._game.turn
        self._accumulate_rewards()

    def render(self) -> str | None:
        """The board as text, if made with `render_mode="ansi"`."""
        return str(self._game) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Nothing is open."""
