import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keisei.core.gae import zero_sum_gae


def reference(rewards, values, dones, last_value, gamma, lam, black_first):
    """One stream, slowly, in the plain one-player way: all is turned to Black's side."""
    steps = len(rewards)
    side, is_black = [], black_first
    for done in dones:
        side.append(1 if is_black else -1)
        is_black = True if done else not is_black  # a new game begins with Black
    after = 1 if is_black else -1
    black_values = [v * s for v, s in zip(values, side, strict=True)] + [last_value * after]
    advantages = []
    for start in range(steps):
        total, weight = 0.0, 1.0
        for t in range(start, steps):
            following = 0.0 if dones[t] else gamma * black_values[t + 1]
            total += weight * (rewards[t] * side[t] + following - black_values[t])
            if dones[t]:
                break
            weight *= gamma * lam
        advantages.append(total * side[start])
    return advantages


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_it_equals_a_slow_reference_whatever_games_end_inside_at_or_across_the_edge(seed, T, G):
    rng = np.random.default_rng(seed)
    rewards = rng.choice([-1, 0, 0.1, 1], (T, G)).astype(np.float32)
    values = rng.uniform(-1, 1, (T, G)).astype(np.float32)
    dones = rng.random((T, G)) < rng.choice([0, 0.2, 0.6, 1])
    last = rng.uniform(-1, 1, G).astype(np.float32)
    gamma, lam = rng.choice([0.9, 1.0]), rng.choice([0.0, 0.95, 1.0])
    advantages, returns = zero_sum_gae(rewards, values, dones, last, gamma, lam)
    for g in range(G):
        black_first = bool(rng.integers(2))  # in the middle of a game, anyone may be to move
        slow = reference(
            *(a[:, g].tolist() for a in (rewards, values, dones)), last[g], gamma, lam, black_first
        )
        assert advantages[:, g] == pytest.approx(slow, abs=1e-4)
    assert returns == pytest.approx(advantages + values, abs=1e-6)


def test_a_decided_game_gives_every_move_of_the_winner_plus_and_of_the_loser_minus():
    rewards = np.array([[0], [0], [0], [1]], np.float32)
    dones = np.array([[0], [0], [0], [1]], bool)
    advantages, _ = zero_sum_gae(rewards, np.zeros_like(rewards), dones, np.ones(1), 1.0, 1.0)
    assert advantages[:, 0].tolist() == [-1, 1, -1, 1]


def test_a_cut_game_bootstraps_with_the_opponents_value_and_an_ended_one_does_not():
    zeros = np.zeros((1, 2), np.float32)
    dones = np.array([[False, True]])
    last = np.array([0.5, 0.5], np.float32)
    advantages, _ = zero_sum_gae(zeros, zeros, dones, last, 1.0, 1.0)
    assert advantages[0].tolist() == [-0.5, 0.0]


def test_nothing_leaks_from_one_stream_or_game_into_another():
    rng = np.random.default_rng(1)
    rewards, values = rng.normal(size=(2, 8, 3)).astype(np.float32)
    dones = np.zeros((8, 3), bool)
    dones[4, 1] = True
    before, _ = zero_sum_gae(rewards, values, dones, np.zeros(3, np.float32), 1.0, 0.95)
    rewards[5:, 1] = 100  # the next game of stream 1, and all of stream 2
    rewards[:, 2] = 100
    after, _ = zero_sum_gae(rewards, values, dones, np.zeros(3, np.float32), 1.0, 0.95)
    assert np.array_equal(before[:, 0], after[:, 0])
    assert np.array_equal(before[:5, 1], after[:5, 1])
