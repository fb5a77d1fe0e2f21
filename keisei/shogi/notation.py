"""Moves as people write them: western ("P-7f") and Japanese ("▲７六歩")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rsshogi.core import Board, Move

from keisei.shogi.actions import Side, read_usi
from keisei.shogi.rules import new_board, side_to_move

_PROMOTION_ZONE = {True: "abc", False: "ghi"}  # the far three ranks, by whether Black moves


class MoveName(NamedTuple):
    """A move in USI, western and Japanese notation."""

    usi: str
    western: str
    japanese: str


def steps(
    start_sfen: str, moves: Iterable[str]
) -> Iterator[tuple[str, Side, bool, MoveName | None]]:
    """Each position of a game of legal USI moves: SFEN, side to move, check, and the move made.

    >>> from keisei.shogi.rules import START_SFEN
    >>> [move.japanese if move else None for *_, move in steps(START_SFEN, ["7g7f", "3c3d"])]
    ['▲７六歩', '△３四歩', None]
    """
    board = new_board(start_sfen)
    for usi in (*moves, None):
        name = move_name(board, read_usi(usi)) if usi else None
        yield board.to_sfen(), side_to_move(board), board.is_in_check(), name
        if usi:
            board.apply_move(read_usi(usi))


def move_name(board: Board, move: Move) -> MoveName:
    """What people call a legal move."""
    return MoveName(move.to_usi(), western(board, move), japanese(board, move))


def western(board: Board, move: Move) -> str:
    """A legal move in the western notation (Hodges), told apart from others where it must be.

    >>> board = Board("4k4/9/9/9/9/9/9/9/3GKG3 b P 1")
    >>> western(board, Move.from_usi("6i5h"))
    'G6i-5h'
    >>> western(board, Move.from_usi("P*5e"))
    'P*5e'
    >>> board = Board("lnsgkgsnl/1r5b1/pppppp1pp/6p2/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL b - 1")
    >>> western(board, Move.from_usi("8h2b+")), western(board, Move.from_usi("8h2b"))
    ('Bx2b+', 'Bx2b=')
    """
    usi = move.to_usi()
    if move.is_drop():
        return usi
    piece = _letters(board, move)
    target = usi[2:4]
    alike = (
        other
        for other in board.legal_moves()
        if not other.is_drop()
        and other.to_usi()[2:4] == target
        and other.to_usi()[:2] != usi[:2]
        and _letters(board, other) == piece
    )
    origin = usi[:2] if next(alike, None) else ""
    sign = "-" if board.is_square_empty(move.to_sq) else "x"
    return f"{piece}{origin}{sign}{target}{_promotion(board, move, piece)}"


def japanese(board: Board, move: Move) -> str:
    """A legal move in the Japanese notation, as KI2 has it; "同" where the last move went there.

    >>> board = Board("lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1")
    >>> japanese(board, Move.from_usi("7g7f"))
    '▲７六歩'
    """
    return move.to_ki2(board) or move.to_usi()


def _letters(board: Board, move: Move) -> str:
    """The moving piece: "P", "+B", ..."""
    return str(board.piece_on(move.from_sq)).upper()


def _promotion(board: Board, move: Move, piece: str) -> str:
    """ "+" for a promotion, "=" for one that was possible and declined."""
    if move.is_promotion():
        return "+"
    usi = move.to_usi()
    zone = _PROMOTION_ZONE[board.turn.is_black()]
    able = piece in ("P", "L", "N", "S", "B", "R")
    return "=" if able and (usi[1] in zone or usi[3] in zone) else ""
