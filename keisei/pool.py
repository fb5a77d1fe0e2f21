"""Many independent pieces of work: one after another here, or side by side on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from keisei.errors import KeiseiError

Key = TypeVar("Key")
Result = TypeVar("Result")

RETRIES = 2  # of a piece of work whose node was lost


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


class RayPool(Pool[Key, Result]):
    """Does the work on the cluster that this process is connected to, a CPU for each piece."""

    def __init__(self, function: Callable[..., Result]) -> None:
        super().__init__(function)
        from keisei.training.parallel.ray_cluster import cluster_cpus, import_ray

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
    from keisei.training.parallel.ray_cluster import cluster

    with cluster(address):
        yield RayPool(function)
