"""Make the set of openings that matches begin with.

    python scripts/make_openings.py [LINES] > keisei/evaluation/openings.txt

Each line is a walk from the start position. Fairy-Stockfish (Debian: apt install fairy-stockfish)
proposes moves, one that is nearly as good as the best is drawn, and a line is kept when a deeper
look finds both sides about equal and no other line has led to the same position. The engine's
output is not its code: the lines are ours, under the licence of Keisei.

Engines that always think the same play the same game from one opening. So each line comes again
with two more moves, several times, to give a long match games that differ.
"""

from __future__ import annotations

import random
import re
import sys

from keisei.shogi import ShogiGame
from keisei.usi.client import UsiClient
from keisei.usi.protocol import Position

ENGINE = "/usr/games/fairy-stockfish"
LINES, PLIES = 80, 8
BRANCHES, MORE = 4, 2  # of each line: so many longer ones, by so many moves
CANDIDATES, NEARLY = 8, 60  # so many moves, within so many centipawns of the best
BALANCED = 80  # centipawns from the start position's score, seen deeper
HEADER = f"""\
# {LINES} openings of {PLIES} moves for matches, and up to {BRANCHES} longer ones of each, by
# {MORE} moves: distinct positions, about equal for both sides.
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


def walk(engine: UsiClient, rng: random.Random, start: list[str], length: int) -> list[str]:
    """A line of nearly best moves, that begins with `start`."""
    moves = list(start)
    while len(moves) < length:
        found = candidates(engine, moves)
        good = [usi for cp, usi in found if cp >= found[0][0] - NEARLY]
        moves.append(rng.choice(good))
    return moves


def main() -> None:
    """Draw so many lines (if not said, all), and print them."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else LINES
    rng, kept = random.Random(1), set()
    print(HEADER)
    options = {"MultiPV": str(CANDIDATES), "Contempt": "0"}
    with UsiClient([ENGINE], options) as many, UsiClient([ENGINE], {"Contempt": "0"}) as judge:
        even = score(judge, [])  # having the move is worth something

        def draw(start: list[str], length: int) -> list[str] | None:
            moves = walk(many, rng, start, length)
            game = ShogiGame.from_moves(ShogiGame().sfen(), moves)
            position = game.sfen().rsplit(" ", 1)[0]
            if position in kept or abs(score(judge, moves) - even) > BALANCED:
                return None
            kept.add(position)
            print(*moves, flush=True)
            return moves

        lines: list[list[str]] = []
        while len(lines) < wanted:
            if line := draw([], PLIES):
                lines.append(line)
        for line in lines:
            found = 0
            for _ in range(3 * BRANCHES):  # a line whose next moves are forced has fewer
                found += found < BRANCHES and draw(line, PLIES + MORE) is not None


if __name__ == "__main__":
    main()
