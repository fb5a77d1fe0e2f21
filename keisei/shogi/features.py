"""What a network sees: compact observations, and the `core46` planes made from them.

Everything is from the mover's side: own pieces, own hand, and a board that is turned by 180 degrees
for White. A compact observation is 100 bytes, so that experience is stored small and expanded to
planes only when a network needs it:

| bytes    | meaning                                                                          |
|----------|----------------------------------------------------------------------------------|
| 0 .. 80  | board: 0 empty, 1..14 own PLNSBRGK and +P +L +N +S +B +R, 17..30 the opponent's   |
| 81 .. 87 | own hand: counts of P L N S B R G                                                 |
| 88 .. 94 | opponent's hand                                                                   |
| 95       | side: 0 Black moves, 1 White moves                                                |
| 96       | earlier occurrences of this position in the game (0 to 3)                         |
| 97       | 1 when the mover is in check                                                      |
| 98, 99   | moves played in this game, low byte first                                         |

The 46 planes, each 9 x 9, indexed [file, rank] by square number `9 * file + rank`:

| planes   | meaning                                                                           |
|----------|-----------------------------------------------------------------------------------|
| 0 .. 13  | own P L N S B R G K +P +L +N +S +B +R: 1 where the piece stands                    |
| 14 .. 27 | the opponent's, in the same order                                                  |
| 28 .. 34 | own hand: count of P L N S B R G, divided by how many exist (18 4 4 4 2 2 4)       |
| 35 .. 41 | the opponent's hand                                                                |
| 42       | side: 1 when White moves                                                           |
| 43       | moves played / 512, at most 1                                                      |
| 44       | earlier occurrences of this position / 3                                           |
| 45       | 1 when the mover is in check                                                       |
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.shogi.actions import SQUARES

NUM_PLANES = 46
OBSERVATION_BYTES = 100
OWN_HAND = slice(81, 88)
OTHER_HAND = slice(88, 95)
HANDS = slice(81, 95)
SIDE, REPETITIONS, IN_CHECK, MOVE_COUNT = 95, 96, 97, 98
MOVE_COUNT_SCALE = 512

Observations = npt.NDArray[np.uint8]  # [..., 100]
Planes = npt.NDArray[np.float32]  # [..., 46, 9, 9]

OTHER = 16  # added to a piece's number when it is the opponent's

# The bytes of what is the same on all squares, in the order of its planes; the number of moves,
# which has two bytes, is put in where its first one stands. And by what each is divided.
_SCALARS = [*range(81, 95), SIDE, MOVE_COUNT, REPETITIONS, IN_CHECK]
_MOVES_PLAYED = _SCALARS.index(MOVE_COUNT)
_SCALES = [*(2 * [18, 4, 4, 4, 2, 2, 4]), 1, MOVE_COUNT_SCALE, 3, 1]
_FIRST_ENTRIES = np.arange(len(_SCALARS)) * (MOVE_COUNT_SCALE + 1)


def numbers(values: npt.NDArray[np.float32], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Values as planes hold them: float32, or the 16 bits of bfloat16, which NumPy does not know.

    >>> numbers(np.array([1.0], np.float32), np.dtype(np.uint16)).tolist() == [0x3F80]
    True
    """
    if kind == np.float32:
        return values
    bits = values.view(np.uint32)  # bfloat16 is the upper half, rounded to the nearest
    return ((bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16).astype(np.uint16)


@cache
def _tables(
    width: int, kind: np.dtype[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], np.dtype[np.void]]:
    """What a square shows in `width` planes by its piece, what scalars show, and where they stand.

    A position's scalars are copied as one block: NumPy copies 18 floats in less than half the time
    that it takes for 18 single ones.
    """
    shown = np.zeros((32, width), dtype=np.float32)  # an empty square shows nothing
    shown[range(1, 15), range(14)] = 1
    shown[range(1 + OTHER, 15 + OTHER), range(14, 28)] = 1
    shares: npt.NDArray[np.float32] = (1 / np.array(_SCALES)).astype(np.float32)
    scalars = np.arange(MOVE_COUNT_SCALE + 1, dtype=np.float32) * shares[:, None]
    size = kind.itemsize
    block: Any = {
        "names": ["scalars"],
        "formats": [f"V{size * len(_SCALARS)}"],
        "offsets": [size * 28],
        "itemsize": size * width,
    }
    return numbers(shown, kind), numbers(scalars, kind), np.dtype(block)


def move_counts(observations: Observations) -> npt.NDArray[np.int32]:
    """The number of moves played, from the two bytes that keep it."""
    low, high = observations[..., MOVE_COUNT], observations[..., MOVE_COUNT + 1]
    return low.astype(np.int32) + 256 * high.astype(np.int32)


def planes(observations: Observations, out: Planes | None = None) -> Planes:
    """The `core46` planes [N, 46, 9, 9] of compact observations [N, 100].

    In memory the planes of a square stand together (channels last), as networks read them; an `out`
    in another order is filled more slowly.

    >>> from keisei.shogi import ShogiGame
    >>> planes(ShogiGame().observation()[None]).shape
    (1, 46, 9, 9)
    """
    count = len(observations)
    if out is None:
        out = np.empty((count, 9, 9, NUM_PLANES), dtype=np.float32).transpose(0, 3, 1, 2)
    squares = out.transpose(0, 2, 3, 1)
    if squares.flags.c_contiguous:
        fill_squares(observations, squares)
    else:
        out[:] = planes(observations)
    return out


def fill_squares(observations: Observations, squares: npt.NDArray[Any]) -> None:
    """Write the 46 planes into squares [N, 9, 9, 46 or more], and 0 into those after them."""
    count = len(observations)
    shown, scalars, block = _tables(squares.shape[-1], squares.dtype)
    board = observations[:, :SQUARES].reshape(count, 9, 9)
    np.take(shown, board, axis=0, out=squares, mode="clip")  # other modes write it twice
    entries = observations.take(_SCALARS, 1).astype(np.intp)
    entries[:, _MOVES_PLAYED] = np.minimum(move_counts(observations), MOVE_COUNT_SCALE)
    entries += _FIRST_ENTRIES
    blocks = scalars.take(entries).view(block["scalars"])
    squares.view(block)[..., 0]["scalars"] = blocks[:, :, None]
