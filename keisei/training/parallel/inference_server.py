"""The process of central inference: evaluates the positions of all workers."""

from __future__ import annotations

import contextlib
import copy
import os
import socket
from multiprocessing.connection import Connection, wait
from typing import Any

from keisei.core.neural_network import ActorCriticResTower
from keisei.core.policy import evaluate
from keisei.core.precision import acting_network
from keisei.processes.machine import choose_device, name_process
from keisei.processes.shared_memory import SharedArrays
from keisei.shogi.positions import Positions, join
from keisei.training.parallel.central_policy import NO_VERSION, NOTE, request_layout
from keisei.training.parallel.messages import Ready, Welcome
from keisei.training.parallel.model_sync import ModelReceiver
from keisei.training.parallel.self_play_worker import Descriptors, serve
from keisei.training.parallel.worker_status import WorkerStatus, shared_row

Note = tuple[int, int, int, int]  # worker, number, version, positions
Request = tuple[int, int, int]  # worker, number, positions


class InferenceServer:
    """Waits for notes of workers, evaluates what has come in, and answers."""

    def __init__(self, connection: Connection, welcome: Welcome, fds: Descriptors) -> None:
        config = welcome.config
        self._connection = connection
        self._parent = os.getppid()  # it goes with the manager
        self._status = WorkerStatus(shared_row(fds["status"][0], welcome.capacity, welcome.index))
        self._network = acting_network(config).to(choose_device(config.env.device))
        self._receiver = ModelReceiver(self._network, fds["weights"][0])
        layout = request_layout(config, welcome.capacity)
        memory, *lines = fds["requests"]
        self._requests = SharedArrays(layout, memory)
        self._lines = [socket.socket(fileno=fd) for fd in lines]
        for line in self._lines:
            line.setblocking(False)
        self._joins_workers = config.training.parallel.mode == "async"
        # Workers that began a rollout with older weights end it with them.
        self._networks: dict[int, ActorCriticResTower] = {}
        self._in_use: dict[int, int] = {}  # worker: version

    def run(self) -> None:
        """Serve until the manager says stop, or is gone."""
        self._connection.send(Ready())
        while os.getppid() == self._parent and not self._connection.poll():
            with self._status.spending("waiting"):
                ready = wait([*self._lines, self._connection], timeout=0.5)
            with self._status.spending("busy"):
                self._answer(self._read(ready))
            self._status.take_spans()

    def _read(self, ready: list[Any]) -> list[Note]:
        """The notes that have come in."""
        notes = []
        for worker, line in enumerate(self._lines):
            if line in ready:
                number, version, count = NOTE.unpack(line.recv(NOTE.size))
                notes.append((worker, number, version, count))
        return notes

    def _answer(self, notes: list[Note]) -> None:
        # By the weights to ask; in sync mode also by worker. Sums depend on how many positions are
        # in a batch, and who asks at the same time is a matter of timing.
        batches: dict[tuple[int, int | None], list[Request]] = {}
        for worker, number, version, count in notes:
            if count == 0:
                self._reply(worker, number, self._begin(worker))
            elif self._network_of(worker, version) is None:
                self._reply(worker, number, NO_VERSION)
            else:
                asks = (version, None if self._joins_workers else worker)
                batches.setdefault(asks, []).append((worker, number, count))
        for (version, _), requests in batches.items():
            self._evaluate(version, requests)

    def _begin(self, worker: int) -> int:
        """A worker starts a rollout: it gets the newest weights, and old ones may go."""
        version = self._receiver.update()
        self._in_use[worker] = version
        if version not in self._networks:
            self._networks[version] = copy.deepcopy(self._network)
        self._networks = {
            version: network
            for version, network in self._networks.items()
            if version in self._in_use.values()
        }
        return version

    def _network_of(self, worker: int, version: int) -> ActorCriticResTower | None:
        if version not in self._networks and self._receiver.update() == version:
            self._begin(worker)  # this process is new, and the weights are still the newest
        return self._networks.get(version)

    def _evaluate(self, version: int, requests: list[Request]) -> None:
        """One batch for these workers, who play by this version."""
        asked = [self._positions(worker, count) for worker, _, count in requests]
        evaluation = evaluate(self._networks[version], join(asked))
        end = row = 0
        for (worker, number, count), positions in zip(requests, asked, strict=True):
            start, end = end, end + len(positions.legal)
            self._requests["log_probs"][worker, : end - start] = evaluation.log_probs[start:end]
            self._requests["values"][worker, :count] = evaluation.values[row : row + count]
            row += count
            self._reply(worker, number, version)
        self._status.count(evaluations=row)

    def _positions(self, worker: int, count: int) -> Positions:
        """A worker's request, in shared memory."""
        offsets = self._requests["offsets"][worker, : count + 1]
        legal = self._requests["legal"][worker, : offsets[-1]]
        return Positions(self._requests["observations"][worker, :count], legal, offsets)

    def _reply(self, worker: int, number: int, version: int) -> None:
        with contextlib.suppress(BlockingIOError):  # a worker that reads no answers is dead
            self._lines[worker].send(NOTE.pack(number, version, 0))


def main() -> None:
    """Run the inference process; the manager starts this."""

    def run(connection: Connection, welcome: Welcome, fds: Descriptors) -> None:
        name_process("keisei-inference")
        InferenceServer(connection, welcome, fds).run()

    serve(run)
