"""A shard: G games that one policy plays together. Every kind of worker runs this code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.config_schema import AppConfig
from keisei.core.policy import Policy, sample
from keisei.core.rollout import Rollout, empty_rollout
from keisei.search.gumbel import GumbelSearch, GumbelSettings
from keisei.shogi import FinishedGame, VectorShogi, features
from keisei.shogi.material import material
from keisei.shogi.rules import START_SFEN
from keisei.shogi.vector_shogi import Step

ALL = np.True_
NONE: npt.NDArray[np.float32] = np.empty(0, dtype=np.float32)


class Chosen(NamedTuple):
    """What to play in each game, and what is recorded of it."""

    picks: npt.NDArray[np.int64]  # where in the legal actions the moves stand
    log_probs: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]
    learned: npt.NDArray[np.bool_] | np.bool_ = ALL
    improved: npt.NDArray[np.float32] = NONE


class SelfPlayShard:
    """Plays `num_games` games against itself and records them.

    Its games draw from random streams of their own, from `first_stream` on: it plays the same games
    wherever it runs. Later incarnations of it play other games. Beside winning and losing, each
    move is rewarded with `material_reward` for every pawn's worth of material that it gains. A game
    at the move limit counts for the side with more material, fully if it leads by `adjudicate`. A
    game's first moves, up to `random_moves`, are random and not learned from.
    """

    def __init__(
        self,
        num_games: int,
        seed: int,
        *,
        first_stream: int = 0,
        incarnation: int = 0,
        move_limit: int,
        material_reward: float = 0.0,
        adjudicate: float = 0.0,
        random_moves: int = 0,
        start_sfens: Sequence[str] = (START_SFEN,),
        search: GumbelSettings | None = None,
    ) -> None:
        self.games = VectorShogi(
            num_games,
            seed,
            move_limit=move_limit,
            start_sfens=start_sfens,
            first_stream=first_stream + (incarnation << 40),
        )
        self.incarnation = incarnation
        self.material_reward = material_reward
        self.adjudicate = adjudicate
        self.random_moves = random_moves
        self._random_until = np.zeros(num_games, dtype=np.int64)  # so many moves of each game
        self._search = search
        # Against an opponent: the learner's side in each game (0 Black, 1 White), and its scores.
        self.sides = np.arange(num_games) % 2
        self.scores: list[float] = []

    def collect(
        self,
        policy: Policy,
        rollout: Rollout,
        version: int,
        opponent: Policy | None = None,
        count_steps: Callable[[int], None] = lambda steps: None,
    ) -> list[FinishedGame]:
        """Fill the rollout with play by the weights of `version`; returns the games that ended.

        Both sides are the policy's, or one of them is the opponent's. Its moves stand in the
        rollout too (what follows a move is part of the move's worth), marked as not to be learned
        from. The learner changes sides after each game; `scores` has its results.
        """
        games, count = self.games, self.games.num_games
        choose = self._searching(policy) if self._search else self._drawing(policy, opponent)
        self.scores = []
        self._material = material(games.observations)
        finished, end = [], 0
        for t in range(len(rollout.actions)):
            positions, chosen = games.positions, self._begin_at_random(choose())
            rollout.learned[t] = chosen.learned
            rollout.observations[t] = games.observations
            rollout.legal_offsets[t * count : (t + 1) * count + 1] = end + positions.offsets
            end = rollout.add_legal(end, positions.legal, chosen.improved)
            rollout.actions[t] = actions = positions.legal[chosen.picks]
            rollout.log_probs[t] = chosen.log_probs
            rollout.values[t] = chosen.values
            result = games.step(actions)
            rollout.rewards[t] = self._rewards(result)
            rollout.dones[t] = result.dones
            count_steps(count)
            finished += result.finished
            if opponent:
                self._change_sides(result.finished)
        rollout.cut_legal(end)
        rollout.last_values[:] = policy(games.positions).values
        rollout.version = version
        return finished

    def _drawing(self, policy: Policy, opponent: Policy | None) -> Callable[[], Chosen]:
        """Moves drawn from the policy, or from the opponent's where it is the opponent's turn."""
        games = self.games

        def choose() -> Chosen:
            evaluation = policy(games.positions)
            log_probs, mine = evaluation.log_probs, ALL
            if opponent:
                mine = games.observations[:, features.SIDE] == self.sides
                log_probs = self._with_replies(log_probs, opponent, np.flatnonzero(~mine))
            picks = sample(log_probs, games.positions.offsets, games.streams.uniform())
            return Chosen(picks, log_probs[picks], evaluation.values, mine)

        return choose

    def _searching(self, policy: Policy) -> Callable[[], Chosen]:
        """Moves found by a search with the policy, and what it made of the policy."""
        search = GumbelSearch(policy, self._search)

        def choose() -> Chosen:
            found = search.improve(self.games)
            log_probs = np.log(found.policy[found.picks] + 1e-12)
            return Chosen(found.picks, log_probs, found.values, improved=found.policy)

        return choose

    def _begin_at_random(self, chosen: Chosen) -> Chosen:
        """What was chosen, with random moves in the games that still begin with some."""
        if not self.random_moves:
            return chosen
        games, streams = self.games, self.games.streams
        for row in np.flatnonzero(games.move_counts == 0).tolist():
            self._random_until[row] = int(streams.uniform_of(row) * (self.random_moves + 1))
        # Games that began under another setting go by the smaller one.
        until = np.minimum(self._random_until, self.random_moves)
        at_random = games.move_counts < until
        picks = np.where(at_random, games.random_picks(), chosen.picks)
        return chosen._replace(picks=picks, learned=chosen.learned & ~at_random)

    def _with_replies(
        self,
        log_probs: npt.NDArray[np.float32],
        opponent: Policy,
        games: npt.NDArray[np.integer],
    ) -> npt.NDArray[np.float32]:
        """The log-probabilities with the opponent's own in the games where it moves."""
        if not len(games):
            return log_probs
        positions = self.games.positions
        both = log_probs.copy()
        both[np.isin(positions.rows(), games)] = opponent(positions.take(games)).log_probs
        return both

    def _change_sides(self, finished: Sequence[FinishedGame]) -> None:
        for ended in finished:
            winner = ended.outcome.winner
            learner = ("black", "white")[self.sides[ended.game]]
            self.scores.append(0.5 if winner is None else float(winner == learner))
            self.sides[ended.game] ^= 1

    def _rewards(self, result: Step) -> npt.NDArray[np.float32]:
        """Of the moves just made; a game's last move has none for material."""
        had, self._material = self._material, material(self.games.observations)
        # The board is turned after the move: what the opponent has there is the mover's.
        gain = -self._material - had
        gain[result.dones] = 0
        rewards: npt.NDArray[np.float32] = result.rewards + gain * np.float32(self.material_reward)
        if self.adjudicate:
            for ended in result.finished:
                if ended.outcome.reason == "move limit":
                    rewards[ended.game] = np.clip(had[ended.game] / self.adjudicate, -1, 1)
        return rewards

    def state_dict(self) -> dict[str, Any]:
        """Everything that changes while playing."""
        mine = {
            "sides": self.sides.copy(),
            "random_until": self._random_until.copy(),
            "incarnation": self.incarnation,
        }
        return {**self.games.state_dict(), **mine}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict()`, exactly."""
        self.games.load_state_dict(state)
        # Checkpoints from before there were opponents or random moves do not have them.
        self.sides[:] = state.get("sides", self.sides)
        self._random_until[:] = state.get("random_until", 0)


def make_shard(
    config: AppConfig, index: int, state: Mapping[str, Any] | None = None
) -> SelfPlayShard:
    """Shard `index` of a run; it goes on with the games of `state`, if that has any."""
    state, parallel, search = dict(state or {}), config.training.parallel, config.training.search
    settings = GumbelSettings(search.visits, search.considered, search.scale)
    shard = SelfPlayShard(
        parallel.num_envs_per_worker,
        config.env.seed,
        first_stream=index * parallel.num_envs_per_worker,
        incarnation=state.get("incarnation", 0),
        move_limit=config.env.move_limit,
        material_reward=config.env.material_reward,
        adjudicate=config.env.adjudicate,
        random_moves=config.env.random_moves,
        start_sfens=config.env.start_sfens(),
        search=settings if config.training.searches else None,
    )
    if has_games(state):
        shard.load_state_dict(state)
    return shard


def has_games(state: Mapping[str, Any]) -> bool:
    """Are there games in a shard's state? Those that are yet to begin have left nothing."""
    return "move_counts" in state


def without_games(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a shard whose games are given up: it begins others, never the same again.

    >>> without_games(without_games({}))
    {'incarnation': 2}
    """
    return {"incarnation": state.get("incarnation", 0) + 1}


def new_rollout(config: AppConfig) -> Rollout:
    """A rollout of the configured size, to be filled."""
    parallel = config.training.parallel
    return empty_rollout(
        parallel.rollout_length, parallel.num_envs_per_worker, config.training.searches
    )
