"""Keisei trains agents that play, by self-play, with every core and machine you have.

The names below are loaded when they are first used, so that `import keisei` is quick and leaves
PyTorch alone.

>>> import keisei
>>> game = keisei.shogi.ShogiGame()
>>> len(keisei.load("shipped").policy(game))
30
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keisei import shogi as shogi
    from keisei import worlds as worlds
    from keisei.errors import KeiseiError
    from keisei.evaluation.evaluate import play_match
    from keisei.network import Analysis, Network, load
    from keisei.runs.run import Run
    from keisei.runs.stopping import StopRequested
    from keisei.training.callbacks import Callback
    from keisei.training.start import train

__version__ = "0.1.0.dev0"

__all__ = [
    "Analysis",
    "Callback",
    "KeiseiError",
    "Network",
    "Run",
    "StopRequested",
    "load",
    "play_match",
    "shogi",
    "train",
    "worlds",
]

_MODULES = {
    "Analysis": "network",
    "Callback": "training.callbacks",
    "KeiseiError": "errors",
    "Network": "network",
    "Run": "runs.run",
    "StopRequested": "runs.stopping",
    "load": "network",
    "play_match": "evaluation.evaluate",
    "train": "training.start",
}

# Before PyTorch is loaded: its threads wait for each other a moment awake, then asleep. By
# default they stay awake much longer, and starve each other beside a busy neighbour; asleep
# at once, they take a fifth longer to learn.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")


if not TYPE_CHECKING:  # else a checker would believe in any name

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return getattr(importlib.import_module(f"keisei.{_MODULES[name]}"), name)
        if name in __all__:
            return importlib.import_module(f"keisei.{name}")
        raise AttributeError(f"module 'keisei' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
