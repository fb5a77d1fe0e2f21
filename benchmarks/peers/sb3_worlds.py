"""Treasure hunt with one agent, by the interface of Stable-Baselines3's vectorised environments."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from keisei.worlds.treasure_hunt import TreasureHunt


class HuntVecEnv(VecEnv):
    """Copies of the world; episodes are cut off by time, which SB3 is told."""

    def __init__(self, copies: int, seed: int, episode: int) -> None:
        self._world = TreasureHunt(copies, seed, num_agents=1, max_turns=episode)
        self._view = self._world.views[0]
        seen = spaces.Box(0, 1, (self._view.inputs,), np.float32)
        super().__init__(copies, seen, spaces.Discrete(len(self._world.actions)))
        self._returns = np.zeros(copies)
        self.episode_returns: list[float] = []  # the mean over the copies, of each episode

    def reset(self) -> np.ndarray:
        self._world.reset()
        self._returns[:] = 0
        return self._look()

    def _look(self) -> np.ndarray:
        self._world.begin_turn()
        return self._view.encode(self._world.pov(0))

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions.astype(np.int64)

    def step_wait(self):
        rewards, _, truncated = self._world.step(self._actions[None])
        self._returns += rewards[0]
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if not truncated.any():
            return self._look(), rewards[0], truncated[0], infos
        beyond = self._view.encode(self._world.after_cut()[0])
        for info, last in zip(infos, beyond, strict=True):
            info.update({"terminal_observation": last, "TimeLimit.truncated": True})
        self.episode_returns.append(float(self._returns.mean()))
        return self.reset(), rewards[0], truncated[0], infos

    def get_attr(self, attr_name: str, indices=None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices=None) -> None:
        raise AttributeError(attr_name)

    def env_method(self, method_name: str, *args: Any, indices=None, **settings: Any) -> list[Any]:
        raise AttributeError(method_name)

    def env_is_wrapped(self, wrapper_class, indices=None) -> list[bool]:
        return [False] * self.num_envs

    def close(self) -> None:
        """Nothing is open."""
