"""A run belongs to one training at a time, and what it logged is there whatever happens."""

import collections
import math
import os
import re
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tensorboardX.proto.event_pb2 import Event, SessionLog
from typer.testing import CliRunner

from keisei.cli import app
from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.runs.metrics import MetricsError, MetricsReader, MetricsStore
from keisei.runs.run import Run, RunError
from keisei.runs.tensorboard import TensorBoardWriter
from keisei.settings import to_yaml
from keisei.worlds.config import WorldRunConfig
from tests.processes import Process
from tests.training.conftest import finish, run_python
from tests.web.hostile import spoil

needs_locks = pytest.mark.skipif(sys.platform == "win32", reason="runs are not locked on Windows")


def first_line(process: Process) -> str:
    return process.stdout.readline().strip()


# Runs


def test_a_new_run_has_its_config_and_folders_and_can_be_opened_by_name_or_path(tmp_path):
    run = Run.create(tmp_path / "runs", "first", "seed: 1 # 形勢\n")
    assert run.name == "first"
    assert run.config_path.read_text(encoding="utf-8") == "seed: 1 # 形勢\n"
    names = sorted(path.name for path in run.folder.iterdir())
    assert names == ["checkpoints", "config.yaml", "games", "tensorboard"]
    assert Run.open("first", tmp_path / "runs") == run
    assert Run.open(run.folder, Path("elsewhere")) == run


def test_runs_without_a_name_are_named_by_date_and_time_and_never_share_a_folder(tmp_path):
    names = [Run.create(tmp_path, None, "").name for _ in range(5)]
    assert len(set(names)) == 5
    assert all(re.fullmatch(r"\d{8}-\d{6}(-[2-5])?", name) for name in names)


def test_a_name_that_is_taken_is_refused_and_the_run_left_alone(tmp_path):
    run = Run.create(tmp_path, "mine", "old")
    with pytest.raises(
        RunError, match=r"mine already exists: continue it with --resume, or choose"
    ):
        Run.create(tmp_path, "mine", "new")
    assert run.config_path.read_text() == "old"


@pytest.mark.parametrize("name", ["", " ", ".", "..", ".hidden", "a/b", "a\\b", "/", "a\0b", "-x"])
def test_a_name_that_is_no_plain_file_name_is_refused(tmp_path, name):
    with pytest.raises(RunError, match="a run's name must"):
        Run.create(tmp_path, name, "")
    assert list(tmp_path.iterdir()) == []


def test_a_run_where_no_folder_can_be_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for root in (tmp_path / "file", tmp_path / "file" / "runs"):
        with pytest.raises(RunError, match=rf"cannot make a run in {root}: .*file is a file"):
            Run.create(root, "a", "")
    with pytest.raises(RunError, match="File name too long"):
        Run.create(tmp_path, "x" * 300, "")


def test_opening_what_is_no_run_says_what_is_missing(tmp_path):
    with pytest.raises(RunError, match=r"no run 'gone': looked for the folder .*gone"):
        Run.open("gone", tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match=r"not a run: it has no config\.yaml and no checkpoints"):
        Run.open("empty", tmp_path)
    (tmp_path / "empty" / "checkpoints").mkdir()
    with pytest.raises(RunError, match=r"not a run: it has no config\.yaml"):
        Run.open("empty", tmp_path)


@pytest.mark.parametrize("settings", ["{world: tag}", '"world": tag', "seed: 1\nworld : tag"])
def test_a_run_of_a_world_is_known_by_its_settings_however_they_are_written(tmp_path, settings):
    Run.create(tmp_path, "a", settings)
    with pytest.raises(RunError, match="a is a run of the world tag"):
        Run.open("a", tmp_path)
    assert Run.open("a", tmp_path, of_world=True).name == "a"


def test_a_run_whose_settings_cannot_be_read_is_refused(tmp_path):
    Run.create(tmp_path, "a", "env: [")
    with pytest.raises(KeiseiError, match=r"config\.yaml is not YAML"):
        Run.open("a", tmp_path)


SHOGI, HUNT = to_yaml(AppConfig()), to_yaml(WorldRunConfig(world="treasure_hunt"))


@pytest.mark.parametrize(
    "command",
    [
        ["train", "--resume", "hunt"],
        ["evaluate", "hunt", "random"],
        ["ladder", "hunt"],
        ["play", "hunt"],
        ["export", "hunt", "-o", "hunt.pt"],
    ],
    ids=" ".join,
)
def test_what_is_for_shogi_tells_what_is_for_a_run_of_a_world(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Run.create(Path("runs"), "hunt", HUNT)
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert done.stderr == (
        "keisei: hunt is a run of the world treasure_hunt: use keisei worlds watch hunt, or "
        "keisei worlds train --resume hunt\n"
    )


@pytest.mark.parametrize("command", [["watch", "first"], ["train", "--resume", "first"]])
def test_what_is_for_worlds_tells_what_is_for_a_run_of_shogi(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Run.create(Path("runs"), "first", SHOGI)
    done = CliRunner().invoke(app, ["worlds", *command])
    assert done.exit_code == 2
    assert done.stderr == (
        "keisei: first is a run of Shogi: use keisei play first, or keisei train --resume first\n"
    )


HOLD_THE_RUN = """
import sys
from pathlib import Path
from keisei.runs.run import Run
with Run.open(sys.argv[1], Path(".")).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


@needs_locks
def test_a_second_training_is_refused_and_told_the_process_until_that_is_killed(tmp_path):
    run = Run.create(tmp_path, "shared", "")
    holder = run_python(tmp_path, HOLD_THE_RUN, run.folder)
    assert first_line(holder) == "held"
    with pytest.raises(RunError, match=rf"in use .*\(process {holder.pid}\)"), run.lock():
        pass
    holder.kill()
    holder.wait()
    with run.lock():
        assert run.lock_path.read_text() == f"{os.getpid()}\n"


@needs_locks
def test_a_process_cannot_lock_a_run_twice_but_again(tmp_path):
    run = Run.create(tmp_path, "mine", "")
    with run.lock(), pytest.raises(RunError, match=rf"process {os.getpid()}\)"), run.lock():
        pass
    with run.lock():
        pass


def test_locking_a_run_restores_folders_that_were_removed_by_hand(tmp_path):
    run = Run.create(tmp_path, "mine", "")
    run.games_dir.rmdir()
    with run.lock():
        assert run.games_dir.is_dir()


# Metrics


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics #1?.sqlite"


def test_logged_values_come_back_in_order_of_step(path):
    with MetricsStore(path) as store:
        store.log(20, {"loss": 0.5, "speed": 100})
        store.log(10, {"loss": np.float32(0.75)})
        store.log(30, {"loss": torch.tensor(0.25)})
        assert store.series("loss") == [(10, 0.75), (20, 0.5), (30, 0.25)]
        assert store.series("unknown") == []
        assert store.names() == ["loss", "speed"]
        assert store.latest() == {"loss": 0.25, "speed": 100.0}
    with MetricsStore(path) as store:
        assert len(store.series("loss")) == 3


def test_new_metrics_in_place_of_removed_ones_are_not_mixed_with_what_those_left(tmp_path):
    path, left = tmp_path / "metrics.sqlite", tmp_path / "metrics.sqlite-wal"
    with MetricsStore(path) as store:
        for step in range(1000):
            store.log(step, {"loss": 0.5, "entropy": 3.0})
        kept = left.read_bytes()
    path.unlink()
    left.write_bytes(kept)  # as after `kill -9`
    with MetricsStore(path) as store:
        assert store.series("loss") == []
        store.log(1, {"loss": 0.25})
    with MetricsStore(path) as store:
        assert store.series("loss") == [(1, 0.25)]


def test_values_that_are_not_finite_are_nan_and_hide_nothing(path):
    with MetricsStore(path) as store:
        store.log(1, {"loss": 1.0})
        store.log(2, {"loss": math.nan})
        store.log(3, {"loss": math.inf})
        assert [math.isnan(value) for _, value in store.series("loss")] == [False, True, True]
        assert math.isnan(store.latest()["loss"])


def test_games_events_and_facts_come_back(path):
    with MetricsStore(path) as store:
        common = {"kind": "ladder", "black": "v1", "white": "v2", "reason": "checkmate"}
        first = store.log_game(5, **common, winner="v1", length=91, file="5.csa")
        second = store.log_game(6, **common, winner=None, length=512)
        store.log_event("warning", "worker 3 died")
        store.set_meta("host", "a")
        store.set_meta("host", "b")
        games = store.find_games({})[1]
        assert [game["id"] for game in games] == [second, first]
        assert games[1]["file"] == "5.csa"
        assert games[0]["winner"] is None
        assert store.find_games({}, limit=1)[1] == games[:1]
        assert store.events()[0]["message"] == "worker 3 died"
        assert (store.meta("host"), store.meta("unknown")) == ("b", None)


def test_truncating_removes_what_is_later_than_the_step_and_keeps_events(path):
    with MetricsStore(path) as store:
        for step in (1, 2, 3):
            store.log(step, {"loss": float(step)})
            store.log_game(
                step, kind="self", black="a", white="a", winner="a", reason="mate", length=9
            )
        store.log_event("info", "resumed")
        store.truncate_after(2)
        store.log(3, {"loss": 9.0})
        assert store.series("loss") == [(1, 1.0), (2, 2.0), (3, 9.0)]
        assert [game["step"] for game in store.find_games({})[1]] == [2, 1]
        assert len(store.events()) == 1


def test_a_reader_sees_rows_while_the_writer_is_open_and_never_blocks_it(path):
    with MetricsStore(path) as store, MetricsReader(path) as reader:
        store.log(1, {"loss": 1.0})
        assert reader.latest() == {"loss": 1.0}
        slow = reader._db.execute("SELECT * FROM metrics")  # a read that is not finished
        store.log(2, {"loss": 2.0})
        slow.close()
        assert reader.series("loss") == [(1, 1.0), (2, 2.0)]


MAKE_MANY = """
import sys
from pathlib import Path
from keisei.runs.metrics import MetricsStore
for number in range(50):
    with MetricsStore(Path(sys.argv[1]) / f"{number}.sqlite") as store:
        store.log(1, {"loss": 1.0})
"""


def test_whoever_looks_as_soon_as_there_is_a_file_finds_it_whole(tmp_path):
    writer = run_python(tmp_path, MAKE_MANY, tmp_path)
    try:
        for number in range(50):
            path = tmp_path / f"{number}.sqlite"
            while not path.exists():
                assert writer.poll() is None or path.exists()
            with MetricsReader(path) as reader:
                assert reader.latest() in ({}, {"loss": 1.0})
        finish(writer)
    finally:
        writer.kill()


def test_a_reader_cannot_write(path):
    MetricsStore(path).close()
    with MetricsReader(path) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._db.execute("INSERT INTO events VALUES (1, 'a', 'b')")


LOG_FOR_EVER = """
import itertools, sys
from pathlib import Path
from keisei.runs.metrics import MetricsStore
store = MetricsStore(Path(sys.argv[1]))
for step in itertools.count():
    store.log(step, {"a": step, "b": -step})
    print(step, flush=True)
"""


def test_everything_logged_survives_kill_9_of_the_writer(path):
    writer = run_python(path.parent, LOG_FOR_EVER, path)
    while int(first_line(writer)) < 50:
        pass
    writer.kill()
    writer.wait()
    with MetricsReader(path) as reader:
        steps = [step for step, _ in reader.series("a")]
        assert len(steps) > 50
        assert steps == list(range(len(steps)))
        assert reader.series("b") == [(step, -step) for step in steps]
    with MetricsStore(path) as store:
        store.log(10**6, {"a": 0})
        assert store.latest()["a"] == 0


def test_what_is_no_metrics_file_is_a_clear_error(path, tmp_path):
    with pytest.raises(MetricsError, match="there are no metrics at"):
        MetricsReader(path)
    assert not path.exists()
    with pytest.raises(MetricsError, match=r"could not open the metrics .*No such file"):
        MetricsStore(tmp_path / "no" / "folder" / "metrics.sqlite")
    path.write_bytes(b"this is no database, whatever its name says" * 100)
    for kind in (MetricsReader, MetricsStore):
        with pytest.raises(MetricsError, match="not a database"):
            kind(path)


def test_metrics_of_another_schema_are_refused(path):
    with MetricsStore(path) as store:
        store.set_meta("schema", "9")
    with pytest.raises(MetricsError, match="schema 9; this Keisei reads 1"):
        MetricsStore(path)


@pytest.mark.parametrize("table", ["metrics", "games", "events", "meta", "now"])
def test_a_view_in_place_of_a_table_is_refused_before_anything_is_read(tmp_path, table):
    path = tmp_path / "metrics.sqlite"
    MetricsStore(path).close()
    spoil(tmp_path, f"view-{table}")
    with pytest.raises(MetricsError, match=r"\w+ in the metrics .* is not as Keisei makes it"):
        MetricsReader(path)


def test_reading_that_takes_too_long_is_an_error(tmp_path):
    path = tmp_path / "metrics.sqlite"
    MetricsStore(path).close()
    spoil(tmp_path, "a_hundred_thousand_names")
    with (
        MetricsReader(path, seconds=0.05) as reader,
        pytest.raises(MetricsError, match=r"took more than 0\.05 s"),
    ):
        collections.deque(reader.series("name 1") for _ in range(10_000))


def test_a_full_disk_is_reported_and_what_was_logged_before_stays(tiny_disk):
    with MetricsStore(tiny_disk / "metrics.sqlite") as store:
        store.log(0, {"loss": 1.0})
        with pytest.raises(MetricsError, match=r"metrics\.sqlite: .*(full|I/O)"):
            store.log_event("info", "x" * 2_000_000)
        assert store.series("loss") == [(0, 1.0)]


def test_an_archived_run_can_be_read_where_nothing_can_be_written(tiny_disk):
    with MetricsStore(tiny_disk / "metrics.sqlite") as store:
        store.log(1, {"loss": 1.0})
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    with MetricsReader(tiny_disk / "metrics.sqlite") as reader:
        assert reader.latest() == {"loss": 1.0}


# TensorBoard


def events_in(file: Path) -> list[Event]:
    """A record is its length, a checksum of that, the event, and a checksum of it."""
    data, events = file.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        events.append(Event.FromString(data[12 : 12 + length]))
        data = data[16 + length :]
    return events


def test_tensorboard_gets_the_scalars_at_once(tmp_path):
    writer = TensorBoardWriter(tmp_path / "tb")
    writer.log(5, {"loss/policy": 0.5, "speed": 100})
    (file,) = (tmp_path / "tb").iterdir()
    found = [(e.step, v.tag, v.simple_value) for e in events_in(file) for v in e.summary.value]
    assert found == [(5, "loss/policy", 0.5), (5, "speed", 100.0)]
    writer.close()
    writer.close()


def test_a_resumed_run_has_a_new_tensorboard_file_that_hides_what_was_later(tmp_path):
    for resumed_at in (None, 7):
        TensorBoardWriter(tmp_path, resumed_at).close()
    first, second = (events_in(file) for file in sorted(tmp_path.iterdir()))
    assert [event.file_version for event in first] == ["brain.Event:2"]
    assert (second[-1].step, second[-1].session_log.status) == (8, SessionLog.START)


def test_tensorboard_that_cannot_begin_is_a_warning(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    writer = TensorBoardWriter(tmp_path / "file" / "tb")
    writer.log(1, {"loss": 1.0})
    writer.close()
    assert caplog.text.count("TensorBoard events in") == 1


def test_tensorboard_on_a_full_disk_warns_once_and_never_waits(tiny_disk, caplog):
    writer = TensorBoardWriter(tiny_disk)
    (tiny_disk / "ballast").write_bytes(bytes((1 << 20) - 4096))
    for step in range(500):
        writer.log(step, {"loss": 1.0})
    writer.close()
    assert caplog.text.count("TensorBoard events in") == 1
    assert "No space left" in caplog.text
