"""Every world as a PettingZoo `ParallelEnv`, for learners that speak that interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pettingzoo import ParallelEnv

from keisei.worlds.drawing import picture
from keisei.worlds.registry import find_world
from keisei.worlds.world import Codes, World


def parallel_env(name: str, render_mode: str | None = None, **settings: Any) -> WorldEnv:
    """One copy of a world, by name; `render_mode` is ansi or rgb_array, for `render()`.

    >>> env = parallel_env("treasure_hunt", num_agents=3)
    >>> observations, infos = env.reset(seed=1)
    >>> observations["agent_2"].shape  # planes of the 9 x 9 cells it sees
    (6, 9, 9)
    """
    return WorldEnv(name, settings, render_mode)


class WorldEnv(ParallelEnv):  # type: ignore[misc]  # PettingZoo has no types
    """Agents `agent_0`, `agent_1`, ...: all observe, then all act, in this order."""

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"]}  # noqa: RUF012  # PettingZoo's

    def __init__(
        self, name: str, settings: dict[str, Any] | None = None, render_mode: str | None = None
    ) -> None:
        self.metadata = {**self.metadata, "name": f"keisei_{name}_v0"}
        self._class, self._settings = find_world(name), dict(settings or {})
        self.render_mode = render_mode
        self._world = self._class(1, 0, **self._settings)
        self._seeded = False
        self.possible_agents = [f"agent_{i}" for i in range(self._world.num_agents)]
        self.agents: list[str] = []
        size = 2 * self._world.settings.vision + 1
        shape = (len(self._world.planes), size, size)
        self._shape = shape
        self._spaces = {a: spaces.Box(0, 1, shape, np.float32) for a in self.possible_agents}
        count = len(self._world.actions)
        self._actions = {agent: spaces.Discrete(count) for agent in self.possible_agents}

    @property
    def world(self) -> World:
        """The world itself, in one copy."""
        return self._world

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self._spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self._actions[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, npt.NDArray[np.float32]], dict[str, dict[str, Any]]]:
        """A new episode; without a seed, one that goes on from the random stream of before.

        If there was none before, one is drawn: environments side by side must not be the same.
        """
        if seed is None and not self._seeded:
            seed = int(np.random.default_rng().integers(2**31))
        if seed is not None:
            self._world = self._class(1, seed, **self._settings)
            self._seeded = True
        self._world.reset()
        self._world.begin_turn()
        self.agents = list(self.possible_agents)
        return self._observe(self._world.pov()), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> tuple[dict[str, Any], ...]:
        """Let all agents act; the episode is truncated after the world's `max_turns`."""
        chosen = np.array([[actions[agent]] for agent in self.possible_agents], np.int64)
        rewards, dones, truncated = (answer[:, 0].tolist() for answer in self._world.step(chosen))
        over = any(dones) or any(truncated)
        if over:
            codes = self._world.after_cut()
        else:
            self._world.begin_turn()
            codes = self._world.pov()
        agents = self.agents
        answer: tuple[dict[str, Any], ...] = (
            self._observe(codes),
            dict(zip(agents, rewards, strict=True)),
            dict(zip(agents, dones, strict=True)),
            dict(zip(agents, truncated, strict=True)),
            {agent: {} for agent in agents},
        )
        if over:
            self.agents = []
        return answer

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """The world as text or as a picture, as `render_mode` says."""
        if self.render_mode == "ansi":
            return str(self._world)
        if self.render_mode == "rgb_array":
            return np.asarray(picture(self._world))
        return None

    def close(self) -> None:
        """Nothing is open."""

    def _observe(self, codes: Codes) -> dict[str, npt.NDArray[np.float32]]:
        """What all agents see [agents, 1, cells], as planes."""
        planes, height, width = self._shape
        seen = self._world.views[0].encode(codes[:, 0]).reshape(-1, height, width, planes)
        seen = np.ascontiguousarray(seen.transpose(0, 3, 1, 2))
        return {agent: seen[i] for i, agent in enumerate(self.agents)}
