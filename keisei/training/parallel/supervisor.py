"""The thread that looks after the workers: gives them work, and replaces those that fail.

Only it talks to the processes. The manager says what it wants (rollouts, workers that leave, how
many there are) and waits on `changed` until it is so. A worker that dies while the learner is
learning is replaced at once, and every wait has a limit.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from pathlib import Path
from typing import Any

from keisei.config_schema import AppConfig
from keisei.core.learner import Learner
from keisei.core.precision import acting_network
from keisei.core.runtime import tracing_pays
from keisei.errors import KeiseiError
from keisei.processes.line import describe_exit, is_stopped, was_killed
from keisei.processes.machine import choose_device
from keisei.processes.other_load import FreeCores
from keisei.processes.shared_memory import SharedArrays
from keisei.runs.trace import Trace
from keisei.selfplay.plan import FailurePolicy, ParallelError, Tally, UpdatePlan
from keisei.selfplay.shard import without_games
from keisei.training.parallel.acting_weights import ActingWeights
from keisei.training.parallel.base_manager import START_TIMEOUT
from keisei.training.parallel.central_policy import request_layout
from keisei.training.parallel.experience_collector import ExperienceCollector
from keisei.training.parallel.messages import (
    Collect,
    Failed,
    Hello,
    Ready,
    RolloutDone,
    Stop,
    Welcome,
)
from keisei.training.parallel.model_sync import ModelSynchronizer, pack_weights
from keisei.training.parallel.slots import slot_layout, slots_needed
from keisei.training.parallel.worker_communicator import (
    INFERENCE,
    WorkerCommunicator,
    WorkerLine,
    start_worker,
)
from keisei.training.parallel.worker_status import status_layout

log = logging.getLogger(__name__)


class Supervisor:
    """The workers of one manager, from start to shutdown."""

    def __init__(
        self,
        config: AppConfig,
        agent: Learner,
        acting: ActingWeights,
        shards: dict[int, dict[str, Any]],
        checkpoints: Path | None,
        trace: Trace,
    ) -> None:
        self.config = config
        self.parallel = config.training.parallel
        self.shards = shards  # the games of each shard after its newest rollout
        self._agent = agent
        self._acting = acting
        self._checkpoints = checkpoints
        self._trace = trace
        self.num_workers = self.parallel.num_workers  # wanted
        self.capacity = 2 * self.num_workers + 8
        self.is_central = self.parallel.inference == "central" or (
            self.parallel.inference == "auto" and choose_device(config.env.device).type != "cpu"
        )
        self._allocate()
        games = self.parallel.num_envs_per_worker
        self._traced = not self.is_central and tracing_pays(acting_network(config), games)
        self.changed = threading.Condition()
        self.leaving: set[int] = set()  # workers whose process is to be renewed
        self.plan: UpdatePlan | None = None  # of the update that the learner waits for
        self.failures = FailurePolicy(self.parallel.max_restarts)
        self._free = FreeCores() if self.parallel.elastic else None
        self._paused: set[int] = set()
        self._packed: Any = None
        self._error: Exception | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="keisei-supervisor", daemon=True)

    def _allocate(self) -> None:
        """Allocate shared memory and lines, or say why that failed."""
        try:
            with contextlib.ExitStack() as taken:
                slots = SharedArrays(slot_layout(self.config, slots_needed(self.parallel)))
                taken.callback(slots.close)
                self.collector = ExperienceCollector(self.parallel.max_policy_lag, slots)
                self.status = SharedArrays(status_layout(self.capacity))
                taken.callback(self.status.close)
                self.synchronizer = ModelSynchronizer(self._acting.network)
                taken.callback(self.synchronizer.shared.close)
                self._descriptors = {
                    "slots": [slots.fd],
                    "status": [self.status.fd],
                    "weights": [self.synchronizer.shared.fd],
                }
                if self.is_central:
                    self._take_lines(taken)
                self.communicator = WorkerCommunicator()
                taken.callback(self.communicator.close)
                self._taken = taken.pop_all()
        except OSError as error:
            raise ParallelError(
                f"the workers' shared memory could not be allocated ({error}): use fewer workers "
                "or games, or give the process more memory or file descriptors"
            ) from error

    def _take_lines(self, taken: contextlib.ExitStack) -> None:
        """Allocate what central inference needs: memory for requests, a line to each worker."""
        requests = SharedArrays(request_layout(self.config, self.capacity))
        taken.callback(requests.close)
        self._descriptors["requests"] = [requests.fd]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        for _ in range(self.capacity):
            server, worker = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._pairs.append((taken.enter_context(server), taken.enter_context(worker)))

    def start(self) -> None:
        """Begin to look after the workers."""
        self._thread.start()

    def shutdown(self) -> None:
        """Stop all processes and give the memory back."""
        self._stopping = True
        self.communicator.wake()
        if self._thread.ident is not None:
            self._thread.join(timeout=30)
        log.debug(
            "all processes are stopped: %s", [one.id for one in self.communicator.lines.values()]
        )
        self.communicator.stop(list(self.communicator.lines.values()))
        self._taken.close()

    def raise_error(self) -> None:
        """Raise the error that ended the workers for good, if there was one."""
        if self._error is not None:
            raise self._error

    # -- what the manager wants ------------------------------------------------------------------

    def publish(self) -> None:
        """Give workers the acting weights with their next rollout."""
        self.synchronizer.publish(self._acting.version)
        log.debug("version %d of the weights is there for all workers", self._acting.version)
        if not self.parallel.use_shared_memory:
            self._packed = pack_weights(self._acting.network, self.parallel.compression_enabled)

    def tally(self) -> Tally:
        """What there is for an update."""
        return self.collector.tally(
            {line.index: len(line.slots) for line in self.communicator.workers}
        )

    @property
    def playing(self) -> list[int]:
        """The shards that take part; the process of one may just be replaced."""
        return [index for index in range(self.num_workers) if index not in self._paused]

    @property
    def free_cores(self) -> int | None:
        """How many workers may play at a time, if that depends on other programs (elastic)."""
        return self._free.count(time.monotonic()) if self._free else None

    def is_plan_met(self) -> bool:
        """Is all there that the learner waits for?"""
        if not self.playing:
            raise ParallelError("all workers are paused: call resume_workers() first")
        return not self.plan or self.plan.is_met(self.playing, self.tally())

    def pause(self, line: WorkerLine, paused: bool) -> None:
        """Give a worker (or its replacement) no more work, or work again."""
        line.paused = paused
        (self._paused.add if paused else self._paused.discard)(line.index)

    def all_ready(self) -> bool:
        """Are all processes there and ready?"""
        lines = self.communicator.lines
        wanted = {*range(self.num_workers), *([INFERENCE] if self.is_central else [])}
        return wanted <= set(lines) and all(line.ready for line in lines.values())

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping:
                with self.changed:
                    self._have_workers()
                    self._give_work()
                messages = self.communicator.receive(0.2)
                with self.changed:
                    for line, message in messages:
                        self._handle(line, message)
                    self._replace_late()
                    self.changed.notify_all()
        except Exception as error:
            if not isinstance(error, KeiseiError):
                log.exception("the supervisor failed")
                error = ParallelError(f"the supervisor failed: {error!r}")
            with self.changed:
                self._error = error
                self.changed.notify_all()

    def _have_workers(self) -> None:
        """Start missing workers, and let those leave that are not wanted."""
        if self.is_central and INFERENCE not in self.communicator.lines:
            self._start(INFERENCE)
        for index in range(self.num_workers):
            if index not in self.communicator.lines:
                self._start(index)
        for line in self.communicator.workers:
            self._look_at_age(line)
            superfluous = line.index >= self.num_workers
            if line.is_idle and (superfluous or line.index in self.leaving):
                log.debug("%s is told to leave", line.id)
                line.leaving = True
                self.leaving.discard(line.index)
                self.communicator.send(line, Stop())

    def _look_at_age(self, line: WorkerLine) -> None:
        """A worker that has done its share is renewed."""
        games, steps = self.parallel.games_per_worker, self.parallel.worker_reset_interval
        is_old = (games and line.games >= games) or (steps and line.steps >= steps)
        if is_old and not line.leaving:
            self.leaving.add(line.index)

    def _start(self, index: int) -> None:
        self.status["status"][index] = 0
        self.status["status"][index, 0] = time.monotonic()
        descriptors = dict(self._descriptors)
        if self.is_central:
            ends = [a.fileno() for a, _ in self._pairs]
            mine = ends if index == INFERENCE else [self._pairs[index][1].fileno()]
            descriptors["requests"] = [*descriptors["requests"], *mine]
        timeout = self.parallel.worker_timeout
        try:
            line = start_worker(index, descriptors, timeout)
        except OSError as error:
            raise ParallelError(f"worker {index} could not be started: {error}") from error
        log.debug("%s starts", line.id)
        line.paused = index in self._paused
        self.communicator.lines[index] = line

    def _give_work(self) -> None:
        """Give a slot to each idle worker that should play, as far as there are cores for them."""
        wanted = self._to_begin()
        free = self.free_cores
        playing = sum(bool(line.slots) for line in self.communicator.workers)
        room = self.capacity if free is None else free - playing
        # Those that have played least go first: else the others' games would never go on.
        for line in sorted(self.communicator.workers, key=lambda line: line.rollouts):
            if room <= 0:
                return  # those in work will be back soon
            if not line.is_idle or line.index not in wanted:
                continue
            if not self.collector.free and self.plan and not self.is_plan_met():
                self.collector.make_room()  # the learner wants more than there are slots
            slot = self.collector.take_slot()
            if slot is None:
                return  # the learner is behind: workers wait for it
            line.slots.append(slot)
            room -= 1
            version = self.synchronizer.version
            weights = self._packed if line.version != version else None
            line.version = version
            log.debug("%s begins a rollout with version %d in slot %d", line.id, version, slot)
            self.communicator.send(line, Collect(slot, version, weights))

    def _to_begin(self) -> list[int]:
        """The shards that should play: by the plan; in async mode also without one."""
        if self.parallel.mode == "async":
            return [index for index in self.playing if index not in self.leaving]
        return self.plan.to_begin(self.playing, self.tally()) if self.plan else []

    def _handle(self, line: WorkerLine, message: object | None) -> None:
        match message:
            case Hello():
                self.communicator.send(line, self._welcome(line))
            case Ready():
                log.debug("%s is ready", line.id)
                line.ready = True
                self.failures.started()
            case RolloutDone():
                self._accept(line, message)
            case Failed():
                log.error("%s failed:\n%s", line.id, message.traceback)
                self._replace(line, "an error, see above")
            case _ if line.leaving:
                log.debug("%s has left", line.id)
                self.communicator.end(line, timeout=1)
            case _:
                self._replace(line, None)

    def _welcome(self, line: WorkerLine) -> Welcome:
        return Welcome(
            self.config,
            line.index,
            self.collector.num_slots,
            self.capacity,
            self._traced,
            self.shards.get(line.index) or None,
            self._checkpoints,
        )

    def _accept(self, line: WorkerLine, done: RolloutDone) -> None:
        assert done.slot is not None
        line.slots.remove(done.slot)
        log.debug("%s finished a rollout; %d games ended in it", line.id, len(done.finished))
        line.rollouts += 1
        line.steps += self.parallel.rollout_steps
        line.games += len(done.finished)
        self.failures.finished(line.index)
        self.shards[line.index] = done.shard
        self.collector.accept(line.index, done)
        self.collector.drop_old(self._agent.version)
        for name, start, end in done.spans:
            self._trace.add(line.name, name, start, end)

    # -- failures --------------------------------------------------------------------------------

    def _replace_late(self) -> None:
        now = time.monotonic()
        for line in list(self.communicator.lines.values()):
            silence = now - self.status["status"][line.index, 0]
            if silence <= self.parallel.worker_timeout:
                continue
            # Until it is ready it has more time, but a process that was halted does not use it.
            if line.ready or silence > START_TIMEOUT or is_stopped(line.process.pid):
                self._replace(line, f"no sign of life for {silence:.0f} s")

    def _replace(self, line: WorkerLine, why: str | None) -> None:
        """A process failed: drop its unfinished rollout, and start another that plays it again.

        The games continue from their last finished rollout, so in sync mode a failure changes
        nothing. Games that fail twice by themselves are given up.
        """
        if why:
            by_itself = not is_stopped(line.process.pid)
            self.communicator.end(line)
        else:
            code = self.communicator.end(line, timeout=0.5)
            why, by_itself = describe_exit(code), not was_killed(code)
        self._trace.mark(line.name, why)
        self.collector.free += line.slots
        if by_itself and not line.ready:
            self.failures.failed_to_start(line.name, why)
        blames_games = by_itself and bool(line.slots)
        if self.failures.failed(line.index, line.name, why, blames_games):
            self.shards[line.index] = without_games(self.shards.get(line.index, {}))
        log.warning("%s ended (%s): a new one takes its place", line.id, why)
