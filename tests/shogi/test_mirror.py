"""A position in the mirror is played by mirrored moves."""

import numpy as np

from keisei.shogi import ShogiGame, VectorShogi
from keisei.shogi.mirror import MIRRORED_ACTION, mirrored

_FILES = str.maketrans("123456789", "987654321")


def mirrored_sfen(sfen):
    board, *rest = sfen.split()
    rows = []
    for row in board.split("/"):
        squares, promoted = [], ""
        for letter in row:
            if letter == "+":
                promoted = "+"
            elif letter.isdigit():
                squares += [""] * int(letter)
            else:
                squares.append(promoted + letter)
                promoted = ""
        text, empty = "", 0
        for square in [*reversed(squares), None]:
            if square == "":
                empty += 1
                continue
            text, empty = text + (str(empty) if empty else "") + (square or ""), 0
        rows.append(text)
    return " ".join(["/".join(rows), *rest])


def test_mirroring_twice_changes_nothing():
    np.testing.assert_array_equal(MIRRORED_ACTION[MIRRORED_ACTION], np.arange(len(MIRRORED_ACTION)))


def test_a_mirrored_observation_is_that_of_the_mirrored_board_with_the_mirrored_legal_moves():
    games = VectorShogi(20, seed=3)
    for _ in range(60):
        games.step(games.random_actions())
    for row in range(games.num_games):
        other = ShogiGame(mirrored_sfen(games.game(row).sfen()))
        own = mirrored(games.observations[row : row + 1])[0]
        np.testing.assert_array_equal(own[:96], other.observation()[:96])
        mine = MIRRORED_ACTION[games.positions.legal[games.positions.segment(row)]]
        assert set(mine.tolist()) == set(other.legal_actions().tolist())
