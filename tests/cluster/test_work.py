"""Matches, ladders and sweeps on the CPUs of a cluster."""

import json
import shutil

import pytest

from keisei.errors import KeiseiError
from keisei.evaluation.evaluate import MatchSettings, evaluate, play_batch, play_in_batches
from keisei.evaluation.ladder import Entry, Ladder, LadderSettings, climb
from keisei.processes.pool import open_ray_pool
from keisei.worlds.sweep import sweep
from tests.evaluation.simulated import QUICK

pytestmark = pytest.mark.usefixtures("own_cluster")


def test_a_match_on_the_cluster_has_every_opening_with_both_colours_and_repeats_itself():
    settings = MatchSettings(games=12, at_once=4)
    one, two = (play(settings) for _ in range(2))
    assert [game.number for game in one.games] == list(range(12))
    for black, white in zip(one.games[::2], one.games[1::2], strict=True):
        assert black.first_is_black
        assert not white.first_is_black
        assert black.moves[:8] == white.moves[:8]
    assert one.games == two.games
    assert one.different_games == 12


def play(settings):
    with open_ray_pool("auto", play_batch) as pool:
        *_, result = play_in_batches("greedy", "random", settings, pool)
    return result


def test_evaluate_shows_a_match_that_was_played_on_the_cluster(tmp_path, capsys):
    settings = MatchSettings(games=4, at_once=2)
    evaluate("greedy", "greedy", settings, save=tmp_path, ray="auto")
    assert "greedy - greedy (2): " in capsys.readouterr().out
    assert len(list(tmp_path.iterdir())) == 4


def test_a_ladder_on_the_cluster_rates_players_between_the_references(tmp_path):
    players = [Entry("weak", "greedy,random=85", steps=0), Entry("strong", "greedy,random=35")]
    ladder = Ladder(yardstick=QUICK)
    settings = LadderSettings(games=96, minutes=2)
    climb(ladder, players, settings, tmp_path / "ladder.json", ray="auto")
    ratings = ladder.ratings()
    assert 0 < ratings["weak"].elo < ratings["strong"].elo < ratings["greedy"].elo
    stored = Ladder.load(tmp_path / "ladder.json")
    assert sum(result.games for result in stored.results.values()) == 96


def test_an_error_of_the_work_is_the_same_error_here():
    settings = MatchSettings(games=2, at_once=2)
    with (
        pytest.raises(KeiseiError, match="no run 'nobody'"),
        open_ray_pool("auto", play_batch) as p,
    ):
        list(play_in_batches("nobody", "random", settings, p))
    with open_ray_pool("auto", fail) as pool:
        pool.submit(1, "it cannot be done")
        with pytest.raises(KeiseiError, match=r"^it cannot be done$"):
            list(pool.finished(wait_for_all=True))


def fail(message):
    raise KeiseiError(message)


def test_a_sweep_on_the_cluster_trains_every_combination_and_goes_on_where_it_was(tmp_path, capsys):
    small = ["epochs=2", "copies=4", f"runs_dir={tmp_path}"]
    file = tmp_path / "sweep.json"
    vary = ["double_dqn.learning_rate=1e-3,1e-4"]
    sweep("treasure_hunt", vary, 2, small, "try", "auto", file, tmp_path / "sweep.png")
    rows = json.loads(file.read_text())
    assert [len(row["returns"]) for row in rows] == [2, 2]
    runs = sorted(path.name for path in tmp_path.iterdir() if path.is_dir())
    assert runs[0] == "try-learning_rate=1e-3-seed=1"
    assert len(runs) == 4
    shutil.rmtree(tmp_path / runs[0])
    # Here: the others are only read.
    sweep("treasure_hunt", vary, 2, small, "try", plot=tmp_path / "sweep.png")
    assert capsys.readouterr().out.count("starts at epoch 0") == 1
    with pytest.raises(KeiseiError, match="learning_rat"):
        sweep("treasure_hunt", ["double_dqn.learning_rat=1"], 1, small, "wrong", "auto")
