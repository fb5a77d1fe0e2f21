"""Central inference, the worker's side: one process evaluates the positions of all workers."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

import numpy as np

from keisei.config_schema import AppConfig
from keisei.core.policy import Evaluation
from keisei.errors import KeiseiError
from keisei.processes.shared_memory import Layout, SharedArrays
from keisei.shogi import OBSERVATION_BYTES, Positions
from keisei.shogi.rules import MAX_LEGAL_MOVES

NO_VERSION = -1
RESEND_AFTER = 1.0  # seconds; the inference process may have been replaced
ANSWER_TIMEOUT = 120.0
# A request or an answer: its number, the version of the weights, and how many positions.
NOTE = struct.Struct("qqq")


class VersionGone(Exception):
    """The weights that a rollout began with are no longer there."""


def request_layout(config: AppConfig, capacity: int) -> Layout:
    """For each worker, room for the positions that it asks about at once, and for the answer."""
    training = config.training
    positions = training.parallel.num_envs_per_worker
    if training.searches:  # a leaf for each move considered; most of this room is never touched
        positions *= training.search.considered
    return {
        "observations": ((capacity, positions, OBSERVATION_BYTES), np.uint8),
        "legal": ((capacity, positions * MAX_LEGAL_MOVES), np.int16),
        "offsets": ((capacity, positions + 1), np.int64),
        "log_probs": ((capacity, positions * MAX_LEGAL_MOVES), np.float32),
        "values": ((capacity, positions), np.float32),
    }


class CentralPolicy:
    """A `Policy` whose network is in another process.

    The positions and the answer are in shared memory; a note of 24 bytes each way says that they
    are there. A rollout is played by one version of the weights from its beginning to its end.
    """

    def __init__(self, requests: SharedArrays, index: int, line: socket.socket) -> None:
        self._mine = {name: requests[name][index] for name in requests.layout}
        self._line = line
        self._number = time.monotonic_ns()  # above all numbers of this worker's predecessors
        self._version = NO_VERSION
        self._look_up: Callable[[], None] = lambda: None

    def begin(self, look_up: Callable[[], None]) -> int:
        """Start a rollout with the newest weights; `look_up` is called while waiting."""
        self._look_up = look_up
        self._version = NO_VERSION
        self._version = self._ask(0)
        return self._version

    def __call__(self, positions: Positions) -> Evaluation:
        count, total = len(positions), len(positions.legal)
        self._mine["observations"][:count] = positions.observations
        self._mine["legal"][:total] = positions.legal
        self._mine["offsets"][: count + 1] = positions.offsets
        if self._ask(count) != self._version:
            raise VersionGone
        return Evaluation(
            self._mine["log_probs"][:total].copy(), self._mine["values"][:count].copy()
        )

    def _ask(self, count: int) -> int:
        """Send a note until its answer comes; returns the version that answered."""
        deadline = time.monotonic() + ANSWER_TIMEOUT
        while time.monotonic() < deadline:
            self._number += 1
            self._line.send(NOTE.pack(self._number, self._version, count))
            self._line.settimeout(RESEND_AFTER)
            try:
                while True:
                    self._look_up()
                    number, version, _ = NOTE.unpack(self._line.recv(NOTE.size))
                    if number == self._number:  # others answer a request that timed out
                        return int(version)
            except TimeoutError:
                continue
        raise KeiseiError(f"the inference process gave no answer for {ANSWER_TIMEOUT:.0f} s")
