"""A world of the user's own, by `MODULE:CLASS`."""

from __future__ import annotations

from keisei.errors import KeiseiError
from keisei.worlds.own_code import load_own
from keisei.worlds.world import World


def load_own_world(name: str) -> type[World]:
    """The class that `MODULE:CLASS` names.

    >>> load_own_world("keisei.worlds.tag:Tag").name
    'tag'
    """
    found = load_own(name, "world", "mushroom:MushroomWorld", World)
    if not (isinstance(found, type) and issubclass(found, World)):
        raise KeiseiError(f"{name} is not a world: it must be a subclass of keisei.worlds.World")
    missing = [part for part in ("name", "entities", "actions") if not hasattr(found, part)]
    if missing:
        raise KeiseiError(f"the world {name} has no {', '.join(missing)}: its class must set them")
    return found
