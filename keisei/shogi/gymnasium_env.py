"""Shogi as a Gymnasium environment: one player against an opponent that is part of it.

Importing this module registers it: `gymnasium.make("keisei/Shogi-v0")`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from keisei.shogi.actions import NUM_ACTIONS, SIDES, Side
from keisei.shogi.features import NUM_PLANES, Planes
from keisei.shogi.rules import DEFAULT_MOVE_LIMIT
from keisei.shogi.shogi_game import ShogiGame

Opponent = Callable[[ShogiGame], str]
"""What chooses a legal move, in USI notation."""


class ShogiEnv(gymnasium.Env[Planes, np.int64]):
    """You play one side; `opponent` plays the other, at random if there is none.

    Observations are the planes [46, 9, 9] and actions the numbers of `ShogiGame`, all from your
    side; `info["action_mask"]` says which are legal. The reward is 1 for a win, -1 for a loss, else
    0; an illegal action loses. Without a `side`, each game draws one.

    >>> env = gymnasium.make("keisei/Shogi-v0", side="white")
    >>> planes, info = env.reset(seed=1)
    >>> planes.shape, info["action_mask"].sum().item()
    ((46, 9, 9), 30)
    >>> action = env.action_space.sample(info["action_mask"])
    >>> planes, reward, over, cut, info = env.step(action)
    """

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012  # Gymnasium reads it from the class

    def __init__(
        self,
        opponent: Opponent | None = None,
        side: Side | None = None,
        sfen: str | None = None,
        handicap: str | None = None,
        move_limit: int = DEFAULT_MOVE_LIMIT,
        render_mode: str | None = None,
    ) -> None:
        if side is not None and side not in SIDES:
            raise ValueError(f"side is {side!r}; it must be black, white or None")
        self.observation_space = spaces.Box(0, 1, (NUM_PLANES, 9, 9), np.float32)
        self.action_space = spaces.Discrete(NUM_ACTIONS)
        self.render_mode = render_mode
        self._game = ShogiGame(sfen, handicap=handicap, move_limit=move_limit)
        self._opponent = opponent or self._random_move
        self._wanted = side
        self._side: Side = side or "black"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Planes, dict[str, Any]]:
        """Start a game; the opponent has made its first move if it is Black."""
        super().reset(seed=seed)
        self._game.reset(self._game.start_sfen)
        self._side = self._wanted or SIDES[self.np_random.integers(2)]
        if self._game.turn != self._side:
            self._reply()
        return self._game.planes(), self._info()

    def step(self, action: np.int64) -> tuple[Planes, float, bool, bool, dict[str, Any]]:
        """Play an action, and let the opponent reply."""
        if not self.action_masks()[action]:
            info = {**self._info(), "outcome": "illegal action"}
            return self._game.planes(), -1.0, True, False, info
        self._game.step(int(action))
        if not self._game.outcome:
            self._reply()
        outcome, reward = self._game.outcome, 0.0
        if outcome and outcome.winner:
            reward = 1.0 if outcome.winner == self._side else -1.0
        cut = outcome is not None and outcome.reason == "move limit"
        return self._game.planes(), reward, outcome is not None and not cut, cut, self._info()

    def action_masks(self) -> npt.NDArray[np.int8]:
        """1 for each legal action; none is when the game is over."""
        mask = np.zeros(NUM_ACTIONS, dtype=np.int8)
        mask[self._game.legal_actions()] = 1
        return mask

    def render(self) -> str | None:
        """The board as text, if made with `render_mode="ansi"`."""
        return str(self._game) if self.render_mode == "ansi" else None

    def _reply(self) -> None:
        if not self._game.outcome:  # it may be over from the start, by a position that is given
            self._game.push_usi(self._opponent(self._game.copy()))

    def _random_move(self, game: ShogiGame) -> str:
        moves = game.legal_usi()
        return moves[self.np_random.integers(len(moves))]

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"action_mask": self.action_masks(), "side": self._side}
        if self._game.outcome:
            info["outcome"] = str(self._game.outcome)
        return info


gymnasium.register("keisei/Shogi-v0", entry_point=f"{__name__}:ShogiEnv")
