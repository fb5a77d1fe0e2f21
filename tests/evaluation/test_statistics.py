import math

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.evaluation.pairs import Pentanomial
from keisei.evaluation.ratings import SCALE, rate
from keisei.evaluation.statistics import Sprt, elo_of_score, score_of_elo, summarise
from tests.evaluation.simulated import simulate_pairs


def test_an_even_match_says_nothing_about_who_is_stronger():
    match = summarise(Pentanomial((10, 5, 20, 5, 10)))
    assert match.score == 0.5
    assert match.elo == 0
    assert match.superiority == 0.5
    assert match.low < 0.5 < match.high


def test_elo_and_score_are_each_others_inverse():
    for elo in (-400, -7, 0, 30, 800):
        assert elo_of_score(score_of_elo(elo)) == pytest.approx(elo)


def test_a_whitewash_has_a_finite_lower_bound_and_no_upper_one():
    match = summarise(Pentanomial.of_games(20, 0, 0))
    low, high = match.elo_interval
    assert 200 < low < 400
    assert high == math.inf


@pytest.mark.parametrize(
    ("draws", "one_sided"), [(0.0, 0.0), (0.8, 0.0), (0.0, 0.9)], ids=["plain", "draws", "openings"]
)
def test_the_interval_holds_the_true_score_in_19_of_20_matches(draws, one_sided):
    rng = np.random.default_rng(1)
    held, widths = 0, []
    for _ in range(1000):
        points = simulate_pairs(rng, elo_of_score(0.7), 100, draws, one_sided)
        match = summarise(Pentanomial.of_points(points))
        held += match.low <= 0.7 <= match.high
        widths.append(match.high - match.low)
    assert 0.93 <= held / 1000 <= 0.97
    if draws or one_sided:  # pairs tell more than as many independent games without draws
        assert np.mean(widths) < 0.85 * 2 * 1.96 * np.sqrt(0.7 * 0.3 / 200)


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


def everybody_meets(rng, truth, pairs):
    """Results of a pool where everybody plays everybody."""
    names = [str(n) for n in range(len(truth))]
    return {
        (names[i], names[j]): Pentanomial.of_points(simulate_pairs(rng, one - truth[j], pairs))
        for i, one in enumerate(truth)
        for j in range(i + 1, len(truth))
    }


def test_ratings_hold_the_true_strengths_in_their_intervals_95_percent_of_the_time():
    rng, held = np.random.default_rng(1), []
    for _ in range(200):
        truth = np.concatenate([[0], np.sort(rng.uniform(0, 1200, 7))])
        ratings = rate(everybody_meets(rng, truth, pairs=10), {"0": 0.0})
        held += [ratings[str(i)].low <= truth[i] <= ratings[str(i)].high for i in range(1, 8)]
    assert 0.93 <= np.mean(held) <= 0.97


def test_ratings_are_those_of_another_implementation_of_bradley_and_terry():
    choix = pytest.importorskip("choix")
    rng = np.random.default_rng(3)
    truth = np.array([0.0, 150, 320, 400, 610])
    results = everybody_meets(rng, truth, pairs=60)
    won = np.zeros((5, 5))  # choix knows no draws: half a game for each
    for (one, two), result in results.items():
        won[int(one), int(two)] += result.games * result.score
        won[int(two), int(one)] += result.games * (1 - result.score)
    theirs = choix.ilsr_pairwise_dense(won, alpha=0) * SCALE
    ours = rate(results, {"0": 0.0}, prior_elo=1e6)
    assert [ours[str(n)].elo for n in range(5)] == pytest.approx(theirs - theirs[0], abs=0.5)


def test_frozen_ratings_stay_as_they_are_and_the_others_are_fitted_to_them():
    even = Pentanomial.of_games(50, 0, 50)
    ratings = rate({("me", "weak"): even, ("strong", "me"): even}, {"weak": 1000, "strong": 1200})
    assert (ratings["weak"].elo, ratings["strong"].elo) == (1000, 1200)
    assert ratings["weak"].width == 0
    assert ratings["me"].elo == pytest.approx(1100, abs=2)


def test_results_that_stray_from_what_ratings_say_make_intervals_wider():
    results = {("me", str(n)): Pentanomial.of_games(50, 0, 50) for n in range(4)}
    known = dict.fromkeys("0123", 500.0)
    narrow, wide = (rate(results, known, misfit)["me"] for misfit in (0.0, 40.0))
    assert narrow.elo == wide.elo
    assert (wide.width / 2 / 1.96) ** 2 - (narrow.width / 2 / 1.96) ** 2 == pytest.approx(
        40**2 / 4, rel=0.01
    )


def test_nobody_can_be_rated_without_somebody_whose_rating_is_known():
    with pytest.raises(KeiseiError, match="no player with a known rating"):
        rate({("a", "b"): Pentanomial.of_games(1, 0, 1)}, {})


def test_who_won_every_game_is_rated_high_but_not_infinitely_and_widely():
    rating = rate({("a", "random"): Pentanomial.of_games(40, 0, 0)}, {"random": 0})["a"]
    assert 400 < rating.elo < 3000
    assert rating.width > 500


def test_who_draws_every_game_or_wins_as_often_as_it_loses_is_as_strong():
    drawn = rate({("a", "random"): Pentanomial.of_games(0, 100, 0)}, {"random": 0})["a"]
    assert drawn.elo == pytest.approx(0, abs=1e-6)
    results = {
        ("a", "random"): Pentanomial.of_games(30, 40, 30),
        ("b", "random"): Pentanomial.of_games(50, 0, 50),
    }
    ratings = rate(results, {"random": 0})
    assert ratings["a"].elo == pytest.approx(0, abs=1e-6)
    assert ratings["a"].width < ratings["b"].width  # draws vary less
