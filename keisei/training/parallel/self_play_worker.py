"""A worker process: plays one shard, and writes its rollouts into shared memory."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection

import numpy as np
import torch

from keisei.core.policy import Evaluation, Policy, evaluate
from keisei.core.precision import acting_network
from keisei.core.runtime import traced
from keisei.processes.machine import keep_freed_memory, name_process
from keisei.processes.shared_memory import SharedArrays
from keisei.selfplay.opponents import Opponent
from keisei.selfplay.shard import make_shard
from keisei.shogi import Positions
from keisei.training.parallel.central_policy import CentralPolicy, VersionGone, request_layout
from keisei.training.parallel.messages import (
    Collect,
    Failed,
    Hello,
    Ready,
    RolloutDone,
    Stop,
    Welcome,
)
from keisei.training.parallel.model_sync import ModelReceiver, unpack_weights
from keisei.training.parallel.slots import rollout_in, slot_layout
from keisei.training.parallel.worker_status import WorkerStatus, shared_row

Descriptors = dict[str, list[int]]


class Leave(Exception):
    """There is nothing more to do: told to stop, or the manager is gone."""


class SelfPlayWorker:
    """Waits for `Collect`, plays, and answers `RolloutDone`, until `Stop` or its parent's end."""

    def __init__(self, connection: Connection, welcome: Welcome, fds: Descriptors) -> None:
        config, index = welcome.config, welcome.index
        self._connection = connection
        self._parent = os.getppid()  # it goes with the manager
        self._status = WorkerStatus(shared_row(fds["status"][0], welcome.capacity, index))
        self._slots = SharedArrays(slot_layout(config, welcome.num_slots), fds["slots"][0])
        self._shares_memory = config.training.parallel.use_shared_memory
        self._shard = make_shard(config, index, welcome.shard)
        self._state = self._shard.state_dict()
        self._opponent = Opponent(config, index, welcome.checkpoints)
        if "requests" in fds:
            layout = request_layout(config, welcome.capacity)
            requests = SharedArrays(layout, fds["requests"][0])
            central = CentralPolicy(requests, index, socket.socket(fileno=fds["requests"][1]))
            self._new_weights: Callable[[Collect], int] = lambda _: central.begin(self._look_up)
            self._network: Policy = central
        else:
            self._run_network(welcome, fds["weights"][0])

    def _run_network(self, welcome: Welcome, weights_fd: int) -> None:
        """Run the network in this process, on one thread."""
        network = acting_network(welcome.config)
        receiver = ModelReceiver(network, weights_fd)
        games = welcome.config.training.parallel.num_envs_per_worker
        forward = traced(network, games) if welcome.traced else None
        self._network = partial(evaluate, network, forward=forward)

        def new_weights(work: Collect) -> int:
            if self._shares_memory:
                return receiver.update()
            if work.weights is not None:
                unpack_weights(network, work.weights)
            return work.version

        self._new_weights = new_weights

    def run(self) -> None:
        """Serve until told to stop."""
        self._connection.send(Ready())
        while True:
            with self._status.spending("waiting"):
                work = self._next()
            while True:
                try:
                    self._connection.send(self._collect(work))
                    break
                except VersionGone:  # the inference process was restarted: so is the rollout
                    self._shard.load_state_dict(self._state)

    def _next(self) -> Collect:
        while not self._connection.poll(0.5):
            self._status.beat()  # a worker that waits for work is alive
        message = self._connection.recv()
        if isinstance(message, Stop):
            raise Leave
        assert isinstance(message, Collect)
        return message

    def _policy(self, positions: Positions) -> Evaluation:
        self._look_up()
        evaluation = self._network(positions)
        self._status.count(evaluations=len(positions))
        return evaluation

    def _look_up(self) -> None:
        """Between two moves: give a sign of life, and check whether it is time to leave."""
        self._status.beat()
        if os.getppid() != self._parent or self._connection.poll():
            raise Leave

    def _collect(self, work: Collect) -> RolloutDone:
        with self._status.spending("syncing"):
            version = self._new_weights(work)
        rollout = rollout_in(self._slots, work.slot)
        room = rollout.legal
        with self._status.spending("busy"):
            opponent = self._opponent.policy(version)
            finished = self._shard.collect(
                self._policy, rollout, version, opponent, self._status.count_steps
            )
        self._status.count(games=len(finished))
        self._state = self._shard.state_dict()
        scores, spans = self._shard.scores, self._status.take_spans()
        done = RolloutDone(work.slot, version, finished, self._state, scores, spans)
        if not self._shares_memory:
            return replace(done, rollout=rollout)
        if np.shares_memory(rollout.legal, room):
            return done
        return replace(done, overflow={"legal": rollout.legal, "improved": rollout.improved})


def serve(run: Callable[[Connection, Welcome, Descriptors], None]) -> None:
    """Run one of the manager's processes: say hello, work, and report errors."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the manager's business
    keep_freed_memory()
    parser = argparse.ArgumentParser()
    for name in ("connection", "slots", "weights", "status", "requests"):
        parser.add_argument(f"--{name}")
    given = {name: text for name, text in vars(parser.parse_args()).items() if text}
    fds = {name: [int(fd) for fd in text.split(",")] for name, text in given.items()}
    connection = Connection(fds["connection"][0])
    try:
        connection.send(Hello())
        welcome = connection.recv()
        run(connection, welcome, fds)
    except (EOFError, BrokenPipeError, ConnectionResetError, Leave):
        pass  # the manager is gone
    except Exception:
        with contextlib.suppress(OSError):
            connection.send(Failed(traceback.format_exc()))
        raise SystemExit(1) from None


def main() -> None:
    """Run a worker; the manager starts this in a process of its own."""
    torch.set_num_threads(1)

    def run(connection: Connection, welcome: Welcome, fds: Descriptors) -> None:
        name_process(f"keisei-worker-{welcome.index}")
        SelfPlayWorker(connection, welcome, fds).run()

    serve(run)
