"""Sweeps from the command line: what is shown is what was asked for."""

import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from keisei.cli import app
from keisei.worlds.intervals import interval
from keisei.worlds.sweep import run_name

TINY = ["copies=2", "epochs=1", "world_settings.max_turns=10", "double_dqn.hidden=[8]"]


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Runs `keisei worlds sweep ...` with one seed in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(world, *arguments, settings=TINY):
        options = [part for setting in settings for part in ("-o", setting)]
        return CliRunner().invoke(
            app, ["worlds", "sweep", world, "--seeds", "1", *options, *arguments]
        )

    return run


def test_sweeps_of_two_worlds_do_not_meet(sweep, tmp_path):
    for world in ("tag", "treasure_hunt"):
        done = sweep(world)
        assert done.exit_code == 0, done.stderr
        assert done.stdout.count("starts at epoch 0") == 1
    runs = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert runs == ["sweep-tag-seed=1", "sweep-treasure_hunt-seed=1"]


def test_a_sweep_over_runs_with_other_settings_is_refused_by_name_and_nothing_is_trained(sweep):
    assert sweep("tag", "--name", "a").exit_code == 0
    for world, more, said in (
        ("cleanup", [], "world is tag there, and cleanup here"),
        ("tag", ["double_dqn.gamma=0.5"], "double_dqn.gamma is 0.95 there, and 0.5 here"),
        ("tag", ["world_settings.pause=2"], "world_settings.pause is not set there, and 2 here"),
    ):
        done = sweep(world, "--name", "a", settings=[*TINY, *more])
        assert done.exit_code == 2
        shown = " ".join(done.stderr.split())
        assert "a-seed=1 is a run with other settings" in shown
        assert said in shown
        assert "--name" in shown
        assert "epoch" not in done.stdout


def test_a_sweep_goes_on_with_more_epochs_and_shows_those_that_were_asked_for(sweep, tmp_path):
    def returns(epochs):
        settings = [*TINY, "copies=8", f"epochs={epochs}"]
        assert sweep("treasure_hunt", "--json", "a.json", settings=settings).exit_code == 0
        return json.loads((tmp_path / "a.json").read_text())[0]["returns"]

    first = returns(1)
    returns(12)
    assert returns(1) == first
    shutil.move(tmp_path / "runs", tmp_path / "elsewhere")
    done = sweep("treasure_hunt", settings=[*TINY, "copies=8", "epochs=12", "runs_dir=elsewhere"])
    assert "starts at epoch" not in done.stdout


def test_a_sweep_shows_how_sure_it_is_and_draws_one_curve_for_all_seeds(sweep, tmp_path):
    done = sweep("tag", "--seeds", "3", "--json", "a.json", "--plot", "a.png")
    assert done.exit_code == 0, done.stderr
    assert "IQM" in done.stdout
    assert " to " in done.stdout
    (row,) = json.loads((tmp_path / "a.json").read_text())
    low, high = row["interval"]
    assert min(row["returns"]) <= low <= row["iqm"] <= high <= max(row["returns"])
    assert len(row["measures"]["peace"]) == 3
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"
    assert sweep("tag", "--plot", "nowhere/a.png").exit_code == 2


def test_an_interval_of_few_draws_covers_the_mean_of_normal_numbers():
    rng = np.random.default_rng(1)
    low, high = interval(rng.normal(size=(12, 300)))
    assert 0.8 < ((low < 0) & (high > 0)).mean() < 1


def test_runs_are_named_after_the_whole_value():
    names = {run_name("a", [f"double_dqn.gamma={value}"], 1) for value in ("0.5", "1.5", "0.95")}
    assert names == {"a-gamma=0.5-seed=1", "a-gamma=1.5-seed=1", "a-gamma=0.95-seed=1"}


def test_the_default_name_is_one_for_environments_of_others_too(sweep, tmp_path):
    done = sweep("pettingzoo:mpe2.simple_spread_v3")
    assert done.exit_code == 0, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert run.name == "sweep-pettingzoo-mpe2.simple_spread_v3-seed=1"
