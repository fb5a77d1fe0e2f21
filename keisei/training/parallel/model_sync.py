"""Weights from the learner to the workers: through shared memory, whole or not at all."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from keisei.errors import KeiseiError
from keisei.processes.shared_memory import Layout, SharedArrays

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
        "weights": ((2, count), _dtype(network)),
        "version": ((2,), np.int64),
        "sequence": ((2,), np.int64),
        "checksum": ((2,), np.int64),
        "current": ((1,), np.int64),
    }


def _dtype(network: nn.Module) -> Any:
    """NumPy's type for the weights; it has none for bfloat16, so that travels as 16 bits."""
    is_half = next(network.parameters()).dtype == torch.bfloat16
    return np.uint16 if is_half else np.float32


def _as_tensor(packed: npt.NDArray[Any]) -> torch.Tensor:
    tensor = torch.from_numpy(packed)
    return tensor.view(torch.bfloat16) if packed.dtype == np.uint16 else tensor


def pack_weights(
    network: nn.Module, half: bool = False, out: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]:
    """All weights end to end (into `out`), in half precision if they must be small.

    >>> pack_weights(nn.Linear(2, 1), half=True).nbytes
    6
    """
    weights = list(network.state_dict().values())
    count = sum(weight.numel() for weight in weights)
    dtype = _dtype(network)
    if half and dtype == np.float32:
        dtype = np.float16
    packed = np.empty(count, dtype) if out is None else out
    target, at = _as_tensor(packed), 0
    for weight in weights:
        target[at : at + weight.numel()].copy_(weight.detach().reshape(-1))
        at += weight.numel()
    return packed


def unpack_weights(network: nn.Module, packed: npt.NDArray[Any]) -> None:
    """Copy packed weights into a network of the same shape."""
    source, at = _as_tensor(packed), 0
    for weight in network.state_dict().values():
        weight.copy_(source[at : at + weight.numel()].view(weight.shape))
        at += weight.numel()
    if at != len(packed):
        raise SyncError(f"got {len(packed)} weights for a network that has {at}")


def _checksum(weights: npt.NDArray[Any]) -> int:
    """Of every 32nd 8 bytes of weights: a torn copy has whole stretches of another version."""
    in_word = 8 // weights.itemsize
    words = weights[: len(weights) // in_word * in_word].view(np.int64)
    return int(np.add.reduce(words[::32]))


class ModelSynchronizer:
    """The learner's side: publishes each version once, for all workers."""

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self.shared = SharedArrays(weights_layout(network))
        self.version = -1
        self.count = 0
        self.seconds = 0.0

    def publish(self, version: int) -> None:
        """Make the network's weights the current ones."""
        start = time.perf_counter()
        shared = self.shared
        spare = 1 - int(shared["current"][0])
        shared["sequence"][spare] += 1
        pack_weights(self._network, out=shared["weights"][spare])
        shared["checksum"][spare] = _checksum(shared["weights"][spare])
        shared["version"][spare] = version
        shared["sequence"][spare] += 1
        shared["current"][0] = spare
        self.version = version
        self.count += 1
        self.seconds += time.perf_counter() - start

    def get_sync_stats(self) -> dict[str, float]:
        """How often weights were published, how large they are, and how long it took."""
        return {
            "version": self.version,
            "sync_count": self.count,
            "bytes": self.shared["weights"][0].nbytes,
            "seconds_per_sync": self.seconds / max(self.count, 1),
        }


class ModelReceiver:
    """A worker's side: loads the newest weights into its own network."""

    def __init__(self, network: nn.Module, fd: int) -> None:
        self._network = network
        self._shared = SharedArrays(weights_layout(network), fd)
        self._private = np.zeros_like(self._shared["weights"][0])
        self.version = -1

    def update(self) -> int:
        """Load the current weights if they are newer than those loaded; returns their version."""
        deadline = time.monotonic() + READ_TIMEOUT
        while time.monotonic() < deadline:
            current = int(self._shared["current"][0])
            sequence = int(self._shared["sequence"][current])
            version = int(self._shared["version"][current])
            if sequence % 2:
                continue  # being written; by now the other copy is the current one
            if version == self.version:
                return version
            if self._copy(current, sequence):
                unpack_weights(self._network, self._private)
                self.version = version
                return version
        raise SyncError(f"no complete set of weights could be read within {READ_TIMEOUT:.0f} s")

    def _copy(self, current: int, sequence: int) -> bool:
        """Copy the weights; they are good if nothing was written meanwhile."""
        np.copyto(self._private, self._shared["weights"][current])
        unchanged = int(self._shared["sequence"][current]) == sequence
        return unchanged and _checksum(self._private) == int(self._shared["checksum"][current])
