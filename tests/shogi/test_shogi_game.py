import copy
import pickle
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keisei.shogi import HANDICAPS, IllegalActionError, InvalidSfenError, ShogiGame

START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"


def random_game(seed: int, length: int) -> ShogiGame:
    rng, game = random.Random(seed), ShogiGame()
    while not game.outcome and len(game.moves) < length:
        game.step(rng.choice(game.legal_actions()))
    return game


@given(seed=st.integers(0, 10**6), length=st.integers(0, 120))
@settings(max_examples=50, deadline=None)
def test_a_game_goes_on_the_same_from_its_sfen(seed, length):
    game = random_game(seed, length)
    again = ShogiGame(game.sfen())
    assert again.sfen() == game.sfen()
    if not game.outcome:
        assert sorted(again.legal_usi()) == sorted(game.legal_usi())


@given(seed=st.integers(0, 10**6), length=st.integers(1, 120))
@settings(max_examples=30, deadline=None)
def test_undo_brings_back_every_earlier_position(seed, length):
    game = random_game(seed, length)
    seen = []
    for usi in (replay := ShogiGame(), *game.moves)[1:]:
        seen.append((replay.sfen(), replay.observation().tobytes(), replay.outcome))
        replay.push_usi(usi)
    while seen:
        game.undo()
        assert (game.sfen(), game.observation().tobytes(), game.outcome) == seen.pop()
    with pytest.raises(IndexError, match="no move"):
        game.undo()


@pytest.mark.parametrize(
    "duplicate", [copy.copy, ShogiGame.copy, lambda g: pickle.loads(pickle.dumps(g))]
)
def test_a_copy_is_the_same_game_with_its_history_and_lives_on_its_own(duplicate):
    game = ShogiGame(move_limit=99)
    for usi in ["2h3h", "8b7b", "3h2h", "7b8b"] * 2:
        game.push_usi(usi)
    twin = duplicate(game)
    assert (twin.moves, twin.repetitions, twin.move_limit) == (game.moves, 2, 99)
    for usi in ["2h3h", "8b7b", "3h2h", "7b8b"]:
        twin.push_usi(usi)
    assert twin.outcome.reason == "repetition"
    assert game.outcome is None


def test_resigning_ends_the_game_for_the_other_side_and_can_be_undone_and_pickled():
    game = ShogiGame()
    game.push_usi("7g7f")
    game.resign()
    assert (game.outcome.winner, game.outcome.reason) == ("black", "resignation")
    assert pickle.loads(pickle.dumps(game)).outcome == game.outcome
    assert len(game.legal_actions()) == 0
    game.undo()
    assert game.outcome is None
    assert game.moves == ["7g7f"]


@pytest.mark.parametrize("name", HANDICAPS)
def test_handicap_games_start_with_white_to_move(name):
    game = ShogiGame(handicap=name)
    assert game.turn == "white"
    assert len(game.legal_actions()) > 0


@pytest.mark.parametrize(
    ("sfen", "says"),
    [
        ("", "Placement"),
        ("rubbish", "rubbish"),
        (START.replace(" b ", " x "), "turn"),
        (START.replace("9/9", "9/8"), "square"),
        (START.replace("k", "1"), "White king is missing"),
        (START.replace("9/9", "P8/9", 1), "19"),
        ("4k4/9/9/9/9/9/4P4/4P4/4K4 b - 1", "double pawn"),
        ("P3k4/9/9/9/9/9/9/9/4K4 b - 1", "placement"),
        ("4k4/4R4/9/9/9/9/9/9/4K4 b - 1", "not to move is in check"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 3R 1", "excessive"),
        ("9/9/9/9/9/9/9/9/9 b - 1", "king is missing"),
        ("4k4/9/9/9/9/9/9/9/4K4 b - 65535", "no room for a game"),
    ],
)
def test_a_broken_sfen_is_named_with_what_is_wrong_and_leaves_the_game_as_it_was(sfen, says):
    game = ShogiGame()
    game.push_usi("7g7f")
    with pytest.raises(InvalidSfenError, match=says):
        game.reset(sfen)
    assert game.moves == ["7g7f"]


@given(st.text(max_size=80))
def test_any_text_is_a_position_or_a_clear_error(text):
    try:
        ShogiGame(text)
    except InvalidSfenError as error:
        assert repr(text) in str(error)  # noqa: PT017


@pytest.mark.parametrize("usi", ["7g7e", "P*5e", "8h2b+", "", "resign", "9a9b"])
def test_an_illegal_move_is_named_and_changes_nothing(usi):
    game = ShogiGame()
    with pytest.raises(IllegalActionError, match=r"not legal|not a USI move") as error:
        game.push_usi(usi)
    assert usi in str(error.value)
    assert (game.sfen(), game.moves) == (START, [])


def test_an_illegal_action_is_named_and_changes_nothing():
    game = ShogiGame()
    legal = set(game.legal_actions().tolist())
    illegal = next(a for a in range(13_527) if a not in legal)
    with pytest.raises(IllegalActionError, match=f"action {illegal}"):
        game.step(illegal)
    with pytest.raises(IllegalActionError, match="13527"):
        game.step(13_527)
    assert game.sfen() == START


def test_nothing_can_be_played_after_the_end():
    game = ShogiGame(move_limit=1)
    game.push_usi("7g7f")
    with pytest.raises(IllegalActionError, match="after the end"):
        game.push_usi("3c3d")


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="2_pieces"):
        ShogiGame(handicap="queen")
    with pytest.raises(ValueError, match="not both"):
        ShogiGame(START, handicap="rook")
    with pytest.raises(ValueError, match="move_limit"):
        ShogiGame(move_limit=0)


def test_the_planes_of_the_start_position_are_as_documented():
    planes = ShogiGame().planes()
    assert planes.shape == (46, 9, 9)
    assert planes[0].sum() == planes[14].sum() == 9  # pawns
    assert planes[0, :, 6].sum() == 9  # own pawns on the seventh rank: [file, rank]
    assert planes[7, 4, 8] == planes[21, 4, 0] == 1  # the kings on 5i and 5a
    assert not planes[28:].any()


def test_the_scalar_planes_show_hands_side_count_repetition_and_check():
    game = ShogiGame("4k4/9/9/9/9/9/9/4r4/4K4 b 9P2b 1")
    planes = game.planes()
    assert np.allclose(planes[28], 9 / 18)
    assert np.allclose(planes[39], 1)
    assert planes[45].all()
    game.push_usi("5i5h")
    assert game.planes()[42].all()
    assert np.allclose(game.planes()[43], 1 / 512)
    shuffled = ShogiGame()
    for usi in ["2h3h", "8b7b", "3h2h", "7b8b"] * 2:
        shuffled.push_usi(usi)
    assert np.allclose(shuffled.planes()[44], 2 / 3)
