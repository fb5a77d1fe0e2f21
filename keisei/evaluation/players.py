"""Players: each chooses one legal action in every position that it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from keisei.core.policy import Policy, best, sample, segment_log_softmax
from keisei.search import Limit, SearchSettings, Thinker
from keisei.shogi import PolicyOutputMapper, Positions, ShogiGame, features
from keisei.shogi.actions import PROMOTE, SIDES, TO_SQUARE
from keisei.shogi.material import piece_worth

# What a player may answer instead of the index of a legal action.
RESIGNS, FAILS = -1, -2

History = tuple[str, list[str]]  # the start position and the USI moves so far


def _no_history(game: int) -> History:
    raise ValueError("these positions come without the games that led to them")


@dataclass(frozen=True)
class Turns(Positions):
    """The positions where a player is to move, and the games that led to them."""

    games: Sequence[int] = ()  # the number of each position's game; one player may have many
    history_of: Callable[[int], History] = field(default=_no_history)

    def place(self, row: int, usi: str) -> int:
        """The index in `legal` of a USI move of one of the positions; FAILS if it is not there."""
        own, side = self.segment(row), SIDES[self.observations[row, features.SIDE]]
        try:
            action = PolicyOutputMapper().usi_to_action(usi, side)
        except ValueError:
            return FAILS
        found = np.flatnonzero(self.legal[own] == action)
        return int(own.start + found[0]) if found.size else FAILS

    def take(self, rows: npt.NDArray[np.integer]) -> Turns:
        games = [self.games[row] for row in rows] if self.games else ()
        return Turns(**vars(super().take(rows)), games=games, history_of=self.history_of)


class Player(Protocol):
    """Chooses among the legal actions of N positions."""

    name: str

    def choose(self, turns: Turns, /) -> npt.NDArray[np.int64]:
        """The index in `turns.legal` of the action chosen in each position, RESIGNS or FAILS."""
        ...


class RandomPlayer:
    """Plays every legal move with equal probability."""

    name = "random"

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def choose(self, turns: Turns) -> npt.NDArray[np.int64]:
        return _draw(np.zeros(len(turns.legal), np.float32), turns.offsets, self._rng)


class GreedyPlayer:
    """Takes the most valuable piece it can, or promotes; otherwise plays at random."""

    name = "greedy"

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def choose(self, turns: Turns) -> npt.NDArray[np.int64]:
        target = turns.observations[turns.rows(), TO_SQUARE[turns.legal]]
        gain = np.maximum(-piece_worth(target), 0) + 2 * PROMOTE[turns.legal]
        top = np.repeat(np.maximum.reduceat(gain, turns.offsets[:-1]), np.diff(turns.offsets))
        scores = np.where(gain == top, np.float32(0), np.float32(-np.inf))
        return _draw(scores, turns.offsets, self._rng)


class PolicyPlayer:
    """Plays a network's likeliest move, or samples from its policy at a temperature.

    Where a position is repeated, the temperature is two or three times as high: a policy that is
    sure of its best move would otherwise repeat a won game into a draw.
    """

    def __init__(self, policy: Policy, name: str, seed: int, temperature: float = 0.0) -> None:
        self.name = name
        self._policy = policy
        self._temperature = temperature
        self._rng = np.random.default_rng(seed)

    def choose(self, turns: Turns) -> npt.NDArray[np.int64]:
        log_probs = self._policy(turns).log_probs
        if not self._temperature:
            return best(log_probs, turns.offsets)
        stood_before = turns.observations[turns.rows(), features.REPETITIONS]
        temperature = self._temperature * (1 + stood_before.astype(np.float32))
        return _draw(log_probs / temperature, turns.offsets, self._rng)


class SearchPlayer:
    """Plays the move that a tree search over a network finds within a limit."""

    def __init__(
        self,
        policy: Policy,
        name: str,
        limit: Limit,
        settings: SearchSettings | None = None,
        move_limit: int | None = None,
    ) -> None:
        self.name = name
        self._limit, self._move_limit = limit, move_limit
        self._thinker = Thinker(policy, settings or SearchSettings(leaves=8))

    def choose(self, turns: Turns) -> npt.NDArray[np.int64]:
        games = {
            game: ShogiGame.from_moves(*turns.history_of(game), self._move_limit)
            for game in turns.games
        }
        reports = self._thinker.think_together(games, self._limit)
        return np.array([turns.place(row, report.move) for row, report in enumerate(reports)])


class MixedPlayer:
    """Another player that sometimes plays a random move: a strength in between."""

    def __init__(self, player: Player, random_share: float, seed: int) -> None:
        self.name = f"{player.name} with {random_share:.0%} random moves"
        self._player, self._random = player, RandomPlayer(seed)
        self._share = random_share
        self._rng = np.random.default_rng(seed + 1)

    def choose(self, turns: Turns) -> npt.NDArray[np.int64]:
        chosen = self._random.choose(turns)
        thinks = np.flatnonzero(self._rng.random(len(turns)) >= self._share)
        if thinks.size:
            some = turns.take(thinks)
            places = self._player.choose(some)
            moved = places >= 0  # the rest resigns or fails
            shift = (turns.offsets[:-1][thinks] - some.offsets[:-1])[moved]
            chosen[thinks] = places
            chosen[thinks[moved]] = places[moved] + shift
        return chosen


def _draw(
    scores: npt.NDArray[np.float32], offsets: npt.NDArray[np.int64], rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    return sample(segment_log_softmax(scores, offsets), offsets, rng.random(len(offsets) - 1))
