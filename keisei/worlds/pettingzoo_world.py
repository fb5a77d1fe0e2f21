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
from gymnasium import spaces
from pydantic import Field

from keisei.errors import KeiseiError
from keisei.random_streams import RandomStreams
from keisei.settings import Section
from keisei.worlds.view import View
from keisei.worlds.world import Bools, Floats, Ints, read_world_settings


class PettingZooSettings(Section):
    """What is ours to say; all other settings are the environment's own."""

    max_turns: int = Field(100, ge=1, description="Turns of an epoch.")


class PettingZooWorld:
    """Copies of an environment, stepped one after another; agents are those of its list.

    An environment that ends begins a new episode at once, and `done` says so. All agents begin, act
    and end together: there is no sequential order of turns, and an agent that leaves early is an
    error, because it could learn nothing from turns that it is not in.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        copies: int = 1,
        seed: int = 0,
        max_turns: int = 100,
        name: str = "pettingzoo",
    ) -> None:
        ours = read_world_settings(PettingZooSettings, name, {"max_turns": max_turns})
        self.name, self.copies, self.max_turns = name, copies, ours.max_turns
        self.envs = [make() for _ in range(copies)]
        self.streams = RandomStreams(seed, copies)
        self.names = list(self.envs[0].possible_agents)
        self.num_agents = len(self.names)
        actions = [self._actions(agent) for agent in self.names]
        self.num_actions = [int(space.n) for space in actions]
        self._first_actions = [int(space.start) for space in actions]  # ours begin at 0
        self.views = [self._view(agent) for agent in self.names]
        self.turn = 0
        self.populated = False
        self.over: Bools = np.zeros(copies, np.bool_)  # where the newest turn ended an episode
        self._seen = [np.zeros((copies, *view.shape), view.dtype) for view in self.views]
        self._after_cut = self._seen  # `_seen`, as it was before new episodes began in this turn

    def reset(self) -> None:
        """Begin a new episode in every copy."""
        self.turn = 0
        for copy in range(self.copies):
            self._reset(copy)
        self.populated = True

    def begin_turn(self) -> None:
        """Nothing but the first episode: the environments change when they are stepped."""
        if not self.populated or self.turn >= self.max_turns:
            self.reset()

    def pov(self, agent: int | None = None) -> Any:
        """What an agent sees [copies, ...], or a list of what each agent sees."""
        # Copies: a step writes into these arrays, and what was seen before it is still needed.
        if agent is None:
            return [seen.copy() for seen in self._seen]
        return self._seen[agent].copy()

    def act(self, agent: int, actions: Ints) -> None:
        """Refused: here all act at the same time."""
        raise KeiseiError(
            f"{self.name}: in a PettingZoo world all agents act at once: "
            "set turn_order=simultaneous"
        )

    def after_cut(self) -> Any:
        """What each agent would have seen next where its episode was cut off by time."""
        return self._after_cut

    def end_turn(self) -> tuple[Floats, Bools, Bools]:
        """Refused, as `act` is."""
        raise KeiseiError(f"{self.name}: step all agents of a PettingZoo world together")

    def step(self, actions: Ints) -> tuple[Floats, Bools, Bools]:
        """Step every copy with the actions [agents, copies]; answers as a `World` does."""
        self.turn += 1
        rewards: Floats = np.zeros(actions.shape, np.float32)
        dones: Bools = np.zeros(actions.shape, np.bool_)
        truncated: Bools = np.zeros(actions.shape, np.bool_)
        for copy, env in enumerate(self.envs):
            chosen = [
                first + int(action)
                for first, action in zip(self._first_actions, actions[:, copy], strict=True)
            ]
            seen, got, ended, cut, _ = env.step(dict(zip(self.names, chosen, strict=True)))
            for i, name in enumerate(self.names):
                rewards[i, copy] = got.get(name, 0.0)
                truncated[i, copy] = cut.get(name, False)
                # An agent that is no longer named has left.
                dones[i, copy] = ended.get(name, not truncated[i, copy])
            over = dones[:, copy] | truncated[:, copy]
            if not over.all():
                self._refuse_leavers(over)
            self._see(copy, seen)
        self.over = np.all(dones | truncated, axis=0)
        self._begin_again()
        if self.turn >= self.max_turns:
            truncated |= ~dones
        return rewards, dones, truncated

    def metrics(self) -> dict[str, Any]:
        """Nothing but what every world has."""
        return {}

    def timed_out(self) -> None:
        """Nobody: the environment itself may say no such thing."""

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

    def _begin_again(self) -> None:
        """Begin a new episode where one is over, and keep what was seen at its end."""
        self._after_cut = self._seen
        if self.over.any() and self.turn < self.max_turns:
            self._after_cut = self.pov()
            for copy in np.flatnonzero(self.over).tolist():
                self._reset(copy)

    def _reset(self, copy: int) -> None:
        seed = int(self.streams.uniform_of(copy) * 2**31)
        seen, _ = self.envs[copy].reset(seed=seed)
        self._see(copy, seen)

    def _see(self, copy: int, seen: dict[str, Any]) -> None:
        for i, name in enumerate(self.names):
            if name not in seen:
                raise KeiseiError(f"{self.name}: {name} is in its list of agents, but sees nothing")
            self._seen[i][copy] = seen[name]

    def _refuse_leavers(self, left: Bools) -> None:
        if left.any():
            leaver, stayer = self.names[left.argmax()], self.names[left.argmin()]
            raise KeiseiError(
                f"{self.name}: {leaver} left the episode in turn {self.turn}, before {stayer}; "
                "agents can learn only if all of them finish together"
            )

    def _actions(self, agent: str) -> spaces.Discrete:
        space = self.envs[0].action_space(agent)
        if not isinstance(space, spaces.Discrete):
            raise KeiseiError(f"{self.name}: the actions of {agent} are not discrete: {space}")
        return space

    def _view(self, agent: str) -> View:
        space = self.envs[0].observation_space(agent)
        if getattr(space, "shape", None) is None or space.dtype is None:
            raise KeiseiError(f"{self.name}: what {agent} sees is not one array: {space}")
        return View(tuple(space.shape), np.dtype(space.dtype))


def load_pettingzoo(
    module: str, copies: int, seed: int, settings: dict[str, Any]
) -> PettingZooWorld:
    """The world of a module with a `parallel_env`, such as `mpe2.simple_spread_v3`."""
    if not module:
        raise KeiseiError("name a module, such as pettingzoo:mpe2.simple_spread_v3")
    try:
        make = importlib.import_module(module).parallel_env
    except (ImportError, AttributeError, TypeError) as error:  # TypeError: a name such as .x
        raise KeiseiError(f"{module} has no PettingZoo environment: {error}") from None
    ours = {name: settings[name] for name in PettingZooSettings.model_fields if name in settings}
    theirs = {name: value for name, value in settings.items() if name not in ours}
    name = f"pettingzoo:{module}"

    def make_one() -> Any:
        try:
            return make(**theirs)
        except Exception as error:  # others' code: it may raise anything
            reason = " ".join(str(error).split())
            raise KeiseiError(f"{name} cannot be made with {theirs}: {reason}") from error

    return PettingZooWorld(make_one, copies, seed, name=name, **ours)
