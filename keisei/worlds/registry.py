"""The example worlds by name."""

from __future__ import annotations

from keisei.errors import KeiseiError
from keisei.settings import ConfigError
from keisei.worlds.cleanup import Cleanup
from keisei.worlds.config import WorldRunConfig
from keisei.worlds.pettingzoo_world import PettingZooWorld, load_pettingzoo
from keisei.worlds.stag_hunt import StagHunt
from keisei.worlds.tag import Tag
from keisei.worlds.treasure_hunt import TreasureHunt
from keisei.worlds.world import World

AnyWorld = World | PettingZooWorld

_EXAMPLES: tuple[type[World], ...] = (TreasureHunt, Cleanup, Tag, StagHunt)
WORLDS = {world.name: world for world in _EXAMPLES}


def find_world(name: str) -> type[World]:
    """The class of a world."""
    if name not in WORLDS:
        raise KeiseiError(
            f"there is no world {name!r}: choose {', '.join(WORLDS)}, or pettingzoo:MODULE"
        )
    return WORLDS[name]


def make_world(config: WorldRunConfig) -> AnyWorld:
    """The world of a run: one of the examples, or `pettingzoo:MODULE`.

    >>> make_world(WorldRunConfig(world="treasure_hunt", copies=3)).copies
    3
    """
    settings = config.world_settings
    for name in ("copies", "seed"):
        if name in settings:
            raise ConfigError(f"world_settings.{name}: it is the run's: set {name} instead")
    kind, colon, module = config.world.partition(":")
    if colon and kind == "pettingzoo":
        if config.turn_order == "sequential":
            raise KeiseiError(
                f"{config.world}: in a PettingZoo world all agents act at once: "
                "set turn_order=simultaneous"
            )
        return load_pettingzoo(module, config.copies, config.seed, settings)
    return find_world(config.world)(config.copies, config.seed, **settings)
