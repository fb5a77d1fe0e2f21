"""Rating on the yardstick, with players whose strength is known because they are simulated."""

import json
import shlex
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from keisei.evaluation.pairs import Pentanomial
from keisei.evaluation.rate import MOST_GAMES, Candidate, measure, next_opponents, off_scale
from keisei.evaluation.rate_report import run_rate
from keisei.evaluation.statistics import score_of_elo
from keisei.evaluation.yardstick import Reference, Yardstick, check_engines, load_yardstick
from keisei.processes.pool import Pool
from tests.evaluation.simulated import QUICK, simulate_pairs


@dataclass
class Simulated:
    """What a match of simulated players came to."""

    points: list[float]

    @property
    def played(self):
        return 2 * len(self.points)

    def pairs(self):
        return self.points


def yardstick_of(elos, misfit=0.0):
    names = [f"{elo:g}" for elo in elos]
    references = [
        Reference(name, name, elo, 0, 1000, 0.1 + elo / 2000)
        for name, elo in zip(names, elos, strict=True)
    ]
    return Yardstick(references, misfit)


def simulated_pool(rng, misfit=0.0):
    """Players' names are their strengths; results stray from them by `misfit` Elo."""
    strays = {}

    def play(first, second, settings, begin, games):
        stray = strays.setdefault((first, second), misfit * rng.standard_normal())
        gap = float(first) - float(second) + stray
        return Simulated(simulate_pairs(rng, gap, games // 2))

    return Pool(play)


@pytest.mark.parametrize("misfit", [0.0, 30.0])
def test_over_500_players_the_intervals_hold_the_truth_as_often_as_they_say(misfit):
    rng = np.random.default_rng(1)
    yardstick = yardstick_of(np.arange(0, 4600, 120.0), misfit)
    held, widths = [], []
    for elo in rng.uniform(50, 4400, 500):
        player = Candidate("me", str(elo))
        measure([player], yardstick, simulated_pool(rng, misfit))
        rating = player.rating(yardstick)
        held.append(rating.low <= elo <= rating.high)
        widths.append(rating.width)
    assert 0.93 <= np.mean(held) <= 0.97
    assert max(widths) <= 80


@pytest.mark.parametrize("oddity", [0.0, 150.0])
def test_the_same_player_rated_twice_differs_by_less_than_the_intervals_say(oddity):
    """Also one that is far stronger against some opponents than against others."""
    rng = np.random.default_rng(2)
    yardstick = yardstick_of(np.arange(0, 3000, 150.0), misfit=20)
    close = 0
    for elo in rng.uniform(100, 2800, 40):
        two = []
        pool = simulated_pool(rng, oddity)  # against each opponent as strong the second time
        for _ in range(2):
            player = Candidate("me", str(elo))
            measure([player], yardstick, pool)
            two.append(player.rating(yardstick))
        close += abs(two[0].elo - two[1].elo) < np.hypot(two[0].width, two[1].width) / 2
    assert close >= 0.95 * 40


def test_no_two_references_are_met_with_the_same_openings_and_random_numbers():
    rng, seeds = np.random.default_rng(3), {}

    def play(first, second, settings, begin, games):
        seeds.setdefault(second, set()).add(settings.seed)
        return Simulated(simulate_pairs(rng, float(first) - float(second), games // 2))

    measure([Candidate("me", "700")], yardstick_of(np.arange(0, 1500, 100.0)), Pool(play))
    own = [seed for (seed,) in seeds.values()]  # one long match with each
    assert len(own) > 8
    assert min(two - one for one, two in pairwise(sorted(own))) > 2 * MOST_GAMES


def test_opponents_are_those_whose_result_is_open_and_quick_ones_get_more_games():
    yardstick = yardstick_of([0, 1000, 1100, 1200, 1300, 3000])
    player = Candidate("me", "1150", results={"1100": Pentanomial.of_games(16, 0, 12)})
    assert {r.elo for r, _ in next_opponents(player, yardstick)} == {1000, 1100, 1200, 1300}
    player.add("1100", Pentanomial.of_games(12, 0, 14))  # now it has met that one often enough
    assert {r.elo for r, _ in next_opponents(player, yardstick)} == {1000, 1200, 1300}
    twins = [
        Reference(name, name, 1000.0, 0, 0, cost) for name, cost in (("slow", 9), ("quick", 1))
    ]
    even = {twin.name: Pentanomial.of_games(8, 0, 8) for twin in twins}
    games = dict(next_opponents(Candidate("me", "1000", results=even), Yardstick(twins)))
    assert games[twins[1]] > 2 * games.get(twins[0], 0)


def test_what_an_opponent_says_counts_by_how_open_its_result_is_not_by_the_number_of_games():
    yardstick = yardstick_of([900, 1000, 1100])
    weak, strong = Pentanomial.of_games(16, 0, 16), Pentanomial.of_games(6, 0, 26)
    few = Candidate("me", "1000", results={"900": weak, "1100": strong})
    many = Candidate("me", "1000", results={"900": weak + weak, "1100": strong})
    assert many.rating(yardstick).elo == pytest.approx(few.rating(yardstick).elo, abs=1)


def test_few_games_are_played_with_opponents_far_away_also_without_a_guess():
    rng, far, games = np.random.default_rng(6), 0, 0
    yardstick = yardstick_of(np.arange(0, 3600, 120.0))
    for elo in rng.uniform(300, 3300, 40):
        player = Candidate("me", str(elo))
        measure([player], yardstick, simulated_pool(rng), games_left=96)
        games += player.games
        far += sum(met.games for r, met in player.results.items() if abs(float(r) - elo) > 500)
    assert far < 0.15 * games  # it was a third


@pytest.mark.parametrize("elo", [1200, 2700])
def test_who_has_a_guess_begins_near_it_and_finds_its_place_even_if_the_guess_is_wrong(elo):
    yardstick = yardstick_of(np.arange(0, 3000, 150.0))
    player = Candidate("me", str(elo), guess=1150)
    assert {r.elo for r, _ in next_opponents(player, yardstick)} <= set(np.arange(750, 1600, 150))
    measure([player], yardstick, simulated_pool(np.random.default_rng(1)))
    assert player.rating(yardstick).elo == pytest.approx(elo, abs=60)


def test_a_reference_can_be_rated_itself():
    yardstick = yardstick_of([0, 200, 400])
    player = Candidate("200", "200")
    measure([player], yardstick, simulated_pool(np.random.default_rng(1)))
    assert player.rating(yardstick).elo == pytest.approx(200, abs=60)


@pytest.mark.parametrize(("elo", "said"), [(2500, "stronger than 1000"), (-1500, "weaker than 0")])
def test_a_player_beyond_the_ends_of_the_yardstick_is_not_played_for_ever(elo, said):
    yardstick = yardstick_of([0, 500, 1000])
    player = Candidate("me", str(elo))
    measure([player], yardstick, simulated_pool(np.random.default_rng(1)))
    assert player.games < 200
    assert off_scale(player.rating(yardstick), yardstick).startswith(said)


@pytest.fixture
def one_core(monkeypatch):
    """Games are played in this process: others take seconds to start."""
    monkeypatch.setattr("keisei.processes.pool.cores", lambda: 1)


@pytest.mark.usefixtures("one_core")
def test_the_command_shows_and_writes_the_rating_and_the_opponents(tmp_path, capsys):
    file = tmp_path / "new" / "rating.json"
    run_rate("greedy,random=75", 250, json_file=file, yardstick=QUICK)
    shown = capsys.readouterr().out
    for word in ("greedy with 75% random moves: Elo", "95 % interval", "expected", "today"):
        assert word in shown
    [rating] = json.loads(file.read_text())["ratings"]
    assert 0 < rating["elo"] < 900
    assert rating["high"] - rating["low"] <= 250
    assert rating["games"] == sum(2 * sum(met["pairs"]) for met in rating["opponents"])


@pytest.mark.usefixtures("one_core")
def test_a_network_is_rated_by_its_policy_alone_and_with_search(run, bad_engine, capsys):
    player = f"usi:{shlex.join(bad_engine('resigns'))}"
    run_rate(f"{run.folder}", yardstick=Yardstick([Reference("quick", player, 0.0, 0.0, 100, 0.1)]))
    shown = capsys.readouterr().out
    assert "small 200 policy: Elo" in shown
    assert "small 200 100 nodes: Elo" in shown


@pytest.mark.usefixtures("one_core")
def test_without_engines_it_says_what_is_missing_above(capsys):
    strong = Reference("strong", "usi:no-such-engine,go=depth 1", 3000.0, 20.0, 100, 0.1)
    run_rate("greedy,random=75", 2000, yardstick=Yardstick([*QUICK.references, strong]))
    shown = " ".join(capsys.readouterr().out.split())
    assert "not installed: no-such-engine" in shown
    assert "there are none above greedy (1450)" in shown


def test_another_version_of_an_engine_than_the_one_that_was_rated_is_named(
    bad_engine, tmp_path, monkeypatch, caplog
):
    script = tmp_path / "some-engine"
    script.write_text(f"#!/bin/sh\nexec {shlex.join(bad_engine('resigns'))}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    check_engines(Yardstick(QUICK.references, versions={"some-engine": "Some Engine 1.0"}))
    assert "some-engine is some-engine here; its ratings are for Some Engine 1.0" in caplog.text


def test_the_yardstick_that_comes_with_keisei_has_no_gap_and_its_neighbours_are_tied():
    yardstick = load_yardstick()
    references = yardstick.references
    assert (references[0].name, references[0].elo) == ("random", 0)
    assert "fairy d6" in yardstick.ratings
    for weaker, stronger in pairwise(references):
        assert stronger.elo - weaker.elo <= 200
        pair = (weaker.name, stronger.name)
        tie = yardstick.results.get(pair) or yardstick.results[pair[::-1]].reversed
        assert tie.games >= 200
        assert 0.05 < tie.score < 0.95


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),  # the 95 % intervals of 208 games each: docs/strength.md
    [
        ("quick-131072", "greedy, 57 % random", 0.229, 0.324),
        ("fairy -20", "greedy, 34 % random", 0.113, 0.206),
        ("hour-5247503, 12 nodes", "fairy d1, 25 % random", 0.163, 0.287),
    ],
)
def test_the_frozen_ratings_predict_pairings_that_were_left_out_of_the_fit(
    first, second, low, high
):
    yardstick = load_yardstick()
    assert {(first, second), (second, first)}.isdisjoint(yardstick.results)
    gap = yardstick.ratings[first] - yardstick.ratings[second]
    assert low <= score_of_elo(gap) <= high


def test_the_order_of_the_random_player_the_weakest_engine_and_the_greedy_one_is_as_ever():
    ratings = load_yardstick().ratings
    assert ratings["random"] < ratings["fairy -20"] < ratings["greedy"]


def test_our_own_references_are_a_yardstick_without_any_engine():
    ours = [r.elo for r in load_yardstick().references if r.engine is None]
    assert max(np.diff(ours)) <= 300
    assert max(ours) > 1800
