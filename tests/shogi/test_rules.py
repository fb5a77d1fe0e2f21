"""The rules, to the last one. Positions are written as SFEN; moves as USI."""

import re

import numpy as np
import pytest

from keisei.shogi import HANDICAPS, ShogiGame
from keisei.shogi.rules import can_declare, declaration_points, handicap_bonus

TURN = str.maketrans("123456789abcdefghi", "987654321ihgfedcba")  # of the squares in USI moves


def turned(sfen: str) -> str:
    """The same position with the colours exchanged, seen from the other side."""
    board, side, hands, count = sfen.split()
    pieces = re.findall(r"\+?[a-zA-Z]|\d|/", board)
    flipped = "".join(pieces[::-1]).swapcase()
    return f"{flipped} {'w' if side == 'b' else 'b'} {hands.swapcase()} {count}"


def perft(game: ShogiGame, depth: int) -> int:
    actions = game.legal_actions()
    if depth == 1:
        return len(actions)
    total = 0
    for action in actions:
        game.step(action)
        total += perft(game, depth - 1)
        game.undo()
    return total


@pytest.mark.parametrize(("depth", "count"), [(1, 30), (2, 900), (3, 25_470), (4, 719_731)])
def test_perft_of_the_start_position(depth, count):
    assert perft(ShogiGame(), depth) == count


@pytest.mark.parametrize(
    ("sfen", "counts"),
    [
        # The position with the most legal moves, and one from a real game with both hands full.
        ("R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1", (593, 105_677)),
        ("l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1", (207, 28_684)),
    ],
)
def test_perft_where_many_drops_are_legal(sfen, counts):
    game = ShogiGame(sfen)
    assert (perft(game, 1), perft(game, 2)) == counts


def test_a_second_unpromoted_pawn_on_a_file_cannot_be_dropped():
    drops = ShogiGame("4k4/9/9/9/9/9/4P4/2+P6/4K4 b P 1").legal_usi()
    assert "P*5e" not in drops
    assert "P*7e" in drops  # a promoted pawn does not count


def test_a_pawn_cannot_be_dropped_for_mate_but_other_pieces_can():
    assert "P*1b" not in ShogiGame("7lk/9/7GG/9/9/9/9/9/4K4 b P 1").legal_usi()
    assert "L*1b" in ShogiGame("7lk/9/7GG/9/9/9/9/9/4K4 b L 1").legal_usi()
    # Where the king can flee, the pawn drop is a check like any other.
    assert "P*1b" in ShogiGame("8k/9/7GG/9/9/9/9/9/4K4 b P 1").legal_usi()


def test_pieces_cannot_be_dropped_where_they_could_never_move():
    drops = [u for u in ShogiGame("k8/9/9/9/9/9/9/9/4K4 b PLN 1").legal_usi() if "*" in u]
    assert not [u for u in drops if u[0] in "PL" and u.endswith("a")]
    assert not [u for u in drops if u[0] == "N" and u[-1] in "ab"]
    assert "N*5c" in drops
    assert "P*5b" in drops


def test_pieces_must_promote_where_they_could_never_move_again():
    moves = ShogiGame("k8/4P4/6N2/9/9/9/9/9/4K4 b - 1").legal_usi()
    assert "5b5a+" in moves
    assert "5b5a" not in moves
    assert "3c2a+" in moves
    assert "3c2a" not in moves


def test_mate_and_stalemate_both_lose():
    mated = ShogiGame("4k4/4G4/4P4/9/9/9/9/9/4K4 w - 1")
    assert (mated.outcome.winner, mated.outcome.reason) == ("black", "checkmate")
    stuck = ShogiGame("k8/2G6/1S7/9/9/9/9/9/4K4 w - 1")
    assert (stuck.outcome.winner, stuck.outcome.reason) == ("black", "no legal move")


def play(sfen: str | None, moves: str, **settings) -> ShogiGame:
    game = ShogiGame(sfen, **settings)
    for usi in moves.split():
        assert game.outcome is None, f"over before {usi}: {game.outcome}"
        game.push_usi(usi)
    return game


def test_the_fourth_occurrence_of_a_position_draws_and_not_an_earlier_one():
    shuffle = "2h3h 8b7b 3h2h 7b8b "
    assert play(None, shuffle * 2).repetitions == 2
    game = play(None, shuffle * 3)
    assert (game.outcome.winner, game.outcome.reason) == (None, "repetition")


def test_positions_repeat_over_long_cycles_too():
    ring = ["5i", "5h", "5g", "4g", "3g", "2g", "2h", "2i", "3i", "4i"]
    black = [a + b for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)]
    white = [move.translate(TURN) for move in black]
    cycle = " ".join(f"{b} {w}" for b, w in zip(black, white, strict=True)) + " "
    game = play("4k4/9/9/9/9/9/9/9/4K4 b - 1", cycle * 3)
    assert game.outcome.reason == "repetition"


CHECKS = "5c4c 4a5a 4c5c 5a4a "  # the rook checks, the king runs, and all stands as before


def test_the_checker_loses_when_the_position_repeats_after_its_own_move():
    game = play("4k4/9/R8/9/9/9/9/9/4K4 b - 1", "9c5c 5a4a " + CHECKS * 2 + "5c4c 4a5a 4c5c")
    assert (game.outcome.winner, game.outcome.reason) == ("white", "perpetual check")


def test_the_checker_loses_when_the_position_repeats_after_the_others_move():
    game = play("5k3/9/4R4/9/9/9/9/9/4K4 b - 1", CHECKS * 3)
    assert (game.outcome.winner, game.outcome.reason) == ("white", "perpetual check")


def test_white_loses_by_perpetual_check_too():
    game = play(turned("5k3/9/4R4/9/9/9/9/9/4K4 b - 1"), (CHECKS * 3).translate(TURN))
    assert (game.outcome.winner, game.outcome.reason) == ("black", "perpetual check")


def test_one_quiet_move_among_the_checks_makes_it_a_draw():
    quiet = "5c6c 4a5a 6c5c 5a4a "  # 5c6c gives no check
    game = play("5k3/9/4R4/9/9/9/9/9/4K4 b - 1", CHECKS + quiet + CHECKS)
    assert (game.outcome.winner, game.outcome.reason) == (None, "repetition")


def test_the_same_board_with_other_hands_is_another_position():
    give_a_pawn = "P*5b 5a5b 5i4i 5b4a 4i5i 4a5a "
    game = play("4k4/9/9/9/9/9/9/9/4K4 b 5P 1", give_a_pawn * 4)
    assert game.outcome is None
    assert game.repetitions == 0


def test_a_mate_on_the_last_allowed_move_wins():
    game = play("4k4/9/4G4/9/9/9/9/9/4K4 b G 1", "G*5b", move_limit=1)
    assert (game.outcome.winner, game.outcome.reason) == ("black", "checkmate")


def test_the_move_limit_draws():
    game = play(None, "7g7f 3c3d", move_limit=2)
    assert (game.outcome.winner, game.outcome.reason) == (None, "move limit")


# Black's king in the camp with two dragons, two horses and six pawns: ten pieces, 26 points.
ENTERED = "+R+R2K4/+B+B7/PPPPPP3/9/9/9/9/9/4k4 b {} 1"


@pytest.mark.parametrize(("hand", "wins"), [("2P", True), ("P", False), ("G", False), ("NS", True)])
def test_black_declares_with_28_points_and_not_with_27(hand, wins):
    game = ShogiGame(ENTERED.format(hand))
    assert (game.outcome is not None) is wins
    if wins:
        assert (game.outcome.winner, game.outcome.reason) == ("black", "declaration")


@pytest.mark.parametrize(("hand", "wins"), [("P", True), ("-", False)])
def test_white_declares_with_27_points_and_not_with_26(hand, wins):
    game = ShogiGame(turned(ENTERED.format(hand)))
    assert (game.outcome is not None) is wins
    if wins:
        assert (game.outcome.winner, game.outcome.reason) == ("white", "declaration")


@pytest.mark.parametrize(
    ("why", "sfen"),
    [
        ("nine pieces in the camp", "+R+R2K4/+B+B7/PPPPP4/9/9/9/9/9/4k4 b 9P 1"),
        ("the king outside the camp", "+R+R7/+B+B7/PPPPPP3/4K4/9/9/9/9/4k4 b 9P 1"),
        ("the king in check", "+R+R2K4/+B+B3s3/PPPPPP3/9/9/9/9/9/4k4 b 9P 1"),
        ("the opponent to move", ENTERED.format("9P").replace(" b ", " w ")),
    ],
)
def test_nobody_declares_with(why, sfen):
    assert ShogiGame(sfen).outcome is None, why


def test_pieces_outside_the_camp_and_the_king_give_no_points():
    game = ShogiGame("4K4/9/R8/B8/9/9/9/9/4k4 b P 1")
    assert declaration_points(game.observation()) == 5 + 1


def test_pieces_given_as_a_handicap_count_for_white():
    assert handicap_bonus(HANDICAPS["2_pieces"]) == 10
    assert handicap_bonus(HANDICAPS["lance"]) == 1
    assert handicap_bonus(ENTERED.format("-")) == 0
    poor = ShogiGame(turned("+P+P2K4/+P+P7/PPPPPP3/9/9/9/9/9/4k4 b 8PGGGG 1")).observation()[None]
    assert not can_declare(poor)[0]
    assert can_declare(poor, white_bonus=10)[0]
    assert not can_declare(np.concatenate([poor, poor]), white_bonus=np.array([4, 5]))[0]
    assert can_declare(np.concatenate([poor, poor]), white_bonus=np.array([4, 5]))[1]
