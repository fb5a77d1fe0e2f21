import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rsshogi.core import Move

from keisei.shogi import NUM_ACTIONS, IllegalActionError, PolicyOutputMapper, ShogiGame
from keisei.shogi.actions import MOVE_OF_ACTION

MAPPER = PolicyOutputMapper()
TURNS = st.sampled_from(["black", "white"])


def test_there_are_13527_actions_and_each_is_another_move():
    assert NUM_ACTIONS == 81 * 80 * 2 + 7 * 81 == 13_527
    for turn in (0, 1):
        assert len(np.unique(MOVE_OF_ACTION[turn])) == NUM_ACTIONS


@given(st.integers(0, NUM_ACTIONS - 1), TURNS)
def test_every_action_maps_to_usi_and_back(action, turn):
    assert MAPPER.usi_to_action(MAPPER.action_to_usi(action, turn), turn) == action


@given(st.lists(st.integers(0, NUM_ACTIONS - 1), min_size=1), st.integers(0, 1))
def test_arrays_map_like_single_actions(actions, white):
    moves = MAPPER.actions_to_moves(np.array(actions), np.int64(white))
    turn = ("black", "white")[white]
    assert [Move(int(m)).to_usi() for m in moves] == [
        MAPPER.action_to_usi(a, turn) for a in actions
    ]
    assert MAPPER.moves_to_actions(moves, np.int64(white)).tolist() == actions


@given(st.integers(0, NUM_ACTIONS - 1))
def test_an_action_is_the_same_move_on_the_turned_board(action):
    black, white = (Move.from_usi(MAPPER.action_to_usi(action, t)) for t in ("black", "white"))
    assert black.flip_side() == white


@given(st.integers(0, 65_535), TURNS)
def test_bit_patterns_that_are_no_move_of_a_piece_map_to_minus_one(bits, turn):
    white = np.int64(turn == "white")
    action = int(MAPPER.moves_to_actions(np.int64(bits), white))
    if action >= 0:
        assert MAPPER.actions_to_moves(np.int64(action), white) == bits
    else:
        assert bits not in MOVE_OF_ACTION[white]


def test_the_hash_of_a_move_is_its_16_bits():
    # VectorShogi reads legal moves by hash(): if rsshogi changes it, this says so.
    assert all(hash(Move(bits)) == bits == Move(bits).value for bits in range(1 << 16))


@pytest.mark.parametrize("action", [-1, NUM_ACTIONS, 10**9])
def test_a_number_outside_the_range_is_named(action):
    with pytest.raises(IllegalActionError, match=str(action)):
        MAPPER.action_to_usi(action, "black")


@pytest.mark.parametrize("usi", ["", "7g", "7g7", "7g7f++", "K*5e", "0a1b", "7g7g", "P*", "漢字"])
def test_a_broken_usi_move_is_named(usi):
    with pytest.raises(IllegalActionError, match="USI"):
        MAPPER.usi_to_action(usi, "black")


def test_a_wrong_turn_is_named():
    with pytest.raises(ValueError, match="sente"):
        MAPPER.usi_to_action("7g7f", "sente")


def test_both_sides_have_the_same_30_actions_at_the_start():
    black = ShogiGame()
    white = ShogiGame("lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1")
    assert sorted(black.legal_actions()) == sorted(white.legal_actions())
