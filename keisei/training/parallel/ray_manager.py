"""The manager of workers on a Ray cluster."""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from keisei.config_schema import AppConfig
from keisei.core.learner import Learner
from keisei.core.runtime import share_cores
from keisei.processes.ray_cluster import (
    ClusterError,
    cluster,
    cluster_cpus,
    cluster_nodes,
    import_ray,
    store_use,
)
from keisei.runs.trace import Trace
from keisei.selfplay.opponents import opponent_of_shard
from keisei.selfplay.plan import FailurePolicy, ParallelError, Tally, UpdatePlan
from keisei.selfplay.shard import without_games
from keisei.training.parallel.base_manager import START_TIMEOUT, BaseManager
from keisei.training.parallel.experience_collector import ExperienceCollector, Finished
from keisei.training.parallel.messages import RolloutDone
from keisei.training.parallel.model_sync import pack_weights
from keisei.training.parallel.ray_line import RayLine, Work, check_versions, describe
from keisei.training.parallel.ray_sizing import store_bytes
from keisei.training.parallel.ray_statistics import ray_statistics
from keisei.training.parallel.ray_worker import RayWorker, clock_offset

log = logging.getLogger(__name__)

IN_FLIGHT = 2  # rollouts of a worker in async mode: one that is played, and the next
GROWTH_INTERVAL = 5.0  # seconds between two looks for CPUs that joined the cluster


class RayManager(BaseManager):
    """The workers are actors of a Ray cluster, one for each CPU.

    Ray restarts an actor that dies, here or on another node; until it is back, the others play on.
    It continues its games from its last finished rollout. So in sync mode a failure changes
    nothing, if the worker is back within `worker_timeout`.
    """

    def __init__(
        self,
        config: AppConfig,
        agent: Learner,
        checkpoints: Path | None = None,
        trace: Trace | None = None,
    ) -> None:
        super().__init__(config, agent, checkpoints, trace)
        self._ray = import_ray()
        self._connection = contextlib.ExitStack()
        self.lines: dict[int, RayLine] = {}
        self.collector = ExperienceCollector(self.parallel.max_policy_lag)
        self.totals: Counter[str] = Counter()
        self.failures = FailurePolicy(self.parallel.max_restarts)
        self._cluster_now: tuple[list[dict[str, Any]], dict[str, float]] = ([], {})
        self._asked_at = 0.0
        self._weights: Any = None
        self._numbers: Counter[int] = Counter()  # of each shard: rollouts finished
        self._looked_for_nodes = 0.0

    # -- life ----------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        return bool(self.lines)

    def _start(self) -> None:
        """Start all workers, and wait until they are there (or no more come)."""
        self._numbers.clear()
        address = self.parallel.ray_address
        try:
            self._connection.enter_context(cluster(address, store_bytes(self.config)))
        except ClusterError as error:
            raise ParallelError(str(error)) from error
        self._publish()
        for index in range(self.parallel.num_workers):
            self._add(index)
        self._wait_for(self._possible())
        self._share_cores()

    def _possible(self) -> int:
        """The workers that the cluster has CPUs for."""
        wanted, cpus = self.parallel.num_workers, cluster_cpus()
        if cpus < wanted:
            log.warning(
                "the cluster has %d CPUs for %d workers: the others wait for more nodes",
                cpus,
                wanted,
            )
        return min(wanted, cpus)

    def _wait_for(self, count: int) -> None:
        """Wait for this many workers; after the timeout, one is enough."""
        deadline = time.monotonic() + START_TIMEOUT
        while self._here() < max(count, 1) and time.monotonic() < deadline:
            self._hear(1.0)
        if not self._here():
            raise ParallelError(f"no worker was ready on the Ray cluster in {START_TIMEOUT:.0f} s")

    def _here(self) -> int:
        return sum(line.is_here for line in self.lines.values())

    def _add(self, index: int) -> None:
        """A new actor. Its arguments are all in the call, so that they survive any node."""
        ray = self._ray
        actor_class = ray.remote(
            num_cpus=1, max_restarts=-1, max_task_retries=0, concurrency_groups={"life": 1}
        )(RayWorker)
        actor = actor_class.remote(self.config, index, self._checkpoints)
        self.lines[index] = RayLine(index, actor, actor.hello.remote())
        log.debug("%s starts", self.lines[index].name)

    def shutdown(self) -> None:
        """Stop all workers; leave the cluster, or end it if it was started for this run."""
        for line in self.lines.values():
            log.debug("%s is stopped", line.name)
            with contextlib.suppress(Exception):  # the cluster may be gone
                self._ray.kill(line.actor)
        self.lines = {}
        self.collector.waiting.clear()
        self._weights = None
        self._connection.close()
        share_cores(0)

    # -- work ----------------------------------------------------------------------------------

    def _publish(self) -> None:
        packed = pack_weights(self._acting.network, self.parallel.compression_enabled)
        self._weights = self._ray.put(packed)  # once; each node fetches it once
        log.debug("version %d of the weights is there for all workers", self.published)
        self.totals["versions"] += 1
        self.totals["weights_bytes"] += packed.nbytes

    def _collect(self, steps: int, timeout: float | None) -> list[Finished]:
        if not self.is_running:
            raise ParallelError("the workers are not running: call start_workers() first")
        version, plan = self.agent.version, UpdatePlan.of(self.parallel, steps)
        deadline = None if timeout is None else time.monotonic() + timeout
        self._hear(0)  # what arrived while the learner learned
        while True:
            self._look_after()
            self.collector.drop_old(version)
            self._give_work(plan)
            is_met = plan.is_met(self._playing(), self._tally())
            if is_met or (deadline and time.monotonic() >= deadline):
                break
            self._hear(1.0 if deadline is None else min(1.0, deadline - time.monotonic()))
        return self.collector.take(version, steps if self.parallel.mode == "async" else None)

    def _expected(self) -> list[RayLine]:
        """The workers that take part: a lost one for as long as it may come back soon."""
        now, limit = time.monotonic(), self.parallel.worker_timeout
        return [
            line
            for line in self.lines.values()
            if line.away_since is None or now - line.away_since < limit
        ]

    def _tally(self) -> Tally:
        return self.collector.tally({line.index: len(line.work) for line in self.lines.values()})

    def _playing(self) -> list[int]:
        return sorted(line.index for line in self._expected())

    def _give_work(self, plan: UpdatePlan) -> None:
        """By the plan, to workers that are here; in async mode each gets two rollouts to play."""
        is_async = self.parallel.mode == "async"
        enough = -(-plan.steps // plan.rollout_steps) + self.parallel.queue_maxsize
        if is_async and len(self.collector.waiting) >= enough:
            return  # the learner is behind: workers wait for it
        for index in plan.to_begin(self._playing(), self._tally()):
            line = self.lines[index]
            while line.is_here and len(line.work) < (IN_FLIGHT if is_async else 1):
                self._begin(line)

    def _begin(self, line: RayLine) -> None:
        index = line.index
        number = self._numbers[index] + len(line.work)
        state = (self._shards.get(index) or None) if line.fresh else None
        line.fresh = False
        answer = line.actor.collect.options(num_returns=2).remote(
            self._weights, self.published, number, state
        )
        line.work.append(Work(*answer))
        line.version = self.published

    # -- hearing from workers ----------------------------------------------------------------------

    def _hear(self, timeout: float) -> None:
        """Wait for the workers' next messages, and handle all that have arrived."""
        waiting: dict[Any, RayLine] = {}
        for line in self.lines.values():
            waiting |= {ref: line for ref in (line.hello, line.asked) if ref is not None}
            waiting |= {line.work[0].done: line} if line.work else {}
        refs = list(waiting)
        if refs and self._ray.wait(refs, num_returns=1, timeout=timeout)[0]:
            for ref in self._ray.wait(refs, num_returns=len(refs), timeout=0)[0]:
                self._handle(waiting[ref], ref)

    def _handle(self, line: RayLine, ref: Any) -> None:
        try:
            if ref == line.hello:
                self._welcome(line, self._ray.get(ref))
            elif ref == line.asked:
                self._note_sign(line, self._ray.get(ref))
            elif line.work and ref == line.work[0].done:
                self._accept(line)
        except self._ray.exceptions.RayError as error:
            self._lose(line, error)

    def _welcome(self, line: RayLine, about: dict[str, Any]) -> None:
        check_versions(about)
        if not about["sees_checkpoints"] and opponent_of_shard(self.config, line.index) == "past":
            log.warning(
                "%s cannot see %s on %s: it plays against itself instead of past opponents; put "
                "the runs on a disk that all nodes share",
                line.name,
                self._checkpoints,
                about["host"],
            )
        log.debug("%s is ready: process %d on %s", line.name, about["pid"], about["host"])
        line.arrive(about)
        self.failures.started()

    def _accept(self, line: RayLine) -> None:
        """A rollout is finished; from now on it counts, once."""
        work = line.work[0]
        done: RolloutDone | None = self._ray.get(work.done)
        if done is None:  # the actor was restarted between two rollouts
            line.work.clear()
            line.fresh = True
            return
        rollout = self._ray.get(work.rollout, timeout=self.parallel.worker_timeout)
        log.debug("%s finished a rollout; %d games ended in it", line.name, len(done.finished))
        line.work.pop(0)
        line.heard = time.monotonic()
        line.rollouts += 1
        line.steps += rollout.num_steps
        line.games += len(done.finished)
        for name, start, end in done.spans:
            line.seconds[name] += end - start
            self._trace.add(line.name, name, start - clock_offset(), end - clock_offset())
        self._numbers[line.index] += 1
        self.failures.finished(line.index)
        self._shards[line.index] = done.shard
        self.totals["rollout_bytes"] += rollout.nbytes
        self.collector.accept(line.index, replace(done, rollout=rollout))

    # -- failures --------------------------------------------------------------------------------

    def _lose(self, line: RayLine, error: Exception) -> None:
        """A worker failed: drop and count what it was playing; Ray restarts it."""
        ray = self._ray
        was_here, was_playing = line.is_here, bool(line.work)
        why = describe(error)
        if isinstance(error, ray.exceptions.RayTaskError):
            log.error("%s failed:\n%s", line.name, error)
        self._trace.mark(line.name, why)
        self.collector.totals["dropped_rollouts"] += len(line.work)
        line.work.clear()
        line.asked, line.fresh = None, True
        line.away_since = time.monotonic() if line.is_here else line.away_since
        is_gone = isinstance(error, ray.exceptions.ActorDiedError)
        if was_here:
            log.warning("%s on %s ended (%s)", line.name, line.about["host"], why)
            if self.failures.failed(line.index, line.name, why, was_playing):
                self._numbers[line.index] = 0
                self._shards[line.index] = without_games(self._shards.get(line.index, {}))
        elif is_gone:
            self.failures.failed_to_start(line.name, why)
        if is_gone:  # for good: it could not even be set up
            self._add(line.index)
        else:
            line.hello = line.actor.hello.remote()  # answered when it is back

    def _look_after(self) -> None:
        """Ask for signs of life, end workers that give none, and use CPUs that joined."""
        now, limit = time.monotonic(), self.parallel.worker_timeout
        if not self._here() and all(now - (x.away_since or now) > limit for x in self._lines):
            self._wait_for(1)
        for line in self._lines:
            if line.asked is not None and now - line.asked_at > limit:
                self._end_hung(line, now - line.asked_at)
            elif line.work and line.asked is None and now - line.last_sign > limit / 4:
                line.asked = line.actor.silent_for.options(concurrency_group="life").remote()
                line.asked_at = now
        if self.parallel.elastic and now - self._looked_for_nodes > GROWTH_INTERVAL:
            self._looked_for_nodes = now
            self._grow()

    def _note_sign(self, line: RayLine, silence: float) -> None:
        line.asked, line.heard = None, time.monotonic() - silence
        if line.work and time.monotonic() - line.last_sign > self.parallel.worker_timeout:
            self._end_hung(line, silence)

    def _end_hung(self, line: RayLine, silence: float) -> None:
        """End a worker that hangs; what it was playing will be reported as lost."""
        log.warning("%s gave no sign of life for %.0f s", line.name, silence)
        self._ray.kill(line.actor, no_restart=False)
        line.heard = line.asked_at = time.monotonic()

    @property
    def workers_here(self) -> int:
        me = socket.gethostname()
        return sum(line.about.get("host") == me for line in self._lines)

    @property
    def _lines(self) -> list[RayLine]:
        return list(self.lines.values())

    def _grow(self) -> None:
        """Add a worker for every CPU that joined; remove those whose node has left again."""
        for line in self._lines[self.parallel.num_workers :]:
            if line not in self._expected():
                self._ray.kill(line.actor)
                del self.lines[line.index]
        for index in range(self.parallel.num_workers, cluster_cpus() - 1):
            if index not in self.lines:
                self._add(index)
                log.warning("a CPU has joined the cluster: %s starts", self.lines[index].name)

    # -- what is going on ------------------------------------------------------------------------

    def cluster_now(self) -> tuple[list[dict[str, Any]], dict[str, float]]:
        """The nodes and their object stores; asked for at most once a second."""
        if time.monotonic() - self._asked_at > 1.0:
            self._cluster_now = cluster_nodes(), store_use()
            self._asked_at = time.monotonic()
        return self._cluster_now

    def get_statistics(self) -> dict[str, Any]:
        """Steps, games, lag, what each worker does with its time; nodes, and bytes moved."""
        return {**ray_statistics(self), "learner_waited": self.waited}
