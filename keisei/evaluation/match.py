"""Matches: many games between two players at once."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from keisei.evaluation.players import FAILS, RESIGNS, Player, Turns
from keisei.shogi import FinishedGame, Outcome, PolicyOutputMapper, VectorShogi
from keisei.shogi.actions import SIDES, other_side
from keisei.shogi.features import SIDE
from keisei.shogi.records import GameRecord
from keisei.shogi.rules import DEFAULT_MOVE_LIMIT, START_SFEN

Opening = Sequence[str]  # USI moves from the start position


@dataclass(frozen=True)
class MatchGame:
    """One game of a match, with the moves of its opening; `failed` is who aborted it, if any."""

    number: int
    first_is_black: bool
    start_sfen: str
    moves: tuple[str, ...]
    outcome: Outcome | None  # None: a player failed, and nobody won
    failed: str | None = None

    @property
    def score(self) -> float | None:
        """What the first player got: 1, 0.5 or 0; None when the game does not count."""
        if self.outcome is None:
            return None
        if self.outcome.winner is None:
            return 0.5
        return float((self.outcome.winner == "black") == self.first_is_black)


@dataclass
class MatchResult:
    """What came of a match, from the first player's side; aborted games are counted apart."""

    first: str
    second: str
    wins: int = 0
    draws: int = 0
    losses: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)  # by player
    games: list[MatchGame] = field(default_factory=list, repr=False)
    seconds: float = 0.0  # that the games took

    @property
    def played(self) -> int:
        """How many games count."""
        return self.wins + self.draws + self.losses

    @property
    def win_rate(self) -> float:
        """The share of games that the first player won; draws do not count."""
        return self.wins / self.played

    @property
    def different_games(self) -> int:
        """How many games were not a repetition of another one, move by move."""
        return len({(game.start_sfen, game.moves) for game in self.games})

    def pairs(self) -> list[float]:
        """The first player's points in each pair of games that have one opening, in order."""
        scores = {game.number: game.score for game in self.games}
        both = [(scores.get(n), scores.get(n + 1)) for n in sorted(scores) if n % 2 == 0]
        return [one + two for one, two in both if one is not None and two is not None]

    def add(self, game: MatchGame) -> None:
        """Count one more game."""
        self.games.append(game)
        if game.failed is not None:
            self.failures[game.failed] += 1
        elif game.outcome is not None:
            self.reasons[game.outcome.reason] += 1
            self.wins += game.score == 1
            self.draws += game.score == 0.5
            self.losses += game.score == 0

    def extend(self, other: MatchResult) -> None:
        """Count the games of another match between the same two."""
        for game in other.games:
            self.add(game)
        self.seconds += other.seconds

    def record(self, game: MatchGame) -> GameRecord:
        """A game as a record with both names."""
        black, white = (self.first, self.second)[:: 1 if game.first_is_black else -1]
        return GameRecord(game.start_sfen, game.moves, black, white, game.outcome)

    def __str__(self) -> str:
        return (
            f"{self.first} - {self.second}: {self.wins} wins, {self.draws} draws, "
            f"{self.losses} losses"
        )


def play_games(
    first: Player,
    second: Player,
    games: int,
    *,
    seed: int = 0,
    move_limit: int = DEFAULT_MOVE_LIMIT,
    start_sfens: Sequence[str] = (START_SFEN,),
    openings: Sequence[Opening] = (),
    first_number: int = 0,
    at_once: int | None = None,
) -> MatchResult:
    """Play `games` games, `at_once` side by side (else all); `first` is Black in every second one.

    Games are numbered from `first_number`, which is even. With openings, games 0 and 1 begin with
    the first one, games 2 and 3 with the next, and so on.
    """
    rows = min(games, at_once or games)
    board = VectorShogi(rows, seed, move_limit=move_limit, start_sfens=start_sfens)
    numbers = range(first_number, first_number + games)
    return _Match(first, second, board, openings, numbers).play()


class _Match:
    def __init__(
        self,
        first: Player,
        second: Player,
        board: VectorShogi,
        openings: Sequence[Opening],
        numbers: Sequence[int],
    ) -> None:
        self._players = (first, second)
        self._board = board
        self._openings = openings or ((),)
        self._waiting = deque(numbers)
        self._numbers = np.zeros(board.num_games, dtype=np.int64)  # of the game in each row
        self._opening_lengths = np.zeros(board.num_games, dtype=np.int64)
        self._going = np.zeros(board.num_games, dtype=np.bool_)
        self._result = MatchResult(first.name, second.name)

    def play(self) -> MatchResult:
        board, begin = self._board, time.perf_counter()
        for place in range(board.num_games):
            self._begin(place)
        while self._going.any() or self._waiting:
            actions = board.random_actions()  # where a game is over, what is played does not count
            in_opening = board.move_counts < self._opening_lengths
            for row in np.flatnonzero(self._going & in_opening):
                actions[row] = self._opening_action(int(row))
            black_moves = board.observations[:, SIDE] == 0
            first_moves = (self._numbers % 2 == 0) == black_moves
            for player, moves in zip(self._players, (first_moves, ~first_moves), strict=True):
                rows = np.flatnonzero(self._going & moves & ~in_opening)
                if len(rows):
                    self._ask(player, rows, actions)
            for ended in board.step(actions).finished:
                if self._going[ended.game]:
                    self._end(ended.game, ended.outcome, finished=ended)
                self._begin(ended.game)
        self._result.seconds = time.perf_counter() - begin
        return self._result

    def _begin(self, row: int) -> None:
        """The next game in a row whose board stands at the start."""
        if self._waiting:
            self._numbers[row] = self._waiting.popleft()
            self._opening_lengths[row] = len(self._opening(row))
            self._going[row] = True

    def _opening(self, row: int) -> Opening:
        return self._openings[self._numbers[row] // 2 % len(self._openings)]

    def _opening_action(self, row: int) -> int:
        played = self._board.move_counts[row]
        side = SIDES[self._board.observations[row, SIDE]]
        return PolicyOutputMapper().usi_to_action(self._opening(row)[played], side)

    def _ask(
        self, player: Player, rows: npt.NDArray[np.intp], actions: npt.NDArray[np.int64]
    ) -> None:
        """Let a player choose in its games; games that it resigns or aborts are over."""
        positions = self._board.positions.take(rows)
        turns = Turns(**vars(positions), games=rows.tolist(), history_of=self._board.moves_of)
        places = player.choose(turns)
        moved = places >= 0
        actions[rows[moved]] = turns.legal[places[moved]]
        for row, place in zip(rows[~moved].tolist(), places[~moved].tolist(), strict=True):
            if place == RESIGNS:
                winner = other_side(SIDES[self._board.observations[row, SIDE]])
                self._end(row, Outcome(winner, "resignation"))
            else:
                assert place == FAILS
                self._end(row, None, failed=player.name)

    def _end(
        self,
        row: int,
        outcome: Outcome | None,
        failed: str | None = None,
        finished: FinishedGame | None = None,
    ) -> None:
        self._going[row] = False
        if finished:
            start, moves = finished.start_sfen, finished.usi_moves()
        else:
            start, moves = self._board.moves_of(row)
        number = int(self._numbers[row])
        black = number % 2 == 0
        self._result.add(MatchGame(number, black, start, tuple(moves), outcome, failed))
