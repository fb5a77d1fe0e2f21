"""What an agent remembers: a ring of turns, each with all copies of the world.

>>> memory = Buffer(turns=4, copies=1, shape=(2,))
>>> for turn in range(6):
...     memory.add(np.full((1, 2), turn), action=[turn], reward=[1.0], done=[turn == 4])
>>> len(memory)  # the ring holds the newest 4
4
>>> batch = memory.sample(100, np.random.default_rng(1))
>>> sorted(set(batch["action"].tolist()))  # the newest has nothing after it yet
[2, 3, 4]
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError

Arrays = dict[str, npt.NDArray[Any]]


class MemoryMisuse(KeiseiError):
    """A memory is used in a way that would spoil it; the message says what to do."""


class Buffer:
    """The memory of one agent, and of nobody else.

    Each `add` is one turn of all copies. A sample is a step and what was seen after it. It never
    crosses the ring's seam: the newest turn is not drawn, because what comes after it is not there
    yet. And where an episode ended, `done` says that what follows is not its consequence.
    """

    def __init__(
        self,
        turns: int,
        copies: int,
        shape: tuple[int, ...],
        dtype: Any = np.uint8,
        extras: Sequence[str] = (),  # further numbers of each step
    ) -> None:
        if turns < 2:
            raise MemoryMisuse(f"a memory needs room for at least 2 turns, not {turns}")
        steps = (turns, copies)
        self.arrays: Arrays = {
            "state": np.zeros((*steps, *shape), dtype),
            "action": np.zeros(steps, np.int64),
            "reward": np.zeros(steps, np.float32),
            "done": np.zeros(steps, np.bool_),
            **{name: np.zeros(steps, np.float32) for name in extras},
        }
        self.capacity, self.copies = turns, copies
        self.size = 0
        self.idx = 0  # where the next turn goes
        self._writer: int | None = None

    def add(self, state: Any, action: Any, reward: Any, done: Any, **extras: Any) -> None:
        """Remember a turn: what was seen [copies, *shape], done and got in each copy."""
        self._check_writer()
        self._write(state=state, action=action, reward=reward, done=done, **extras)

    def sample(self, batch_size: int, rng: np.random.Generator) -> Arrays:
        """Steps drawn at random, each with `next_state`."""
        if self.size < 2:
            raise MemoryMisuse("nothing to sample: a memory must hold at least two turns")
        oldest = self.idx - self.size
        turn = (oldest + rng.integers(0, self.size - 1, batch_size)) % self.capacity
        copy = rng.integers(0, self.copies, batch_size)
        batch = {name: array[turn, copy] for name, array in self.arrays.items()}
        batch["next_state"] = self.arrays["state"][(turn + 1) % self.capacity, copy]
        return batch

    def newest(self, turns: int) -> Arrays:
        """Copies of the newest turns, oldest first: [turns, copies, ...]."""
        if turns > self.size:
            raise MemoryMisuse(f"{turns} turns were requested, but the memory holds {self.size}")
        order = np.arange(self.idx - turns, self.idx) % self.capacity
        return {name: array[order] for name, array in self.arrays.items()}

    def get_buffer_snapshot(self) -> dict[str, Any]:
        """A copy of everything, which later turns do not change."""
        arrays = {name: array[: self.size].copy() for name, array in self.arrays.items()}
        return {**arrays, "size": self.size, "idx": self.idx}

    def load_buffer_snapshot(self, snapshot: dict[str, Any]) -> None:
        """Become what the snapshot is of; in a smaller memory, the newest turns of it."""
        size = snapshot["size"]
        kept = min(size, self.capacity)
        # Oldest first: where a ring of another size would begin, this one does not.
        order = (np.arange(size) + snapshot["idx"]) % max(size, 1)
        newest = order[size - kept :]
        for name, array in self.arrays.items():
            if array.shape[1:] != snapshot[name].shape[1:]:
                raise ValueError(f"a memory of {array.shape} cannot hold {snapshot[name].shape}")
            array[:kept] = snapshot[name][newest]
        self.size, self.idx = kept, kept % self.capacity

    def __len__(self) -> int:
        return self.size

    def _write(self, **fields: Any) -> None:
        for name, value in fields.items():
            self.arrays[name][self.idx] = value
        self.idx = (self.idx + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def _check_writer(self) -> None:
        """Two threads that add at once would write into the same row: better say so."""
        me = threading.get_ident()
        if self._writer is None:
            self._writer = me
        elif self._writer != me:
            raise MemoryMisuse("this memory is fed from two threads: use a ThreadSafeBuffer")


class ThreadSafeBuffer(Buffer):
    """A `Buffer` that several threads may add to and read from: each turn goes in whole."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lock = threading.Lock()  # held for a copy at most, never while somebody learns

    def _check_writer(self) -> None:
        """Any thread may."""

    def add(self, state: Any, action: Any, reward: Any, done: Any, **extras: Any) -> None:
        with self._lock:
            super().add(state, action, reward, done, **extras)

    def sample(self, batch_size: int, rng: np.random.Generator) -> Arrays:
        with self._lock:
            return super().sample(batch_size, rng)

    def newest(self, turns: int) -> Arrays:
        with self._lock:
            return super().newest(turns)

    def get_buffer_snapshot(self) -> dict[str, Any]:
        with self._lock:
            return super().get_buffer_snapshot()
