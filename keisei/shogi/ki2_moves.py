"""Moves in KI2 notation, such as "▲５八金右", and which legal moves they mean.

rsshogi reads KI2 too, but a drop that is not possible ends the whole process there: no exception
can be caught. So every move is looked up among the legal ones before rsshogi gets to see it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rsshogi.core import Board, Move
from rsshogi.record import Record

_FILES, _RANKS = "１２３４５６７８９", "一二三四五六七八九"
_MOVE = re.compile(
    rf"[▲△☗☖▼▽]?(同|[{_FILES}][{_RANKS}])\s*(成[香桂銀]|[歩香桂銀金角飛玉王と馬龍竜杏圭全])"
    r"([左右直上行入引寄打不成生]*)\s*"
)
_BEGIN = re.compile(rf"[▲△☗☖▼▽]|[{_FILES}][{_RANKS}]")
_OTHER_NAMES = {"王": "玉", "竜": "龍", "杏": "成香", "圭": "成桂", "全": "成銀"}


def ki2_moves(start_sfen: str, lines: Iterable[str]) -> list[str]:
    """The moves in lines of KI2, as USI; ValueError for the first that is not legal.

    >>> from keisei.shogi.rules import START_SFEN
    >>> ki2_moves(START_SFEN, ["▲７六歩 △３四歩 ▲２二角成", "△同　銀"])
    ['7g7f', '3c3d', '8h2b+', '3a2b']
    """
    board = Board(start_sfen)
    moves: list[str] = []
    for line in lines:
        if not has_moves(line):
            continue
        position = len(line) - len(line.lstrip())
        while position < len(line):
            found = _MOVE.match(line, position)
            if not found:
                raise ValueError(f"invalid KI2 move: {line[position:]}")
            move = _resolve(board, found, moves[-1][2:4] if moves else "")
            board.apply_move(move)
            moves.append(move.to_usi())
            position = found.end()
    return moves


def has_moves(line: str) -> bool:
    """Is it a line of moves, and not a header, a comment or the like?"""
    begin = _BEGIN.search(line)
    return begin is not None and not re.match(r"[*#]|まで|[^▲△☗☖▼▽]*：", line[: begin.end()])


def _read(found: re.Match[str], last_target: str) -> tuple[str, str, str]:
    """Where to, with which piece, and what tells it from others."""
    square, piece, rest = found.groups()
    if square != "同":
        last_target = f"{_FILES.index(square[0]) + 1}{'abcdefghi'[_RANKS.index(square[1])]}"
    return last_target, _OTHER_NAMES.get(piece, piece), rest.replace("不成", "生")


def _resolve(board: Board, found: re.Match[str], last_target: str) -> Move:
    target, piece, rest = _read(found, last_target)
    candidates = []
    for move in board.legal_moves():
        name = _MOVE.match(move.to_ki2(board) or "") if move.to_usi()[2:4] == target else None
        if name and _read(name, last_target)[1] == piece and ("打" not in rest or move.is_drop()):
            candidates.append((move, _read(name, last_target)[2]))
    if not candidates:
        raise ValueError(f"illegal move: {found.group().strip()}")
    # The usual way to tell moves apart; then without needless words; then whatever rsshogi makes
    # of it, which is safe now that there is a legal move of that piece to that square.
    exact = [move for move, name in candidates if name == rest]
    alike = [move for move, _ in candidates if ("成" in rest) == move.is_promotion()]
    for choice in (exact, alike):
        if len(choice) == 1:
            return choice[0]
    square = _FILES[int(target[0]) - 1] + _RANKS["abcdefghi".index(target[1])]
    mark = "▲" if board.turn.is_black() else "△"
    text = f"{board.to_bod()}\n{mark}{square}{piece}{found.group(3)}\n"
    return Record.from_ki2_str(text).moves[0].move
