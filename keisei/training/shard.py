"""A shard: G games that one policy plays together. Every kind of worker runs this code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.core.policy import Evaluation, sample
from keisei.core.rollout import Rollout, empty_rollout
from keisei.shogi import FinishedGame, VectorShogi
from keisei.shogi.material import material
from keisei.shogi.rules import START_SFEN

# Observations, legal actions and their offsets to probabilities and values.
Policy = Callable[[npt.NDArray[np.uint8], npt.NDArray[np.int16], npt.NDArray[np.int64]], Evaluation]


class Collected(NamedTuple):
    """A rollout, and the games that ended in it."""

    rollout: Rollout
    finished: list[FinishedGame]


class SelfPlayShard:
    """Plays `num_games` games against itself and records them.

    Shard `index` has its own random streams: it plays the same games wherever it runs. Beside
    winning and losing, each move is rewarded with `material_reward` for every pawn's worth of
    material that it gains.
    """

    def __init__(
        self,
        num_games: int,
        seed: int,
        index: int = 0,
        *,
        move_limit: int,
        material_reward: float = 0.0,
        start_sfens: Sequence[str] = (START_SFEN,),
    ) -> None:
        self.games = VectorShogi(
            num_games,
            seed,
            move_limit=move_limit,
            start_sfens=start_sfens,
            first_stream=index * num_games,
        )
        self.material_reward = material_reward

    def collect(self, policy: Policy, steps: int, version: int) -> Collected:
        """Play `steps` moves in every game with the weights of `version`."""
        games = self.games
        rollout = empty_rollout(steps, games.num_games)
        rollout.version = version
        legal_parts, finished, end = [], [], 0
        for t in range(steps):
            legal, offsets = games.legal_actions()
            seen = policy(games.observations, legal, offsets)
            picks = sample(seen.log_probs, offsets, games.streams.uniform())
            rollout.observations[t] = games.observations
            rollout.legal_offsets[t * games.num_games + 1 : (t + 1) * games.num_games + 1] = (
                end + offsets[1:]
            )
            legal_parts.append(legal)
            end += len(legal)
            rollout.actions[t] = actions = legal[picks]
            rollout.log_probs[t] = seen.log_probs[picks]
            rollout.values[t] = seen.values
            result = games.step(actions)
            rollout.rewards[t] = result.rewards + self._material_gain(
                rollout.observations[t], result.dones
            )
            rollout.dones[t] = result.dones
            finished += result.finished
        rollout.legal = np.concatenate(legal_parts)
        rollout.last_values[:] = policy(games.observations, *games.legal_actions()).values
        return Collected(rollout, finished)

    def _material_gain(
        self, before: npt.NDArray[np.uint8], dones: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float32]:
        """The reward for material won by the moves just made; a game's last move has none."""
        # The board is turned after the move: what the opponent has there is the mover's.
        gain = -material(self.games.observations) - material(before)
        gain[dones] = 0
        return gain * np.float32(self.material_reward)

    def state_dict(self) -> dict[str, Any]:
        """Everything that changes while playing."""
        return self.games.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict()`, exactly."""
        self.games.load_state_dict(state)
