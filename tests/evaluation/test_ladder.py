import json
import shlex
from collections import Counter

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.evaluation.ladder import (
    Costs,
    Entry,
    Ladder,
    LadderSettings,
    climb,
    find_entries,
)
from keisei.evaluation.ladder_report import draw, run_ladder, table
from keisei.evaluation.match import MatchResult
from keisei.evaluation.openings import load_openings
from keisei.evaluation.ratings import Rating, Ratings, next_pairs

PLAYERS = [Entry("random", "random"), Entry("mix", "greedy,random=60"), Entry("greedy", "greedy")]


def test_the_ladder_puts_players_in_their_order_with_the_random_one_at_zero(tmp_path):
    ladder = Ladder()
    climb(ladder, PLAYERS, LadderSettings(games=80, minutes=2), tmp_path / "ladder.json")
    ratings = ladder.ratings()
    assert ratings["random"].elo == 0
    assert 0 < ratings["mix"].elo < ratings["greedy"].elo
    assert ratings["greedy"].low > 0


def test_quick_games_are_played_more_often_than_slow_ones_that_tell_as_much():
    seen = Ratings({name: Rating(name, 0.0, -100.0, 100.0, 10) for name in ("a", "b", "c")})
    seen.covariance = np.diag([1e4, 1e4, 1e4])
    costs = Costs()
    for pair, seconds in ((("a", "b"), 100.0), (("c", "b"), 100.0)):
        costs.add(pair, MatchResult(*pair, games=[None] * 10, seconds=seconds))
    assert costs.of(("b", "a")) == 10.0
    costs.add(("a", "d"), MatchResult("a", "d", games=[None] * 10, seconds=1.0))
    assert costs.of(("a", "e")) == 1.0  # nothing is known of e
    assert next_pairs(seen, ["a", "b", "c"], 1, {("a", "b"): 9, ("a", "c"): 1, ("b", "c"): 9}.get)[
        0
    ] == ("a", "c")


def test_a_stored_ladder_goes_on_where_it_was(tmp_path):
    path = tmp_path / "ladder.json"
    climb(Ladder(), PLAYERS, LadderSettings(games=32, minutes=1), path)
    again = Ladder.load(path)
    before = again.games_of("random")
    assert again.ratings()["greedy"].elo == pytest.approx(
        {r["name"]: r["elo"] for r in json.loads(path.read_text())["ratings"]}["greedy"]
    )
    climb(again, PLAYERS, LadderSettings(games=16, minutes=1), path)
    assert sum(map(sum, Ladder.load(path).results.values())) == 48
    assert again.games_of("random") >= before


def test_a_pair_has_every_opening_before_one_comes_again_also_in_a_ladder_that_goes_on(
    bad_engine, tmp_path
):
    told, path = tmp_path / "told", tmp_path / "ladder.json"
    command = shlex.join(bad_engine("resigns", str(told)))
    pool = [Entry("random", "random"), Entry("resigns", f"usi:{command},processes=1")]

    def openings():  # each game tells the engine one position: there it resigns
        return Counter(tuple(line.split()[3:11]) for line in told.read_text().splitlines())

    every = set(load_openings())
    climb(Ladder(), pool, LadderSettings(games=len(every), minutes=1), path)
    assert len(openings()) == len(every) // 2
    climb(Ladder.load(path), pool, LadderSettings(games=len(every), minutes=1), path)
    assert openings() == dict.fromkeys(every, 2)  # with both colours
    climb(Ladder.load(path), pool, LadderSettings(games=16, minutes=1), path)
    assert sum(count == 4 for count in openings().values()) == 8


def test_checkpoints_are_in_the_pool_with_what_went_into_them(run):
    entries = {e.name: e for e in find_entries(run, LadderSettings(checkpoints=2, nodes=(4,)))}
    assert {"random", "greedy", "step 0", "step 200", "step 200, 4 nodes"} <= set(entries)
    assert "step 100" not in entries
    assert entries["step 200"].steps == 200
    assert entries["step 200"].cpu_hours == pytest.approx(2.0)


def test_the_command_stores_ratings_and_draws_a_picture(run, monkeypatch, capsys):
    monkeypatch.setattr("keisei.evaluation.ladder.ENGINES", {})  # engines have their own tests
    monkeypatch.setattr("keisei.evaluation.ladder.STRONGER", {})
    settings = LadderSettings(checkpoints=2, games=24, minutes=1, batch=2)
    run_ladder(str(run.folder), run.folder.parent, settings, watch=False)
    assert (run.folder / "ladder.png").read_bytes()[:4] == b"\x89PNG"
    assert "random" in capsys.readouterr().out
    assert Ladder.load(run.folder / "ladder.json").games_of("step 200")


def test_a_stronger_reference_joins_when_somebody_of_the_run_comes_near_the_top(tmp_path):
    mine = Entry("mine", "greedy,random=50", steps=100)
    pool = [Entry("random", "random"), Entry("mix", "greedy,random=60"), mine]
    stronger = [Entry("greedy", "greedy"), Entry("out of reach", "greedy,name=unknown")]
    ladder = Ladder()
    settings = LadderSettings(games=64, minutes=1)
    climb(ladder, pool, settings, tmp_path / "ladder.json", stronger=stronger)
    assert ladder.games_of("greedy") >= 16
    weak = [Entry("random", "random"), Entry("greedy", "greedy"), Entry("me", "random", steps=1)]
    ladder = Ladder()
    climb(ladder, weak, settings, tmp_path / "weak.json", stronger=stronger[1:])
    assert "out of reach" not in ladder.entries


def test_a_ladder_without_checkpoints_can_be_shown(tmp_path):
    ladder = Ladder()
    climb(ladder, PLAYERS, LadderSettings(games=32, minutes=1), tmp_path / "ladder.json")
    draw(ladder, tmp_path / "ladder.png", "none $")
    assert len(table(ladder).rows) == 3


def test_a_ladder_that_was_cut_short_is_drawn_without_those_who_have_not_played(tmp_path):
    ladder = Ladder()
    climb(ladder, PLAYERS, LadderSettings(games=2, minutes=1), tmp_path / "ladder.json")
    draw(ladder, tmp_path / "ladder.png", "short")
    assert len(table(ladder).rows) == 2


def test_a_file_that_is_no_ladder_is_named(tmp_path):
    path = tmp_path / "ladder.json"
    path.write_text("{}")
    with pytest.raises(KeiseiError, match=r"ladder\.json"):
        Ladder.load(path)
