"""The experience that one PPO update learns from."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.core.gae import Floats, zero_sum_gae
from keisei.core.rollout import Rollout, empty_rollout
from keisei.shogi.positions import Positions, join

# Beside the mean advantage. Without it, a step that seems to teach nothing would hardly ever be
# learned from, and stand for thousands when it is.
_LEAST_CHANCE = 0.25
NONE: Floats = np.empty(0, dtype=np.float32)


class Batch(NamedTuple):
    """B steps to learn from."""

    positions: Positions
    actions: npt.NDArray[np.int16]
    log_probs: Floats
    values: Floats
    advantages: Floats
    returns: Floats
    weights: Floats  # how many steps of the buffer each stands for
    improved: Floats  # [sum], or empty

    def take(self, rows: npt.NDArray[np.integer]) -> Batch:
        """Some of the steps, in this order."""
        columns = (column[rows] for column in self[1:-1])
        improved = self.improved[self.positions.places(rows)] if len(self.improved) else NONE
        return Batch._make([self.positions.take(rows), *columns, improved])


class ExperienceBuffer:
    """Rollouts of any shape, stored compactly; planes are made for one minibatch at a time.

    Advantages are computed within each game of each rollout, never across the border of two.

    >>> buffer = ExperienceBuffer(gamma=1.0, lambda_gae=0.95)
    >>> len(buffer)
    0
    """

    def __init__(self, gamma: float, lambda_gae: float) -> None:
        self.gamma = gamma
        self.lambda_gae = lambda_gae
        self.clear()

    @classmethod
    def of(cls, rollouts: Iterable[Rollout], gamma: float, lambda_gae: float) -> ExperienceBuffer:
        """A buffer of these rollouts, with their advantages."""
        buffer = cls(gamma, lambda_gae)
        for rollout in rollouts:
            buffer.add_batch(rollout)
        buffer.compute_advantages_and_returns()
        return buffer

    def clear(self) -> None:
        """Forget everything."""
        self.rollouts: list[Rollout] = []
        self._single: list[
            tuple[npt.NDArray[np.uint8], npt.NDArray[np.int16], tuple[float, ...]]
        ] = []
        self._all: Batch | None = None

    def __len__(self) -> int:
        """Steps held. Test emptiness by `len(buffer) == 0`: an empty buffer is still a buffer."""
        return sum(int(rollout.learned.sum()) for rollout in self.rollouts) + len(self._single)

    def __bool__(self) -> bool:
        # `if buffer:` must not mean "if it is not empty": that once cost a project its data.
        return True

    # -- filling -----------------------------------------------------------------------------

    def add(
        self,
        observation: npt.NDArray[np.uint8],
        legal: npt.NDArray[np.int16],
        action: int,
        log_prob: float,
        value: float,
        reward: float,
        done: bool,
    ) -> None:
        """Add one move of a single game; call it in the order of the moves."""
        self._single.append((observation, legal, (action, log_prob, value, reward, done)))

    def add_batch(self, rollout: Rollout) -> None:
        """Add a rollout as it is; it is read in place, not copied."""
        self.rollouts.append(rollout)

    def merge_worker_buffers(self, batches: Iterable[bytes]) -> None:
        """Add what `get_serializable_batch` of other buffers returned."""
        for data in batches:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                for i in range(int(arrays["count"])):
                    parts = {f.name: arrays[f"{i}.{f.name}"] for f in fields(Rollout)}
                    parts["version"] = int(parts["version"])
                    self.add_batch(Rollout(**parts))

    def merge_buffers(self, other_buffers: Iterable[ExperienceBuffer]) -> None:
        """Add the rollouts of other buffers; they are read in place, not copied."""
        for other in other_buffers:
            other._check_complete()
            self.rollouts += other.rollouts

    def _check_complete(self) -> None:
        if self._single:
            raise ValueError(
                f"{len(self._single)} moves that were added one by one are not in a rollout yet: "
                "call compute_advantages_and_returns first, with the value of what follows them"
            )

    def get_serializable_batch(self) -> bytes:
        """All rollouts as bytes (NumPy's own format, nothing that could run code)."""
        self._check_complete()
        arrays = {
            f"{i}.{f.name}": np.asarray(getattr(rollout, f.name))
            for i, rollout in enumerate(self.rollouts)
            for f in fields(Rollout)
        }
        stream = io.BytesIO()
        np.savez(stream, allow_pickle=False, count=len(self.rollouts), **arrays)
        return stream.getvalue()

    # -- learning ----------------------------------------------------------------------------

    def compute_advantages_and_returns(self, last_value: float = 0.0) -> None:
        """Estimate every step's advantage; `last_value` is for moves added one by one (`add`)."""
        if self._single:
            self.add_batch(self._close_single(last_value))
        if not self.rollouts:
            raise ValueError("there is no experience to learn from: collect some first")
        estimates = [
            zero_sum_gae(r.rewards, r.values, r.dones, r.last_values, self.gamma, self.lambda_gae)
            for r in self.rollouts
        ]
        self._all = Batch(
            join([r.positions for r in self.rollouts]),
            np.concatenate([r.actions.ravel() for r in self.rollouts]),
            np.concatenate([r.log_probs.ravel() for r in self.rollouts]),
            np.concatenate([r.values.ravel() for r in self.rollouts]),
            np.concatenate([advantages.ravel() for advantages, _ in estimates]),
            np.concatenate([returns.ravel() for _, returns in estimates]),
            np.ones(sum(r.num_steps for r in self.rollouts), dtype=np.float32),
            np.concatenate([r.improved for r in self.rollouts]),
        )
        learned = np.concatenate([r.learned.ravel() for r in self.rollouts])
        if not learned.all():  # the others are part of the estimates, but not learned from
            self._all = self.get_batch(np.flatnonzero(learned))

    def _close_single(self, last_value: float) -> Rollout:
        observations, legal, scalars = zip(*self._single, strict=True)
        action, log_prob, value, reward, done = zip(*scalars, strict=True)
        self._single = []
        rollout = empty_rollout(len(done), 1)
        positions = Positions.of(observations, legal)
        rollout.observations[:, 0] = positions.observations
        rollout.legal, rollout.legal_offsets = positions.legal, positions.offsets
        rollout.actions[:, 0], rollout.log_probs[:, 0] = action, log_prob
        rollout.values[:, 0], rollout.rewards[:, 0], rollout.dones[:, 0] = value, reward, done
        rollout.last_values[:] = last_value
        return rollout

    def get_batch(self, rows: npt.NDArray[np.integer] | None = None) -> Batch:
        """The steps `rows` in that order, or all of them."""
        if self._all is None:
            raise ValueError("call compute_advantages_and_returns() first")
        return self._all if rows is None else self._all.take(rows)

    def minibatches(
        self, size: int, rng: np.random.Generator, share: float = 1.0, most: int | None = None
    ) -> Iterator[Batch]:
        """All steps once, or a share of them, in minibatches of at most `size`.

        With `most`, it is of so many steps drawn at random, instead of all.

        They are in random order, and nearly equal in size: a small rest at the end would count as
        much as a whole minibatch.
        """
        rows, weights = self._draw(share, rng, most)
        for part in np.array_split(np.arange(len(rows)), math.ceil(len(rows) / size)):
            yield self.get_batch(rows[part])._replace(weights=weights[part])

    def _draw(
        self, share: float, rng: np.random.Generator, most: int | None
    ) -> tuple[npt.NDArray[np.intp], Floats]:
        """Steps in random order, and how many each stands for.

        Gradients are as long as advantages are large, so steps are drawn in proportion to that, and
        weigh the less the likelier they were: the mean stays right, and half of the steps tell
        nearly as much as all of them.
        """
        order = rng.permutation(len(self))[:most]
        if share == 1:
            return order, np.ones(len(order), dtype=np.float32)
        surprise = np.abs(self.get_batch().advantages[order].astype(np.float64))
        chances = surprise + _LEAST_CHANCE * surprise.mean() + 1e-12
        chances /= chances.sum()
        count = max(round(share * len(order)), 1)
        comb = (np.arange(count) + rng.random()) / count  # evenly: a likely step is never missed
        picks = np.searchsorted(np.cumsum(chances), comb).clip(max=len(order) - 1)
        picks = rng.permutation(picks)
        return order[picks], (1 / (len(order) * chances[picks])).astype(np.float32)
