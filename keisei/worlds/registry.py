"""Worlds by name: the examples, `pettingzoo:MODULE`, and `MODULE:CLASS` of the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from keisei.errors import KeiseiError
from keisei.settings import ConfigError, Section
from keisei.worlds.cleanup import Cleanup
from keisei.worlds.coins import Coins
from keisei.worlds.commons_harvest import CommonsHarvest
from keisei.worlds.config import KINDS, WorldRunConfig
from keisei.worlds.own_world import load_own_world
from keisei.worlds.pettingzoo_world import PettingZooSettings, PettingZooWorld, load_pettingzoo
from keisei.worlds.prisoners_dilemma import PrisonersDilemma
from keisei.worlds.stag_hunt import StagHunt
from keisei.worlds.tag import Tag
from keisei.worlds.treasure_hunt import TreasureHunt
from keisei.worlds.world import World, read_world_settings

if TYPE_CHECKING:
    from keisei.worlds.split_world import SplitWorld  # which needs this module

AnyWorld: TypeAlias = "World | PettingZooWorld | SplitWorld"

_EXAMPLES: tuple[type[World], ...] = (
    TreasureHunt,
    Cleanup,
    CommonsHarvest,
    PrisonersDilemma,
    Tag,
    StagHunt,
    Coins,
)
WORLDS = {world.name: world for world in _EXAMPLES}


def code_named_by(config: WorldRunConfig) -> dict[str, str]:
    """What is code from outside Keisei in these settings: the `world`, the first of the `agents`.

    >>> code_named_by(WorldRunConfig(world="my_world:Mine", agents=["ppo"]))
    {'world': 'my_world:Mine'}
    """
    code = {} if config.world in WORLDS else {"world": config.world}
    for number in range(len(config.agents)):
        kind, _ = config.agent(number)
        if kind not in KINDS:
            code.setdefault("agents", kind)
    return code


def find_world(name: str) -> type[World]:
    """The class of a grid world: an example, or one of the user's own."""
    if name in WORLDS:
        return WORLDS[name]
    if ":" in name and not is_pettingzoo(name):
        return load_own_world(name)
    raise KeiseiError(
        f"there is no world {name!r}: choose {', '.join(WORLDS)}, pettingzoo:MODULE, "
        "or your own MODULE:CLASS"
    )


def default_settings(name: str) -> Section:
    """A world's own settings, as they are if nothing is said."""
    kind = PettingZooSettings if is_pettingzoo(name) else find_world(name).Settings
    return read_world_settings(kind, name, {})


def make_world(config: WorldRunConfig) -> World | PettingZooWorld:
    """The world of a run, in this process.

    >>> make_world(WorldRunConfig(world="treasure_hunt", copies=3)).copies
    3
    """
    settings = config.world_settings
    for name in ("copies", "seed"):
        if name in settings:
            raise ConfigError(f"world_settings.{name}: this belongs to the run: set {name} instead")
    if is_pettingzoo(config.world):
        if config.turn_order != "simultaneous":
            raise KeiseiError(
                f"{config.world}: in a PettingZoo world all agents act at once: "
                "set turn_order=simultaneous"
            )
        module = config.world.partition(":")[2]
        return load_pettingzoo(module, config.copies, config.seed, settings)
    return find_world(config.world)(config.copies, config.seed, **settings)


def is_pettingzoo(name: str) -> bool:
    """Is it a world that others wrote, for PettingZoo?"""
    return name.startswith("pettingzoo:")
