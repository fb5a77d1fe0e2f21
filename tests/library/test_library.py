"""`import keisei`: the names of the library, quick to import, and as the commands do it."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import keisei
from keisei.evaluation.match import MatchResult
from keisei.runs.checkpoint import load_checkpoint
from keisei.shogi import Positions, ShogiGame
from keisei.trained import find_checkpoint, load_trained
from tests.docs.rules import TINY
from tests.processes import run_keisei

ONE_PROCESS = [*TINY, "training.parallel.enabled=false"]
MATE = "4k4/9/4G4/9/9/9/9/9/4K4 b G 1"


@pytest.fixture(scope="module")
def net():
    return keisei.load("shipped")


def in_a_fresh_process(code, **environment):
    words = [sys.executable, "-c", code]
    env = {**os.environ, **environment}
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_import_keisei_loads_none_of_what_is_slow():
    code = "import sys, keisei; keisei.shogi.ShogiGame(); print(*sys.modules)"
    loaded = set(in_a_fresh_process(code).split())
    assert not {"torch", "matplotlib", "pandas", "gymnasium", "pydantic"} & loaded


def test_every_public_name_is_there_and_has_a_docstring():
    for name in keisei.__all__:
        assert getattr(keisei, name).__doc__
        assert name in dir(keisei)
    with pytest.raises(AttributeError, match="nothing"):
        keisei.nothing  # noqa: B018


@pytest.mark.parametrize(("set_before", "found"), [({}, "10000"), ({"GOMP_SPINCOUNT": "7"}, "7")])
def test_pytorchs_threads_are_told_how_to_wait_unless_the_user_has(set_before, found, monkeypatch):
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    told = in_a_fresh_process(
        "import keisei; keisei.train", OMP_DISPLAY_ENV="verbose", **set_before
    )
    assert f"GOMP_SPINCOUNT = '{found}'" in told  # what OpenMP itself says when it is loaded


def test_the_policy_has_every_legal_move_the_likeliest_first(net):
    game = ShogiGame()
    moves = net.policy(game)
    assert sorted(moves) == sorted(game.legal_usi())
    assert list(moves.values()) == sorted(moves.values(), reverse=True)
    seen = net.evaluate(Positions.of([game.observation()], [game.legal_actions()]))
    for usi, log_prob in zip(game.legal_usi(), seen.log_probs, strict=True):
        assert moves[usi] == pytest.approx(np.exp(log_prob))


def test_an_analysis_has_the_line_and_the_chance_by_the_stored_curve(net):
    game = ShogiGame()
    found = net.analyse(game, nodes=50)
    assert found == net.analyse(game, nodes=50)
    assert found.move == found.line[0]
    assert found.mate is None
    for usi in found.line:
        game.push_usi(usi)
    first = net.analyse(ShogiGame(), nodes=0)  # without a search, it is the value's chance
    curve = load_trained(find_checkpoint("shipped")).curve
    start = ShogiGame()
    value = net.evaluate(Positions.of([start.observation()], [start.legal_actions()])).values[0]
    assert first.win_chance == pytest.approx((1 + curve.value(float(value))) / 2)


def test_a_mate_is_found_and_a_game_that_is_over_is_not_analysed(net):
    game = ShogiGame(MATE)
    found = net.analyse(game, nodes=10)
    assert (found.win_chance, found.mate, found.line) == (1.0, 1, ["G*5b"])
    game.push_usi("G*5b")
    assert net.policy(game) == {}
    with pytest.raises(keisei.KeiseiError, match="the game is over"):
        net.analyse(game)


def test_a_match_is_the_one_of_the_command(net, tmp_path):
    result = keisei.play_match(net, "random", games=4)
    done = run_keisei("evaluate", "shipped", "random", "--games", "4", cwd=tmp_path)
    assert str(result) in done.stdout.splitlines()
    assert result.first == "shipped policy"
    assert len(repr(result)) < 500  # a notebook shows it, without all moves


class Resigns:
    name = "mine"

    def choose(self, turns):
        return np.full(len(turns), -1)


def test_a_player_of_ones_own_plays_in_this_process():
    result = keisei.play_match(Resigns(), "random", games=2)
    assert isinstance(result, MatchResult)
    assert (result.first, result.losses, dict(result.reasons)) == ("mine", 2, {"resignation": 2})


def test_two_networks_of_one_name_are_told_apart(net):
    assert keisei.play_match(net, net, games=2).second == "shipped policy (2)"


class Mine(keisei.Callback):
    def __init__(self):
        self.moments = []

    def on_update(self, trainer, finished):
        self.moments.append("update")
        trainer.progress.metrics["mine"] = trainer.progress.updates

    def on_end(self, trainer):
        self.moments.append("end")


def test_training_is_that_of_the_command_and_records_what_a_callback_adds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = Mine()
    run = keisei.train(overrides=ONE_PROCESS, name="python", callbacks=[mine])
    settings = [word for one in ONE_PROCESS for word in ("-o", one)]
    assert run_keisei("train", "--name", "command", *settings, cwd=tmp_path).returncode == 0
    other = keisei.Run.open("command")
    files = [{p.name for p in one.folder.iterdir()} for one in (run, other)]
    assert files[0] == files[1]
    assert run.learning_curve_path.exists()
    weights = [
        load_checkpoint(find_checkpoint(one.name))["agent"]["network"] for one in (run, other)
    ]
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])
    assert set(run.metric_names()) == {*other.metric_names(), "mine"}
    updates = list(run.metrics("mine")["value"])
    assert updates == [1.0 + n for n in range(len(updates))]
    assert mine.moments == ["update"] * len(updates) + ["end"]
    assert keisei.load(run).steps == keisei.load("command").steps == 256


class Impatient(keisei.Callback):
    def on_update(self, trainer, finished):
        raise keisei.StopRequested


def test_a_callback_may_end_the_training_and_it_can_go_on_later(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = tmp_path / "elsewhere"
    more = [*ONE_PROCESS, "training.total_timesteps=512"]
    run = keisei.train(overrides=more, name="a", runs=runs, callbacks=[Impatient()])
    assert keisei.load("a", runs=runs).steps == 256
    assert keisei.train(resume="a", runs=runs).folder == run.folder
    assert keisei.load(run).steps == 512


def test_training_runs_in_a_thread_too(tmp_path):
    trained = []
    settings = {"overrides": ONE_PROCESS, "runs": tmp_path}
    thread = threading.Thread(target=lambda: trained.append(keisei.train(**settings)))
    thread.start()
    thread.join(120)
    assert keisei.load(trained[0]).steps == 256


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return keisei.train(overrides=ONE_PROCESS, runs=tmp_path_factory.mktemp("runs"))


def test_metrics_are_columns_whether_pandas_is_there_or_not(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not installed
    wins = run.metrics("win_rate/random")
    assert type(wins) is dict
    assert wins["step"].dtype.kind == "i"
    assert wins["step"].shape == wins["value"].shape
    monkeypatch.undo()
    frame = pytest.importorskip("pandas").DataFrame
    again = run.metrics("wins against random")
    assert type(again) is frame
    assert list(again) == ["step", "value"]
    assert (again["value"].to_numpy() == wins["value"]).all()


def test_a_metric_that_is_not_there_is_named_with_those_that_are(run):
    with pytest.raises(keisei.KeiseiError, match=r"no metric 'lost'; it has: .*entropy"):
        run.metrics("lost")
