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
_HAND_SCALE = (1 / np.tile([18, 4, 4, 4, 2, 2, 4], 2)).astype(np.float32)

# What is the same on all squares is copied as one block: NumPy copies 18 floats in less than half
# the time that it takes for 18 single ones.
_SCALARS = np.dtype("V72")


@cache
def _layout(width: int) -> tuple[npt.NDArray[np.float32], np.dtype[np.void]]:
    """What a square shows in `width` planes by its piece alone, and where the block stands."""
    shown = np.zeros((32, width), dtype=np.float32)  # an empty square shows nothing
    shown[range(1, 15), range(14)] = 1
    shown[range(1 + OTHER, 15 + OTHER), range(14, 28)] = 1
    return shown, np.dtype(
        {"names": ["scalars"], "formats": [_SCALARS], "offsets": [4 * 28], "itemsize": 4 * width}
    )


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


def fill_squares(observations: Observations, squares: npt.NDArray[np.float32]) -> None:
    """Write the 46 planes into squares [N, 9, 9, 46 or more], and 0 into those after them."""
    count, (shown, block) = len(observations), _layout(squares.shape[-1])
    board = observations[:, :SQUARES].reshape(count, 9, 9)
    np.take(shown, board, axis=0, out=squares, mode="clip")  # other modes write it twice
    scalars = np.empty((count, 18), dtype=np.float32)
    scalars[:, :14] = observations[:, HANDS] * _HAND_SCALE
    scalars[:, 14] = observations[:, SIDE]
    scalars[:, 15] = np.minimum(move_counts(observations) / MOVE_COUNT_SCALE, 1)
    scalars[:, 16] = observations[:, REPETITIONS] / 3
    scalars[:, 17] = observations[:, IN_CHECK]
    squares.view(block)[..., 0]["scalars"] = scalars.view(_SCALARS)[:, :, None]
