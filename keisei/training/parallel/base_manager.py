"""What the managers of all backends have in common."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from keisei.config_schema import AppConfig
from keisei.core.learner import Learner
from keisei.core.rollout import Rollout
from keisei.core.runtime import share_cores
from keisei.runs.trace import Trace
from keisei.selfplay.opponents import opponent_of_shard
from keisei.selfplay.plan import ParallelError
from keisei.shogi import FinishedGame
from keisei.training.parallel.acting_weights import ActingWeights
from keisei.training.parallel.experience_collector import Finished
from keisei.training.parallel.statistics import worker_metrics

START_TIMEOUT = 120.0

_Manager = TypeVar("_Manager", bound="BaseManager")


class BaseManager(ABC):
    """Workers that play shards of a run with the agent's weights.

        with make_manager(config, agent) as manager:
            rollouts = manager.collect_experiences()
            ...                                  # learn
            manager.synchronize_models()

    The rollouts are views of shared memory: use them before the next `collect_experiences`.
    `checkpoints` is the folder of past opponents, `trace` a timeline of what the workers do.
    """

    def __init__(
        self,
        config: AppConfig,
        agent: Learner,
        checkpoints: Path | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.config = config
        self.agent = agent
        self.parallel = config.training.parallel
        self._checkpoints = checkpoints
        self._trace = trace or Trace(None)
        self.finished_games: list[FinishedGame] = []  # in the rollouts collected last
        self.collected_from: list[int] = []  # the workers that these are from
        self.opponent_scores: dict[str, list[float]] = {}
        self.waited = 0.0  # seconds that the learner waited for rollouts
        self._shards: dict[int, dict[str, Any]] = {}
        self._acting = ActingWeights(agent, *self.parallel.sync_intervals)
        self._synchronized = time.monotonic()

    # -- life ----------------------------------------------------------------------------------

    def start_workers(
        self, shards: Sequence[dict[str, Any]] = (), acting: dict[str, Any] | None = None
    ) -> None:
        """Start all workers and wait until they are ready.

        `shards` are games to go on with (`shard_states`), `acting` the weights (`acting_state`).
        """
        if self.is_running:
            return
        self._shards = dict(enumerate(shards))
        self._acting.load_state_dict(acting or {})
        try:
            self._start()
        except BaseException:
            self.shutdown()
            raise

    @abstractmethod
    def _start(self) -> None:
        """Start the workers; if it fails, `shutdown` stops those that were started."""

    @abstractmethod
    def shutdown(self) -> None:
        """Stop all workers and give the memory back; safe to call twice."""

    def stop_workers(self) -> None:
        """The same as `shutdown`."""
        self.shutdown()

    @property
    @abstractmethod
    def is_running(self) -> bool:
        """Are there workers?"""

    def __enter__(self: _Manager) -> _Manager:
        self.start_workers()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    # -- work ----------------------------------------------------------------------------------

    @property
    def published(self) -> int:
        """The version of the weights that workers can have."""
        return self._acting.version

    @property
    def sync_interval(self) -> int:
        """Updates between two synchronisations, as it is now: see `model_sync_interval: auto`."""
        return self._acting.interval

    @abstractmethod
    def _publish(self) -> None:
        """Give workers the acting weights, from their next rollout on."""

    def synchronize_models(self) -> None:
        """Publish the agent's weights; workers take them at the start of their next rollout.

        Does nothing until the agent is `model_sync_interval` versions ahead of what they have.
        """
        if self._acting.are_due:
            self._acting.take()
            before, start = self._synchronized, time.monotonic()
            with self._trace.span("publish weights"):
                self._publish()
            self._synchronized = time.monotonic()
            if self._acting.adapts:  # else statistics, which Ray must ask for, would be for nothing
                took = (self._synchronized - start) / (self._synchronized - before)
                self._acting.adapt(took + self._loading())

    def _loading(self) -> float:
        """The share of their time that workers take to load weights."""
        if not self.is_running:
            return 0.0
        workers = self.get_statistics()["workers"].values()
        return sum(one["syncing"] for one in workers) / max(len(workers), 1)

    def sync_model_to_workers(self) -> None:
        """The same as `synchronize_models`."""
        self.synchronize_models()

    def collect_experiences(
        self, target_steps: int | None = None, timeout: float | None = None
    ) -> list[Rollout]:
        """At least `target_steps` steps (by default, as many as an update wants).

        In sync mode all are played now, and sorted by worker, so that the same seed and weights
        give the same list. In async mode they are the ones finished first, and workers play on.
        After `timeout` seconds it returns what there is.
        """
        lag = self.agent.version - self.published
        if lag > self.parallel.max_policy_lag:
            raise ParallelError(
                f"the workers' weights are {lag} versions old, and rollouts may lag by "
                f"{self.parallel.max_policy_lag} (max_policy_lag): call synchronize_models() first"
            )
        start = time.monotonic()
        taken = self._collect(target_steps or self.parallel.update_steps, timeout)
        self.waited += time.monotonic() - start
        self._trace.add("learner", "wait for rollouts", start, time.monotonic())
        self.finished_games = [game for one in taken for game in one.games]
        self.collected_from = [one.worker for one in taken]
        self.opponent_scores = {}
        for one in taken:
            if opponent := opponent_of_shard(self.config, one.worker):
                self.opponent_scores.setdefault(opponent, []).extend(one.scores)
        return [one.rollout for one in taken]

    @abstractmethod
    def _collect(self, steps: int, timeout: float | None) -> list[Finished]:
        """Wait for so many steps and take them."""

    # -- what is going on ------------------------------------------------------------------------

    def shard_states(self) -> list[dict[str, Any]]:
        """The games of each shard after its newest rollout; empty before the first."""
        return [self._shards.get(index, {}) for index in range(self.parallel.num_workers)]

    def acting_state(self) -> dict[str, Any]:
        """The weights that play, if they are not the agent's: see `start_workers`."""
        return self._acting.state_dict()

    def metrics(self) -> dict[str, float]:
        """What a run records about its workers with every update."""
        return worker_metrics(self)

    @property
    @abstractmethod
    def workers_here(self) -> int:
        """Workers on the learner's machine."""

    def _share_cores(self) -> None:
        """Leave the workers their cores; in sync mode they wait while the learner learns."""
        if self.parallel.mode == "async":
            share_cores(self.workers_here)

    @abstractmethod
    def get_statistics(self) -> dict[str, Any]:
        """Steps, games, restarts, lag, memory, and what each worker does with its time."""

    def get_status(self) -> dict[str, Any]:
        """The same as `get_statistics`."""
        return self.get_statistics()
