"""Many independent pieces of work: one after another, in processes, or on a Ray cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from keisei.errors import KeiseiError
from keisei.processes.line import describe_exit, start_process
from keisei.processes.machine import cores
from keisei.processes.nursery import Forked

Key = TypeVar("Key")
Result = TypeVar("Result")

RETRIES = 2  # of a piece of work whose process or node was lost
_MESSAGE_TIMEOUT = 60.0  # seconds to pass a message on, once it is begun


class Pool(Generic[Key, Result]):
    """Does the work at once, in this process.

    >>> pool = Pool(len)
    >>> pool.submit("a", [1, 2])
    >>> list(pool.finished())
    [('a', 2)]
    """

    def __init__(self, function: Callable[..., Result]) -> None:
        self._function = function
        self._results: list[tuple[Key, Result]] = []

    def submit(self, key: Key, *arguments: Any) -> None:
        """Have a piece of work done; its result comes with `key`."""
        self._results.append((key, self._function(*arguments)))

    def finished(self, wait_for_all: bool = False) -> Iterator[tuple[Key, Result]]:
        """Results as they come, until there is a place for more work (or until all are done)."""
        while self._results:
            yield self._results.pop(0)


@dataclass
class _Piece:
    """Work, and how often a process died over it."""

    key: Any
    arguments: tuple[Any, ...]
    deaths: int = 0


class ProcessPool(Pool[Key, Result]):
    """Does the work in processes of this machine, one for each core, with one thread each.

    `function` must be one that can be pickled. What a process was doing when it died is done again,
    by another.
    """

    def __init__(self, function: Callable[..., Result], processes: int) -> None:
        super().__init__(function)
        self._places = processes
        self._waiting: deque[_Piece] = deque()
        self._working: dict[Connection, tuple[Forked, _Piece]] = {}
        self._idle: list[tuple[Connection, Forked]] = []

    def submit(self, key: Key, *arguments: Any) -> None:
        """Have a piece of work done; its result comes with `key`."""
        self._waiting.append(_Piece(key, arguments))
        self._hand_out()

    def finished(self, wait_for_all: bool = False) -> Iterator[tuple[Key, Result]]:
        """Results as they come, until there is a place for more work (or until all are done)."""
        while self._working and (wait_for_all or len(self._working) >= self._places):
            for connection in wait(list(self._working), timeout=10.0):
                assert isinstance(connection, Connection)
                process, piece = self._working.pop(connection)
                try:
                    result = connection.recv()
                except (EOFError, OSError):
                    self._bury(connection, process, piece)
                    self._hand_out()
                    continue
                self._idle.append((connection, process))
                self._hand_out()
                if isinstance(result, Exception):
                    raise result
                yield piece.key, result

    def _hand_out(self) -> None:
        while self._waiting and len(self._working) < self._places:
            connection, process = self._idle.pop() if self._idle else self._start()
            piece = self._waiting.popleft()
            self._working[connection] = process, piece
            with suppress(OSError):  # it is dead, as the next look at its connection will show
                connection.send(piece.arguments)

    def _start(self) -> tuple[Connection, Forked]:
        process, connection = start_process(
            "keisei.processes.pool_worker",
            {},
            _MESSAGE_TIMEOUT,
            preload=self._function.__module__,
            own_session=False,
        )
        connection.send(self._function)
        return connection, process

    def _bury(self, connection: Connection, process: Forked, piece: _Piece) -> None:
        code = _end(process, connection)
        piece.deaths += 1
        if piece.deaths > RETRIES:
            raise KeiseiError(
                f"processes died {piece.deaths} times over the same piece of work, "
                f"the last one by {describe_exit(code)}"
            )
        self._waiting.appendleft(piece)

    def close(self) -> None:
        """End the processes, whatever they do."""
        for connection, (process, _) in self._working.items():
            _end(process, connection)
        for connection, process in self._idle:
            _end(process, connection)
        self._working, self._idle = {}, []
        self._waiting.clear()


def _end(process: Forked, connection: Connection) -> int:
    connection.close()
    process.kill()
    return process.wait(timeout=10)


@contextmanager
def open_process_pool(
    function: Callable[..., Result], pieces: int = 10**6
) -> Iterator[Pool[Any, Result]]:
    """A pool for so many pieces of work, with one process for each core; one process is this."""
    processes = min(cores(), pieces)
    if processes == 1:
        yield Pool(function)
        return
    pool: ProcessPool[Any, Result] = ProcessPool(function, processes)
    try:
        yield pool
    finally:
        pool.close()


class RayPool(Pool[Key, Result]):
    """Does the work on the cluster that this process is connected to, a CPU for each piece."""

    def __init__(self, function: Callable[..., Result]) -> None:
        super().__init__(function)
        from keisei.processes.ray_cluster import cluster_cpus, import_ray

        self._ray = import_ray()
        self._places = max(cluster_cpus(), 1)

        def work(*arguments: Any) -> Result:  # Ray takes plain functions only
            return function(*arguments)

        self._remote = self._ray.remote(num_cpus=1, max_retries=RETRIES)(work)
        self._keys: dict[Any, Key] = {}

    def submit(self, key: Key, *arguments: Any) -> None:
        """Have a piece of work done; its result comes with `key`."""
        self._keys[self._remote.remote(*arguments)] = key

    def finished(self, wait_for_all: bool = False) -> Iterator[tuple[Key, Result]]:
        """Results as they come, until there is a place for more work (or until all are done)."""
        while self._keys and (wait_for_all or len(self._keys) >= self._places):
            # Work may take hours; a lost node is an error of `get`, not a wait without an end.
            for ref in self._ray.wait(list(self._keys), num_returns=1, timeout=10.0)[0]:
                yield self._keys.pop(ref), self._get(ref)

    def _get(self, ref: Any) -> Result:
        try:
            result: Result = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, KeiseiError):
                raise error.cause from None
            raise
        except self._ray.exceptions.RayError as error:
            raise KeiseiError(f"work on the Ray cluster was lost: {error}") from error
        return result


@contextmanager
def open_ray_pool(address: str, function: Callable[..., Result]) -> Iterator[RayPool[Any, Result]]:
    """A pool on the cluster at `address` (auto: one that runs here, else one for the time)."""
    from keisei.processes.ray_cluster import cluster

    with cluster(address):
        yield RayPool(function)
