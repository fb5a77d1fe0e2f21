"""Measures how different a level's games are, and what that costs: the figures of docs/web.md.

    python scripts/measure_variety.py            # an hour and a half on one core
    python scripts/measure_variety.py 1 8 --games 4 --pairs 10

Two games of a level differ if their first ten moves do, against an opponent that always gives the
same answers. The cost is that of what is drawn in the opening: a level that draws plays a match
from the start position against the same level that does not.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from itertools import combinations, compress
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from keisei.evaluation.match import play_games
from keisei.evaluation.pairs import Pentanomial
from keisei.evaluation.players import PolicyPlayer, Turns
from keisei.evaluation.statistics import summarise
from keisei.models import NETWORKS, SHIPPED_PATH
from keisei.models.levels import LEVELS, Level
from keisei.search import Limit, Thinker
from keisei.shogi import ShogiGame
from keisei.shogi.actions import Side
from keisei.trained import load_trained
from keisei.web.networks import Network, Networks, observe
from keisei.web.play import (
    OPENING,
    OPENING_TEMPERATURE,
    SEARCH,
    Table,
    nearly_best,
    opening_thinker,
)
from keisei.web.runs import RunsFolder
from keisei.web.schema import NewGame

MOVES = 10
AT_ONCE = 20  # pairs of games that are played side by side


def opening(table: Table, number: int, side: Side, human: Network) -> tuple[str, ...]:
    """The first moves of a game against a level, by someone who plays `human`'s likeliest moves."""
    game = table.begin(NewGame(player=f"level/{number}", side=side))
    while len(game.moves) < MOVES:
        if game.your_turn:
            board = ShogiGame.from_moves(game.positions[0].sfen, [m.usi for m in game.moves])
            answer = human.look_at([observe(board)])[0].top[0].move
            game = table.move(game.id, answer)
        else:
            game = table.reply(game.id)
    return tuple(move.usi for move in game.moves)


def different(number: int, games: int) -> float:
    """The share of pairs of games with the same side that differ."""
    networks = Networks()
    human = networks.load(SHIPPED_PATH)
    sides: tuple[Side, Side] = ("black", "white")
    with tempfile.TemporaryDirectory() as folder:
        table = Table(RunsFolder(Path(folder)), networks)
        played = [[opening(table, number, side, human) for _ in range(games)] for side in sides]
    pairs = [pair for same_side in played for pair in combinations(same_side, 2)]
    return sum(one != two for one, two in pairs) / len(pairs)


class LevelPlayer:
    """A level as it plays on the page; in the opening it draws, if it may."""

    def __init__(self, level: Level, draws: bool) -> None:
        self.name = f"{level.name}, drawing" if draws else level.name
        self._draws, self._random = draws, random.Random(1)
        self._network = Network(load_trained(NETWORKS[level.network]))
        policy = self._network.policy
        self._thinker = Thinker(policy, SEARCH, curve=self._network.curve)
        self._nodes = level.nodes
        freely = max(level.temperature, OPENING_TEMPERATURE)
        self._usual, self._freely = (
            PolicyPlayer(policy, "", seed, temperature)
            for seed, temperature in ((draws, level.temperature), (draws + 2, freely))
        )

    def choose(self, turns: Turns) -> npt.NDArray[np.int64]:
        """The moves of all games in which it is its turn."""
        histories = {game: turns.history_of(game) for game in turns.games}
        early = [self._draws and len(moves) < OPENING for _, moves in histories.values()]
        if not self._nodes and not any(early):
            return self._usual.choose(turns)
        if not self._nodes:
            both = self._usual.choose(turns), self._freely.choose(turns)
            return np.where(early, both[1], both[0])
        boards = {game: ShogiGame.from_moves(*past) for game, past in histories.items()}
        moves = self._drawn({game: boards[game] for game in compress(boards, early)})
        rest = {game: board for game, board in boards.items() if game not in moves}
        reports = self._thinker.think_together(rest, Limit(self._nodes))
        moves |= {game: report.move for game, report in zip(rest, reports, strict=True)}
        return np.array([turns.place(row, moves[game]) for row, game in enumerate(boards)])

    def _drawn(self, boards: dict[int, ShogiGame]) -> dict[int, str]:
        """Moves of the opening."""
        thinker = opening_thinker(self._network, self._random.getrandbits(32))
        reports = thinker.think_together(boards, Limit(self._nodes))
        return {
            game: self._random.choice(nearly_best(thinker, report, game))
            for game, report in zip(boards, reports, strict=True)
        }


def cost(level: Level, pairs: int) -> None:
    """Play the match, and print what came of it so far."""
    players = LevelPlayer(level, True), LevelPlayer(level, False)
    found = Pentanomial()
    begin = time.process_time()
    for played in range(0, pairs, AT_ONCE):
        games = 2 * min(AT_ONCE, pairs - played)
        result = play_games(*players, games, first_number=2 * played)
        found += Pentanomial.of_points(result.pairs())
        match = summarise(found)
        low, high = match.elo_interval
        print(
            f"drawing costs {level.name} {-match.elo:.0f} Elo ({-high:.0f} to {-low:.0f}): "
            f"{match.score:.1%} of {match.games} games, {time.process_time() - begin:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("levels", nargs="*", type=int, default=range(1, len(LEVELS) + 1))
    parser.add_argument("--games", type=int, default=20, help="of each level and side; 0: none")
    parser.add_argument("--pairs", type=int, default=200, help="of each match; 0: none")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for number in asked.levels:
        level = LEVELS[number - 1]
        if asked.games:
            share = different(number, asked.games)
            print(f"{number} {level.name}: {share:.0%} of pairs differ by move {MOVES}", flush=True)
        if asked.pairs and (level.nodes or level.temperature < OPENING_TEMPERATURE):
            cost(level, asked.pairs)
