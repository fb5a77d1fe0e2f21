"""A worker process: plays one shard, and writes its rollouts into shared memory."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch

from keisei.core.policy import Evaluation, evaluate
from keisei.core.ppo_agent import build_network
from keisei.core.rollout import Rollout
from keisei.training.parallel.messages import (
    Collect,
    Failed,
    Ready,
    RolloutDone,
    Stop,
    Welcome,
)
from keisei.training.parallel.model_sync import ModelReceiver
from keisei.training.parallel.shared_memory import SharedArrays
from keisei.training.parallel.slots import rollout_in, slot_layout
from keisei.training.parallel.worker_status import WorkerStatus
from keisei.training.shard import make_shard


class ParentGone(Exception):
    """The manager's process is no more."""


class SelfPlayWorker:
    """Waits for `Collect`, plays, answers `RolloutDone`; until `Stop` or its parent's end."""

    def __init__(
        self, connection: Connection, slots_fd: int, weights_fd: int, status_fd: int
    ) -> None:
        self._connection = connection
        welcome = connection.recv()
        assert isinstance(welcome, Welcome)
        self._welcome, config = welcome, welcome.config
        name_process(f"keisei-worker-{welcome.index}")
        torch.set_num_threads(1)
        self._network = build_network(config.model)
        self._receiver = ModelReceiver(self._network, weights_fd)
        self._slots = SharedArrays(slot_layout(config, welcome.num_slots), slots_fd)
        self._status = WorkerStatus(status_fd, welcome.index)
        self._shard = make_shard(config, welcome.index, welcome.incarnation)
        self._shares_memory = config.training.parallel.use_shared_memory
        connection.send(Ready(os.getpid()))

    def run(self) -> None:
        """Serve until told to stop."""
        while True:
            with self._status.spending("waiting"):
                message = self._next()
            if isinstance(message, Stop):
                return
            assert isinstance(message, Collect)
            self._connection.send(self._collect(message.slot))

    def _next(self) -> object:
        # A beat while waiting too: who waits for work is alive.
        while not self._connection.poll(0.5):
            self._status.beat()
        return self._connection.recv()

    def _collect(self, slot: int) -> RolloutDone:
        with self._status.spending("syncing"):
            version = self._receiver.update()
        rollout = rollout_in(self._slots, slot)
        room = rollout.legal
        with self._status.spending("busy"):
            finished = self._shard.collect(self._evaluate, rollout, version)
        self._status.count(rollout.num_steps, len(finished))
        game = self._shard.games.moves_of(0)
        if not self._shares_memory:
            return RolloutDone(slot, version, 0, finished, game, rollout=_private(rollout))
        overflow = None if np.shares_memory(rollout.legal, room) else rollout.legal
        return RolloutDone(slot, version, len(rollout.legal), finished, game, legal=overflow)

    def _evaluate(
        self,
        observations: np.ndarray[tuple[int, int], np.dtype[np.uint8]],
        legal: np.ndarray[tuple[int], np.dtype[np.int16]],
        offsets: np.ndarray[tuple[int], np.dtype[np.int64]],
    ) -> Evaluation:
        self._status.beat()
        if os.getppid() != self._welcome.parent:
            raise ParentGone
        return evaluate(self._network, observations, legal, offsets)


def _private(rollout: Rollout) -> Rollout:
    """A copy that does not look at shared memory."""
    return Rollout(
        **{
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in vars(rollout).items()
        }
    )


def name_process(name: str) -> None:
    """The name that process lists show (Linux; 15 letters at most)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(name[:15])


def main() -> None:
    """Run a worker; the manager starts this in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the manager's business
    parser = argparse.ArgumentParser()
    for name in ("connection", "slots", "weights", "status"):
        parser.add_argument(f"--{name}", type=int, required=True)
    fds = parser.parse_args()
    connection = Connection(fds.connection)
    try:
        SelfPlayWorker(connection, fds.slots, fds.weights, fds.status).run()
    except (EOFError, BrokenPipeError, ConnectionResetError, ParentGone):
        pass  # the manager is gone: there is nobody to work for
    except Exception:
        with contextlib.suppress(OSError):
            connection.send(Failed(traceback.format_exc()))
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
