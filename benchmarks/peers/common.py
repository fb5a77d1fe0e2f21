"""The common task: its sizes, the environment as peers' users would write it, and the network.

A step is a ply. Both sides are played by the same policy, which sees the board from the side of who
is to move; the reward is the mover's. It imports without any of the peers.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from keisei.config_schema import PRESETS
from keisei.core.neural_network import ActorCriticResTower
from keisei.shogi import ShogiGame, VectorShogi
from keisei.shogi.actions import NUM_ACTIONS, SQUARES
from keisei.shogi.features import NUM_PLANES
from keisei.shogi.material import material

GAMES = 64  # of one worker; contenders without workers play all games in one process
WORKERS = 2
ALL_GAMES = WORKERS * GAMES
# Moves of each game between two updates: 4,096 steps. A race has 128, as Keisei by default: with 32
# nobody learns to finish a game.
ROLLOUT = int(os.environ.get("ROLLOUT", "32"))
# By the environment, because a peer's own processes build the network, too.
PRECISION = os.environ.get("PRECISION", "float32")
MINIBATCH = 128
EPOCHS = 1
# The same for all, and without effect on speed.
LEARNING_RATE, GAMMA, LAMBDA, CLIP, VALUE_LOSS, ENTROPY = 1e-3, 0.99, 0.98, 0.2, 0.5, 0.01
MAX_GRADIENT = 1.0
# In a race: the reward for each pawn's worth of material that a move gains. And the discount is
# negative, because the next move is the opponent's: so any GAE is right for two players.
MATERIAL = 0.01
TWO_PLAYERS = -GAMMA
SHOW_EVERY = 5.0  # seconds

PLANES = spaces.Box(0, 1, (NUM_PLANES, 9, 9), np.float32)
MASK = spaces.Box(0, 1, (NUM_ACTIONS,), np.int8)
SEEN = spaces.Dict({"observations": PLANES, "action_mask": MASK})
ACTIONS = spaces.Discrete(NUM_ACTIONS)


class ShogiEnv(gym.Env[dict[str, Any], int]):
    """One game: planes [46, 9, 9] and a mask [13527], as a dictionary."""

    observation_space = SEEN
    action_space = ACTIONS

    def __init__(self, material_reward: float = 0.0, **_: Any) -> None:
        self._game = ShogiGame()
        self._material_reward = material_reward

    def action_masks(self) -> np.ndarray:
        """The legal actions, under the name that Stable-Baselines3 looks for."""
        mask = np.zeros(NUM_ACTIONS, dtype=np.int8)
        mask[self._game.legal_actions()] = 1
        return mask

    def _seen(self) -> dict[str, Any]:
        return {"observations": self._game.planes(), "action_mask": self.action_masks()}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self._game.reset()
        return self._seen(), {}

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        mover = self._game.turn
        before = self._game.observation() if self._material_reward else None
        self._game.step(int(action))
        end = self._game.outcome
        reward = 0.0
        if end and end.winner:
            reward = 1.0 if end.winner == mover else -1.0
        elif not end and before is not None:
            reward = self._material_reward * float(
                gain(before[None], self._game.observation()[None])[0]
            )
        cut = end is not None and end.reason == "move limit"
        return self._seen(), reward, end is not None and not cut, cut, {}


def gain(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """What moves gained, in pawns; the board is turned after a move."""
    return -material(after) - material(before)


class ShogiGames:
    """Many games in one process, stepped together: what a vectorised environment is made of.

    `reset` and `step` give planes [G, 46, 9, 9] and masks [G, 13527] that are new each time, as the
    peers keep them. A finished game starts again at once.
    """

    def __init__(self, num_games: int, seed: int = 0, material_reward: float = 0.0) -> None:
        self._games = VectorShogi(num_games, seed)
        self._material_reward = material_reward

    def seen(self) -> tuple[np.ndarray, np.ndarray]:
        """Planes and masks of the positions now."""
        return self._games.planes(), self._games.legal_mask().view(np.int8)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rewards of the movers, and which games were decided or cut by the move limit."""
        before = self._games.observations.copy() if self._material_reward else None
        result = self._games.step(actions)
        rewards = result.rewards
        if before is not None:
            gained = np.where(result.dones, 0, gain(before, self._games.observations))
            rewards = rewards + np.float32(self._material_reward) * gained
        cut = np.zeros(len(result.dones), dtype=np.bool_)
        cut[[end.game for end in result.finished if end.outcome.reason == "move limit"]] = True
        return rewards, result.dones & ~cut, cut


class AllLogits(nn.Module):
    """Keisei's `tiny` network with the scores of all 13,527 actions: what the peers' APIs need.

    The layers and weights are Keisei's own. All scores are one matrix product; the moves from a
    square to itself, which are no actions, are left out by views, because picking the others
    by index is three times slower in the backward pass.

    None of the peers has a setting for bfloat16 on a CPU. So in `PRECISION=bfloat16` the network
    does it by itself: its layers run under autocast, and the peer gets and gives float32.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tower = ActorCriticResTower(*PRESETS["tiny"], planes="core46")

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [B, 13527] and values [B]."""
        with torch.autocast("cpu", torch.bfloat16, enabled=PRECISION == "bfloat16"):
            vectors, values = self.tower(planes)
            count, head = len(planes), self.tower.policy
            move, promote, target = vectors.reshape(count, SQUARES, 3, head.dim).unbind(2)
            starts = torch.cat([move, promote, head.pieces.expand(count, -1, -1)], 1)
            scores = starts @ (target / math.sqrt(head.dim)).transpose(1, 2)  # [B, 169, 81]
        board = scores[:, : 2 * SQUARES].reshape(count, 2, SQUARES * SQUARES)
        # Without its first entry, each diagonal entry of the square is the last of a row of 82.
        board = board[:, :, 1:].view(count, 2, SQUARES - 1, SQUARES + 1)[..., :-1]
        board = board.reshape(count, 2, -1).transpose(1, 2).reshape(count, -1)
        logits = torch.cat([board, scores[:, 2 * SQUARES :].flatten(1)], 1)
        return logits.float(), values.float()


def masked(logits: Tensor, mask: Tensor) -> Tensor:
    """The logits with those of illegal actions far below all others."""
    return logits.masked_fill(mask == 0, -1e8)


def steps_per_second(run: Callable[[], int], seconds: float) -> float:
    """The rate of whole calls of `run`, which returns steps, over at least so many seconds."""
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        steps += run()
    return steps / (time.perf_counter() - start)


def show(
    folder: Path, steps: int, weights: Mapping[str, Tensor], seconds: float | None = None
) -> bool:
    """Show weights to `race.py`, which takes their time if none is given, and wait: go on?"""
    file = folder / "weights.pt"
    torch.save(dict(weights), file)
    shown = {"weights": str(file), "steps": steps} | ({"seconds": seconds} if seconds else {})
    print(json.dumps(shown), flush=True)
    return input() == "on"


class Show:
    """Shows weights to `race.py` now and then, and waits for its answer."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._last = time.perf_counter()

    def __call__(self, steps: int, weights: Callable[[], Mapping[str, Tensor]]) -> bool:
        """Go on?"""
        if time.perf_counter() - self._last < SHOW_EVERY:
            return True
        goes_on = show(self._folder, steps, weights())
        self._last = time.perf_counter()
        return goes_on


def race(train: Callable[[], int], network: AllLogits, folder: str) -> None:
    """Train until `race.py` has seen enough."""
    show, steps = Show(folder), train()
    while show(steps, network.tower.state_dict):
        steps += train()
