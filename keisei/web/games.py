"""Recorded games of a run: lists, replays with values, and downloads."""

from __future__ import annotations

import time
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Any

from keisei.errors import KeiseiError
from keisei.shogi import IllegalActionError, ShogiGame
from keisei.shogi.records import GameRecord, read_record, record_bytes
from keisei.web.networks import Network, Networks, Observed, observe
from keisei.web.positions import blacks_value, replay
from keisei.web.runs import RunsFolder
from keisei.web.schema import GameDetail, GameList, GameRow
from keisei.web.threads import NotFound, WebError

MAX_RECORD = 64 * 1024  # bytes; 500 moves take 20,000
VALUE_SECONDS = 2.0  # for all values of a game; with a big network some are left out
_BATCH = 64
_KEPT_VALUES = 256

Values = list[float | None]


class RunGames:
    """The games of all runs."""

    def __init__(self, runs: RunsFolder, networks: Networks) -> None:
        self._runs, self._networks = runs, networks
        self._values: OrderedDict[tuple[Path, Path], Values] = OrderedDict()
        self._lock = Lock()

    def find(
        self,
        name: str,
        kind: str | None = None,
        winner: str | None = None,
        reason: str | None = None,
        with_record: bool = False,
        offset: int = 0,
        limit: int = 50,
    ) -> GameList:
        """Some games of a run, newest first; `winner` may be "none"."""
        asked = {"kind": kind, "winner": winner, "reason": reason}
        where = {column: value for column, value in asked.items() if value is not None}
        with self._runs.reading(name) as reader:
            if reader is None:
                return GameList(total=0, games=[], reasons=[])
            total, rows = reader.find_games(
                {column: None if value == "none" else value for column, value in where.items()},
                with_record,
                offset,
                limit,
            )
            return GameList(
                total=total, games=[_row(row) for row in rows], reasons=reader.reasons()
            )

    def detail(self, name: str, number: int) -> GameDetail:
        """A game with its positions, moves and values."""
        row, path = self._open(name, number)
        record = read_record(path)
        positions, moves = replay(record.start_sfen, record.moves)
        values = self._values_of(name, path, record)
        return GameDetail(**row.model_dump(), positions=positions, moves=moves, values=values)

    def record(self, name: str, number: int, suffix: str) -> tuple[str, bytes]:
        """A game as a file of this format: name and content."""
        file = f"{name}-{number}.{suffix}"
        return file, record_bytes(self.open(name, number), file)

    def open(self, name: str, number: int) -> GameRecord:
        """A game's record."""
        return read_record(self._open(name, number)[1])

    def _open(self, name: str, number: int) -> tuple[GameRow, Path]:
        run = self._runs.open(name)
        with self._runs.reading(name) as reader:
            found = reader.game(number) if reader else None
            if found is None:
                raise NotFound(f"the run {name!r} has no game {number}")
            row, file = _row(found), str(found["file"] or "")
        # A database from elsewhere must not lead out of the folder.
        if not file or Path(file).name != file:
            raise NotFound(f"game {number} of the run {name!r} has no record")
        path = self._runs.inside(run.games_dir / file)
        if not path.is_file():
            raise NotFound(f"the record of game {number} is gone: {path.name} is missing")
        if path.stat().st_size > MAX_RECORD:
            raise WebError(
                400, f"{path.name} is too large for a record: more than {MAX_RECORD:,} bytes"
            )
        return row, path

    def _values_of(self, name: str, path: Path, record: GameRecord) -> Values:
        """Values by the run's newest network; None for all if it has no network."""
        unknown: Values = [None] * (len(record.moves) + 1)
        try:
            checkpoint = self._runs.newest_checkpoint(name)
        except (KeiseiError, OSError):  # it leads elsewhere, or is not a folder
            return unknown
        if checkpoint is None:
            return unknown
        key = (path, checkpoint)
        with self._lock:
            if key in self._values:
                return self._values[key]
        try:
            network = self._networks.load(checkpoint)
        except (KeiseiError, OSError):  # a broken checkpoint, or one that was just removed
            return unknown
        values = values_of(network, record)
        with self._lock:
            self._values[key] = values
            while len(self._values) > _KEPT_VALUES:
                self._values.popitem(last=False)
        return values


def values_of(network: Network, record: GameRecord) -> Values:
    """Black's value of each position; those that would take too long are left out."""
    values: Values = [None] * (len(record.moves) + 1)
    end = time.monotonic() + VALUE_SECONDS
    positions = _positions(record)
    # Every eighth position first, so that a graph without the rest still shows the game.
    order = sorted(range(len(positions)), key=lambda ply: (ply % 8 != 0, ply % 2 != 0, ply))
    for first in range(0, len(order), _BATCH):
        plies = order[first : first + _BATCH]
        seen = network.look_at([positions[ply] for ply in plies])
        for ply, opinion in zip(plies, seen, strict=True):
            values[ply] = blacks_value(opinion.score)
        if time.monotonic() > end:
            break
    return values


def _positions(record: GameRecord) -> list[Observed]:
    """The positions before and after each move, up to where our rules end the game."""
    game = ShogiGame(record.start_sfen, move_limit=None)
    positions = [observe(game)]
    for usi in record.moves:
        try:
            game.push_usi(usi)
        except IllegalActionError:  # people play on where our rules end a game
            break
        positions.append(observe(game))
    return positions


def _row(row: dict[str, Any]) -> GameRow:
    columns = {name: row[name] for name in GameRow.model_fields if name in row}
    return GameRow(**columns, has_record=bool(row["file"]))
