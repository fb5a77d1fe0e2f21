"""The board as text for a terminal."""

from __future__ import annotations

import re

from rich.style import Style
from rich.text import Text

from keisei.shogi.actions import Side
from keisei.shogi.shogi_game import ShogiGame

# Every kanji is two columns wide, as are "・" and the full-width digits: so each square is three.
_PIECES = dict(zip("PLNSGBRK", "歩香桂銀金角飛玉", strict=True))
_PROMOTED = dict(zip("PLNSBR", "と杏圭全馬龍", strict=True))
_FILES = "９８７６５４３２１"
_RANKS = "一二三四五六七八九"
_LETTERS = "abcdefghi"  # the ranks in USI and western notation
_COUNTS = ("", "", *"二三四五六七八九", "十", *(f"十{digit}" for digit in "一二三四五六七八"))
_SIGNS: dict[Side, str] = {"black": "☗", "white": "☖"}


def board_text(game: ShogiGame) -> Text:
    """The board, the hands and whose turn it is; aligned where kanji are two columns wide.

    White's pieces have a "v" before them and are cyan, promoted ones are red. The piece that moved
    last is reversed and has a "V" before it if it is White's, a "^" if it is Black's.

    >>> from keisei.shogi import ShogiGame
    >>> print(board_text(ShogiGame()).plain.splitlines()[3])
    |v香v桂v銀v金v玉v金v銀v桂v香 |一 a
    """
    board, _, hands, _ = game.sfen().split()
    target = game.moves[-1][2:4] if game.moves else ""
    text = _hand(game, "white", hands)
    text.append("\n  " + " ".join(_FILES) + "\n+" + "-" * 28 + "+\n")
    for rank, row in enumerate(board.split("/")):
        text.append("|")
        squares = re.findall(r"\+?[A-Za-z]| ", re.sub(r"\d", lambda n: " " * int(n[0]), row))
        for file, square in enumerate(squares):
            text.append(*_square(square, last=target == f"{9 - file}{_LETTERS[rank]}"))
        text.append(f" |{_RANKS[rank]} {_LETTERS[rank]}\n")
    text.append("+" + "-" * 28 + "+\n")
    return text.append_text(_hand(game, "black", hands))


def _square(square: str, last: bool) -> tuple[str, Style]:
    letter, promoted = square[-1], square[0] == "+"
    kanji = (_PROMOTED if promoted else _PIECES).get(letter.upper(), "・")
    color = "red" if promoted else "cyan" if letter.islower() else None
    mark = "vV"[last] if letter.islower() else " ^"[last]
    return mark + kanji, Style(color=color, dim=square == " ", reverse=last)


def _hand(game: ShogiGame, side: Side, hands: str) -> Text:
    held = [
        _PIECES[piece.upper()] + _COUNTS[int(count or 1)]
        for count, piece in re.findall(r"(\d*)([A-Za-z])", hands)
        if piece.islower() == (side == "white")
    ]
    moves = side == game.turn and game.outcome is None
    line = Text(f"{_SIGNS[side]} {side}: {' '.join(held) or 'no pieces in hand'}")
    if moves:
        line.append("  (to move)", style="bold")
    return line
