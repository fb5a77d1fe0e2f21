"""Runs over HTTP: rows, states, curves, and broken ones beside good ones."""

import json
import os
import sqlite3

import pytest

from keisei.runs.metrics import MetricsStore
from keisei.runs.run import Run, is_training
from keisei.web.runs import BrokenRun, RunsFolder
from tests.web.conftest import rows_of, serving


def row(client, name):
    return rows_of(client)[name]


def test_a_finished_run_shows_its_numbers(client):
    first = row(client, "first")
    assert first["kind"] == "shogi"
    assert first["state"] == "finished"
    assert first["steps"] == first["total_steps"] == 1024
    assert first["steps_per_s"] > 0
    assert first["games"] > 0
    assert first["error"] is first["world"] is first["return"] is None
    assert first["elo"] == []


def test_a_run_of_a_world_is_told_apart(client):
    hunt = row(client, "hunt")
    assert (hunt["kind"], hunt["world"], hunt["state"]) == ("world", "treasure_hunt", "finished")
    assert hunt["total_steps"] == hunt["steps"] == 4 * 4 * 20
    assert isinstance(hunt["return"], float)
    detail = client.get("/api/runs/hunt").json()
    assert detail["agents"] == 2
    assert len(detail["random_return"]) == 2


def test_a_run_in_detail(client):
    detail = client.get("/api/runs/first").json()
    assert "move_limit: 40" in detail["config"]
    assert "entropy" in detail["names"]
    assert set(detail["latest"]) == set(detail["latest_steps"]) == set(detail["names"])
    assert detail["latest_steps"]["entropy"] == 1024
    assert [one["steps"] for one in detail["checkpoints"]] == [1024, 512]
    assert detail["events"][0]["message"] == "finished"
    assert detail["workers"] == []


def test_a_run_that_is_not_there(client):
    answer = client.get("/api/runs/nobody")
    assert answer.status_code == 404
    assert "nobody" in answer.json()["detail"]


def test_curves_keep_their_ends_and_have_at_most_so_many_points(client):
    whole = client.get("/api/runs/first/series", params={"name": ["entropy", "kl", "nothing"]})
    curves = whole.json()["series"]
    assert curves["nothing"] == []
    assert len(curves["entropy"]) == len(curves["kl"]) == 4
    few = client.get("/api/runs/first/series", params={"name": "entropy", "points": 3}).json()
    assert few["series"]["entropy"][0] == curves["entropy"][0]
    assert few["series"]["entropy"][-1] == curves["entropy"][-1]
    assert len(few["series"]["entropy"]) == 3
    timed = client.get("/api/runs/first/series", params={"name": "entropy", "axis": "time"}).json()
    seconds = [x for x, _ in timed["series"]["entropy"]]
    assert seconds == sorted(seconds)
    assert 0 <= seconds[-1] < 1024  # and not steps
    assert [y for _, y in timed["series"]["entropy"]] == [y for _, y in curves["entropy"]]


def test_what_is_not_a_number_is_null(runs):
    with MetricsStore(runs / "first" / "metrics.sqlite") as store:
        store.log(1280, {"entropy": float("nan")})
    with serving(runs) as client:
        curve = client.get("/api/runs/first/series?name=entropy").json()["series"]["entropy"]
        assert curve[-1] == [1280, None]
        assert client.get("/api/runs/first").json()["latest"]["entropy"] is None


def test_broken_runs_show_their_errors_and_hide_nobody(runs):
    (runs / "no_config" / "checkpoints").mkdir(parents=True)
    (runs / "no_yaml").mkdir()
    (runs / "no_yaml" / "config.yaml").write_text("a: [")
    (runs / "no_database").mkdir()
    (runs / "no_database" / "config.yaml").write_text("env: {}")
    (runs / "no_database" / "metrics.sqlite").write_bytes(b"this is no database" * 100)
    (runs / "other_schema").mkdir()
    (runs / "other_schema" / "config.yaml").write_text("env: {}")
    with MetricsStore(runs / "other_schema" / "metrics.sqlite") as store:
        store.set_meta("schema", "99")
    (runs / "somebodys_notes").mkdir()  # no run at all
    with serving(runs) as client:
        rows = rows_of(client)
        assert rows["first"]["state"] == rows["hunt"]["state"] == "finished"
        expected = {
            "no_config": "config.yaml is missing",
            "no_yaml": "is not YAML",
            "no_database": "not a database",
            "other_schema": "schema 99",
        }
        assert set(rows) == {"first", "hunt", *expected}
        for name, error in expected.items():
            assert rows[name]["state"] == "broken"
            assert error in rows[name]["error"]
            assert error in client.get(f"/api/runs/{name}").json()["error"]


def test_a_run_that_has_just_begun_is_not_broken(runs):
    Run.create(runs, "new", "env: {}")
    with serving(runs) as client:
        assert row(client, "new")["state"] == "stopped"
        assert client.get("/api/runs/new/series?name=kl").json() == {"series": {"kl": []}}
        assert client.get("/api/runs/new/games").json()["total"] == 0


def test_what_was_found_broken_stays_so_although_a_look_that_began_before_saw_nothing(runs):
    folder = RunsFolder(runs)
    read = folder._read

    def read_slowly(name, training):
        found = read(name, training)
        folder._read = read
        with pytest.raises(BrokenRun), folder.reading(name):
            raise ValueError("its games are no games")
        return found

    folder._read = read_slowly
    assert folder.row("first").state == "broken"
    assert folder.row("first").error == "cannot be read: its games are no games"


def test_a_run_of_an_older_keisei_is_read(runs):
    with sqlite3.connect(runs / "first" / "metrics.sqlite") as db:
        db.execute("DROP TABLE now")
    with serving(runs) as client:
        assert client.get("/api/runs/first").json()["workers"] == []


def test_workers_of_an_older_keisei_have_their_memory_under_its_old_name(runs):
    row = {"worker": 0, "state": "running", "busy": 1, "waiting": 0, "syncing": 0, "restarts": 0}
    with MetricsStore(Run(runs / "first").metrics_path) as store:
        store.set_now("workers", [{**row, "lag": 0, "steps_per_s": 9, "memory_mb": 20.5}])
    with serving(runs) as client:
        assert client.get("/api/runs/first").json()["workers"][0]["resident_mb"] == 20.5


def test_who_holds_the_lock_trains_and_looking_does_not_disturb(runs):
    run = Run(runs / "first")
    folder = RunsFolder(runs)
    assert not is_training(run.folder)
    with run.lock():
        assert folder.row("first").state == "training"
    assert folder.row("first").state == "finished"
    with run.lock():  # nobody who looked holds it
        pass


def write_ladder(run):
    """Ratings of two checkpoints, and of the newer one with search."""
    steps = {"step 512": 512, "step 1,024": 1024, "step 1,024, 400 nodes": 1024, "random": None}
    elos = dict(zip(steps, (100, 200, 600, 0), strict=True))
    data = {
        "players": [
            {"name": name, "contestant": name, "steps": steps, "cpu_hours": steps and steps / 1e6}
            for name, steps in steps.items()
        ],
        "ratings": [
            {"name": name, "elo": elo, "low": elo - 50, "high": elo + 50, "games": 32}
            for name, elo in elos.items()
        ],
        "results": [],
    }
    (run / "ladder.json").write_text(json.dumps(data))


def test_elo_is_of_the_newest_checkpoint_without_search_and_with_it(runs):
    write_ladder(runs / "first")
    with serving(runs) as client:
        detail = client.get("/api/runs/first").json()
    policy, search = detail["elo"]
    assert policy == {"rating": 200, "low": 150, "high": 250, "steps": 1024, "nodes": None}
    assert (search["rating"], search["nodes"]) == (600, 400)
    players = detail["ladder"]["players"]
    assert [player["rating"] for player in players] == [600, 200, 100, 0]
    assert [player["nodes"] for player in players] == [400, None, None, None]
    assert players[0]["cpu_hours"] == 1024 / 1e6


RATING = '{"players": [{"name": "a"}], "ratings": [{"name": "a", "low": 0, "high": 0, "games": 2'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"players": [], "ratings": [{"name": "nobody"}]}',
        f'{RATING}, "elo": Infinity}}]}}',
        f'{RATING}, "elo": "strong"}}]}}',
        '{"players": [["name"]], "ratings": []}',
        "[" * 100_000,
        " " * 5_000_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_broken_ladder_is_told_and_the_rest_of_the_run_is_shown(runs, text):
    (runs / "first" / "ladder.json").write_text(text)
    with serving(runs) as client:
        assert row(client, "first")["state"] == "finished"
        detail = client.get("/api/runs/first").json()
    assert "ladder.json is not a ladder: " in detail["ladder"]["error"]
    assert (detail["elo"], detail["ladder"]["players"]) == ([], [])
    assert detail["checkpoints"]


def test_a_ladder_elsewhere_or_no_file_at_all_is_not_opened(runs, tmp_path):
    write_ladder(tmp_path)
    (runs / "first" / "ladder.json").symlink_to(tmp_path / "ladder.json")
    os.mkfifo(runs / "hunt" / "ladder.json")
    with serving(runs) as client:
        assert "leads out of" in client.get("/api/runs/first").json()["ladder"]["error"]
        assert client.get("/api/runs/hunt").json()["ladder"] is None
