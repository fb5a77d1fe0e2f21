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
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError

Arrays = dict[str, npt.NDArray[Any]]

NO_ACTION = -1  # of a row, or a copy in it, in which the agent did nothing: there is no such step


class MemoryMisuse(KeiseiError):
    """A memory is used in a way that would spoil it; the message says what to do."""


class Buffer:
    """The memory of one agent, and of nobody else.

    Each `add` is one turn of all copies. A sample is a step and what was seen after it. It never
    crosses the ring's seam: the newest turn is not drawn, because what comes after it is not there
    yet. Where an episode ended, `done` says that what follows is not its consequence. Where it was
    only cut off by time, `cut` keeps what the agent would have seen next: a row whose action is
    `NO_ACTION`, which is never drawn, and is what comes after the step before it.
    """

    def __init__(
        self,
        turns: int,
        copies: int,
        shape: tuple[int, ...],
        dtype: Any = np.uint8,
        extras: Mapping[str, tuple[int, ...]] | None = None,  # more numbers of a step, by shape
    ) -> None:
        if turns < 2:
            raise MemoryMisuse(f"a memory needs room for at least 2 turns, not {turns}")
        steps = (turns, copies)
        self.arrays: Arrays = {
            "state": np.zeros((*steps, *shape), dtype),
            "action": np.zeros(steps, np.int64),
            "reward": np.zeros(steps, np.float32),
            "done": np.zeros(steps, np.bool_),
            "truncated": np.zeros(steps, np.bool_),  # cut off by time, and not at an end
        }
        for name, size in (extras or {}).items():
            self.arrays[name] = np.zeros((*steps, *size), np.float32)
        self.capacity, self.copies = turns, copies
        self.size = 0
        self.idx = 0  # where the next turn goes
        self._writer: int | None = None

    def add(self, state: Any, action: Any, reward: Any, done: Any, **extras: Any) -> None:
        """Remember a turn: what was seen [copies, *shape], done and got in each copy."""
        self._check_writer()
        fields = {"state": state, "action": action, "reward": reward, "done": done}
        self._write(**fields, truncated=False, **extras)

    def cut(self, state: Any, truncated: Any, **extras: Any) -> None:
        """The newest turn was the last before a cut in these copies [copies], with this after it.

        In the other copies, `state` is what is seen there next as well.
        """
        self._check_writer()
        self.arrays["truncated"][self.idx - 1] = truncated
        fields = {"state": state, "action": NO_ACTION, "reward": 0, "done": False}
        self._write(**fields, truncated=False, **extras)

    @property
    def has_steps(self) -> bool:
        """Is there a step to learn from? An agent may have been away all the time."""
        return bool((self.arrays["action"][: self.size] != NO_ACTION).any())

    def sample(self, batch_size: int, rng: np.random.Generator) -> Arrays:
        """Steps drawn at random, each with `next_state`."""
        rows = np.arange(self.idx - self.size, self.idx - 1) % self.capacity  # oldest first
        steps = np.flatnonzero(self.arrays["action"][rows] != NO_ACTION)
        if len(steps) == 0:
            raise MemoryMisuse("nothing to sample: a memory must hold a step and what follows it")
        row, copy = np.divmod(steps[rng.integers(0, len(steps), batch_size)], self.copies)
        turn = rows[row]
        batch = {name: array[turn, copy] for name, array in self.arrays.items()}
        batch["next_state"] = self.arrays["state"][(turn + 1) % self.capacity, copy]
        return batch

    def sample_sequences(self, count: int, turns: int, rng: np.random.Generator) -> Arrays:
        """Turns of one copy that follow each other, and the one after them [count, turns + 1, ...].

        A sequence may go on from an episode into the next one: `first` says where that begins.
        """
        if self.size <= turns:
            raise MemoryMisuse(f"a sequence of {turns} turns does not fit in {self.size}")
        start = self.idx - self.size + rng.integers(0, self.size - turns, count)
        rows = (start[:, None] + np.arange(turns + 1)) % self.capacity
        copy = rng.integers(0, self.copies, (count, 1))
        return {name: array[rows, copy] for name, array in self.arrays.items()}

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
        old = {"truncated": np.zeros((size, self.copies), np.bool_)}  # older ones lack it
        for name, array in self.arrays.items():
            given = (old | snapshot)[name]
            if array.shape[1:] != given.shape[1:]:
                raise ValueError(f"a memory of {array.shape} cannot hold {given.shape}")
            array[:kept] = given[newest]
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

    def cut(self, state: Any, truncated: Any, **extras: Any) -> None:
        with self._lock:
            super().cut(state, truncated, **extras)

    def sample(self, batch_size: int, rng: np.random.Generator) -> Arrays:
        with self._lock:
            return super().sample(batch_size, rng)

    def sample_sequences(self, count: int, turns: int, rng: np.random.Generator) -> Arrays:
        with self._lock:
            return super().sample_sequences(count, turns, rng)

    def newest(self, turns: int) -> Arrays:
        with self._lock:
            return super().newest(turns)

    def get_buffer_snapshot(self) -> dict[str, Any]:
        with self._lock:
            return super().get_buffer_snapshot()
