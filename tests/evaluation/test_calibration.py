"""A network's value as a chance to win."""

import shutil

import numpy as np
import pytest

from keisei.curve import Curve
from keisei.errors import KeiseiError
from keisei.evaluation.calibration import calibrate, fit_curve, play_for_values
from keisei.models import SHIPPED_PATH
from keisei.runs.checkpoint import load_checkpoint, save_checkpoint
from keisei.search import Limit, Thinker
from keisei.shogi import ShogiGame
from keisei.trained import export_network, load_trained
from tests.processes import run_keisei


def test_the_curve_of_a_known_player_is_found():
    rng = np.random.default_rng(1)
    values = rng.uniform(-1, 1, 40_000)
    chances = 1 / (1 + np.exp(-8 * values))
    curve = fit_curve(values, (rng.random(40_000) < chances).astype(float))
    for value in np.linspace(-0.9, 0.9, 19):
        chance = 1 / (1 + np.exp(-8 * value))
        assert (1 + curve.value(value)) / 2 == pytest.approx(chance, abs=0.03)


def test_of_few_positions_the_curve_still_rises():
    rng = np.random.default_rng(1)
    values = rng.uniform(-1, 1, 500)  # the means of neighbours fall now and then
    curve = fit_curve(values, (rng.random(500) < (1 + values) / 2).astype(float))
    assert list(curve.scores) == sorted(curve.scores)
    assert len(curve.scores) > 5


@pytest.mark.parametrize(
    ("values", "scores"),
    [
        ((-1.0, 0.5, 0.2, 1.0), (0.0, 0.5, 0.6, 1.0)),
        ((-1.0, 0.5, 1.0), (0.0, 0.9, 0.5)),
        ((-1.0, 1.0), (0.0, 2.0)),
        ((-1.0, 1.0), (0.0, 0.5, 1.0)),
        ((), ()),
        ((0.0, 1.0), (0.0, 1.0)),
        ((-1.0, float("nan"), 1.0), (0.0, 0.5, 1.0)),
    ],
)
def test_a_curve_that_cannot_be_is_refused(values, scores):
    with pytest.raises(ValueError, match="curve"):
        Curve(values, scores)


def test_the_shipped_network_is_calibrated_in_each_tenth():
    """Within 3 points, and what 150 games leave to chance: one game has many positions."""
    trained = load_trained(SHIPPED_PATH)
    values, scores, games = play_for_values(trained.policy, games=150, seed=7)
    chances = np.array([(1 + trained.curve.value(value)) / 2 for value in values])
    for tenth in range(10):
        there = (chances >= tenth / 10) & (chances < (tenth + 1) / 10)
        gaps = (scores - chances)[there]
        sums = np.bincount(games[there].astype(int), gaps, minlength=150)
        chance = 3 * np.sqrt((sums**2).sum()) / max(len(gaps), 1)  # of games, not of positions
        assert abs(gaps.mean()) < 0.03 + chance, tenth


def test_a_curve_is_stored_with_the_network_goes_along_with_exports_and_is_used(tmp_path):
    file = tmp_path / "network.pt"
    shutil.copy(SHIPPED_PATH, file)
    curve = calibrate(file, games=40)
    assert load_trained(file).curve == curve != Curve()
    export_network(file, tmp_path / "small.pt")
    assert load_trained(tmp_path / "small.pt").curve == curve
    policy, game = load_trained(file).policy, ShogiGame.from_moves(ShogiGame().sfen(), ["7g7f"])
    plain, by_curve = (
        Thinker(policy, curve=one).think(game, Limit(20)).score for one in (None, curve)
    )
    assert by_curve.value == curve.value(plain.value)


def test_a_mate_is_a_mate_whatever_the_curve_says():
    thinker = Thinker(load_trained(SHIPPED_PATH).policy, curve=Curve())
    score = thinker.think(ShogiGame("4k4/9/4G4/9/9/9/9/9/4K4 b G 1"), Limit(10)).score
    assert score.by(Curve((-1.0, 0.0, 1.0), (0.0, 0.5, 0.6))) == score


def test_the_command_says_what_it_found_and_wrong_ones_are_a_line(tmp_path):
    file = tmp_path / "network.pt"
    shutil.copy(SHIPPED_PATH, file)
    done = run_keisei("calibrate", file, "--games", "40")
    assert "its own estimate -> what it scored" in done.stdout
    for games in ("2", "0"):
        refused = run_keisei("calibrate", file, "--games", games)
        assert refused.returncode == 2
        assert "Traceback" not in refused.stderr
        assert "--games" in refused.stderr


def test_a_stored_curve_that_is_rubbish_is_an_error_of_that_file(tmp_path):
    state = load_checkpoint(SHIPPED_PATH)
    save_checkpoint(tmp_path / "a.pt", {**state, "curve": {"values": "x", "scores": None}})
    with pytest.raises(KeiseiError, match=r"a\.pt"):
        load_trained(tmp_path / "a.pt")
