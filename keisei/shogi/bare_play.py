"""Random play with the rules library alone: what `VectorShogi` is measured beside."""

from __future__ import annotations

import random
from collections.abc import Callable

from rsshogi.core import Board, Move

from keisei.shogi.rules import DEFAULT_MOVE_LIMIT


def bare_loop() -> Callable[[], int]:
    """Plays 10,000 moves a call: legal moves as ints, choose, apply, repetition."""
    rng, board, count = random.Random(1), Board(), 0

    def run(steps: int = 10_000) -> int:
        nonlocal board, count
        done = 0
        while done < steps:
            moves = [int(move) for move in board.legal_moves()]
            if not moves or count >= DEFAULT_MOVE_LIMIT or board.is_repetition(3):
                board, count = Board(), 0
                continue
            board.apply_move(Move(moves[int(rng.random() * len(moves))]))
            done, count = done + 1, count + 1
        return done

    return run
