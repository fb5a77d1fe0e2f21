"""The runs in a folder: their names, states and numbers; nothing outside the folder is read.

A run's row is rebuilt only when one of its files has changed, so that listing many runs often
costs next to nothing. A stranger may have made a run: whatever is in its folder is read with a
limit of bytes and of time, and what is wrong with it makes it broken until its files change.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from keisei.errors import KeiseiError
from keisei.files import read_regular
from keisei.runs.metrics import MetricsReader
from keisei.runs.run import Run, RunError, is_training, world_of
from keisei.settings import parse_yaml
from keisei.web.schema import (
    Checkpoint,
    Elo,
    Kind,
    Ladder,
    LadderPlayer,
    RunDetail,
    RunEvent,
    RunRow,
    RunUpdate,
    WorkerRow,
)
from keisei.web.threads import NotFound, WebError

_PARTS = ("config.yaml", "metrics.sqlite", "checkpoints")  # a folder with one of these is a run
_CHECKPOINT = re.compile(r"step_(\d{12})\.pt")
_NODES = re.compile(r", (\d+) nodes$")  # at the end of the name of a player that searches
_MAX_CONFIG = 16 * 1024  # bytes; it has 3,000
_MAX_LADDER = 1024 * 1024
_MAX_PLAYERS = 2000
_MAX_FILES = 10_000  # that are looked at in a folder
_LIST_SECONDS = 0.2  # in which runs are read for one look at the list
_ROW_SECONDS = 0.2  # of processor time to read what the list shows of a run
_READ_SECONDS = 2.0  # and to read its games or curves

Signature = tuple[object, ...]
Points = dict[str, tuple[int, float]]  # the newest (step, value) of each metric


class BrokenRun(KeiseiError):
    """A folder that should be a run but cannot be read as one."""


class RunsFolder:
    """All runs below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, tuple[Signature, RunRow, Points]] = {}
        self._settings_of: dict[tuple[Path, object], Mapping[str, Any]] = {}
        self._lock = threading.Lock()

    # -- which runs there are ----------------------------------------------------------------

    def names(self) -> list[str]:
        """The names of all runs, newest first, including broken ones."""
        try:
            folders = [path for path in self.root.iterdir() if _looks_like_a_run(path)]
        except FileNotFoundError:
            return []  # the first training run creates it
        # By the time of their settings: reading metrics changes that of the folder itself.
        begun = {path.name: (_changed(path / "config.yaml"), path.name) for path in folders}
        return sorted(begun, key=lambda name: begun[name], reverse=True)

    def open(self, name: str) -> Run:
        """The run of this name, directly in the folder."""
        if Path(name).name != name or not _looks_like_a_run(self.root / name):
            raise NotFound(f"there is no run {name!r} in {self.root}")
        return Run(self.inside(self.root / name))

    def inside(self, path: Path) -> Path:
        """The path with links resolved, which must lie within the folder of runs."""
        real = path.resolve()
        if not real.is_relative_to(self.root.resolve()):
            raise BrokenRun(f"{path} leads out of {self.root}: such links are not followed")
        return real

    def checkpoints(self, run: Run) -> list[Checkpoint]:
        """The run's checkpoints, newest first."""
        found = []
        try:
            for path in islice(self.inside(run.checkpoints_dir).iterdir(), _MAX_FILES):
                name = _CHECKPOINT.fullmatch(path.name)
                if name:
                    found.append(Checkpoint(file=path.name, steps=int(name[1])))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BrokenRun(f"{run.checkpoints_dir} cannot be read: {error.strerror}") from None
        return sorted(found, key=lambda one: one.steps, reverse=True)

    def checkpoint_path(self, name: str, file: str) -> Path:
        """A checkpoint file of a run."""
        run = self.open(name)
        if file not in [one.file for one in self.checkpoints(run)]:
            raise NotFound(f"the run {name!r} has no checkpoint {file!r}")
        return self.inside(run.checkpoints_dir / file)

    def newest_checkpoint(self, name: str) -> Path | None:
        """The newest checkpoint file of a run, if it has one."""
        run = self.open(name)
        newest = self.checkpoints(run)[:1]
        return self.inside(run.checkpoints_dir / newest[0].file) if newest else None

    @contextmanager
    def reading(self, name: str) -> Iterator[MetricsReader | None]:
        """A reader of the run's numbers, or none if it has just begun.

        What fails inside makes the run broken, so that it costs its time once.
        """
        row = self.row(name)
        if row.state == "broken":
            raise BrokenRun(row.error or "")
        signature = self.signature(name)
        try:
            with self._metrics(self.open(name), _READ_SECONDS) as reader:
                yield reader
        except WebError:
            raise
        except Exception as error:
            broken = RunRow(name=name, state="broken", error=_sentence(error))
            with self._lock:
                self._known[name] = (signature, broken, {})
            raise BrokenRun(broken.error or "") from error

    @contextmanager
    def _metrics(self, run: Run, seconds: float) -> Iterator[MetricsReader | None]:
        if not run.metrics_path.exists():
            yield None
        else:
            with MetricsReader(self.inside(run.metrics_path), seconds) as reader:
                yield reader

    # -- what they are like --------------------------------------------------------------------

    def signature(self, name: str) -> Signature:
        """Changes whenever the run does; cheap, because no file is opened."""
        folder = self.root / name
        files = ("config.yaml", "metrics.sqlite", "metrics.sqlite-wal", "checkpoints")
        stamps = [_stamp(folder / file) for file in (*files, "ladder.json")]
        return (*stamps, is_training(folder))

    def rows(self) -> list[RunRow]:
        """All runs; if reading takes long, some are bare until the next look."""
        end = time.monotonic() + _LIST_SECONDS
        return [self._row_until(name, end) for name in self.names()]

    def _row_until(self, name: str, end: float) -> RunRow:
        with self._lock:
            known = self._known.get(name)
        if time.monotonic() < end or (known and known[0] == self.signature(name)):
            return self.row(name)
        return known[1] if known else RunRow(name=name, state="stopped")

    def row(self, name: str) -> RunRow:
        """One run; if it is broken, its row says why."""
        return self._look(name)[0]

    def _look(self, name: str) -> tuple[RunRow, Points]:
        signature = self.signature(name)
        with self._lock:
            known = self._known.get(name)
        if known and known[0] == signature:
            return known[1:]
        try:
            row, points = self._read(name, training=bool(signature[-1]))
        except NotFound:
            raise
        except Exception as error:  # whatever is wrong with one run, show the others
            row, points = RunRow(name=name, state="broken", error=_sentence(error)), {}
        with self._lock:
            known = self._known.get(name)
            if known and known[0] == signature and known[1].state == "broken":
                return known[1:]  # others have found out meanwhile, who read more of it
            self._known[name] = (signature, row, points)
        return row, points

    def _read(self, name: str, training: bool) -> tuple[RunRow, Points]:
        run = self.open(name)
        settings = self._settings(run)
        with self._metrics(run, _ROW_SECONDS) as reader:
            points = reader.latest_points() if reader else {}
            return self._make_row(run, settings, reader, points, training), points

    def _settings(self, run: Run) -> Mapping[str, Any]:
        """The settings of a run; read again only when the file has changed."""
        key = (run.folder, _stamp(run.config_path))
        with self._lock:
            if key in self._settings_of:
                return self._settings_of[key]
        try:
            settings = parse_yaml(self._config_text(run))
        except yaml.YAMLError as error:
            raise BrokenRun(f"{run.config_path} is not YAML: {error}") from None
        if not isinstance(settings, dict):
            raise BrokenRun(f"{run.config_path} has no settings")
        with self._lock:
            self._settings_of[key] = settings
        return settings

    def _config_text(self, run: Run) -> str:
        path = self.inside(run.config_path)
        if not path.is_file():
            raise BrokenRun(f"{run.folder} is not a run: config.yaml is missing")
        return read_regular(path, _MAX_CONFIG, follow=False).decode("utf-8", errors="replace")

    def _make_row(
        self,
        run: Run,
        settings: Mapping[str, Any],
        reader: MetricsReader | None,
        points: Points,
        training: bool,
    ) -> RunRow:
        world = world_of(settings)
        kind: Kind = "shogi" if world is None else "world"
        row = RunRow(name=run.folder.name, kind=kind, state="stopped", world=world)
        row.started = _changed(run.config_path)
        if reader:
            latest = _values(points)
            newest = reader.newest()
            if newest:
                row.steps, row.updated = newest
            row.steps_per_s = latest.get("turns_per_s" if row.world else "steps_per_s")
            games = latest.get("games")
            row.games = None if games is None else int(games)
            row.mean_return = latest.get("return")
            total = reader.meta("total_timesteps")
            row.total_steps = int(total) if total else None
        row.elo = _newest_ratings(self.ladder(run))
        finished = row.total_steps is not None and row.steps >= row.total_steps
        row.state = "training" if training else "finished" if finished else "stopped"
        return row

    def ladder(self, run: Run) -> Ladder | None:
        """What `keisei ladder` has stored; a broken file does not break the rest of the run.

        It may come from elsewhere, so nothing in it is trusted.
        """
        if not run.ladder_path.is_file():
            return None
        try:
            players = _read_ladder(self.inside(run.ladder_path))
        except BrokenRun as error:
            return Ladder(players=[], error=str(error))
        return Ladder(players=sorted(players, key=lambda one: one.rating, reverse=True))

    def detail(self, name: str) -> RunDetail:
        """A run with everything but its curves and games; if it is broken, what can be read."""
        try:
            return self._detail(name)
        except BrokenRun:
            return RunDetail(**self.row(name).model_dump())

    def _detail(self, name: str) -> RunDetail:
        with self.reading(name) as reader:
            row, points = self._look(name)
            run = self.open(name)
            detail = RunDetail(**row.model_dump())
            detail.config = self._config_text(run)
            detail.checkpoints = self.checkpoints(run)
            detail.ladder = self.ladder(run)
            if reader:
                update = _update(row, points, reader, 100)
                detail.names = list(points)
                detail.latest, detail.latest_steps = update.latest, update.latest_steps
                detail.workers, detail.events = update.workers, update.events
                returns = parse_yaml(reader.meta("random_return") or "null")
                detail.random_return = _finite_numbers(returns)
        if row.kind == "world":
            mine = [name for name in detail.names if name.startswith("return agent_")]
            detail.agents = len(mine) or None
        return detail

    def update(self, name: str) -> RunUpdate:
        """What a watcher of the run wants to know."""
        try:
            with self.reading(name) as reader:
                row, points = self._look(name)
                if reader:
                    return _update(row, points, reader, 20)
        except BrokenRun:
            row = self.row(name)
        return RunUpdate(row=row, latest={}, latest_steps={}, workers=[], events=[])


def _looks_like_a_run(path: Path) -> bool:
    """True also of a folder without read permission: its row says so."""
    if path.name.startswith("."):
        return False
    try:
        if not path.is_dir():
            return False
    except (OSError, ValueError):  # not a file name
        return False
    try:
        return any((path / part).exists() for part in _PARTS)
    except OSError:
        return True


def _update(row: RunRow, points: Points, reader: MetricsReader, events: int) -> RunUpdate:
    return RunUpdate(
        row=row,
        latest=_values(points),
        latest_steps={name: step for name, (step, _) in points.items()},
        workers=[WorkerRow(**worker) for worker in reader.now("workers") or []],
        events=[RunEvent(**event) for event in reader.events(events)],
    )


def _read_ladder(path: Path) -> list[LadderPlayer]:
    try:
        data = json.loads(read_regular(path, _MAX_LADDER, follow=False))
        if len(data["ratings"]) > _MAX_PLAYERS:
            raise ValueError(f"it has more than {_MAX_PLAYERS:,} players")
        entries = {entry["name"]: entry for entry in data["players"]}
        return [_ladder_player(rating, entries[rating["name"]]) for rating in data["ratings"]]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError) as error:
        said = error.strerror if isinstance(error, OSError) else None
        reason = " ".join((said or str(error)).split())[:200]
        raise BrokenRun(f"{path} is not a ladder: {reason}") from None


def _ladder_player(rating: dict[str, Any], entry: dict[str, Any]) -> LadderPlayer:
    nodes = _NODES.search(rating["name"])
    return LadderPlayer(
        name=rating["name"],
        rating=rating["elo"],
        low=rating["low"],
        high=rating["high"],
        games=rating["games"],
        steps=entry.get("steps"),
        nodes=int(nodes[1]) if nodes else None,
        cpu_hours=entry.get("cpu_hours"),
    )


def _newest_ratings(ladder: Ladder | None) -> list[Elo]:
    """The newest checkpoint's rating for each way of playing, the policy alone first."""
    newest: dict[int, LadderPlayer] = {}
    for one in ladder.players if ladder else ():
        nodes = one.nodes or 0
        if one.steps is not None and one.steps >= (newest.get(nodes, one).steps or 0):
            newest[nodes] = one
    return [
        Elo(**newest[nodes].model_dump(include=set(Elo.model_fields))) for nodes in sorted(newest)
    ]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):  # ValueError: not a file name
        return None
    if path.name.endswith("-wal") and not status.st_size:  # a reader may leave it so
        return None
    return status.st_mtime_ns, status.st_size


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _values(points: Points) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, (_, value) in points.items()}


def _finite_numbers(values: Any) -> list[float] | None:
    """The numbers of a list, if they all are some."""
    if not isinstance(values, list):
        return None
    numbers = [float(value) for value in values]
    return numbers if all(map(math.isfinite, numbers)) else None


def _sentence(error: Exception) -> str:
    text = " ".join(str(error)[:1000].split())
    return text if isinstance(error, (KeiseiError, RunError)) else f"cannot be read: {text}"
