"""The manager of worker processes: keeps them playing, and hands over their rollouts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from keisei.core.runtime import share_cores
from keisei.selfplay.plan import ParallelError, UpdatePlan
from keisei.training.parallel.base_manager import BaseManager
from keisei.training.parallel.experience_collector import Finished
from keisei.training.parallel.statistics import statistics
from keisei.training.parallel.supervisor import Supervisor
from keisei.training.parallel.worker_communicator import WorkerCommunicator, WorkerLine


class ParallelManager(BaseManager):
    """The workers are processes of this machine; rollouts and weights are in shared memory."""

    _supervisor: Supervisor | None = None  # while it is running

    # -- life ----------------------------------------------------------------------------------

    def _start(self) -> None:
        if self.parallel.backend != "process":
            raise ParallelError(
                f"a ParallelManager runs processes, not backend: {self.parallel.backend}; "
                "make_manager(config, agent) makes the manager that the settings ask for"
            )
        self._supervisor = Supervisor(
            self.config, self.agent, self._acting, self._shards, self._checkpoints, self._trace
        )
        self._publish()
        self._supervisor.start()
        self._wait_for(self._supervisor.all_ready)
        self._share_cores()

    @property
    def is_running(self) -> bool:
        return self._supervisor is not None

    @property
    def _running(self) -> Supervisor:
        if self._supervisor is None:
            raise ParallelError("the workers are not running: call start_workers() first")
        return self._supervisor

    def shutdown(self) -> None:
        if self._supervisor:
            self._supervisor.shutdown()
            self._supervisor = None
            share_cores(0)

    # -- work ----------------------------------------------------------------------------------

    def _publish(self) -> None:
        self._running.publish()

    def _collect(self, steps: int, timeout: float | None) -> list[Finished]:
        supervisor, collector = self._running, self._running.collector
        version = self.agent.version
        with supervisor.changed:
            collector.release()
            collector.drop_old(version)
            supervisor.plan = UpdatePlan.of(self.parallel, steps)
            supervisor.communicator.wake()
            self._wait_for(supervisor.is_plan_met, timeout)
            supervisor.plan = None
            limit = steps if self.parallel.mode == "async" else None
            taken = collector.take(version, limit)
            supervisor.communicator.wake()
        return taken

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

    @property
    def communicator(self) -> WorkerCommunicator:
        """The lines to the processes; `communicator.get_queue_info()` says what is on its way."""
        return self._running.communicator

    @property
    def workers(self) -> list[WorkerLine]:
        """The workers as they are now, in order: name, process, what each has done."""
        return self.communicator.workers if self.is_running else []

    @property
    def workers_here(self) -> int:
        return self._running.num_workers

    def get_statistics(self) -> dict[str, Any]:
        if self._supervisor is None:
            return {"is_running": False}
        with self._supervisor.changed:
            return {**statistics(self._supervisor), "learner_waited": self.waited}
