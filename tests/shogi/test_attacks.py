"""Attack planes against rsshogi, which knows the attackers of a square of one board."""

import numpy as np
from rsshogi.core import Board, Color, Square

from keisei.shogi import VectorShogi, attack_planes
from keisei.shogi.attacks import _BY_WORTH, _WORTH
from keisei.shogi.features import SIDE
from keisei.shogi.mirror import mirrored

_PIECES = ["", "P", "L", "N", "S", "B", "R", "G", "K", "+P", "+L", "+N", "+S", "+B", "+R"]


def _middle_games(moves: int = 150) -> VectorShogi:
    """Random games so far on that all kinds of pieces stand everywhere."""
    games = VectorShogi(num_games=24, seed=5)
    for _ in range(moves):
        games.step(games.random_actions())
    return games


def _attackers(board: Board, square: int, color: Color) -> list[int]:
    """The numbers of the pieces of one colour that attack a square, by rsshogi."""
    found, pieces = board.attackers_to_color_current(color, Square.from_index(square)), []
    while not found.is_empty():
        pieces.append(_PIECES.index(str(board.piece_on(found.pop_lsb())).upper()))
    return pieces


def test_attack_planes_agree_with_the_rules_library_on_every_square() -> None:
    games = _middle_games()
    planes = attack_planes(games.observations).reshape(24, 2, 4, 81)
    for game in range(24):
        board = Board()
        board.set_sfen(games.game(game).sfen())
        white_moves = games.observations[game, SIDE]
        for side in range(2):
            color = (Color.BLACK, Color.WHITE)[side ^ white_moves]
            for square in range(81):
                met = _attackers(board, 80 - square if white_moves else square, color)
                least = min((_BY_WORTH.index(piece) for piece in met), default=255)
                expected = [len(met) > 0, len(met) > 1, len(met) / 4, _WORTH[least]]
                assert np.allclose(planes[game, side, :, square], expected)


def test_attacks_in_a_mirror_are_the_mirror_image() -> None:
    seen = _middle_games(60).observations
    assert np.array_equal(attack_planes(mirrored(seen)), attack_planes(seen)[:, :, ::-1])
