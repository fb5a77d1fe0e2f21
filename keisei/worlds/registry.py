"""The example worlds by name."""

from __future__ import annotations

from keisei.errors import KeiseiError
from keisei.worlds.cleanup import Cleanup
from keisei.worlds.config import WorldRunConfig
from keisei.worlds.stag_hunt import StagHunt
from keisei.worlds.tag import Tag
from keisei.worlds.treasure_hunt import TreasureHunt
from keisei.worlds.world import World

WORLDS: dict[str, type[World]] = {
    world.name: world for world in (TreasureHunt, Cleanup, Tag, StagHunt)
}


def make_world(config: WorldRunConfig) -> World:
    """The world of a run.

    >>> make_world(WorldRunConfig(world="treasure_hunt", copies=3)).copies
    3
    """
    if config.world not in WORLDS:
        raise KeiseiError(f"there is no world {config.world!r}: choose {', '.join(WORLDS)}")
    return WORLDS[config.world](config.copies, config.seed, **config.world_settings)
