"""Any PettingZoo `ParallelEnv` with discrete actions as a world, for the learners of this project.

>>> from keisei.worlds.pettingzoo_env import parallel_env
>>> world = PettingZooWorld(lambda: parallel_env("tag"), copies=2, seed=1, max_turns=10)
>>> world.num_agents
4
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from keisei.errors import KeiseiError
from keisei.random_streams import RandomStreams
from keisei.worlds.view import View
from keisei.worlds.world import Bools, Floats, Ints


class PettingZooWorld:
    """Copies of an environment, stepped one after another; agents are those of its list.

    An environment that ends begins a new episode at once, and `done` says so. All agents act at the
    same time, so there is no sequential order of turns.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        copies: int = 1,
        seed: int = 0,
        max_turns: int = 100,
        name: str = "pettingzoo",
    ) -> None:
        self.name, self.copies, self.max_turns = name, copies, max_turns
        self.envs = [make() for _ in range(copies)]
        self.streams = RandomStreams(seed, copies)
        self.names = list(self.envs[0].possible_agents)
        self.num_agents = len(self.names)
        self.num_actions = [self._count_actions(agent) for agent in self.names]
        self.views = [self._view(agent) for agent in self.names]
        self.turn = 0
        self.populated = False
        self._seen = [np.zeros((copies, *view.shape), view.dtype) for view in self.views]

    def reset(self) -> None:
        """Begin a new episode in every copy."""
        self.turn = 0
        for copy in range(self.copies):
            self._reset(copy)
        self.populated = True

    def begin_turn(self) -> None:
        """Nothing but the first episode: the environments change when they are stepped."""
        if not self.populated:
            self.reset()

    def pov(self, agent: int | None = None) -> Any:
        """What an agent sees [copies, ...], or a list of what each agent sees."""
        return list(self._seen) if agent is None else self._seen[agent]

    def act(self, agent: int, actions: Ints) -> None:
        """Refused: here all act at the same time."""
        raise KeiseiError(
            f"{self.name}: in a PettingZoo world all agents act at once: "
            "set turn_order=simultaneous"
        )

    def end_turn(self) -> tuple[Floats, Bools]:
        """Refused, as `act` is."""
        raise KeiseiError(f"{self.name}: step all agents of a PettingZoo world together")

    def step(self, actions: Ints) -> tuple[Floats, Bools]:
        """Step every copy with the actions [agents, copies]."""
        self.turn += 1
        rewards: Floats = np.zeros(actions.shape, np.float32)
        dones: Bools = np.zeros(actions.shape, np.bool_)
        for copy, env in enumerate(self.envs):
            chosen = {name: int(actions[self.names.index(name), copy]) for name in env.agents}
            seen, got, terminated, truncated, _ = env.step(chosen)
            for i, name in enumerate(self.names):
                rewards[i, copy] = got.get(name, 0.0)
                # Who has left is done as well: nothing more comes.
                dones[i, copy] = terminated.get(name, True) or truncated.get(name, True)
                if name in seen:
                    self._seen[i][copy] = seen[name]
            if not env.agents:
                self._reset(copy)
        if self.turn >= self.max_turns:
            dones[:] = True
        return rewards, dones

    def state_dict(self) -> dict[str, Any]:
        """What the next episode depends on; an episode in play cannot be kept."""
        return {"streams": self.streams.state.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict()`, with a new episode."""
        self.streams.state = state["streams"].copy()
        self.populated = False

    def close(self) -> None:
        """Close all copies."""
        for env in self.envs:
            env.close()

    def _reset(self, copy: int) -> None:
        seed = int(self.streams.uniform_of(copy) * 2**31)
        seen, _ = self.envs[copy].reset(seed=seed)
        for i, name in enumerate(self.names):
            self._seen[i][copy] = seen[name]

    def _count_actions(self, agent: str) -> int:
        count = getattr(self.envs[0].action_space(agent), "n", None)
        if count is None:
            raise KeiseiError(f"{self.name}: the actions of {agent} are not discrete")
        return int(count)

    def _view(self, agent: str) -> View:
        space = self.envs[0].observation_space(agent)
        if getattr(space, "shape", None) is None or space.dtype is None:
            raise KeiseiError(f"{self.name}: what {agent} sees is not one array: {space}")
        return View(tuple(space.shape), np.dtype(space.dtype))


def load_pettingzoo(module: str, copies: int, seed: int, **settings: Any) -> PettingZooWorld:
    """The world of a module with a `parallel_env`, such as `mpe2.simple_spread_v3`."""
    try:
        make = importlib.import_module(module).parallel_env
    except (ImportError, AttributeError) as error:
        raise KeiseiError(f"{module} has no PettingZoo environment: {error}") from None
    max_turns = int(settings.pop("max_turns", 100))
    return PettingZooWorld(
        lambda: make(**settings), copies, seed, max_turns, f"pettingzoo:{module}"
    )
