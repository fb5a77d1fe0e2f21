"""A few games of a run as they are played: their moves, and the network's values.

It follows the first games of the first shards through the learner's rollouts, in plain Python over
a few columns: a few microseconds per move, and only for these games.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from keisei.core.rollout import Rollout
from keisei.selfplay.shard import has_games
from keisei.shogi import ShogiGame, features
from keisei.shogi.actions import MOVE_OF_ACTION, move_to_usi
from keisei.shogi.vector_shogi import moves_in_state

WATCHED = 4  # games


@dataclass
class _Game:
    start: str | None = None  # None: joined in the middle, so its start is not known
    moves: list[str] = field(default_factory=list)
    values: list[tuple[int, float]] = field(default_factory=list)  # (moves so far, Black's value)


class LiveGames:
    """Follows `WATCHED` games, spread over the shards.

    A game is known from its first move, or from the state that its shard continued. After a gap
    (rollouts that are too old to learn from are dropped) it waits for the next game.
    """

    def __init__(self, start_sfens: Sequence[str], shards: int) -> None:
        self._starts = list(start_sfens)
        boards = [ShogiGame(sfen) for sfen in self._starts]
        self._start_of = {_key(b.observation()): b.start_sfen for b in boards}
        # Game 0 of each shard, then game 1 of each, and so on.
        self._games = {(n % shards, n // shards): _Game() for n in range(WATCHED)}

    def go_on(self, states: Sequence[dict[str, Any]]) -> None:
        """Start with the games that the shards continue."""
        for (shard, row), game in self._games.items():
            state = states[shard]
            if has_games(state) and row < len(state["move_counts"]):
                game.start, game.moves = moves_in_state(state, self._starts, row)
                game.values = []

    def follow(self, shard: int, rollout: Rollout) -> None:
        """Follow a shard's newest rollout."""
        for (index, row), game in self._games.items():
            if index == shard and row < rollout.actions.shape[1]:
                self._follow(game, rollout, row)

    def _follow(self, game: _Game, rollout: Rollout, row: int) -> None:
        observations = rollout.observations[:, row]
        sides = observations[:, features.SIDE]
        low, high = observations[:, features.MOVE_COUNT :].astype(int).T
        played = low + 256 * high
        bits = MOVE_OF_ACTION[sides, rollout.actions[:, row]].tolist()
        values = (rollout.values[:, row] * (1 - 2.0 * sides)).tolist()
        for t, (count, move, value) in enumerate(zip(played.tolist(), bits, values, strict=True)):
            if count == 0:
                game.start, game.moves = self._start_of.get(_key(observations[t])), []
                game.values = []
            elif count != len(game.moves):
                game.start = None
            if game.start is not None:
                game.values.append((count, round(value, 3)))
                game.moves.append(move_to_usi(move))
        if rollout.dones[-1, row]:  # the next one has not begun
            game.start = None

    def state(self) -> list[dict[str, Any]]:
        """The games that are known, as plain data."""
        return [
            {"game": number, "start": game.start, "moves": game.moves, "values": game.values}
            for number, game in enumerate(self._games.values())
            if game.start is not None
        ]


def _key(observation: features.Observations) -> bytes:
    return observation[: features.REPETITIONS].tobytes()
