import math

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.evaluation.ratings import next_pairs, rate
from keisei.evaluation.statistics import Sprt, elo_of_score, score_of_elo, summarise


def test_an_even_match_says_nothing_about_who_is_stronger():
    match = summarise(30, 40, 30)
    assert match.score == 0.5
    assert match.elo == 0
    assert match.superiority == 0.5
    assert match.low < 0.5 < match.high


def test_elo_and_score_are_each_others_inverse():
    for elo in (-400, -7, 0, 30, 800):
        assert elo_of_score(score_of_elo(elo)) == pytest.approx(elo)


def test_a_whitewash_has_a_finite_lower_bound_and_no_upper_one():
    match = summarise(20, 0, 0)
    low, high = match.elo_interval
    assert 200 < low < 400
    assert high == math.inf


def test_the_interval_holds_the_true_score_in_19_of_20_matches():
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(1000):
        wins = int(rng.binomial(60, 0.7))
        match = summarise(wins, 0, 60 - wins)
        held += match.low <= 0.7 <= match.high
    assert 0.93 <= held / 1000 <= 0.97


@pytest.mark.parametrize(("elo", "verdict"), [(0, "not stronger"), (60, "stronger")])
def test_the_sequential_test_is_right_in_at_least_19_of_20_matches(elo, verdict):
    rng, right = np.random.default_rng(2), 0
    test = Sprt(elo0=0, elo1=60)
    for _ in range(100):
        pairs = rng.binomial(2, score_of_elo(elo), size=2000).astype(float).tolist()
        ends = (test.verdict(pairs[:n]) for n in range(8, 2000, 8))
        right += next(end for end in ends if end != "undecided") == verdict
    assert right >= 92


@pytest.mark.parametrize("elo", [-20.0, 0.0, math.nan])
def test_a_sequential_test_that_cannot_decide_or_would_be_reversed_is_refused(elo):
    with pytest.raises(KeiseiError, match="--sprt"):
        Sprt(elo1=elo)


def simulate(rng, truth, games, draws=0.3):
    """Results of a pool where everybody plays everybody, by Davidson's model."""
    results = {}
    for i, one in enumerate(truth):
        for j in range(i + 1, len(truth)):
            p, q = 10 ** (one / 400), 10 ** (truth[j] / 400)
            weights = np.array([p, draws * math.sqrt(p * q), q])
            results[str(i), str(j)] = tuple(rng.multinomial(games, weights / weights.sum()))
    return results


def test_ratings_hold_the_true_strengths_in_their_intervals_95_percent_of_the_time():
    rng, held = np.random.default_rng(1), []
    for _ in range(200):
        truth = np.concatenate([[0], np.sort(rng.uniform(0, 1200, 7))])
        ratings = rate(simulate(rng, truth, games=20), anchor="0")
        held += [ratings[str(i)].low <= truth[i] <= ratings[str(i)].high for i in range(1, 8)]
    assert 0.93 <= np.mean(held) <= 0.97


def test_who_won_every_game_is_rated_high_but_not_infinitely_and_widely():
    rating = rate({("a", "random"): (40, 0, 0)}, "random")["a"]
    assert 400 < rating.elo < 3000
    assert rating.high - rating.low > 500


def test_who_draws_every_game_or_wins_as_often_as_it_loses_is_as_strong():
    drawn = rate({("a", "random"): (0, 100, 0)}, "random")["a"]
    assert drawn.elo == pytest.approx(0, abs=1e-6)
    results = {("a", "random"): (30, 40, 30), ("b", "random"): (50, 0, 50)}
    assert rate(results, "random")["a"].elo == pytest.approx(0, abs=1e-6)


def test_games_are_given_to_pairs_whose_difference_is_little_known():
    # Two clusters that are known well in themselves; between them there is one whitewash.
    results = {("0", "1"): (50, 0, 50), ("2", "3"): (50, 0, 50), ("1", "2"): (0, 0, 8)}
    ratings = rate(results, anchor="0")
    assert ratings.spread_between("2", "3") < ratings.spread_between("1", "2") / 3
    pairs = next_pairs(ratings, ["0", "1", "2", "3"], 4)
    assert ("2", "3") not in pairs
    assert ("0", "1") not in pairs
