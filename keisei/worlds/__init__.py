"""Worlds: many independent agents that learn at once.

>>> from keisei.worlds import make_environment
>>> environment = make_environment("treasure_hunt", ["copies=4", "double_dqn.batch_size=16"])
>>> with environment:
...     results = environment.run_experiment(epochs=1)
>>> environment.agents[0].model.memory is environment.agents[1].model.memory
False
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from keisei.errors import KeiseiError
from keisei.worlds.config import WorldRunConfig, load_world_config
from keisei.worlds.entities import Entity
from keisei.worlds.memory import Buffer, ThreadSafeBuffer
from keisei.worlds.registry import WORLDS, AnyWorld, make_world
from keisei.worlds.world import World, WorldSettings

if TYPE_CHECKING:
    from keisei.worlds.agents import Agent, make_agents
    from keisei.worlds.environment import Environment, EpochResult
    from keisei.worlds.parallel_environment import ParallelEnvironment

__all__ = [
    "WORLDS",
    "Agent",
    "Buffer",
    "Entity",
    "Environment",
    "EpochResult",
    "ParallelEnvironment",
    "ThreadSafeBuffer",
    "World",
    "WorldRunConfig",
    "WorldSettings",
    "load_world_config",
    "make_agents",
    "make_environment",
    "make_world",
]

_LEARNING = {
    "Agent": "agents",
    "make_agents": "agents",
    "Environment": "environment",
    "EpochResult": "environment",
    "ParallelEnvironment": "parallel_environment",
}


def __getattr__(name: str) -> Any:
    """What learns needs PyTorch, which takes seconds to load: it is imported on first use."""
    if name not in _LEARNING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"keisei.worlds.{_LEARNING[name]}"), name)


def make_environment(world: str | AnyWorld, overrides: Iterable[str] = ()) -> Environment:
    """A world with its agents, by name or ready-made, with settings such as "copies=128".

    `parallel.enabled=false` gives the plain `Environment`. A ready-made world has its copies and
    settings already; `seed` is then that of its agents.
    """
    from keisei.worlds.parallel_environment import build

    if isinstance(world, str):
        return build(load_world_config(world, overrides=overrides))
    config = load_world_config(world.name, overrides=overrides)
    if "copies" in config.model_fields_set and config.copies != world.copies:
        raise KeiseiError(f"copies={config.copies}, but the world already has {world.copies}")
    if config.world_settings:
        raise KeiseiError("world_settings: the world is already made; pass them when making it")
    return build(config, world=world)
