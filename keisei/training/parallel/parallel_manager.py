"""The manager: keeps the workers playing, replaces those that fail, and hands over rollouts."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from keisei.config_schema import AppConfig
from keisei.core.ppo_agent import PPOAgent
from keisei.core.rollout import Rollout
from keisei.errors import KeiseiError
from keisei.shogi import FinishedGame, ShogiGame
from keisei.shogi.rules import START_SFEN
from keisei.training.parallel.messages import Collect, Failed, Ready, RolloutDone, Welcome
from keisei.training.parallel.model_sync import ModelSynchronizer
from keisei.training.parallel.shared_memory import SharedArrays
from keisei.training.parallel.slots import rollout_in, slot_layout
from keisei.training.parallel.worker_communicator import (
    WorkerCommunicator,
    WorkerLine,
    describe_exit,
    start_worker,
)
from keisei.training.parallel.worker_status import FIELDS, STATUS_LAYOUT

log = logging.getLogger(__name__)

START_TIMEOUT = 120.0
MAX_FAILED_STARTS = 3  # in a row; what fails so early will fail again


class ParallelError(KeiseiError):
    """The workers cannot go on; the message says why."""


class ParallelManager:
    """Worker processes that play shards of a run with the agent's weights.

        with ParallelManager(config, agent) as manager:
            rollouts = manager.collect_experiences()
            ...                                  # learn
            manager.synchronize_models()

    The rollouts look at shared memory: use them before the next `collect_experiences`.
    """

    def __init__(self, config: AppConfig, agent: PPOAgent) -> None:
        self.config = config
        self.agent = agent
        self.parallel = config.training.parallel
        self.communicator = WorkerCommunicator()
        self.finished_games: list[FinishedGame] = []
        self._current_game: tuple[str, list[str]] = (START_SFEN, [])
        self._results: dict[int, Rollout] = {}
        self.totals: Counter[str] = Counter()
        self._failed_starts = 0
        self.is_running = False

    # -- life ----------------------------------------------------------------------------------

    def start_workers(self, incarnation: int = 0) -> None:
        """Start all workers and wait until they are ready; each incarnation plays other games."""
        if self.is_running:
            return
        count = self.parallel.num_workers
        self._num_slots = count + self.parallel.queue_maxsize
        self._slots = SharedArrays(slot_layout(self.config, self._num_slots))
        self._status = SharedArrays(STATUS_LAYOUT)
        self._synchronizer = ModelSynchronizer(self.agent.network)
        self._free = list(range(self._num_slots))
        self._held: list[int] = []  # slots of rollouts that the caller has
        self.synchronize_models()
        self.is_running = True
        try:
            for index in range(count):
                self._start(index, incarnation)
            self._await_ready()
        except BaseException:
            self.shutdown()
            raise

    def _start(self, index: int, incarnation: int) -> None:
        memory = {
            "slots": self._slots.fd,
            "weights": self._synchronizer.shared.fd,
            "status": self._status.fd,
        }
        self._status["status"][index, 0] = time.monotonic()
        try:
            line = start_worker(index, incarnation, memory)
        except OSError as error:
            raise ParallelError(f"worker {index} could not be started: {error}") from error
        self.communicator.lines[index] = line
        welcome = Welcome(self.config, index, incarnation, self._num_slots, os.getpid())
        self.communicator.send(line, welcome)

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while late := [line.name for line in self.communicator.lines.values() if not line.ready]:
            if time.monotonic() > deadline:
                raise ParallelError(f"not ready after {START_TIMEOUT:.0f} s: {', '.join(late)}")
            self._handle_messages(0.5)

    def shutdown(self) -> None:
        """Stop all workers and give the memory back; safe to call twice."""
        if not self.is_running:
            return
        self.is_running = False
        self.communicator.stop(self.communicator.lines.values())
        self._results = {}
        for shared in (self._slots, self._status, self._synchronizer.shared):
            shared.close()

    stop_workers = shutdown

    def __enter__(self) -> ParallelManager:
        self.start_workers()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    # -- work ----------------------------------------------------------------------------------

    def synchronize_models(self) -> None:
        """Publish the agent's weights; workers take them at the start of their next rollout."""
        self._synchronizer.publish(self.agent.version)

    sync_model_to_workers = synchronize_models

    def collect_experiences(
        self, target_steps: int | None = None, timeout: float | None = None
    ) -> list[Rollout]:
        """At least `target_steps` steps (one rollout from every worker, if not given).

        In order of worker, so that the same seed and weights give the same list. After `timeout`
        seconds it returns what there is.
        """
        if not self.is_running:
            raise ParallelError("the workers are not running: call start_workers() first")
        self._free += self._held
        self._held = []
        self.finished_games = []
        deadline = None if timeout is None else time.monotonic() + timeout
        per_round = self.parallel.num_envs_per_worker * self.parallel.rollout_length
        rollouts: list[Rollout] = []
        while True:
            rollouts += self._collect_round(deadline)
            enough = target_steps is None or len(rollouts) * per_round >= target_steps
            if enough or (deadline is not None and time.monotonic() >= deadline):
                return rollouts

    def _collect_round(self, deadline: float | None) -> list[Rollout]:
        """One rollout from every worker that is not paused."""
        self._results = {}
        self._wanted = {i for i, line in self.communicator.lines.items() if not line.paused}
        if not self._wanted:
            raise ParallelError("all workers are paused: call resume_workers() first")
        while self._wanted - set(self._results):
            if deadline is not None and time.monotonic() >= deadline:
                break
            self._give_work()
            self._handle_messages(0.2)
            self._replace_late_workers()
        return [self._results[index] for index in sorted(self._results)]

    def _give_work(self) -> None:
        """A slot to fill for each worker that has yet to bring a rollout."""
        for index, line in self.communicator.lines.items():
            idle = line.ready and not line.slots and not line.paused
            if idle and index in self._wanted and index not in self._results and self._free:
                slot = self._free.pop(0)
                line.slots.append(slot)
                self.communicator.send(line, Collect(slot))

    def _handle_messages(self, timeout: float) -> None:
        for line, message in self.communicator.receive(timeout):
            match message:
                case Ready():
                    line.ready = True
                    self._failed_starts = 0
                case RolloutDone():
                    self._accept(line, message)
                case Failed():
                    log.error("%s failed:\n%s", line.name, message.traceback)
                    self._replace(line, "an error, see above")
                case _:
                    self._replace(line, None)

    def _accept(self, line: WorkerLine, done: RolloutDone) -> None:
        line.slots.remove(done.slot)
        self._held.append(done.slot)
        rollout = done.rollout or rollout_in(self._slots, done.slot)
        if done.rollout is None:
            legal = rollout.legal[: done.legal_count] if done.legal is None else done.legal
            rollout.legal, rollout.version = legal, done.version
        self._results[line.index] = rollout
        self.finished_games += done.finished
        if line.index == 0:
            self._current_game = done.game
        self.totals["rollouts"] += 1
        self.totals["steps"] += rollout.num_steps
        self.totals["games"] += len(done.finished)

    # -- failures --------------------------------------------------------------------------------

    def _replace_late_workers(self) -> None:
        now = time.monotonic()
        for line in list(self.communicator.lines.values()):
            silence = now - self._status["status"][line.index, 0]
            limit = self.parallel.worker_timeout if line.ready else START_TIMEOUT
            if silence > limit:
                self._replace(line, f"no sign of life for {silence:.0f} s")

    def _replace(self, line: WorkerLine, why: str | None) -> None:
        """Put a new worker in the place of one that failed; its unfinished rollout is dropped."""
        code = self.communicator.kill(line)
        why = why or describe_exit(code)
        self._free += line.slots
        self.totals["restarts"] += 1
        self._failed_starts += not line.ready
        if self._failed_starts >= MAX_FAILED_STARTS:
            raise ParallelError(
                f"{line.name} ended before it was ready ({why}), the "
                f"{MAX_FAILED_STARTS}. worker in a row"
            )
        if self.totals["restarts"] > self.parallel.max_restarts:
            raise ParallelError(
                f"{line.name} ended ({why}), and workers were replaced "
                f"{self.parallel.max_restarts} times already (training.parallel.max_restarts)"
            )
        log.warning("%s ended (%s): a new one takes its place", line.name, why)
        self._start(line.index, line.incarnation + 1)

    # -- control ---------------------------------------------------------------------------------

    def pause_workers(self, indices: Sequence[int] | None = None) -> None:
        """Give some workers (or all) no more work."""
        for line in self._chosen(indices):
            line.paused = True

    def resume_workers(self, indices: Sequence[int] | None = None) -> None:
        """Let paused workers play again."""
        for line in self._chosen(indices):
            line.paused = False

    def reset_workers(self, indices: Sequence[int] | None = None) -> None:
        """Start some workers (or all) afresh, with new games."""
        lines = self._chosen(indices)
        self.communicator.stop(lines)
        for line in lines:
            self._free += line.slots
            self._start(line.index, line.incarnation + 1)
        self._await_ready()

    def scale_to(self, count: int) -> None:
        """Have `count` workers from now on."""
        if not 1 <= count <= self._num_slots:
            raise ParallelError(f"scale_to({count}): 1 to {self._num_slots} workers can run here")
        lines = self.communicator.lines
        leaving = [line for index, line in lines.items() if index >= count]
        self.communicator.stop(leaving)
        self._free += [slot for line in leaving for slot in line.slots]
        for index in range(count):
            if index not in lines:
                self._start(index, self.totals["restarts"] + 1)
        self._await_ready()

    def _chosen(self, indices: Sequence[int] | None) -> list[WorkerLine]:
        lines = self.communicator.lines
        unknown = set(indices or ()) - set(lines)
        if unknown:
            raise ParallelError(f"there is no worker {sorted(unknown)}; there are {sorted(lines)}")
        return list(lines.values()) if indices is None else [lines[index] for index in indices]

    # -- what is going on ------------------------------------------------------------------------

    def current_game(self) -> ShogiGame:
        """The first worker's first game, as it stood at the end of its newest rollout."""
        start, moves = self._current_game
        return ShogiGame.from_moves(start, moves, move_limit=self.config.env.move_limit)

    def get_statistics(self) -> dict[str, Any]:
        """Steps, games, restarts, and what each worker does with its time."""
        workers = {}
        for index, line in self.communicator.lines.items():
            row = dict(zip(FIELDS, self._status["status"][index].tolist(), strict=True))
            age = time.monotonic() - line.started
            row["silent_for"] = time.monotonic() - row.pop("beat")
            row["steps_per_s"] = row["steps"] / age
            workers[index] = {**row, "pid": line.process.pid, "incarnation": line.incarnation}
        return {
            "is_running": self.is_running,
            "active_workers": len(self.communicator.lines),
            **{f"total_{name}": self.totals[name] for name in ("steps", "games", "rollouts")},
            "restarts": self.totals["restarts"],
            "workers": workers,
            "queue_info": self.communicator.get_queue_info(),
            "synchronization": self._synchronizer.get_sync_stats() if self.is_running else {},
        }

    get_status = get_statistics
