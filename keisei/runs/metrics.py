"""The numbers of a run: every scalar, game and event, in one SQLite file beside the checkpoints.

One process writes (`MetricsStore`), any number read while it does (`MetricsReader`): the file is
in WAL mode, where readers and the writer do not wait for each other. What was logged survives a
killed process. TensorBoard gets the same scalars (`TensorBoardWriter`), as a copy for looking at.

A value that is not finite (a loss that became nan or infinite) is stored as NULL and read as nan:
a gap in the curve, and plain to see in `latest`.
"""

import contextlib
import json
import logging
import math
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from keisei.errors import KeiseiError

SCHEMA = "1"

_log = logging.getLogger(__name__)
_Reader = TypeVar("_Reader", bound="MetricsReader")

_TABLES = """
CREATE TABLE IF NOT EXISTS metrics (step INTEGER, time REAL, name TEXT, value REAL);
CREATE INDEX IF NOT EXISTS metrics_by_name ON metrics (name, step);
CREATE TABLE IF NOT EXISTS games (
    id INTEGER PRIMARY KEY, step INTEGER, time REAL, kind TEXT, black TEXT, white TEXT,
    winner TEXT, reason TEXT, length INTEGER, file TEXT);
CREATE INDEX IF NOT EXISTS games_by_step ON games (step);
CREATE TABLE IF NOT EXISTS events (time REAL, level TEXT, message TEXT);
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS now (key TEXT PRIMARY KEY, time REAL, value TEXT);
"""

# Jumps from name to name in the index, where DISTINCT would read every row of it.
_NAMES = """
WITH RECURSIVE known(name) AS (
    SELECT MIN(name) FROM metrics
    UNION ALL
    SELECT (SELECT MIN(name) FROM metrics WHERE name > known.name)
    FROM known WHERE known.name IS NOT NULL)
SELECT name FROM known WHERE name IS NOT NULL
"""


class MetricsError(KeiseiError):
    """The metrics could not be written or read; the message names the file and the reason."""


class MetricsReader:
    """Reads a run's metrics without ever holding up the training that writes them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._errors("open"):
            self._db = self._connect()
            try:
                self._check_schema()
            except BaseException:
                self._db.close()
                raise

    def series(self, name: str) -> list[tuple[int, float]]:
        """The (step, value) pairs of one metric, in order of step."""
        rows = self._query("SELECT step, value FROM metrics WHERE name = ? ORDER BY step", name)
        return [(row["step"], _number(row["value"])) for row in rows]

    def names(self) -> list[str]:
        """The names of all metrics, sorted."""
        return [row["name"] for row in self._query(_NAMES)]

    def latest(self) -> dict[str, float]:
        """The newest value of each metric."""
        return {name: value for name, (_, value) in self.latest_points().items()}

    def latest_points(self) -> dict[str, tuple[int, float]]:
        """The newest (step, value) pair of each metric."""
        newest = (
            "SELECT step, value FROM metrics WHERE name = ? ORDER BY step DESC, rowid DESC LIMIT 1"
        )
        rows = ((name, self._query(newest, name)) for name in self.names())
        return {name: (one[0]["step"], _number(one[0]["value"])) for name, one in rows if one}

    def games(self, limit: int = 100) -> list[dict[str, Any]]:
        """The newest games, newest first, as dicts of the table's columns."""
        rows = self._query("SELECT * FROM games ORDER BY id DESC LIMIT ?", limit)
        return [dict(row) for row in rows]

    def events(self, limit: int = 100) -> list[dict[str, Any]]:
        """The newest events, newest first, as dicts of the table's columns."""
        rows = self._query("SELECT * FROM events ORDER BY rowid DESC LIMIT ?", limit)
        return [dict(row) for row in rows]

    def newest(self) -> tuple[int, float] | None:
        """The step and the time of what was logged last."""
        rows = self._query("SELECT step, time FROM metrics ORDER BY rowid DESC LIMIT 1")
        return (int(rows[0]["step"]), float(rows[0]["time"])) if rows else None

    def find_games(
        self,
        where: Mapping[str, str | None],
        with_record: bool = False,
        offset: int = 0,
        limit: int = 50,
    ) -> tuple[int, list[dict[str, Any]]]:
        """How many games have these values in these columns, and some of them, newest first."""
        tests = [f"{column} IS ?" for column in where]
        tests += ["file IS NOT NULL"] if with_record else []
        clause = f"WHERE {' AND '.join(tests)}" if tests else ""
        total = self._query(f"SELECT COUNT(*) AS n FROM games {clause}", *where.values())[0]["n"]
        rows = self._query(
            f"SELECT * FROM games {clause} ORDER BY id DESC LIMIT ? OFFSET ?",
            *where.values(),
            limit,
            offset,
        )
        return int(total), [dict(row) for row in rows]

    def game(self, number: int) -> dict[str, Any] | None:
        """The game with this id, if there is one."""
        rows = self._query("SELECT * FROM games WHERE id = ?", number)
        return dict(rows[0]) if rows else None

    def reasons(self) -> list[str]:
        """How games ended, each reason once."""
        rows = self._query("SELECT DISTINCT reason FROM games ORDER BY reason")
        return [row["reason"] for row in rows]

    def now(self, key: str) -> Any:
        """What was stored with `MetricsStore.set_now`; None if nothing was."""
        if not self._query("SELECT 1 FROM sqlite_master WHERE name = 'now'"):
            return None  # a run of an older Keisei
        rows = self._query("SELECT value FROM now WHERE key = ?", key)
        return json.loads(rows[0]["value"]) if rows else None

    def meta(self, key: str) -> str | None:
        """A fact about the run that was stored with `MetricsStore.set_meta`."""
        rows = self._query("SELECT value FROM meta WHERE key = ?", key)
        return str(rows[0]["value"]) if rows else None

    def close(self) -> None:
        with self._errors("close"):
            self._db.close()

    def __enter__(self: _Reader) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self) -> sqlite3.Connection:
        if not self.path.is_file():
            raise MetricsError(f"there are no metrics at {self.path}")
        address = self.path.resolve().as_uri()
        # In a folder that cannot be written (an archive), SQLite cannot make the files by which
        # readers and the writer agree. Without a writer they are not needed either.
        has_writer = self.path.with_name(f"{self.path.name}-wal").exists()
        if not has_writer and not os.access(self.path.parent, os.W_OK):
            return _connect(f"{address}?immutable=1")
        return _connect(f"{address}?mode=ro")

    def _check_schema(self) -> None:
        schema = self.meta("schema")
        if schema != SCHEMA:
            raise MetricsError(
                f"the metrics {self.path} have schema {schema}; this Keisei reads {SCHEMA}"
            )

    def _query(self, sql: str, *values: object) -> list[sqlite3.Row]:
        with self._errors("read"):
            return self._db.execute(sql, values).fetchall()

    @contextlib.contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise MetricsError(f"could not {doing} the metrics {self.path}: {error}") from error


class MetricsStore(MetricsReader):
    """The single writer of a run's metrics; each call is one transaction."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Store the values of several metrics at `step`."""
        now = time.time()
        rows = [(step, now, name, _storable(value)) for name, value in values.items()]
        with self._errors("write to"), self._db:
            self._db.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?)", rows)

    def _write(self, sql: str, *values: object) -> int:
        with self._errors("write to"), self._db:
            return int(self._db.execute(sql, values).lastrowid or 0)

    def log_game(
        self,
        step: int,
        *,
        kind: str,
        black: str,
        white: str,
        winner: str | None,
        reason: str,
        length: int,
        file: str | None = None,
    ) -> int:
        """Store the result of one game and return its id; `file` is its record in ``games/``."""
        row = (None, step, time.time(), kind, black, white, winner, reason, length, file)
        return self._write("INSERT INTO games VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *row)

    def log_event(self, level: str, message: str) -> None:
        """Store something worth knowing later: a worker that died, a resume, a warning."""
        self._write("INSERT INTO events VALUES (?, ?, ?)", time.time(), level, message)

    def set_meta(self, key: str, value: str) -> None:
        """Store a fact about the run in place of an earlier one of the same key."""
        self._write("INSERT OR REPLACE INTO meta VALUES (?, ?)", key, value)

    def set_now(self, key: str, value: Any) -> None:
        """Store how something is at this moment (workers, games in play), as JSON."""
        text = json.dumps(value, allow_nan=False)
        self._write("INSERT OR REPLACE INTO now VALUES (?, ?, ?)", key, time.time(), text)

    def truncate_after(self, step: int) -> None:
        """Forget metrics and games later than `step`, so that a resumed curve has no double points.

        Events stay: they tell what happened, also in the part that is played again.
        """
        with self._errors("write to"), self._db:
            self._db.execute("DELETE FROM metrics WHERE step > ?", (step,))
            self._db.execute("DELETE FROM games WHERE step > ?", (step,))

    def _connect(self) -> sqlite3.Connection:
        db = _connect(self.path.resolve().as_uri())
        db.execute("PRAGMA journal_mode = WAL")
        # Whole after any crash; only a power cut can lose the last seconds of numbers.
        db.execute("PRAGMA synchronous = NORMAL")
        db.executescript(_TABLES)
        with db:
            db.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (SCHEMA,))
        return db


class TensorBoardWriter:
    """A copy of the scalars for TensorBoard; if it fails, it says so once and the run goes on.

    It writes tensorboardX's records by itself. `tensorboardX.SummaryWriter` hands them to a thread
    through a queue of ten: when a full disk ends that thread, the eleventh event, and the end of
    the program, wait for ever.
    """

    def __init__(self, folder: Path, resumed_at: int | None = None) -> None:
        """Write into `folder`; of a run that was resumed, TensorBoard hides what was later."""
        self._folder = folder
        self._file: Any = None
        with self._never_failing():
            from tensorboardX.proto.event_pb2 import SessionLog
            from tensorboardX.record_writer import RecordWriter

            folder.mkdir(parents=True, exist_ok=True)
            # TensorBoard reads every file whose name has "tfevents" in it, in order of name.
            self._file = RecordWriter(str(folder / f"events.out.tfevents.{time.time_ns()}"))
            self._write(file_version="brain.Event:2")
            if resumed_at is not None:
                start = SessionLog(status=SessionLog.START)
                self._write(step=resumed_at + 1, session_log=start)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write the values of several metrics at `step`."""
        if self._file is None:
            return
        with self._never_failing():
            from tensorboardX.summary import scalar

            for name, value in values.items():
                self._write(step=step, summary=scalar(name, float(value)))
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            with self._never_failing():
                self._file.close()
            self._file = None

    def _write(self, **fields: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event

        self._file.write(Event(wall_time=time.time(), **fields).SerializeToString())

    @contextlib.contextmanager
    def _never_failing(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            _log.warning("no more TensorBoard events in %s: %s", self._folder, error)
            if self._file is not None:
                with contextlib.suppress(Exception):
                    self._file.close()
            self._file = None


def _connect(uri: str) -> sqlite3.Connection:
    db = sqlite3.connect(uri, uri=True, timeout=30.0)  # SQLite's busy_timeout
    db.row_factory = sqlite3.Row
    return db


def _storable(value: float) -> float | None:
    number = float(value)  # also of a NumPy number or a tensor of one element
    return number if math.isfinite(number) else None


def _number(value: float | None) -> float:
    return math.nan if value is None else value
