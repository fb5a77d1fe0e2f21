"""The numbers of a run: every scalar, game and event, in one SQLite file beside the checkpoints.

One process writes (`MetricsStore`), any number read while it does (`MetricsReader`): the file is
in WAL mode, where readers and the writer do not wait for each other. What was logged survives a
killed process. TensorBoard gets a copy of the scalars (see tensorboard.py).

A value that is not finite (a loss that became nan or infinite) is stored as NULL and read as nan:
a gap in the curve, and plain to see in `latest`.

A reader trusts nobody: the file may be a stranger's. It must have exactly our tables (a view could
compute for ever), its values must be of the right kind and not too long, and reading may be given a
limit of processor time.
"""

import contextlib
import functools
import json
import math
import os
import sqlite3
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from keisei.errors import KeiseiError
from keisei.files import replace_file

SCHEMA = "1"

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

_MAX_LENGTH = 128 * 1024  # bytes of a row
_MAX_NAMES = 5000
_MAX_POINTS = 1_000_000
_STEPS = 10_000  # of SQLite's machine, between two looks at the clock: a millisecond or so

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
    """Reads a run's metrics without ever holding up the training that writes them.

    With `seconds`, reading fails when it has taken the thread more processor time than that.
    """

    def __init__(self, path: Path, seconds: float | None = None) -> None:
        self.path, self._seconds = path, seconds
        self._end = math.inf if seconds is None else time.thread_time() + seconds
        with self._errors("open"):
            self._db = self._connect()
            try:
                if seconds is not None:
                    self._db.set_progress_handler(self._is_late, _STEPS)
                self._check_tables()
                self._check_schema()
            except BaseException:
                self._db.close()
                raise

    def series(self, name: str, by_time: bool = False) -> list[tuple[int, float]]:
        """The (step, value) pairs of one metric, in order; or seconds since the run's first one."""
        first = "(SELECT time FROM metrics ORDER BY rowid LIMIT 1)"
        x = f"CAST(time - {first} AS INTEGER) AS step" if by_time else "step"
        sql = f"SELECT {x}, value FROM metrics WHERE name = ? ORDER BY step LIMIT {_MAX_POINTS}"
        with self._values():
            return [_point(row) for row in self._rows(sql, name)]

    def names(self) -> list[str]:
        """The names of all metrics, sorted."""
        names = [row["name"] for row in self._query(f"{_NAMES} LIMIT {_MAX_NAMES + 1}")]
        if len(names) > _MAX_NAMES or not all(isinstance(name, str) for name in names):
            raise MetricsError(f"the metrics {self.path} have names that Keisei does not write")
        return names

    def latest(self) -> dict[str, float]:
        """The newest value of each metric."""
        return {name: value for name, (_, value) in self.latest_points().items()}

    def latest_points(self) -> dict[str, tuple[int, float]]:
        """The newest (step, value) pair of each metric."""
        newest = (
            "SELECT step, value FROM metrics WHERE name = ? ORDER BY step DESC, rowid DESC LIMIT 1"
        )
        rows = ((name, self._query(newest, name)) for name in self.names())
        with self._values():
            return {name: _point(one[0]) for name, one in rows if one}

    def events(self, limit: int = 100) -> list[dict[str, Any]]:
        """The newest events, newest first, as dicts of the table's columns."""
        rows = self._query("SELECT * FROM events ORDER BY rowid DESC LIMIT ?", limit)
        return [dict(row) for row in rows]

    def newest(self) -> tuple[int, float] | None:
        """The step and the time of what was logged last."""
        rows = self._query("SELECT step, time FROM metrics ORDER BY rowid DESC LIMIT 1")
        with self._values():
            return (int(rows[0]["step"]), _finite(rows[0]["time"])) if rows else None

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
        with self._values():
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
        real = self.path.resolve()
        for suffix in ("-wal", "-shm", "-journal"):  # SQLite opens these, too, and waits for a pipe
            beside = real.with_name(real.name + suffix)
            with contextlib.suppress(FileNotFoundError):
                if not stat.S_ISREG(beside.lstat().st_mode):
                    raise MetricsError(f"{beside} is not a regular file: remove it")
        address = real.as_uri()
        # In a folder that cannot be written (an archive), SQLite cannot make the files by which
        # readers and the writer agree. Without a writer they are not needed either.
        has_writer = self.path.with_name(f"{self.path.name}-wal").exists()
        if not has_writer and not os.access(self.path.parent, os.W_OK):
            db = _connect(f"{address}?immutable=1")
        else:
            db = _connect(f"{address}?mode=ro")
        if sys.version_info >= (3, 11):
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_LENGTH)
        return db

    def _is_late(self) -> bool:
        """SQLite asks this; yes ends what it does."""
        return time.thread_time() > self._end

    def _check_tables(self) -> None:
        ours = _own_tables()
        there = {row["name"]: row["sql"] for row in self._query("SELECT * FROM sqlite_master")}
        there.setdefault("now", ours["now"])  # a run of an older Keisei has none
        for name, sql in ours.items():
            if there.get(name) != sql:
                raise MetricsError(f"{name} in the metrics {self.path} is not as Keisei makes it")

    def _check_schema(self) -> None:
        schema = self.meta("schema")
        if schema != SCHEMA:
            raise MetricsError(
                f"the metrics {self.path} have schema {schema}; this Keisei reads {SCHEMA}"
            )

    def _query(self, sql: str, *values: object) -> list[sqlite3.Row]:
        return list(self._rows(sql, *values))

    def _rows(self, sql: str, *values: object) -> Iterator[sqlite3.Row]:
        if self._is_late():
            raise self._too_slow()
        with self._errors("read"):
            yield from self._db.execute(sql, values)

    def _too_slow(self) -> MetricsError:
        return MetricsError(f"reading the metrics {self.path} took more than {self._seconds:g} s")

    @contextlib.contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if self._is_late():
                raise self._too_slow() from error
            raise MetricsError(f"could not {doing} the metrics {self.path}: {error}") from error

    @contextlib.contextmanager
    def _values(self) -> Iterator[None]:
        """What is read must be of the kind that is written."""
        try:
            yield
        except (ValueError, TypeError, RecursionError) as error:
            raise MetricsError(
                f"the metrics {self.path} hold something that Keisei does not write: {error}"
            ) from error


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
        if not self.path.exists():
            for ending in ("-wal", "-shm", "-journal"):  # of a file that was removed
                self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
            replace_file(self.path, _new_file())
        return _connect_to_write(self.path.resolve())


def _new_file() -> bytes:
    """A file without rows. Made elsewhere, because a reader may look as soon as a run has one."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "metrics.sqlite"
        _connect_to_write(file).close()
        return file.read_bytes()


def _connect_to_write(file: Path) -> sqlite3.Connection:
    db = _connect(file.as_uri())
    db.execute("PRAGMA journal_mode = WAL")
    # Whole after any crash; only a power cut can lose the last seconds of numbers.
    db.execute("PRAGMA synchronous = NORMAL")
    db.executescript(_TABLES)
    with db:
        db.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (SCHEMA,))
    return db


def _connect(uri: str) -> sqlite3.Connection:
    db = sqlite3.connect(uri, uri=True, timeout=30.0)  # SQLite's busy_timeout
    db.row_factory = sqlite3.Row
    return db


@functools.cache
def _own_tables() -> dict[str, str]:
    """Our tables and indexes, as SQLite describes them."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(_TABLES)
        return dict(db.execute("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL").fetchall())


def _storable(value: float) -> float | None:
    number = float(value)  # also of a NumPy number or a tensor of one element
    return number if math.isfinite(number) else None


def _number(value: Any) -> float:
    if value is None:
        return math.nan
    if not isinstance(value, (int, float)):
        raise TypeError(f"{value!r:.40} is not a number")
    return value


def _finite(value: Any) -> float:
    number = _number(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a finite number")
    return number


def _point(row: sqlite3.Row) -> tuple[int, float]:
    if not isinstance(row["step"], int):
        raise TypeError(f"{row['step']!r:.40} is not a step")
    return row["step"], _number(row["value"])
