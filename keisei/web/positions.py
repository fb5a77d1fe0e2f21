"""Games as lists of positions and moves that the page can draw.

Every board is made and forgotten within one call, so that it never leaves its thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rsshogi.core import Board, Move

from keisei.shogi.actions import Turn
from keisei.shogi.notation import japanese, western
from keisei.shogi.rules import HANDICAPS, START_SFEN, new_board
from keisei.shogi.shogi_game import ShogiGame
from keisei.web.schema import Handicap, MoveText, Position, PositionAnswer, TopMove
from keisei.web.threads import WebError

HANDICAP_LABELS = {
    "lance": "Lance (香落ち)",
    "right_lance": "Right lance (右香落ち)",
    "bishop": "Bishop (角落ち)",
    "rook": "Rook (飛車落ち)",
    "rook_lance": "Rook and lance (飛香落ち)",
    "2_pieces": "2 pieces (二枚落ち)",
    "3_pieces": "3 pieces (三枚落ち)",
    "4_pieces": "4 pieces (四枚落ち)",
    "5_pieces": "5 pieces (五枚落ち)",
    "left_5_pieces": "5 pieces, left (左五枚落ち)",
    "6_pieces": "6 pieces (六枚落ち)",
    "8_pieces": "8 pieces (八枚落ち)",
    "10_pieces": "10 pieces (十枚落ち)",
}


class Replayed(NamedTuple):
    """A game move by move; there is one position more than there are moves."""

    positions: list[Position]
    moves: list[MoveText]


def handicaps() -> list[Handicap]:
    """The start positions that have a name."""
    return [
        Handicap(name=name, label=HANDICAP_LABELS.get(name, name.replace("_", " ")), sfen=sfen)
        for name, sfen in HANDICAPS.items()
    ]


def start_sfen(start: str) -> str:
    """The SFEN of "startpos", a handicap's name, or a SFEN."""
    return {"startpos": START_SFEN, **HANDICAPS}.get(start, start)


def replay(start: str, moves: Iterable[str]) -> Replayed:
    """All positions of a game, and its moves in both notations."""
    board = new_board(start)
    positions, texts = [_position(board, None)], []
    for usi in moves:
        move = Move.from_usi(usi)
        texts.append(_text(board, move))
        board.apply_move(move)
        positions.append(_position(board, usi))
    return Replayed(positions, texts)


def last_position(start: str, moves: Sequence[str]) -> Position:
    """The position that the moves lead to."""
    board = new_board(start)
    for usi in moves:
        board.apply_move(Move.from_usi(usi))
    return _position(board, moves[-1] if moves else None)


def look_at(sfen: str) -> PositionAnswer:
    """A position by itself, and what is legal in it."""
    board = new_board(sfen)
    legal = [move.to_usi() for move in board.legal_moves()]
    return PositionAnswer(position=_position(board, None), legal=legal)


def named_moves(
    start: str, moves: Sequence[str], found: Iterable[tuple[str, float, float | None]]
) -> list[TopMove]:
    """Moves (USI, probability, value) of a game's last position, with their names."""
    board = new_board(start)
    for usi in moves:
        board.apply_move(Move.from_usi(usi))
    top = []
    for usi, probability, value in found:
        text = _text(board, Move.from_usi(usi))
        top.append(
            TopMove(
                move=usi,
                western=text.western,
                japanese=text.japanese,
                probability=probability,
                value=value,
            )
        )
    return top


def playable(start: str) -> str:
    """The SFEN that a game may start from, or an error that says why it may not."""
    game = ShogiGame(start_sfen(start))
    if game.outcome:
        raise WebError(400, f"the game is over in this position: {game.outcome}")
    return game.start_sfen


def other(side: Turn) -> Turn:
    """The opponent's side."""
    return "white" if side == "black" else "black"


def _position(board: Board, last: str | None) -> Position:
    turn: Turn = "black" if board.turn.is_black() else "white"
    return Position(sfen=board.to_sfen(), turn=turn, check=board.is_in_check(), last=last)


def _text(board: Board, move: Move) -> MoveText:
    return MoveText(usi=move.to_usi(), western=western(board, move), japanese=japanese(board, move))
