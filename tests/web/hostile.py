"""Run folders as a stranger might make them: each function spoils a good run in one way."""

import io
import json
import os
import re
import sqlite3
import zipfile
from contextlib import closing
from itertools import pairwise

import torch

from keisei.runs import checkpoint

HUGE = 10 * 1024**3  # bytes; a hole in the file, so that it takes no room
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in pairwise("abcdefghi")
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{new}: &{new} {{<<: [{', '.join([f'*{old}'] * 9)}]}}\n" for old, new in pairwise("abcdefghi")
)
HOSTILE = {}


def hostile(*places):
    """Registers a function that spoils a run, once for each of the places."""

    def register(function):
        name = function.__name__
        for place in places or [None]:
            what = f"{name}-{re.sub('[^a-z]+', '-', place)}" if place else name
            HOSTILE[what] = (function, [place] if place else [])
        return function

    return register


def spoil(run, name):
    function, arguments = HOSTILE[name]
    function(run, *arguments)


def replace(path):
    """The path, with nothing there."""
    path.unlink(missing_ok=True) if not path.is_dir() else path.rename(f"{path}-away")
    return path


FILES = ("config.yaml", "lock", "ladder.json", "metrics.sqlite", "checkpoints/step_000000009999.pt")


@hostile(*FILES, "checkpoints", "metrics.sqlite-wal", "games/000000000001.kif")
def pipe(run, file):
    os.mkfifo(replace(run / file))


@hostile(*FILES)
def device(run, file):
    replace(run / file).symlink_to("/dev/zero")


@hostile("config.yaml", "lock", "ladder.json", "checkpoints/step_000000009999.pt")
def hole(run, file):
    with replace(run / file).open("wb") as sparse:
        sparse.truncate(HUGE)


@hostile()
def yaml_laughs(run):
    (run / "config.yaml").write_text(LAUGHS + "world: *i\n")


@hostile()
def yaml_merges(run):
    (run / "config.yaml").write_text(MERGES + "world: *i\n")


@hostile()
def yaml_loop(run):
    (run / "config.yaml").write_text("world: &a [*a]\n")


@hostile()
def yaml_depth(run):
    (run / "config.yaml").write_text("world: " + "[" * 30_000)


@hostile()
def yaml_many(run):
    (run / "config.yaml").write_text("world: tag\nagents:\n" + "- x\n" * 4000)


@hostile()
def code(run):
    """It names a module that lies beside it; its checkpoint would run code, too."""
    (run / "payload.py").write_text("open('it_ran', 'w')\n")
    (run / "config.yaml").write_text(f"world: runs.{run.name}.payload:Hunt\n")

    class Harmful:
        def __reduce__(self):
            return open, ("it_ran", "w")

    seal(run, {"environment": Harmful()})


def seal(run, tree):
    """A checkpoint of anything, with a right seal."""
    encode, checkpoint._encode = checkpoint._encode, lambda state, where: state
    try:
        checkpoint.save_checkpoint(run / "checkpoints/step_000000009999.pt", tree)
    finally:
        checkpoint._encode = encode


@hostile()
def checkpoint_laughs(run):
    tree = "x"
    for _ in range(12):
        tree = [tree] * 10
    seal(run, {"agent": tree})


@hostile()
def checkpoint_repeats(run):
    seal(run, {"agent": {"__keisei__": "bytes", "data": torch.zeros(1).expand(10**10)}})


@hostile()
def checkpoint_of_a_giant(run):
    settings = "model: {depth: 40, width: 1024}\ntraining: {parallel: {enabled: false}}\n"
    seal(run, {"config": settings, "agent": {"network": {}}, "progress": {}})


@hostile()
def checkpoint_packed(run):
    path = run / "checkpoints/step_000000009999.pt"
    seal(run, {"agent": torch.zeros(100_000_000, dtype=torch.uint8)})
    packed = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
        new.comment = b"x" * checkpoint._SEAL_LENGTH
    data = packed.getvalue()[: -checkpoint._SEAL_LENGTH] + b"keisei checkpoint format 001 sha256 "
    path.write_bytes(data + checkpoint.hashlib.sha256(data).hexdigest().encode())


@hostile("metrics", "events", "games", "meta", "now")
def view(run, table):
    """Instead of a table, a view that never ends."""
    columns = {
        "metrics": "x AS step, x AS time, 'loss' AS name, x AS value",
        "events": "x AS rowid, x AS time, 'info' AS level, 'x' AS message",
        "games": "x AS id, x AS step, x AS time",
        "meta": "x AS key, x AS value",
        "now": "x AS key, x AS time, '[]' AS value",
    }
    change(run, f"DROP TABLE {table}", f"CREATE VIEW {table} AS {ENDLESS} {columns[table]} FROM n")


@hostile(
    "now VALUES ('workers', 1, '[{}]')",
    "now VALUES ('workers', 2, 'not json')",
    "events VALUES ('noon', NULL, x'ff')",
    "events VALUES (9e999, 'info', 'x')",
    "games VALUES (1, 'a', 'b', 3, 4, 5, 'x', 6, 'y', NULL)",
    "metrics VALUES ('late', 'noon', 'loss', 'much')",
    "metrics VALUES (1, 1, x'ff', 1)",
    "meta VALUES ('random_return', '- x')",
)
def row(run, what):
    change(run, "DELETE FROM now", "DELETE FROM games", f"INSERT OR REPLACE INTO {what}")


@hostile()
def returns_that_laugh(run):
    change(run, ("INSERT OR REPLACE INTO meta VALUES ('random_return', ?)", [LAUGHS + "z: *i"]))


@hostile()
def a_hundred_thousand_names(run):
    number = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 100000) "
    change(run, f"INSERT INTO metrics {number} SELECT 1, 1, 'name ' || x, 1 FROM n")


def change(run, *statements):
    with closing(sqlite3.connect(run / "metrics.sqlite")) as db, db:
        for statement in statements:
            db.execute(*(statement if isinstance(statement, tuple) else (statement,)))


@hostile()
def ladder_of_lists(run):
    (run / "ladder.json").write_text("[" + "[]," * 300_000 + "[]]")


@hostile()
def ladder_of_many(run):
    names = [f"{number}, {number} nodes" for number in range(6000)]
    ratings = [{"name": n, "elo": 0, "low": 0, "high": 0, "games": 1} for n in names]
    players = [{"name": name, "steps": 1} for name in names]
    (run / "ladder.json").write_text(json.dumps({"players": players, "ratings": ratings}))
