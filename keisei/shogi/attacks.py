"""Which squares are attacked, how often, and by what: what `attack60` adds to `core46`.

A small network cannot follow a rook across the board, and so cannot see that a piece hangs. These
planes say it. They are the rules' alone: what could move to a square if it held an enemy.

| planes   | meaning                                                                      |
|----------|------------------------------------------------------------------------------|
| 0, 1     | 1 where the mover's pieces attack; 1 where at least two of them do           |
| 2        | how many do, divided by 4                                                    |
| 3        | the least valuable of them: 1 for a pawn, falling to 0 for the king, or none |
| 4 .. 7   | the same of the opponent                                                     |
| 8, 9, 10 | 1 where a rook, a bishop or a knight of the mover's would give check         |
| 11 .. 13 | the same of the opponent                                                     |
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.shogi.actions import SQUARES
from keisei.shogi.features import OTHER, Observations, numbers

NUM_ATTACK_PLANES = 14

Bytes = npt.NDArray[np.uint8]

_DIRECTIONS = [(-1, 0), (0, -1), (0, 1), (1, 0), (-1, -1), (-1, 1), (1, -1), (1, 1)]
_STRAIGHT = 4  # the first of them, as a rook goes; the others are a bishop's
_OUTSIDE = SQUARES  # a square that is always empty

# The pieces' numbers in observations, and all of them by worth.
_P, _L, _N, _S, _B, _R, _G, _K, _TOKIN, _L2, _N2, _S2, _HORSE, _DRAGON = range(1, 15)
_BY_WORTH = (_P, _L, _N, _S, _G, _TOKIN, _L2, _N2, _S2, _B, _R, _HORSE, _DRAGON, _K)
# Added to a piece's rank by worth (from 1) when it is the opponent's, or not the next square's.
_THEIRS, _FAR = 128, 64

_RANK = np.zeros(32, dtype=np.uint8)
for _rank, _piece in enumerate(_BY_WORTH, start=1):
    _RANK[_piece], _RANK[_piece + OTHER] = _rank, _rank + _THEIRS
_KNIGHT, _KING = _RANK[_N], _RANK[_K]


def _squares(df: int, dr: int) -> list[int]:
    """For each square, the one that lies so many files and ranks away."""
    found = []
    for square in range(SQUARES):
        file, rank = square // 9 + df, square % 9 + dr
        found.append(9 * file + rank if 0 <= file < 9 and 0 <= rank < 9 else _OUTSIDE)
    return found


def _goes(piece: int, df: int, dr: int, far: bool) -> bool:
    """Does a piece of the mover's go in this direction: one square, or farther?"""
    straight, ahead = df == 0 or dr == 0, dr == -1
    if piece in (_P, _L):
        return ahead and straight and not (far and piece == _P)
    if piece in (_B, _HORSE):
        return not straight or (piece == _HORSE and not far)
    if piece in (_R, _DRAGON):
        return straight or (piece == _DRAGON and not far)
    if far or piece == _N:
        return False
    if piece == _S:
        return ahead or not straight
    return piece == _K or straight or ahead  # a king, or else a gold


def _attackers() -> Bytes:
    """[direction, rank, nearby or far]: its rank if such a piece there attacks, else 0."""
    table = np.zeros((len(_DIRECTIONS), 256), dtype=np.uint8)
    for direction, (df, dr) in enumerate(_DIRECTIONS):
        for piece in _BY_WORTH:
            ours, theirs = _RANK[piece], _RANK[piece + OTHER]
            for far in (0, _FAR):
                if _goes(piece, -df, -dr, far > 0):  # the way back, from the piece to the square
                    table[direction, ours + far] = ours
                if _goes(piece, df, dr, far > 0):
                    table[direction, theirs + far] = theirs
    return table


def _farther(k: int) -> npt.NDArray[np.int64]:
    """[8 * 82]: for each direction and square, the one that lies k farther; the last is outside."""
    return np.array([[*_squares(k * df, k * dr), _OUTSIDE] for df, dr in _DIRECTIONS]).ravel()


_NEXT = _farther(1)
# The same among all squares of all directions.
_ROWS = np.arange(len(_DIRECTIONS)).repeat(SQUARES + 1) * (SQUARES + 1)
_JUMPS = [_ROWS + _farther(k) for k in (1, 2, 4)]
_KNIGHTS = np.array([_squares(df, dr) for dr in (2, -2) for df in (-1, 1)])  # own ones are behind
_ATTACKERS = _attackers()
_PAWN_WORTH = len(_BY_WORTH) - 1  # a pawn is worth this much as an attacker, the king nothing
_WORTHS = _PAWN_WORTH + 1


@cache
def _layout(width: int, kind: np.dtype[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Any]:
    """What a square shows, as blocks, and where they stand in its `width` planes.

    Of one side by its attackers and the worth of the least, and of all checks by a bit for each.
    """
    of_side = np.array(
        [
            [count > 0, count > 1, count / 4, worth * np.float32(1 / _PAWN_WORTH)]
            for count in range(len(_DIRECTIONS) + 3)
            for worth in range(_WORTHS)
        ],
        dtype=np.float32,
    )
    of_checks = np.array([[n >> k & 1 for k in range(6)] for n in range(64)], dtype=np.float32)
    size = kind.itemsize
    side, checks = np.dtype(f"V{4 * size}"), np.dtype(f"V{6 * size}")
    places: Any = {
        "names": ["ours", "theirs", "checks"],
        "formats": [side, side, checks],
        "offsets": [size * (width - planes) for planes in (14, 10, 6)],
        "itemsize": size * width,
    }
    return (
        numbers(of_side, kind).view(side)[:, 0],
        numbers(of_checks, kind).view(checks)[:, 0],
        np.dtype(places),
    )


def attack_planes(observations: Observations) -> npt.NDArray[np.float32]:
    """The planes [N, 14, 9, 9] of compact observations [N, 100]; channels last, as `planes`.

    >>> from keisei.shogi import ShogiGame
    >>> planes = attack_planes(ShogiGame().observation()[None])
    >>> int(planes[0, 0].sum()), int(planes[0, 4].sum())  # squares that each side attacks
    (30, 30)
    """
    squares = np.empty((len(observations), 9, 9, NUM_ATTACK_PLANES), dtype=np.float32)
    fill_attacks(observations, squares)
    return squares.transpose(0, 3, 1, 2)


def fill_attacks(observations: Observations, squares: npt.NDArray[Any]) -> None:
    """Write the planes into the last 14 of squares [N, 9, 9, 14 or more]."""
    count = len(observations)
    of_side, of_checks, places = _layout(squares.shape[-1], squares.dtype)
    blocks = squares.view(places).reshape(count, SQUARES)
    # Squares first, positions last: everything runs over whole rows of positions.
    board = np.zeros((SQUARES + 1, count), dtype=np.uint8)
    board[:SQUARES] = _RANK[observations[:, :SQUARES]].T
    seen = np.empty((len(_DIRECTIONS) + len(_KNIGHTS), SQUARES, count), dtype=np.uint8)
    rays, knights = seen[: len(_DIRECTIONS)], seen[len(_DIRECTIONS) :]
    first = _first_pieces(board)
    knights[:] = board.take(_KNIGHTS, 0)
    for table, pieces, attackers in zip(_ATTACKERS, first, rays, strict=True):
        table.take(pieces, out=attackers, mode="clip")  # other modes write it twice
    checks = _checks(first & ~np.uint8(_FAR), knights)
    knights[:2] *= knights[:2] == _KNIGHT
    knights[2:] *= knights[2:] == _KNIGHT + _THEIRS
    seen -= 1  # the mover's are 0 to 13 now, the opponent's 128 to 141, and nobody is 255
    for side, pieces in (("ours", seen), ("theirs", seen ^ _THEIRS)):
        number = (pieces < len(_BY_WORTH)).view(np.uint8).sum(0, dtype=np.uint8)
        worth = _PAWN_WORTH - np.minimum(pieces.min(0), _PAWN_WORTH)
        blocks[side] = of_side.take((number * np.uint8(_WORTHS) + worth).T)
    blocks["checks"] = of_checks.take(checks.T)


def _first_pieces(board: Bytes) -> Bytes:
    """[8, 81, N]: the first piece in each direction of each square, and whether it is far.

    What is first within 1 square is known from the board, and within 2, 4 and 8 from what is first
    within half of that, here and half of that farther.
    """
    far = np.where(board > 0, board + np.uint8(_FAR), board)
    first = far.take(_NEXT, 0)  # much faster than far[...]
    near = (first > 0).view(np.uint8) * np.uint8(_FAR)
    for jump in _JUMPS:
        unblocked = np.negative((first == 0).view(np.uint8))  # 255 where nothing was met yet
        first |= first.take(jump, 0) & unblocked
    first -= near
    return first.reshape(len(_DIRECTIONS), SQUARES + 1, -1)[:, :SQUARES]


def _checks(first: Bytes, by_knight: Bytes) -> Bytes:
    """[81, N]: where a rook, a bishop and a knight would give check, the mover's first, as bits."""
    bits = np.zeros(first.shape[1:], dtype=np.uint8)
    # A knight reaches the squares ahead of it, where the opponent's would come from.
    for bit, king, reached in ((0, _KING + _THEIRS, by_knight[2:]), (3, _KING, by_knight[:2])):
        sees_king = (first == king).view(np.uint8)
        by_rook, by_bishop = sees_king[:_STRAIGHT], sees_king[_STRAIGHT:]
        for number, pieces in enumerate((by_rook, by_bishop, (reached == king).view(np.uint8))):
            bits |= np.bitwise_or.reduce(pieces) << np.uint8(bit + number)
    return bits
