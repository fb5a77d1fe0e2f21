"""An agent: a place in the world, and a model that decides for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError
from keisei.worlds.config import WorldRunConfig
from keisei.worlds.double_dqn import DoubleDQN
from keisei.worlds.models import Ints, Learner, Model, RandomModel
from keisei.worlds.ppo import PPO
from keisei.worlds.registry import AnyWorld


@dataclass
class Agent:
    """The agent number `index` of a world; `model` decides, and remembers in `model.memory`."""

    index: int
    model: Model

    @property
    def name(self) -> str:
        return f"agent_{self.index}"

    def pov(self, world: AnyWorld) -> npt.NDArray[Any]:
        """What it sees in each copy."""
        return world.pov(self.index)

    def get_action(self, state: npt.NDArray[Any]) -> Ints:
        """What it does about it."""
        return self.model.act(state)

    def act(self, world: AnyWorld, action: Ints) -> None:
        """Do it; the world keeps the rewards until the turn is over."""
        world.act(self.index, action)

    def add_memory(self, state: Any, action: Any, reward: Any, done: Any) -> None:
        """Remember a turn, in its own memory."""
        self.model.remember(state, action, reward, done)


def make_agents(config: WorldRunConfig, world: AnyWorld) -> list[Agent]:
    """The agents of a run, each with a seed of its own."""
    if len(config.agents) > world.num_agents:
        raise KeiseiError(
            f"agents: {len(config.agents)} are named, but {world.name} has {world.num_agents}"
        )
    kinds = [config.agents[i % len(config.agents)] for i in range(world.num_agents)]
    return [Agent(i, _make_model(kind, i, config, world)) for i, kind in enumerate(kinds)]


def _make_model(kind: str, index: int, config: WorldRunConfig, world: AnyWorld) -> Model:
    seed = int(np.random.SeedSequence([config.seed, index + 1]).generate_state(1)[0])
    view, actions = world.views[index], world.num_actions[index]
    if kind == "random":
        return RandomModel(actions, world.copies, seed)
    turns = config.parallel.train_interval * world.max_turns
    if kind == "ppo":
        return Learner(PPO(view, actions, config.ppo), world.copies, seed, turns)
    return Learner(DoubleDQN(view, actions, config.double_dqn), world.copies, seed, turns)
