"""Agents of several runs play with each other."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from keisei.cli import app
from keisei.worlds.cross_play import cross_play
from keisei.worlds.training import start_world_training
from tests.worlds.conftest import SMALL

TINY = [*SMALL, "epochs=1", "double_dqn.epsilon_start=0.2"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of tag: by double DQN, by PPO with a memory, at random, and one of another size."""
    folder = tmp_path_factory.mktemp("runs")
    kinds = {"dqn": "double_dqn", "ppo": "{kind: ppo, network: gru}", "chance": "random"}
    for name, kind in kinds.items():
        settings = [*TINY, f"agents=[{kind}]", f"runs_dir={folder}"]
        start_world_training("tag", None, settings, name, None, None)
    other = [*TINY, "world_settings.height=8", f"runs_dir={folder}", "agents=[random]"]
    start_world_training("tag", None, other, "other", None, None)
    return folder


def test_every_run_plays_with_every_other_and_the_matrix_does_not_depend_on_the_order(runs):
    found = cross_play(["dqn", "ppo", "chance"], episodes=6, runs=runs)
    again = cross_play(["chance", "ppo", "dqn"], episodes=6, runs=runs)
    assert found.returns.shape == (3, 3)
    assert np.array_equal(found.returns[::-1, ::-1], again.returns)
    # What one wins in tag another loses: one and the three others.
    assert np.allclose(found.returns + 3 * found.others, 0, atol=1e-6)
    assert (found.errors > 0).any()


def test_the_matrix_is_a_table_a_file_and_a_picture(runs, tmp_path):
    plot, file = tmp_path / "a.png", tmp_path / "a.json"
    words = ["dqn", "chance", "--episodes", "2", "--plot", str(plot), "--json", str(file)]
    done = CliRunner().invoke(app, ["worlds", "evaluate", *words, "--runs", str(runs)])
    assert done.exit_code == 0, done.stderr
    assert "±" in done.stdout
    assert json.loads(file.read_text())["runs"] == ["dqn", "chance"]
    assert plot.read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["dqn", "other"], "dqn and other cannot play together: world_settings is"),
        (["dqn", "dqn"], "name each run once"),
        (["nobody"], "nobody"),
    ],
)
def test_what_cannot_play_together_is_one_clear_line(runs, names, said):
    done = CliRunner().invoke(app, ["worlds", "evaluate", *names, "--runs", str(runs)])
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
