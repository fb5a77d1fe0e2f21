"""The manager: keeps the workers playing, replaces those that fail, and hands over rollouts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keisei.config_schema import AppConfig
from keisei.core.ppo_agent import PPOAgent
from keisei.core.rollout import Rollout
from keisei.shogi import FinishedGame, ShogiGame
from keisei.shogi.vector_shogi import moves_in_state
from keisei.training.parallel.statistics import statistics
from keisei.training.parallel.supervisor import ParallelError, Supervisor
from keisei.training.parallel.worker_communicator import WorkerLine
from keisei.training.trace import Trace


class ParallelManager:
    """Worker processes that play shards of a run with the agent's weights.

        with ParallelManager(config, agent) as manager:
            rollouts = manager.collect_experiences()
            ...                                  # learn
            manager.synchronize_models()

    The rollouts look at shared memory: use them before the next `collect_experiences`.
    `checkpoints` is the folder of past opponents, `trace` a timeline of what the workers do.
    """

    def __init__(
        self,
        config: AppConfig,
        agent: PPOAgent,
        checkpoints: Path | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.config = config
        self.agent = agent
        self.parallel = config.training.parallel
        self._checkpoints = checkpoints
        self._trace = trace or Trace(None)
        self._supervisor: Supervisor | None = None
        self.finished_games: list[FinishedGame] = []  # in the rollouts collected last
        self.collected_from: list[int] = []  # the workers that these are from
        self.opponent_scores: dict[str, list[float]] = {}
        self.waited = 0.0  # seconds that the learner waited for rollouts
        self._shards: dict[int, dict[str, Any]] = {}

    # -- life ----------------------------------------------------------------------------------

    def start_workers(self, shards: Sequence[dict[str, Any]] = ()) -> None:
        """Start all workers and wait until they are ready; `shards` are games to go on with."""
        if self.is_running:
            return
        self._shards = dict(enumerate(shards))
        self._supervisor = Supervisor(
            self.config, self.agent, self._shards, self._checkpoints, self._trace
        )
        try:
            self.synchronize_models()
            self._supervisor.start()
            self._wait_for(self._supervisor.all_ready)
        except BaseException:
            self.shutdown()
            raise

    @property
    def is_running(self) -> bool:
        """Are there workers?"""
        return self._supervisor is not None

    @property
    def _running(self) -> Supervisor:
        if self._supervisor is None:
            raise ParallelError("the workers are not running: call start_workers() first")
        return self._supervisor

    def shutdown(self) -> None:
        """Stop all workers and give the memory back; safe to call twice."""
        if self._supervisor:
            self._supervisor.shutdown()
            self._supervisor = None

    stop_workers = shutdown

    def __enter__(self) -> ParallelManager:
        self.start_workers()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    # -- work ----------------------------------------------------------------------------------

    def synchronize_models(self) -> None:
        """Publish the agent's weights; workers take them at the start of their next rollout.

        Does nothing until the agent is `model_sync_interval` versions ahead of what they have.
        """
        published = self._running.synchronizer.version
        if published < 0 or self.agent.version - published >= self.parallel.model_sync_interval:
            self._running.publish(self.agent.version)

    sync_model_to_workers = synchronize_models

    def collect_experiences(
        self, target_steps: int | None = None, timeout: float | None = None
    ) -> list[Rollout]:
        """At least `target_steps` steps (if not given, as many as an update wants).

        In sync mode all are played now, in order of worker, so that the same seed and weights give
        the same list. In async mode they are those that have been finished first; workers go on.
        After `timeout` seconds it returns what there is.
        """
        supervisor, collector = self._running, self._running.collector
        version, start = self.agent.version, time.monotonic()
        steps = target_steps or self.parallel.update_steps
        lag = version - supervisor.synchronizer.version
        if lag > self.parallel.max_policy_lag:
            raise ParallelError(
                f"the workers' weights are {lag} versions old, and rollouts may lag by "
                f"{self.parallel.max_policy_lag} (max_policy_lag): call synchronize_models() first"
            )
        with supervisor.changed:
            collector.release()
            supervisor.want(steps)
            self._wait_for(lambda: supervisor.has_enough(steps, version), timeout)
            supervisor.want(0)
            limit = steps if self.parallel.mode == "async" else None
            taken = collector.take(version, limit)
            supervisor.communicator.wake()
        self.waited += time.monotonic() - start
        self._trace.add("learner", "wait for rollouts", start, time.monotonic())
        self.finished_games = [game for one in taken for game in one.games]
        self.collected_from = [one.worker for one in taken]
        self.opponent_scores = {}
        for one in taken:
            if one.opponent:
                self.opponent_scores.setdefault(one.opponent, []).extend(one.scores)
        return [one.rollout for one in taken]

    def _wait_for(self, is_so: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until something is so, or the workers have failed for good (then it raises)."""
        supervisor = self._running
        deadline = None if timeout is None else time.monotonic() + timeout
        with supervisor.changed:
            while True:
                supervisor.raise_error()
                if is_so():
                    return True
                left = 1.0 if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    return False
                supervisor.changed.wait(min(left, 1.0))

    # -- control ---------------------------------------------------------------------------------

    def pause_workers(self, indices: Sequence[int] | None = None) -> None:
        """Give some workers (or all) no more work; a rollout under way is finished."""
        self._for_each(indices, lambda line: self._running.pause(line, True))

    def resume_workers(self, indices: Sequence[int] | None = None) -> None:
        """Let paused workers play again."""
        self._for_each(indices, lambda line: self._running.pause(line, False))

    def reset_workers(self, indices: Sequence[int] | None = None) -> None:
        """Renew the processes of some workers (or all); their games go on.

        Nothing is lost: a worker that plays finishes its rollout first.
        """
        old = self._for_each(indices, lambda line: self._running.leaving.add(line.index))
        self._wait_for(
            lambda: (
                all(self._running.communicator.lines.get(one.index) is not one for one in old)
                and self._running.all_ready()
            )
        )

    def scale_to(self, count: int) -> None:
        """Have `count` workers from now on; those that leave finish their rollouts first."""
        supervisor = self._running
        if not 1 <= count <= supervisor.capacity:
            raise ParallelError(
                f"scale_to({count}): there can be 1 to {supervisor.capacity} workers here"
            )
        with supervisor.changed:
            supervisor.num_workers = count
            supervisor.communicator.wake()
        self._wait_for(
            lambda: len(supervisor.communicator.workers) == count and supervisor.all_ready()
        )

    def _for_each(
        self, indices: Sequence[int] | None, do: Callable[[WorkerLine], object]
    ) -> list[WorkerLine]:
        supervisor = self._running
        with supervisor.changed:
            lines = {line.index: line for line in supervisor.communicator.workers}
            unknown = set(indices or ()) - set(lines)
            if unknown:
                raise ParallelError(
                    f"there is no worker {sorted(unknown)}; there are {sorted(lines)}"
                )
            chosen = list(lines.values()) if indices is None else [lines[i] for i in indices]
            for line in chosen:
                do(line)
            supervisor.communicator.wake()
        return chosen

    # -- what is going on ------------------------------------------------------------------------

    def shard_states(self) -> list[dict[str, Any]]:
        """The games of each shard after its newest rollout; shards yet to play have none."""
        return [self._shards.get(index, {}) for index in range(self.parallel.num_workers)]

    def current_game(self) -> ShogiGame:
        """The first worker's first game, as it stood at the end of its newest rollout."""
        starts = self.config.env.start_sfens()
        start, moves = (
            moves_in_state(self._shards[0], starts) if self._shards.get(0) else (starts[0], [])
        )
        return ShogiGame.from_moves(start, moves, move_limit=self.config.env.move_limit)

    def get_statistics(self) -> dict[str, Any]:
        """Steps, games, restarts, lag, memory, and what each worker does with its time."""
        if self._supervisor is None:
            return {"is_running": False}
        with self._supervisor.changed:
            return {**statistics(self._supervisor), "learner_waited": self.waited}

    get_status = get_statistics
