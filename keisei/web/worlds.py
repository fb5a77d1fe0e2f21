"""Episodes of worlds, played by a run's newest agents."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from keisei.runs.run import Run
from keisei.web.networks import MAX_CHECKPOINT
from keisei.web.runs import RunsFolder
from keisei.web.schema import Episode, Frame, LegendEntry
from keisei.web.threads import NotFound, WebError

if TYPE_CHECKING:
    from keisei.worlds.entities import Entity

MAX_TURNS = 500
MAX_SECONDS = 20.0  # of playing
MAX_CELLS = 1_000_000  # in all frames of an episode together
_KEPT = 8


class Episodes:
    """Plays episodes, one at a time, and keeps the latest ones."""

    def __init__(self, runs: RunsFolder) -> None:
        self._runs = runs
        self._kept: OrderedDict[tuple[Path, int], Episode] = OrderedDict()
        self._lock = threading.Lock()  # a world's checkpoint may be large

    def play(self, name: str, seed: int) -> Episode:
        """An episode from a seed, by the run's newest checkpoint."""
        if self._runs.row(name).kind != "world":
            raise WebError(400, f"{name!r} is a run of Shogi: it has games, not episodes")
        path = self._runs.newest_checkpoint(name)
        if path is None:
            raise NotFound(f"the run {name!r} has no checkpoint yet: wait for its first one")
        with self._lock:
            key = (path, seed)
            if key not in self._kept:
                self._kept[key] = _play(self._runs.open(name), seed)
            self._kept.move_to_end(key)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return self._kept[key]


def _play(run: Run, seed: int) -> Episode:
    # Not at the top: agents need PyTorch, which takes seconds to import.
    from keisei.worlds.drawing import AGENT_COLORS
    from keisei.worlds.watch import load_episode_of
    from keisei.worlds.world import World

    # A world that is code is refused.
    environment = load_episode_of(run, seed, limit=MAX_CHECKPOINT)
    world = environment.world
    assert isinstance(world, World)
    world.reset()
    numbers = {entity.name: n for n, entity in enumerate(world.entities)}
    agents = len(environment.agents)
    frames: list[Frame] = []
    before = np.zeros(agents)

    def add_frame() -> None:
        rewards = environment.returns - before
        before[:] = environment.returns
        rows = world.cells_of(0)
        frames.append(
            Frame(
                ground=[[numbers[cell[0].name] for cell in row] for row in rows],
                cells=[[numbers[cell[-1].name] for cell in row] for row in rows],
                agents=[(*place, world.heading(i)) for i, place in enumerate(world.places(0))],
                rewards=[round(float(reward), 4) for reward in rewards],
            )
        )

    add_frame()
    environment.on_turn = add_frame
    height, width = world.settings.height, world.settings.width
    turns = min(world.max_turns, MAX_TURNS, max(MAX_CELLS // (height * width), 1))
    end = time.monotonic() + MAX_SECONDS
    for _ in range(turns):
        environment.take_turn()
        if world.over[0] or time.monotonic() > end:
            break
    return Episode(
        height=height,
        width=width,
        legend=[_legend(entity) for entity in world.entities],
        agents=agents,
        agent_colors=[AGENT_COLORS[i % len(AGENT_COLORS)] for i in range(agents)],
        turns=world.max_turns,
        frames=frames,
        returns=[round(float(value), 4) for value in environment.returns],
    )


def _refuse_own_code(run: Run) -> None:
    """A file that names code must not have it run by someone who looks at a page."""
    from keisei.worlds.config import load_world_config
    from keisei.worlds.registry import WORLDS

    name = load_world_config(None, run.config_path).world
    if name not in WORLDS:
        raise WebError(
            400,
            f"the world {name} is code of its own, which the page does not run: use `keisei worlds "
            f"watch {run.name}` if you trust it",
        )


def _legend(entity: Entity) -> LegendEntry:
    columns = {name: getattr(entity, name) for name in ("name", "color", "shape", "layer")}
    return LegendEntry.model_validate({**columns, "symbol": entity.letter})
