"""Many games of Shogi at once, as arrays: what workers play."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from rsshogi.core import Board, Move

from keisei.random_streams import RandomStreams
from keisei.shogi import features
from keisei.shogi.actions import (
    ACTION_OF_MOVE,
    MOVE_OF_ACTION,
    NUM_ACTIONS,
    SIDES,
    IllegalActionError,
    IntArray,
    Side,
    game_to_usi,
    other_side,
)
from keisei.shogi.moving import move_pieces
from keisei.shogi.positions import Positions
from keisei.shogi.rules import (
    DEFAULT_MOVE_LIMIT,
    START_SFEN,
    Outcome,
    can_declare,
    handicap_bonus,
    judge,
)
from keisei.shogi.search_board import SearchBoard
from keisei.shogi.shogi_game import ShogiGame

# rsshogi's hash of a move is its 16 bits (a test holds it), and hash() is the fastest way to them:
# with int() a step of 256 games takes 7 % longer.
_BITS = hash


@dataclass(frozen=True)
class FinishedGame:
    """A game that has just ended: which one, how, and its actions."""

    game: int
    outcome: Outcome
    start_sfen: str
    actions: npt.NDArray[np.int16]
    last_mover: Side

    @property
    def length(self) -> int:
        """How many moves were played."""
        return len(self.actions)

    def usi_moves(self) -> list[str]:
        """The moves in USI notation."""
        return game_to_usi(self.start_sfen, self.actions)


@dataclass(frozen=True)
class Step:
    """What one `step` brought, for all games: the movers' rewards, and which games ended."""

    rewards: npt.NDArray[np.float32]
    dones: npt.NDArray[np.bool_]
    finished: list[FinishedGame]


def moves_in_state(
    state: dict[str, Any], start_sfens: Sequence[str], index: int = 0
) -> tuple[str, list[str]]:
    """The start position and the USI moves of a game in a `VectorShogi.state_dict()`."""
    start = start_sfens[state["starts"][index]]
    actions = _actions_in_state(state, start_sfens)[index, : state["move_counts"][index]]
    return start, game_to_usi(start, actions)


def _actions_in_state(state: dict[str, Any], start_sfens: Sequence[str]) -> IntArray:
    """What was played in each game [G, moves]; in old checkpoints, 16-bit moves say it."""
    if "history" not in state:
        return np.asarray(state["actions"])
    white_first = np.array([sfen.split()[1] == "w" for sfen in start_sfens])[state["starts"]]
    moves = np.asarray(state["history"], dtype=np.uint16)
    return ACTION_OF_MOVE[(white_first[:, None] + np.arange(moves.shape[1])) % 2, moves]


class VectorShogi:
    """G games that are stepped together; a finished game starts again by itself.

    >>> games = VectorShogi(num_games=4, seed=1)
    >>> games.observations.shape  # compact, from each mover's side: see `features`
    (4, 100)
    >>> actions, offsets = games.legal_actions()  # game g: actions[offsets[g]:offsets[g + 1]]
    >>> offsets.tolist()
    [0, 30, 60, 90, 120]
    >>> result = games.step(games.random_actions())
    >>> result.rewards.tolist(), result.dones.any().item()
    ([0.0, 0.0, 0.0, 0.0], False)

    Rewards are the mover's: +1 if the move won the game, -1 if it lost it, else 0. `start_sfens`
    are the positions to start from, one drawn for each new game. Game g draws from stream
    `first_stream + g` of the seed, so it is the same game whatever runs beside it.
    """

    def __init__(
        self,
        num_games: int,
        seed: int = 0,
        *,
        move_limit: int = DEFAULT_MOVE_LIMIT,
        start_sfens: Sequence[str] = (START_SFEN,),
        first_stream: int = 0,
    ) -> None:
        if num_games < 1:
            raise ValueError(f"num_games is {num_games}; it must be at least 1")
        if not 1 <= move_limit <= 65535:
            raise ValueError(f"move_limit is {move_limit}; it must be 1 to 65535")
        starts = [ShogiGame(sfen, move_limit=move_limit) for sfen in start_sfens]
        over = next((game for game in starts if game.outcome), None)
        if over or not starts:
            raise ValueError(f"no game can start from {over!r}: {over and over.outcome}")
        self.num_games = num_games
        self.move_limit = move_limit
        self.start_sfens = [game.start_sfen for game in starts]
        self._start_observations = np.stack([game.observation() for game in starts])
        self._start_bonus = np.array([handicap_bonus(sfen) for sfen in self.start_sfens])
        self.streams = RandomStreams(seed, num_games, first_stream)
        self._rows = np.arange(num_games)
        self._boards = [Board() for _ in range(num_games)]
        self._starts = np.zeros(num_games, dtype=np.intp)
        self.move_counts = np.zeros(num_games, dtype=np.int32)
        self._history = np.zeros((num_games, move_limit), dtype=np.int16)  # actions
        self.observations = np.zeros((num_games, features.OBSERVATION_BYTES), dtype=np.uint8)
        for row in range(num_games):
            self._start_game(row)
        self._list_legal(board.legal_moves() for board in self._boards)

    # -- what is seen ------------------------------------------------------------------------

    @property
    def positions(self) -> Positions:
        """The games' positions with their legal actions; a step writes over the observations."""
        return Positions(self.observations, self._legal, self._offsets)

    def legal_actions(self) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int64]]:
        """All games' legal actions end to end, and where each game's begin: [sum], [G + 1]."""
        return self._legal, self._offsets

    def legal_mask(self, out: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.bool_]:
        """The legal actions as a mask [G, 13527]."""
        if out is None:
            out = np.empty((self.num_games, NUM_ACTIONS), dtype=np.bool_)
        out[:] = False
        out[np.repeat(self._rows, self._counts), self._legal] = True
        return out

    def planes(self, out: features.Planes | None = None) -> features.Planes:
        """The `core46` planes [G, 46, 9, 9], into `out` if it is given."""
        return features.planes(self.observations, out)

    def moves_of(self, index: int) -> tuple[str, list[str]]:
        """The start position and the USI moves so far of one of the games."""
        start = self.start_sfens[self._starts[index]]
        return start, game_to_usi(start, self._history[index, : self.move_counts[index]])

    def game(self, index: int) -> ShogiGame:
        """One of the games, as it stands now, with its moves."""
        return ShogiGame.from_moves(*self.moves_of(index), move_limit=self.move_limit)

    def search_board(self, index: int) -> SearchBoard:
        """The board of one of the games, to search on until its next move."""
        return SearchBoard(self._boards[index])

    def bonus_of(self, index: int) -> int:
        """Points for declaring that White has for the pieces given as a handicap in this game."""
        return int(self._start_bonus[self._starts[index]])

    # -- what is done ------------------------------------------------------------------------

    def random_actions(self) -> npt.NDArray[np.int64]:
        """A uniformly random legal action for each game, from the game's own generator."""
        chosen: npt.NDArray[np.int64] = self._legal[self.random_picks()].astype(np.int64)
        return chosen

    def random_picks(self) -> npt.NDArray[np.int64]:
        """Where in the legal actions a random one of each game stands."""
        picks = (self.streams.uniform() * self._counts).astype(np.int64)
        chosen: npt.NDArray[np.int64] = self._offsets[:-1] + picks
        return chosen

    def step(self, actions: IntArray) -> Step:
        """Play one action in each game."""
        actions = np.asarray(actions)
        self._check(actions)
        sides = self.observations[:, features.SIDE].astype(np.intp)
        bits = MOVE_OF_ACTION.take(sides * NUM_ACTIONS + actions)
        self._history[self._rows, self.move_counts] = actions
        self.move_counts += 1
        move_pieces(self.observations, actions)
        self.observations[:, features.MOVE_COUNT] = self.move_counts & 255
        self.observations[:, features.MOVE_COUNT + 1] = self.move_counts >> 8
        finished: list[FinishedGame] = []
        self._list_legal(self._play(bits.tolist(), finished))
        rewards = np.zeros(self.num_games, dtype=np.float32)
        dones = np.zeros(self.num_games, dtype=np.bool_)
        for ended in finished:
            dones[ended.game] = True
            if ended.outcome.winner:
                rewards[ended.game] = 1 if ended.outcome.winner == ended.last_mover else -1
        return Step(rewards, dones, finished)

    def _check(self, actions: IntArray) -> None:
        """Refuse actions that are not legal, before anything has changed."""
        if actions.shape != (self.num_games,) or actions.dtype.kind not in "iu":
            raise IllegalActionError(
                f"step needs {self.num_games} integers, one per game; "
                f"got {actions.dtype} of shape {actions.shape}"
            )
        hits = self._legal == np.repeat(actions, self._counts)
        if np.count_nonzero(hits) != self.num_games:
            found = np.searchsorted(self._offsets, np.flatnonzero(hits), side="right") - 1
            game = int(np.setdiff1d(self._rows, found)[0])
            raise IllegalActionError(
                f"action {actions[game]} is not legal in game {game} ({self.game(game).sfen()})"
            )

    def _play(self, bits: list[int], finished: list[FinishedGame]) -> Iterator[list[Move]]:
        """Make the moves on the boards, end and restart games, and give each game's legal moves.

        Every board is visited once, and all is asked of it while it is in the cache.
        """
        seen = self.observations
        seen[:, features.REPETITIONS : features.IN_CHECK + 1] = 0
        ending = self.move_counts >= self.move_limit
        ending |= can_declare(seen, self._start_bonus[self._starts])
        visits = zip(self._boards, bits, ending.tolist(), strict=True)
        for row, (board, move, may_end) in enumerate(visits):
            board.apply_move(Move(move))
            legal = board.legal_moves()
            if board.is_in_check():
                seen[row, features.IN_CHECK] = 1
            if board.is_repetition(1):
                times = 1 + board.is_repetition(2) + board.is_repetition(3)
                seen[row, features.REPETITIONS] = times
                may_end = may_end or times == 3
            if may_end or not legal:
                outcome = self._outcome(row, legal)
                if outcome:
                    finished.append(self._finish(row, outcome))
                    self._start_game(row)
                    legal = board.legal_moves()
            yield legal

    def _outcome(self, row: int, legal: list[Move]) -> Outcome | None:
        return judge(
            self._boards[row],
            bool(legal),
            self.observations[row],
            self.move_counts[row] >= self.move_limit,
            self._start_bonus[self._starts[row]],
        )

    def _finish(self, row: int, outcome: Outcome) -> FinishedGame:
        actions = self._history[row, : self.move_counts[row]].copy()
        mover = other_side(SIDES[self.observations[row, features.SIDE]])
        return FinishedGame(row, outcome, self.start_sfens[self._starts[row]], actions, mover)

    def _start_game(self, row: int) -> None:
        if len(self.start_sfens) > 1:
            self._starts[row] = int(self.streams.uniform_of(row) * len(self.start_sfens))
        start = self._starts[row]
        self._boards[row].set_sfen(self.start_sfens[start])
        self.observations[row] = self._start_observations[start]
        self.move_counts[row] = 0

    def _list_legal(self, moves: Iterable[list[Move]]) -> None:
        """Number the legal moves of all games as actions."""
        counts: list[int] = []

        def counted() -> Iterator[list[Move]]:
            for legal in moves:
                counts.append(len(legal))
                yield legal

        # With NumPy's own kind of index, `take` is twice as fast as with any other.
        bits = np.fromiter(map(_BITS, chain.from_iterable(counted())), dtype=np.intp)
        self._counts = np.array(counts)
        self._offsets = np.zeros(self.num_games + 1, dtype=np.int64)
        np.cumsum(self._counts, out=self._offsets[1:])
        bits += np.repeat(self.observations[:, features.SIDE].astype(np.intp) << 16, self._counts)
        self._legal = ACTION_OF_MOVE.take(bits)

    # -- stop and go on ----------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that changes while playing, as arrays; see `load_state_dict`."""
        longest = self.move_counts.max()
        played = np.arange(longest) < self.move_counts[:, None]  # what follows is of games before
        return {
            "starts": self._starts.copy(),
            "move_counts": self.move_counts.copy(),
            "actions": np.where(played, self._history[:, :longest], np.int16(0)),
            "streams": self.streams.state.copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict()` of the same settings, exactly."""
        counts = np.asarray(state["move_counts"], dtype=np.int32)
        if len(counts) != self.num_games:
            raise ValueError(f"the state has {len(counts)} games, not {self.num_games}")
        actions = _actions_in_state(state, self.start_sfens)
        self._starts[:] = state["starts"]
        self.move_counts[:] = counts
        self._history[:, : actions.shape[1]] = actions
        self.streams.state = np.array(state["streams"], dtype=np.uint64)
        for row in range(self.num_games):
            self.observations[row] = self.game(row).observation()
            start, moves = self.moves_of(row)
            self._boards[row].set_sfen(start)
            for usi in moves:
                self._boards[row].apply_move(Move.from_usi(usi))
        self._list_legal(board.legal_moves() for board in self._boards)
