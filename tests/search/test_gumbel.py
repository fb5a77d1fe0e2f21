"""Gumbel search: what a few visits make of a policy."""

import gc

import numpy as np
import pytest

from keisei.core.policy import Evaluation, uniform
from keisei.search.gumbel import GumbelSearch, GumbelSettings
from keisei.shogi import VectorShogi
from keisei.shogi.material import material

MATE_IN_ONE = "4k4/9/4G4/9/9/9/9/9/4K4 b G 1"
HANGING_ROOK = "4k4/9/9/9/4r4/9/9/9/4RK3 b - 1"


def by_material(positions):
    """Any move is as likely as another; whoever has more material is better off."""
    values = np.tanh(material(positions.observations).astype(np.float32) / 10)
    return Evaluation(uniform(positions).log_probs, values)


def improve(policy, sfens, settings=GumbelSettings(), seed=1, games=4):
    board = VectorShogi(games, seed, start_sfens=sfens)
    return board, GumbelSearch(policy, settings).improve(board)


def usi_of(board, pick, row):
    board.step(board.positions.legal[pick])
    return board.moves_of(row)[1][-1]


def test_the_improved_policy_is_a_distribution_over_the_legal_moves_of_each_game():
    board, found = improve(by_material, [HANGING_ROOK])
    offsets = board.positions.offsets
    np.testing.assert_allclose(np.add.reduceat(found.policy, offsets[:-1]), 1, rtol=1e-5)
    assert (found.picks >= offsets[:-1]).all()
    assert (found.picks < offsets[1:]).all()
    assert (np.abs(found.values) <= 1).all()


def test_a_rook_that_can_be_taken_is_taken_and_that_becomes_the_likeliest_move():
    settings = GumbelSettings(visits=64, considered=32)
    board, found = improve(by_material, [HANGING_ROOK], settings)
    best = [
        found.policy[start:end].argmax() + start
        for start, end in zip(*(board.positions.offsets[i:][:4] for i in (0, 1)), strict=True)
    ]
    assert best == found.picks.tolist()
    assert usi_of(board, found.picks, 0) == "5i5e"
    assert (found.values > 0).all()


def test_a_mate_in_one_is_played_and_learned_whatever_the_network_thinks():
    board, found = improve(uniform, [MATE_IN_ONE])
    assert found.values.tolist() == [1.0] * 4
    assert found.policy[found.picks].tolist() == [1.0] * 4
    assert board.step(board.positions.legal[found.picks]).rewards.tolist() == [1.0] * 4


def test_the_board_is_as_before_after_the_search():
    board = VectorShogi(3, 7)
    for _ in range(20):
        board.step(board.random_actions())
    before = [board.search_board(row).look().moves.tolist() for row in range(3)]
    seen = board.observations.copy()
    GumbelSearch(by_material).improve(board)
    assert [board.search_board(row).look().moves.tolist() for row in range(3)] == before
    np.testing.assert_array_equal(board.observations, seen)


def test_a_game_is_searched_alike_whatever_is_searched_beside_it():
    alone = VectorShogi(1, 5, first_stream=2)
    among = VectorShogi(4, 5)
    for _ in range(5):
        one, many = (GumbelSearch(by_material).improve(games) for games in (alone, among))
        start, end = among.positions.offsets[2:4]
        np.testing.assert_array_equal(one.policy, many.policy[start:end])
        assert one.picks[0] == many.picks[2] - start
        alone.step(alone.positions.legal[one.picks])
        among.step(among.positions.legal[many.picks])


def test_so_many_visits_are_made_and_no_more_moves_considered_than_were_asked_for():
    shown = []

    def counting(positions):
        shown.append(len(positions))
        return by_material(positions)

    improve(counting, [VectorShogi(1).start_sfens[0]], GumbelSettings(visits=16, considered=8))
    assert shown == [4, 32, 16, 8, 8]  # four roots; then 8, 4, 2 and 2 moves of each


@pytest.mark.parametrize("visits", [2, 5, 33])
def test_any_number_of_visits_is_kept(visits):
    shown = []

    def counting(positions):
        shown.append(len(positions))
        return by_material(positions)

    improve(counting, [VectorShogi(1).start_sfens[0]], GumbelSettings(visits, 8), games=1)
    assert sum(shown) == 1 + visits


def test_the_only_legal_move_is_played_without_a_search():
    shown = []

    def counting(positions):
        shown.append(len(positions))
        return uniform(positions)

    forced = "k8/1R7/9/9/9/9/9/9/8K w - 1"
    board, found = improve(counting, [forced], games=1)
    assert len(board.positions.legal) == sum(shown) == 1
    assert found.policy.tolist() == [1.0]


def test_python_looks_for_cycles_after_a_search_as_it_did_before():
    was_enabled = gc.isenabled()
    try:
        for switch in (gc.disable, gc.enable):
            switch()
            before = gc.isenabled()
            improve(uniform, [HANGING_ROOK])
            assert gc.isenabled() == before
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_moves_that_the_network_rules_out_do_not_break_the_search():
    def certain(positions):
        log_probs = np.full(len(positions.legal), -200, np.float32)
        log_probs[positions.offsets[:-1]] = 0
        return Evaluation(log_probs, np.zeros(len(positions), np.float32))

    _, found = improve(certain, [HANGING_ROOK], GumbelSettings(visits=16, considered=16))
    assert np.isfinite(found.policy).all()
    assert np.isfinite(found.values).all()
