"""Attack planes against rsshogi, which knows the attackers of a square of one board."""

import numpy as np
import pytest
import torch
from rsshogi.core import Board, Color, Square

from keisei.shogi import PLANE_SETS, ShogiGame, VectorShogi, attack_planes
from keisei.shogi.attacks import _BY_WORTH
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
    planes = attack_planes(games.observations)[:, :8].reshape(24, 2, 4, 81)
    for game in range(24):
        board = Board()
        board.set_sfen(games.game(game).sfen())
        white_moves = games.observations[game, SIDE]
        for side in range(2):
            color = (Color.BLACK, Color.WHITE)[side ^ white_moves]
            for square in range(81):
                met = _attackers(board, 80 - square if white_moves else square, color)
                least = min((_BY_WORTH.index(piece) for piece in met), default=255)
                expected = [len(met) > 0, len(met) > 1, len(met) / 4, max(1 - least / 13, 0)]
                assert np.allclose(planes[game, side, :, square], expected)


def test_attacks_in_a_mirror_are_the_mirror_image() -> None:
    seen = _middle_games(60).observations
    assert np.array_equal(attack_planes(mirrored(seen)), attack_planes(seen)[:, :, ::-1])


@pytest.mark.parametrize("name", PLANE_SETS)
def test_planes_made_in_bfloat16_are_those_of_float32_rounded_as_pytorch_does(name) -> None:
    seen, planes = _middle_games(100).observations, PLANE_SETS[name]
    rough = torch.from_numpy(planes.make(seen, np.uint16)).view(torch.bfloat16)
    assert torch.equal(rough, torch.from_numpy(planes.make(seen)).bfloat16())


def test_the_last_planes_show_where_a_rook_a_bishop_or_a_knight_would_give_check() -> None:
    game = ShogiGame("4k4/9/3p5/9/4P4/9/9/4K4/9 b - 1")
    planes = attack_planes(game.observation()[None])[0, 8:].reshape(6, 81)
    assert [_named(plane) for plane in planes] == [
        "1a 2a 3a 4a 5b 5c 5d 5e 6a 7a 8a 9a",  # up to where the mover's pawn stands
        "1e 2d 3c 4b 6b 7c 8d 9e",
        "4c 6c",
        "1h 2h 3h 4h 5e 5f 5g 5i 6h 7h 8h 9h",
        "1d 2e 3f 4g 4i 6g 6i 7f 8e 9d",
        "4f 6f",
    ]


def _named(plane: np.ndarray) -> str:
    squares = np.flatnonzero(plane)
    return " ".join(f"{square // 9 + 1}{'abcdefghi'[square % 9]}" for square in squares)
