"""Games as lists of positions and moves that the page can draw.

Every board lives within one call, so it never leaves its thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from keisei.search import RankedMove, Score
from keisei.shogi.notation import steps
from keisei.shogi.rules import HANDICAPS, START_SFEN
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
    """A game move by move; there is one more position than there are moves."""

    positions: list[Position]
    moves: list[MoveText]


def handicaps() -> list[Handicap]:
    """The start positions with a name."""
    return [
        Handicap(name=name, label=HANDICAP_LABELS.get(name, name.replace("_", " ")), sfen=sfen)
        for name, sfen in HANDICAPS.items()
    ]


def start_sfen(start: str) -> str:
    """The SFEN of "startpos", a handicap's name, or an SFEN."""
    return {"startpos": START_SFEN, **HANDICAPS}.get(start, start)


def replay(start: str, moves: Iterable[str]) -> Replayed:
    """All positions of a game, and its moves in every notation."""
    game = Replayed([], [])
    last = None
    for sfen, turn, in_check, move in steps(start, moves):
        game.positions.append(Position(sfen=sfen, turn=turn, check=in_check, last=last))
        if move:
            game.moves.append(MoveText(**move._asdict()))
            last = move.usi
    return game


def position_of(game: ShogiGame) -> Position:
    """The position that a game has reached."""
    last = game.moves[-1] if game.moves else None
    return Position(sfen=game.sfen(), turn=game.turn, check=game.in_check, last=last)


def look_at(sfen: str) -> PositionAnswer:
    """A position on its own, and its legal moves."""
    game = ShogiGame(sfen)
    return PositionAnswer(position=position_of(game), legal=game.legal_usi())


def top_moves(game: ShogiGame, moves: Iterable[RankedMove]) -> list[TopMove]:
    """Moves to consider in a game's position, with their names."""
    return [
        TopMove(
            move=one.move,
            western=name.western,
            japanese=name.japanese,
            probability=round(one.probability, 4),
            value=one.score.value if one.score else None,
        )
        for one, name in ((move, game.name(move.move)) for move in moves)
    ]


def line_names(game: ShogiGame, line: Iterable[str]) -> list[MoveText]:
    """The names of moves that are expected from here on; the game goes along with them."""
    names = []
    for usi in line:
        names.append(MoveText(**game.name(usi)._asdict()))
        if game.outcome:
            break
        game.push_usi(usi)
    return names


def blacks_value(score: Score) -> float:
    """A score as the page shows it."""
    return round(score.seen_by("black").value, 4)


def playable(start: str) -> str:
    """The SFEN that a game starts from, or an error that says why it cannot."""
    game = ShogiGame(start_sfen(start))
    if game.outcome:
        raise WebError(400, f"the game is over in this position: {game.outcome}")
    return game.start_sfen
