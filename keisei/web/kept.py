"""Games that are kept: played, imported and reviewed ones, in one SQLite file beside the runs.

It is the user's own file: whatever a page, a restart or a power cut does, what was kept is there.
Where it cannot be written (a folder to read from only, a damaged file), games are kept until the
server stops, and the page says so.
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import cast

from keisei.errors import KeiseiError
from keisei.shogi import Outcome
from keisei.shogi.actions import Side
from keisei.shogi.records import GameRecord, RecordError
from keisei.shogi.variations import GameTree, Variation, tree_bytes
from keisei.web.kept_schema import KeptKind, KeptList, KeptRow
from keisei.web.threads import NotFound, WebError

log = logging.getLogger(__name__)

FILE = "games.sqlite"
MAX_KEPT = 5000  # games in the file
MAX_IN_MEMORY = 200  # and where there is no file
MAX_MOVES = 1000
_MAX_LENGTH = 1024 * 1024  # bytes of one value
_SCHEMA = 1
_TABLES = """
CREATE TABLE games (
  id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT UNIQUE, kind TEXT NOT NULL, time REAL NOT NULL,
  start TEXT NOT NULL, moves TEXT NOT NULL, black TEXT NOT NULL, white TEXT NOT NULL, side TEXT,
  winner TEXT, reason TEXT, ending TEXT, comments TEXT NOT NULL, length INTEGER NOT NULL,
  variations TEXT NOT NULL)
"""
_ROW = ("id", "kind", "time", "black", "white", "side", "winner", "reason", "length")


@dataclass(frozen=True)
class KeptRecord:
    """A game and what is known of it beyond its record."""

    tree: GameTree
    kind: KeptKind
    side: Side | None = None  # the human's
    source: str | None = None  # where it comes from: kept once, however often it is asked for
    result: Outcome | None = None  # if records cannot say it: resigned when it was not one's turn


class KeptGames:
    """All games that are kept; any thread may use it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self.problem: str | None = None  # why games are not kept for good

    # -- what is kept ------------------------------------------------------------------------------

    def keep(self, game: KeptRecord) -> int:
        """Keep a game and return its number; one that is kept already is changed if it went on."""
        record = game.tree.record
        if len(record.moves) > MAX_MOVES:
            raise WebError(400, f"a game may have at most {MAX_MOVES:,} moves to be kept")
        winner, reason = ending_of(replace(record, outcome=game.result or record.outcome))
        values: dict[str, object] = {
            "start": record.start_sfen,
            "moves": " ".join(record.moves),
            "black": record.black[:200],
            "white": record.white[:200],
            "side": game.side,
            "winner": winner,
            "reason": reason,
            "ending": record.ending,
            "length": len(record.moves),
            **_notes(game.tree),
        }
        with self._using() as db:
            same = "SELECT * FROM games WHERE source = ?"
            known = db.execute(same, (game.source,)).fetchone()
            if known is None:
                self._refuse_too_many(db)
                values |= {"source": game.source, "kind": game.kind, "time": time.time()}
                places = ", ".join("?" * len(values))
                sql = f"INSERT INTO games ({', '.join(values)}) VALUES ({places})"
                return int(db.execute(sql, (*values.values(),)).lastrowid or 0)
            if (known["moves"], known["reason"]) != (values["moves"], reason):
                values |= _notes(game.tree.noted_as(_game(known).tree))
                _update(db, known["id"], values)
            return int(known["id"])

    def change(self, number: int, change: Callable[[GameTree], GameTree]) -> None:
        """Change the variations and comments of a game."""
        with self._using() as db:
            tree = _game(_find(db, number)).tree
            _update(db, number, _notes(change(tree)))

    def _refuse_too_many(self, db: sqlite3.Connection) -> None:
        limit = MAX_IN_MEMORY if self.problem else MAX_KEPT
        if db.execute("SELECT COUNT(*) FROM games").fetchone()[0] >= limit:
            raise WebError(409, f"{limit:,} games are kept already: delete some under Your games")

    def row(self, number: int) -> KeptRow:
        """A game as the list shows it."""
        return _row(self._read(number))

    def open(self, number: int) -> KeptRecord:
        """A kept game."""
        return _game(self._read(number))

    def find(self, text: str, kind: KeptKind | None, offset: int, limit: int) -> KeptList:
        """Games with this text in a name or in how they ended, newest first."""
        like = "%" + re.sub(r"([%_\\])", r"\\\1", text) + "%"
        where = "WHERE black || ' ' || white || ' ' || coalesce(reason, '') LIKE ? ESCAPE '\\'"
        values: list[object] = [like]
        if kind:
            where += " AND kind = ?"
            values.append(kind)
        with self._using() as db:
            total = db.execute(f"SELECT COUNT(*) FROM games {where}", values).fetchone()[0]
            rows = db.execute(
                f"SELECT * FROM games {where} ORDER BY id DESC LIMIT ? OFFSET ?",
                (*values, limit, offset),
            ).fetchall()
        return KeptList(total=total, games=[_row(row) for row in rows], problem=self.problem)

    def delete(self, number: int) -> None:
        """Delete a game for good."""
        with self._using() as db:
            _find(db, number)
            db.execute("DELETE FROM games WHERE id = ?", (number,))

    def _read(self, number: int) -> sqlite3.Row:
        with self._using() as db:
            return _find(db, number)

    # -- the file ----------------------------------------------------------------------------------

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """The database, for one transaction."""
        with self._lock:
            if self._db is None:
                self._db = self._open()
            try:
                with self._db:
                    yield self._db
            except (sqlite3.Error, OverflowError) as error:
                raise WebError(500, f"{self._path} cannot be used ({error})") from None

    def _open(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.is_symlink() or (self._path.exists() and not self._path.is_file()):
                raise KeiseiError("it is not a regular file")
            return _connect(str(self._path))
        except (OSError, sqlite3.Error, KeiseiError) as error:
            self.problem = f"{self._path} cannot hold your games ({error})"
            log.warning("%s: they are kept until the server stops", self.problem)
            return _connect(":memory:")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None


def _connect(name: str) -> sqlite3.Connection:
    db = sqlite3.connect(name, timeout=5.0, check_same_thread=False)
    try:
        db.row_factory = sqlite3.Row
        if sys.version_info >= (3, 11):
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_LENGTH)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if not db.execute("SELECT 1 FROM sqlite_master").fetchone():
            with db:
                db.execute(_TABLES)
                db.execute(f"PRAGMA user_version = {_SCHEMA}")
        elif version != _SCHEMA:
            raise KeiseiError(f"it has schema {version}; this Keisei reads {_SCHEMA}")
        return db
    except BaseException:
        db.close()
        raise


def _find(db: sqlite3.Connection, number: int) -> sqlite3.Row:
    row = db.execute("SELECT * FROM games WHERE id = ?", (number,)).fetchone()
    if row is None:
        raise NotFound(f"there is no kept game {number}: it may have been deleted")
    return cast(sqlite3.Row, row)


def _update(db: sqlite3.Connection, number: int, values: dict[str, object]) -> None:
    changes = ", ".join(f"{name} = ?" for name in values)
    db.execute(f"UPDATE games SET {changes} WHERE id = ?", (*values.values(), number))


def _notes(tree: GameTree) -> dict[str, object]:
    """What the user adds to a game."""
    variations = [astuple(one) for one in tree.variations]
    return {
        "comments": json.dumps(dict(tree.record.comments)),
        "variations": json.dumps(variations),
    }


def _game(row: sqlite3.Row) -> KeptRecord:
    outcome = None
    if row["reason"] and not row["ending"]:
        outcome = Outcome(row["winner"], row["reason"])
    record = GameRecord(
        row["start"],
        tuple(row["moves"].split()),
        row["black"],
        row["white"],
        outcome,
        row["ending"],
        {int(ply): text for ply, text in json.loads(row["comments"]).items()},
    )
    result = None
    if outcome and outcome.reason == "resignation" and outcome.winner == record.game().turn:
        record, result = replace(record, outcome=None), outcome
    variations = tuple(Variation(*one) for one in json.loads(row["variations"]))
    return KeptRecord(GameTree(record, variations), row["kind"], row["side"], row["source"], result)


def _row(row: sqlite3.Row) -> KeptRow:
    return KeptRow(**{name: row[name] for name in _ROW})


def ending_of(record: GameRecord) -> tuple[Side | None, str | None]:
    """Who won and how; None for both if the game is not over.

    >>> ending_of(GameRecord(ending="WHITE_WIN_BY_TIMEOUT"))
    ('white', 'timeout')
    """
    if record.outcome:
        return record.outcome.winner, record.outcome.reason
    if record.ending is None:
        return None, None
    first, _, reason = record.ending.partition("_BY_")
    winners: dict[str, Side] = {"BLACK_WIN": "black", "WHITE_WIN": "white"}
    return winners.get(first), (reason or first).replace("_", " ").lower()


def record_file(tree: GameTree, stem: str, suffix: str) -> tuple[str, bytes]:
    """A game as a file of this format: name and content."""
    file = f"{stem}.{suffix}"
    try:
        return file, tree_bytes(tree, file)
    except RecordError:  # CP932 lacks a character: UTF-8 has them all
        if suffix != "kif":
            raise
        return f"{file}u", tree_bytes(tree, f"{file}u")
