"""Any PettingZoo `ParallelEnv` as a world, for the learners of this project.

>>> from keisei.worlds.pettingzoo_env import parallel_env
>>> world = PettingZooWorld(lambda: parallel_env("tag"), copies=2, seed=1, max_turns=10)
>>> world.num_agents
4
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pydantic import Field

from keisei.errors import KeiseiError
from keisei.random_streams import RandomStreams
from keisei.settings import Section
from keisei.worlds.own_code import import_own
from keisei.worlds.view import View
from keisei.worlds.world import Bools, Floats, Ints, read_world_settings

log = logging.getLogger(__name__)

MASK = "action_mask"  # in an observation that is a dict: which actions are possible


class PettingZooSettings(Section):
    """What is ours to say; all other settings are the environment's own."""

    max_turns: int = Field(
        100, ge=1, description="Turns of an epoch; an episode that is longer is cut off, and said."
    )


class PettingZooWorld:
    """Copies of an environment, stepped one after another; agents are those of its list.

    Where an episode is over, the next turn begins a new one. All agents act at once: there is no
    order of turns. An agent may leave early and come again: `present` says who is there, and in
    turns that an agent is not in it learns nothing.
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
        self._actions = [self._actions_of(agent) for agent in self.names]
        # Of those who act by numbers, there is one action; its numbers, from -1 to 1, are in moves.
        self.num_actions = [int(getattr(space, "n", 1)) for space in self._actions]
        sizes = [0 if hasattr(space, "n") else prod(space.shape) for space in self._actions]
        self.moves: list[Floats] = [np.zeros((copies, size), np.float32) for size in sizes]
        self._spaces = [self.envs[0].observation_space(agent) for agent in self.names]
        self.views = [self._view(i) for i in range(self.num_agents)]
        self.turn = 0
        self.populated = False
        self.present: Bools = np.ones((self.num_agents, copies), np.bool_)
        self.over: Bools = np.zeros(copies, np.bool_)  # where the newest turn ended an episode
        self._began: Ints = np.zeros(copies, np.int64)  # the turn in which an episode began
        self._warned = False
        self._seen = [np.zeros((copies, *view.shape), view.dtype) for view in self.views]

    def reset(self) -> None:
        """Begin a new episode in every copy."""
        self.turn = 0
        self.over = np.ones(self.copies, np.bool_)
        self.populated = True
        self._begin_again()

    def begin_turn(self) -> None:
        """New episodes where one is over; all else changes when the environments are stepped."""
        if not self.populated or self.turn >= self.max_turns:
            self.reset()
        self._begin_again()

    def pov(self, agent: int | None = None) -> Any:
        """What an agent sees [copies, ...], or a list of what each agent sees."""
        # Copies: a step writes into these arrays, and what was seen before it is still needed.
        if agent is None:
            return [seen.copy() for seen in self._seen]
        return self._seen[agent].copy()

    def after_cut(self) -> Any:
        """What each agent would have seen next where its episode was cut off by time."""
        return self.pov()

    def let_act(self, agent: int, actions: Ints) -> Floats:
        """Refused: here all act at the same time."""
        raise KeiseiError(
            f"{self.name}: in a PettingZoo world all agents act at once: "
            "set turn_order=simultaneous"
        )

    def end_turn(self) -> tuple[Floats, Bools, Bools]:
        """Refused, as `let_act` is."""
        raise KeiseiError(f"{self.name}: step all agents of a PettingZoo world together")

    def step(self, actions: Ints) -> tuple[Floats, Bools, Bools]:
        """Step every copy with the actions [agents, copies]; answers as a `World` does."""
        self.turn += 1
        rewards: Floats = np.zeros(actions.shape, np.float32)
        dones: Bools = np.zeros(actions.shape, np.bool_)
        truncated: Bools = np.zeros(actions.shape, np.bool_)
        before, self.present = self.present, self.present.copy()
        self.over = np.zeros(self.copies, np.bool_)
        for copy, env in enumerate(self.envs):
            there = [(i, self.names[i]) for i in np.flatnonzero(before[:, copy]).tolist()]
            chosen = {name: self._chosen(i, actions[i, copy], copy) for i, name in there}
            seen, got, ended, cut, _ = env.step(chosen)
            for i, name in there:
                rewards[i, copy] = got.get(name, 0.0)
                truncated[i, copy] = cut.get(name, False) and not ended.get(name, False)
                # An agent that is no longer named has left.
                gone = name not in env.agents and not truncated[i, copy]
                dones[i, copy] = ended.get(name, False) or gone
            here = [name for name in env.agents if not (ended.get(name) or cut.get(name))]
            self.over[copy] = not here
            self.present[:, copy] = [name in here for name in self.names]
            self._see(copy, seen)
        if self.turn >= self.max_turns:
            truncated |= before & ~dones
            self._say_cut()
        return rewards, dones, truncated

    def step_in_random_order(self, actions: Ints) -> tuple[Floats, Bools, Bools]:
        """Refused, as `let_act` is."""
        raise KeiseiError(f"{self.name}: all agents of a PettingZoo world act at once")

    def metrics(self) -> dict[str, Any]:
        """Nothing but what every world has."""
        return {}

    def timed_out(self) -> None:
        """Nobody: an agent that is not there is not timed out."""

    def render(self) -> npt.NDArray[np.uint8]:
        """The first copy as a picture; the environment must have been made with a `render_mode`."""
        drawn = self.envs[0].render()
        if not isinstance(drawn, np.ndarray) or drawn.ndim != 3:
            raise KeiseiError(f"{self.name} cannot be drawn: its render() gives no picture")
        return drawn.astype(np.uint8)

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
        """A new episode where the last one is over."""
        for copy in np.flatnonzero(self.over).tolist():
            seed = int(self.streams.uniform_of(copy) * 2**31)
            seen, _ = self.envs[copy].reset(seed=seed)
            agents = self.envs[copy].agents
            self.present[:, copy] = [name in agents for name in self.names]
            self._began[copy] = self.turn
            self._see(copy, seen)
        self.over = np.zeros(self.copies, np.bool_)

    def _see(self, copy: int, seen: dict[str, Any]) -> None:
        for i, name in enumerate(self.names):
            if name in seen:
                self._seen[i][copy] = self._numbers(i, seen[name])
            elif self.present[i, copy]:
                raise KeiseiError(f"{self.name}: {name} is in its list of agents, but sees nothing")
            else:
                self._seen[i][copy] = 0

    def _say_cut(self) -> None:
        """Say once that episodes are longer than an epoch."""
        if not self._warned and (~self.over & (self._began == 0)).any():
            self._warned = True
            log.warning(
                f"{self.name}: episodes last longer than {self.max_turns} turns, and are cut off "
                "there; for longer ones, set world_settings.max_turns"
            )

    def _actions_of(self, agent: str) -> Any:
        space = self.envs[0].action_space(agent)
        numbers = isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating)
        if not numbers and not isinstance(space, spaces.Discrete):
            raise KeiseiError(
                f"{self.name}: the actions of {agent} are neither discrete nor numbers: {space}"
            )
        return space

    def _chosen(self, agent: int, action: int, copy: int) -> Any:
        """An action as the environment wants it."""
        space, move = self._actions[agent], self.moves[agent][copy]
        if not len(move):
            return int(space.start) + int(action)  # ours begin at 0
        move = move.reshape(space.shape)
        if not space.is_bounded():
            return move.astype(space.dtype)
        share = (np.clip(move, -1, 1) + 1) / 2
        return (space.low + share * (space.high - space.low)).astype(space.dtype)

    def _view(self, agent: int) -> View:
        """Arrays as they are; all else as a row of numbers, with what is possible at its end."""
        space, moves = self._spaces[agent], self.moves[agent].shape[1]
        if isinstance(space, spaces.Box):
            return View(tuple(space.shape), np.dtype(space.dtype), moves=moves)
        try:
            size, masked = int(spaces.flatdim(space)), _is_masked(space)
        except (NotImplementedError, ValueError) as error:
            name = self.names[agent]
            raise KeiseiError(f"{self.name}: what {name} sees has no fixed size: {error}") from None
        actions = self.num_actions[agent]
        if masked and spaces.flatdim(space.spaces[MASK]) != actions:
            raise KeiseiError(f"{self.name}: the {MASK} of {self.names[agent]} is not of {actions}")
        return View((size,), np.dtype(np.float32), mask=actions if masked else 0, moves=moves)

    def _numbers(self, agent: int, seen: Any) -> Any:
        space = self._spaces[agent]
        if isinstance(space, spaces.Box):
            return seen
        if not _is_masked(space):
            return spaces.flatten(space, seen)
        rest = {name: part for name, part in space.spaces.items() if name != MASK}
        numbers = [spaces.flatten(part, seen[name]) for name, part in rest.items()]
        return np.concatenate([*numbers, np.asarray(seen[MASK], np.float32).ravel()])


def _is_masked(space: Any) -> bool:
    return isinstance(space, spaces.Dict) and MASK in space.spaces


def load_pettingzoo(
    module: str, copies: int, seed: int, settings: dict[str, Any]
) -> PettingZooWorld:
    """The world of a module with a `parallel_env`, such as `mpe2.simple_spread_v3`.

    The module may lie in the current folder.
    """
    if not module or not all(part.isidentifier() for part in module.split(".")):
        raise KeiseiError(f"{module!r}: name a module, such as pettingzoo:mpe2.simple_spread_v3")
    make = getattr(import_own(module), "parallel_env", None)
    if make is None:
        raise KeiseiError(f"{module} has no PettingZoo environment: it has no parallel_env")
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
