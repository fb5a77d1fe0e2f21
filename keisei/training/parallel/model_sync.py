"""Weights from the learner to the workers, through shared memory, whole or not at all."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch import nn

from keisei.errors import KeiseiError
from keisei.training.parallel.shared_memory import Layout, SharedArrays

READ_TIMEOUT = 30.0


class SyncError(KeiseiError):
    """Weights could not be read."""


def weights_layout(network: nn.Module) -> Layout:
    """Two copies of all weights, and for each its version, a sequence number and a checksum.

    The learner writes the copy that is not current. A sequence number is odd while its copy is
    being written; a reader that sees it change, or whose checksum differs, reads again.
    """
    count = sum(weight.numel() for weight in network.state_dict().values())
    return {
        "weights": ((2, count), np.float32),
        "version": ((2,), np.int64),
        "sequence": ((2,), np.int64),
        "checksum": ((2,), np.int64),
        "current": ((1,), np.int64),
    }


def _checksum(weights: np.ndarray[Any, Any]) -> int:
    pairs = weights[: len(weights) // 2 * 2].view(np.int64)
    return int(np.add.reduce(pairs))


class ModelSynchronizer:
    """The learner's side: publishes each version once, for all workers."""

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self.shared = SharedArrays(weights_layout(network))
        self.count = 0
        self.seconds = 0.0

    def publish(self, version: int) -> None:
        """Make the network's weights of now the current ones."""
        start = time.perf_counter()
        shared = self.shared
        spare = 1 - int(shared["current"][0])
        shared["sequence"][spare] += 1
        target, at = torch.from_numpy(shared["weights"][spare]), 0
        for weight in self._network.state_dict().values():
            target[at : at + weight.numel()].copy_(weight.detach().reshape(-1))
            at += weight.numel()
        shared["checksum"][spare] = _checksum(shared["weights"][spare])
        shared["version"][spare] = version
        shared["sequence"][spare] += 1
        shared["current"][0] = spare
        self.count += 1
        self.seconds += time.perf_counter() - start

    def get_sync_stats(self) -> dict[str, float]:
        """How often weights were published, how large they are, and how long it took."""
        return {
            "sync_count": self.count,
            "bytes": self.shared["weights"][0].nbytes,
            "seconds_per_sync": self.seconds / max(self.count, 1),
        }


class ModelReceiver:
    """A worker's side: loads the newest weights into its own network."""

    def __init__(self, network: nn.Module, fd: int) -> None:
        self._network = network
        self._shared = SharedArrays(weights_layout(network), fd)
        self.version = -1

    def update(self) -> int:
        """Load the current weights if they are newer than those loaded; returns their version."""
        deadline = time.monotonic() + READ_TIMEOUT
        while time.monotonic() < deadline:
            current = int(self._shared["current"][0])
            before = int(self._shared["sequence"][current])
            version = int(self._shared["version"][current])
            if before % 2 == 0 and version == self.version:
                return version
            if before % 2 == 0 and self._load(current, before):
                self.version = version
                return version
        raise SyncError(f"no whole set of weights could be read within {READ_TIMEOUT:.0f} s")

    def _load(self, current: int, before: int) -> bool:
        """Copy the weights; they are good if nobody wrote to them meanwhile."""
        source = torch.from_numpy(self._shared["weights"][current])
        at, parts = 0, []
        for weight in self._network.state_dict().values():
            part = source[at : at + weight.numel()].clone()
            weight.copy_(part.view(weight.shape))
            parts.append(part)
            at += weight.numel()
        unchanged = int(self._shared["sequence"][current]) == before
        return unchanged and _checksum(torch.cat(parts).numpy()) == int(
            self._shared["checksum"][current]
        )
