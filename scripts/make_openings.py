"""Make the set of openings that matches begin with.

    python scripts/make_openings.py > keisei/evaluation/openings.txt

Each line is a walk from the start position. Fairy-Stockfish (Debian: apt install fairy-stockfish)
proposes moves, one that is nearly as good as the best is drawn, and a line is kept when a deeper
look finds both sides about equal and no other line has led to the same position. The engine's
output is not its code: the lines are ours, under the licence of Keisei.
"""

from __future__ import annotations

import random
import re

from keisei.shogi import ShogiGame
from keisei.usi.client import UsiClient
from keisei.usi.protocol import Position

ENGINE = "/usr/games/fairy-stockfish"
LINES, PLIES = 80, 8
CANDIDATES, NEARLY = 8, 60  # so many moves, within so many centipawns of the best
BALANCED = 80  # centipawns from the start position's score, seen deeper
HEADER = f"""\
# {LINES} openings of {PLIES} moves for matches: distinct positions, about equal for both sides.
# Source: drawn by scripts/make_openings.py from moves that Fairy-Stockfish 11.1 found nearly best
# (depth 5, {CANDIDATES} candidates, within {NEARLY} centipawns); kept when 20,000 nodes saw the
# mover within {BALANCED} centipawns of the start position's. Licence: MIT, as all of Keisei."""


def candidates(engine: UsiClient, moves: list[str]) -> list[tuple[int, str]]:
    """Scores and moves that the engine considers, best first."""
    engine.best_move(Position(moves=tuple(moves)), "depth 5")
    pattern = r"info depth 5 .*multipv (\d+) score cp (-?\d+) .* pv (\S+)"
    found = {
        int(m[1]): (int(m[2]), m[3]) for m in map(re.compile(pattern).match, engine.passed) if m
    }
    return [found[rank] for rank in sorted(found)]


def score(engine: UsiClient, moves: list[str]) -> int:
    """What a deeper look says, for the side to move."""
    engine.best_move(Position(moves=tuple(moves)), "nodes 20000")
    said = [m for m in map(re.compile(r".* score cp (-?\d+) ").match, engine.passed) if m]
    return int(said[-1][1]) if said else 10_000


def walk(engine: UsiClient, rng: random.Random) -> list[str]:
    """A line of nearly best moves."""
    moves: list[str] = []
    while len(moves) < PLIES:
        found = candidates(engine, moves)
        good = [usi for cp, usi in found if cp >= found[0][0] - NEARLY]
        moves.append(rng.choice(good))
    return moves


def main() -> None:
    rng, kept = random.Random(1), set()
    print(HEADER)
    options = {"MultiPV": str(CANDIDATES), "Contempt": "0"}
    with UsiClient([ENGINE], options) as many, UsiClient([ENGINE], {"Contempt": "0"}) as judge:
        even = score(judge, [])  # having the move is worth something
        while len(kept) < LINES:
            moves = walk(many, rng)
            game = ShogiGame.from_moves(ShogiGame().sfen(), moves)
            position = game.sfen().rsplit(" ", 1)[0]
            if position not in kept and abs(score(judge, moves) - even) <= BALANCED:
                kept.add(position)
                print(*moves, flush=True)


if __name__ == "__main__":
    main()
