"""A worker on Ray: plays one shard in an actor; the same shard code as everywhere."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import keisei
from keisei.config_schema import AppConfig
from keisei.core.policy import Evaluation, evaluate
from keisei.core.precision import acting_network
from keisei.core.rollout import Rollout
from keisei.core.runtime import Forward, traced, tracing_pays
from keisei.processes.machine import keep_freed_memory
from keisei.selfplay.opponents import Opponent
from keisei.selfplay.shard import SelfPlayShard, make_shard, new_rollout
from keisei.shogi import Positions
from keisei.training.parallel.messages import RolloutDone
from keisei.training.parallel.model_sync import unpack_weights
from keisei.training.parallel.worker_status import FIELDS, WorkerStatus


def clock_offset() -> float:
    """What to add to `time.monotonic()` of this machine for the time of day."""
    return time.time() - time.monotonic()


class RayWorker:
    """The body of the actor.

    It has two threads: Ray runs `collect` in one and `silent_for` in another, so that it gives
    signs of life while it plays. The thread that plays games makes them, as rsshogi requires.
    """

    def __init__(self, config: AppConfig, index: int, checkpoints: Path | None) -> None:
        keep_freed_memory()
        self._config, self._index = config, index
        self._network = acting_network(config)
        self._opponent = Opponent(config, index, checkpoints)
        self._sees_checkpoints = checkpoints is None or checkpoints.is_dir()
        self._forward: Forward | None = None
        self._shard: SelfPlayShard | None = None
        self._next = -1  # the number of the rollout that the shard's games are ready for
        self._version = -1
        self._row = np.zeros(len(FIELDS))
        self._status = WorkerStatus(self._row)
        self._idle_since = time.monotonic()

    def hello(self) -> dict[str, Any]:
        """Its process, host and versions; the answer says that it is there."""
        import ray

        games = self._config.training.parallel.num_envs_per_worker
        if self._forward is None and tracing_pays(self._network, games):
            self._forward = traced(self._network, games)
        self._idle_since = time.monotonic()
        return {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "node": ray.get_runtime_context().get_node_id(),
            "versions": (keisei.__version__, torch.__version__),
            "sees_checkpoints": self._sees_checkpoints,
        }

    def silent_for(self) -> float:
        """Seconds since the last move; asked for while it plays."""
        return time.monotonic() - float(self._row[0])

    def collect(
        self,
        weights: npt.NDArray[Any],
        version: int,
        number: int,
        state: dict[str, Any] | None,
    ) -> tuple[RolloutDone | None, Rollout | None]:
        """Play rollout `number` of the shard.

        `state` is where the games stand before it; without one they stand there already. A worker
        that was restarted in between does not have them and answers (None, None).
        """
        torch.set_num_threads(1)  # of the calling thread
        self._status.spent("waiting", self._idle_since)
        if state is not None or number == 0:
            self._shard = make_shard(self._config, self._index, state)
        elif number != self._next:
            return None, None
        assert self._shard is not None
        self._next = -1  # until it is played whole
        with self._status.spending("syncing"):
            if version != self._version:
                unpack_weights(self._network, weights.copy())  # PyTorch wants to own its memory
                self._version = version
        with self._status.spending("busy"):
            rollout = new_rollout(self._config)
            opponent = self._opponent.policy(version)
            finished = self._shard.collect(
                self._policy, rollout, version, opponent, self._status.count_steps
            )
        self._status.count(games=len(finished))
        self._next, self._idle_since = number + 1, time.monotonic()
        offset = clock_offset()
        spans = [
            (name, start + offset, end + offset) for name, start, end in self._status.take_spans()
        ]
        state, scores = self._shard.state_dict(), self._shard.scores
        return RolloutDone(None, version, finished, state, scores, spans), rollout

    def _policy(self, positions: Positions) -> Evaluation:
        evaluation = evaluate(self._network, positions, self._forward)
        self._status.beat()
        self._status.count(evaluations=len(positions))
        return evaluation
