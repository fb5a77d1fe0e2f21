import json
import os
import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pytest

from keisei.errors import KeiseiError
from keisei.evaluation.contestants import open_player
from keisei.evaluation.evaluate import MatchSettings, evaluate, play_batch, play_in_batches
from keisei.evaluation.match import play_games
from keisei.evaluation.openings import load_openings
from keisei.evaluation.players import (
    FAILS,
    MixedPlayer,
    PolicyPlayer,
    RandomPlayer,
    SearchPlayer,
    Turns,
)
from keisei.evaluation.statistics import Sprt
from keisei.evaluation.usi_player import UsiPlayer
from keisei.processes.pool import Pool
from keisei.search import Limit
from keisei.shogi import ShogiGame, VectorShogi
from keisei.shogi.features import REPETITIONS
from keisei.shogi.records import read_record
from keisei.trained import find_checkpoint, load_trained
from keisei.usi.client import EngineError, UsiClient
from keisei.usi.protocol import Position
from tests.search.test_search import by_material

FAIRY = Path("/usr/games/fairy-stockfish")


@pytest.fixture(scope="session")
def fairy():
    """Fairy-Stockfish, installed if this may be done here; GPL: it runs as its own process."""
    if not FAIRY.is_file() and os.geteuid() == 0 and shutil.which("apt-get"):
        install = ["apt-get", "install", "-y", "-qq", "fairy-stockfish"]
        subprocess.run(install, capture_output=True, timeout=120, check=False)
    if not FAIRY.is_file():
        pytest.skip(f"{FAIRY} is not here: apt install fairy-stockfish")
    return str(FAIRY)


@pytest.fixture(scope="session")
def policy():
    """Of the network that comes with Keisei."""
    return load_trained(find_checkpoint("shipped")).policy


def test_openings_are_distinct_legal_lines_to_distinct_positions():
    lines = load_openings()
    ends = set()
    for line in lines:
        game = ShogiGame()
        for usi in line:
            game.push_usi(usi)
        assert game.outcome is None
        ends.add(game.sfen())
    assert len(lines) == len(ends) >= 50


def test_every_opening_is_played_with_both_colours():
    lines = load_openings()[:3]
    result = play_games(RandomPlayer(1), RandomPlayer(2), 6, openings=lines, move_limit=30)
    for game in result.games:
        assert game.moves[:8] == tuple(lines[game.number // 2])
        assert game.first_is_black == (game.number % 2 == 0)
    assert result.different_games == 6


def test_games_that_repeat_each_other_are_not_counted_as_different():
    class First:
        name = "first"

        def choose(self, turns):
            return turns.offsets[:-1]

    result = play_games(First(), First(), 6, move_limit=20)
    assert result.different_games == 1


def test_a_policy_is_less_sure_of_its_best_move_where_the_position_has_stood_before(policy):
    games = VectorShogi(400, seed=1)
    fresh = Turns(games.observations, *games.legal_actions())
    again = games.observations.copy()
    again[:, REPETITIONS] = 2
    counts = []
    for turns in (fresh, Turns(again, *games.legal_actions())):
        player = PolicyPlayer(policy, "policy", seed=1, temperature=0.5)
        chosen = player.choose(turns) - turns.offsets[:-1]
        counts.append(len(set(chosen.tolist())))
    assert counts[0] < counts[1]


def test_search_beats_random_moves_even_without_a_network():
    searcher = SearchPlayer(by_material, "search", Limit(60))
    result = play_games(searcher, RandomPlayer(1), 4, seed=1, openings=load_openings())
    assert result.wins == 4


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_mixed_player_plays_the_share_of_random_moves(share):
    games = VectorShogi(400, seed=1)
    for _ in range(30):
        games.step(games.random_actions())
    turns = Turns(games.observations, *games.legal_actions())
    counts = np.diff(turns.offsets)

    class Last:
        name = "last"

        def choose(self, turns):
            return turns.offsets[1:] - 1

    chosen = MixedPlayer(Last(), share, seed=1).choose(turns)
    last = (chosen == turns.offsets[1:] - 1).mean()
    expected = 1 - share + share * (1 / counts).mean()
    assert last == pytest.approx(expected, abs=0.07)
    assert (chosen >= turns.offsets[:-1]).all()


@pytest.mark.parametrize("how", ["dies", "illegal", "rubbish", "declares"])
def test_games_that_an_engine_breaks_off_are_counted_apart(bad_engine, how):
    player = UsiPlayer(bad_engine(how), "nodes 1", how)
    try:
        result = play_games(player, RandomPlayer(1), 4, move_limit=20)
    finally:
        player.close()
    assert result.failures == Counter({how: 4})
    assert result.played == 0


def test_an_engine_that_cannot_start_again_breaks_its_games_off_and_the_match_ends(
    bad_engine, tmp_path, caplog
):
    log = tmp_path / "pids"
    player = UsiPlayer(bad_engine("once", str(log)), "nodes 1", "once")
    try:
        result = play_games(player, RandomPlayer(1), 4, move_limit=20)
        pids = [int(line) for line in log.read_text().splitlines()]
        assert len(pids) == 2  # it is given up after the second start
        assert not any(map(psutil.pid_exists, pids))
    finally:
        player.close()
    assert result.failures == Counter({"once": 4})
    assert "cannot be restarted" in caplog.text


def test_a_silent_engine_is_given_up_after_its_time(bad_engine):
    player = UsiPlayer(bad_engine("silent"), "nodes 1", "silent", move_timeout=0.2)
    try:
        result = play_games(player, RandomPlayer(1), 2, move_limit=20)
    finally:
        player.close()
    assert result.failures["silent"] == 2


@pytest.mark.parametrize("how", ["floods", "floods without an end of line"])
def test_an_engine_that_says_things_without_end_meets_its_time_and_takes_no_memory(bad_engine, how):
    with UsiClient(bad_engine(how), move_timeout=1) as engine:
        before = psutil.Process().memory_info().rss
        with pytest.raises(EngineError, match="did not say 'bestmove' within 1 s"):
            engine.best_move(Position(), "nodes 1")
        assert psutil.Process().memory_info().rss - before < 50e6


@pytest.mark.parametrize(
    ("go", "seconds"),
    [
        ("depth 3", 60),
        ("byoyomi 60000", 120),
        ("movetime 90000", 150),
        ("btime 600000 wtime 300000 binc 5000 byoyomi 1000", 666),
    ],
)
def test_an_engine_is_waited_for_as_long_as_its_go_allows_and_a_minute(bad_engine, go, seconds):
    command = shlex.join(bad_engine("resigns"))
    with open_player(f"usi:{command},go={go},processes=1", seed=1) as player:
        assert player._engines[0]._move_timeout == seconds


def test_an_engine_that_resigns_loses(bad_engine):
    player = UsiPlayer(bad_engine("resigns"), "nodes 1", "resigns")
    try:
        result = play_games(player, RandomPlayer(1), 4, move_limit=20)
    finally:
        player.close()
    assert result.losses == 4
    assert result.reasons["resignation"] == 4


def test_an_engine_that_is_not_there_is_named():
    with pytest.raises(EngineError, match="no-such-engine"):
        UsiClient(["/usr/games/no-such-engine"]).start()


def test_no_engine_process_is_left_behind(bad_engine):
    with UsiClient(bad_engine("resigns")) as engine:
        process = engine._process
    assert process.poll() is not None


def test_a_move_that_is_not_legal_has_no_place():
    game = ShogiGame()
    legal = game.legal_actions().astype(np.int16)
    turns = Turns(game.observation()[None], legal, np.array([0, len(legal)]))
    assert turns.place(0, "7g7f") >= 0
    assert turns.place(0, "7g7e") == FAILS
    assert turns.place(0, "rubbish") == FAILS


def test_fairy_stockfish_plays_legal_games_to_their_end(fairy):
    with open_player(f"usi:{fairy},go=depth 1,Skill Level=-20", seed=1) as engine:
        result = play_games(engine, RandomPlayer(1), 4, openings=load_openings())
    assert not result.failures
    assert result.wins + result.draws == 4


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nobody", "nobody"),
        ("random,nodes=4", "nodes"),
        ("greedy,random=150", "random=150"),
        ("usi:/usr/games/none", "none"),
        ("greedy,random", "name=value"),
        ("missing.pt", "missing.pt"),
    ],
)
def test_a_player_that_cannot_be_is_named(text, problem):
    with pytest.raises(KeiseiError, match=problem), open_player(text, seed=1):
        pass


def test_a_match_is_shown_and_its_games_are_saved_with_both_names(tmp_path, capsys):
    settings = MatchSettings(games=4, at_once=2, move_limit=60)
    result = evaluate("greedy", "random,name=dice", settings, tmp_path, "csa", tmp_path / "m.json")
    shown = capsys.readouterr().out
    for word in ("score", "95 % interval", "Elo difference", "likelihood", "different games of 4"):
        assert word in shown
    files = sorted(tmp_path.glob("*.csa"))
    assert len(files) == 4
    names = [(record.black, record.white) for record in map(read_record, files)]
    assert names == [("greedy", "dice"), ("dice", "greedy")] * 2
    assert read_record(files[0]).moves == result.games[0].moves or result.games[0].number != 0
    assert (tmp_path / "m.json").read_text().startswith("{")


def test_games_of_players_whose_names_cp932_lacks_are_saved_as_kifu(tmp_path, capsys):
    settings = MatchSettings(games=2, at_once=2, move_limit=20)
    names = ("random,name=K\u00e4se", "greedy")
    evaluate(*names, settings, tmp_path / "games", json_file=tmp_path / "m.json")
    assert "saved as .kifu" in capsys.readouterr().out
    assert json.loads((tmp_path / "m.json").read_text())["first"] == "K\u00e4se"
    records = [read_record(file) for file in sorted((tmp_path / "games").iterdir())]
    assert [record.black for record in records] == ["K\u00e4se", "greedy"]


def test_a_match_whose_games_cannot_be_saved_is_still_shown_and_written(tmp_path, capsys):
    (tmp_path / "games" / "0001.csa").mkdir(parents=True)
    settings = MatchSettings(games=2, at_once=2, move_limit=20)
    with pytest.raises(OSError, match=r"0001\.csa"):
        evaluate("random", "greedy", settings, tmp_path / "games", "csa", tmp_path / "m.json")
    assert "score" in capsys.readouterr().out
    assert json.loads((tmp_path / "m.json").read_text())["second"] == "greedy"


def test_where_a_match_cannot_be_kept_is_said_before_it_is_played(tmp_path, capsys):
    (tmp_path / "file").write_text("no folder")
    settings = MatchSettings(games=2, at_once=2, move_limit=20)
    for save, json_file in ((tmp_path / "file", None), (None, tmp_path / "file" / "m.json")):
        with pytest.raises(OSError, match="file"):
            evaluate("random", "greedy", settings, save, json_file=json_file)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("games", [-2, 0, 3])
def test_a_match_of_unequal_colours_or_no_games_is_refused(games):
    with pytest.raises(KeiseiError, match=f"games is {games}: it must be even and at least 2"):
        MatchSettings(games=games)


def test_the_better_player_is_found_by_the_sequential_test_before_all_games_are_played():
    settings = MatchSettings(games=400, at_once=20, sprt=Sprt(elo1=50))
    *_, result = play_in_batches("greedy", "random", settings, Pool(play_batch))
    assert len(result.games) < 400
    assert settings.sprt.verdict(result.pairs()) == "stronger"


def test_the_shipped_network_beats_the_random_player_by_its_policy_alone(policy):
    me = PolicyPlayer(policy, "shipped", seed=1, temperature=0.5)
    result = play_games(me, RandomPlayer(2), 40, openings=load_openings())
    assert result.wins >= 38, str(result)
