"""Matches: many games between two players at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from keisei.core.policy import take_segments
from keisei.evaluation.players import Player
from keisei.shogi import FinishedGame, VectorShogi
from keisei.shogi.features import SIDE
from keisei.shogi.rules import DEFAULT_MOVE_LIMIT, START_SFEN


@dataclass
class MatchResult:
    """What came of a match, seen from the first player."""

    first: str
    second: str
    wins: int = 0
    draws: int = 0
    losses: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    games: list[tuple[bool, FinishedGame]] = field(default_factory=list)  # first had Black?

    @property
    def played(self) -> int:
        """How many games there were."""
        return self.wins + self.draws + self.losses

    @property
    def win_rate(self) -> float:
        """The share of games that the first player won; draws do not count."""
        return self.wins / self.played

    def __str__(self) -> str:
        return (
            f"{self.first} - {self.second}: {self.wins} wins, {self.draws} draws, "
            f"{self.losses} losses"
        )


def play_match(
    first: Player,
    second: Player,
    games: int,
    *,
    seed: int = 0,
    move_limit: int = DEFAULT_MOVE_LIMIT,
    start_sfens: Sequence[str] = (START_SFEN,),
) -> MatchResult:
    """Play `games` games at once; `first` has Black in every second one."""
    board = VectorShogi(games, seed, move_limit=move_limit, start_sfens=start_sfens)
    first_is_black = np.arange(games) % 2 == 0
    going = np.ones(games, dtype=np.bool_)
    result = MatchResult(first.name, second.name)
    while going.any():
        actions = board.random_actions()  # for games that are over: what is played does not count
        black_moves = board.observations[:, SIDE] == 0
        for player, moves in (
            (first, first_is_black == black_moves),
            (second, first_is_black != black_moves),
        ):
            rows = np.flatnonzero(going & moves)
            if len(rows):
                actions[rows] = _choose(player, board, rows)
        for end in board.step(actions).finished:
            if going[end.game]:
                going[end.game] = False
                _count(result, end, bool(first_is_black[end.game]))
    return result


def _choose(
    player: Player, board: VectorShogi, rows: npt.NDArray[np.intp]
) -> npt.NDArray[np.int16]:
    legal, offsets = take_segments(*board.legal_actions(), rows)
    return legal[player.choose(board.observations[rows], legal, offsets)]


def _count(result: MatchResult, end: FinishedGame, first_is_black: bool) -> None:
    winner = end.outcome.winner
    if winner is None:
        result.draws += 1
    elif (winner == "black") == first_is_black:
        result.wins += 1
    else:
        result.losses += 1
    result.reasons[end.outcome.reason] += 1
    result.games.append((first_is_black, end))
