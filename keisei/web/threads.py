"""Work that would block the event loop runs in threads; this is how, and how errors come back.

An rsshogi board must be touched, and even freed, only by the thread that made it. An exception
keeps alive the frames that it passed through, with everything in them, so only a bare one leaves
a thread. Unexpected errors are logged where they happen, with their traceback.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from keisei.errors import KeiseiError

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class WebError(KeiseiError):
    """A request cannot be answered; `status` is the HTTP status code."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class NotFound(WebError):
    """What was asked for does not exist."""

    def __init__(self, message: str) -> None:
        super().__init__(404, message)


class Busy(WebError):
    """Too much is going on."""

    def __init__(self, what: str) -> None:
        super().__init__(503, f"{what}: try again in a moment")


class Places:
    """How many of a kind are under way at the same time, and no more than may be."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._taken = 0

    def refuse_too_many(self, most: int) -> None:
        """Raise `Busy` if all places are taken."""
        if self._taken >= most:
            raise Busy(f"{most} {self._what}")

    @contextmanager
    def take(self, most: int) -> Iterator[None]:
        """Have a place, or raise `Busy`."""
        self.refuse_too_many(most)
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1


class Threads:
    """A few threads, with a limit on the work that waits for them."""

    def __init__(self, name: str, count: int, waiting: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=f"keisei-{name}")
        self._name = name
        self._limit = count + waiting
        self._under_way = 0
        self._closed = False

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function in a thread, or raise `Busy`."""
        if self._closed:
            raise Busy("the server is stopping")
        if self._under_way >= self._limit:
            raise Busy(f"the server is overloaded ({self._name})")
        self._under_way += 1
        future = asyncio.get_running_loop().run_in_executor(
            self._pool, _call, function, args, kwargs
        )
        # Even if the client has gone: the thread stays busy until the work is done.
        future.add_done_callback(self._count_done)
        outcome = await asyncio.shield(future)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def begin(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call the function in a thread, sooner or later; nobody waits for what becomes of it."""
        if not self._closed:
            self._pool.submit(_call, function, args, kwargs)

    def _count_done(self, _: object) -> None:
        self._under_way -= 1

    @property
    def busy(self) -> bool:
        """Is any work in progress?"""
        return self._under_way > 0

    def close(self) -> None:
        """Start no more work."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)


def _call(
    function: Callable[..., T], args: tuple[object, ...], kwargs: dict[str, object]
) -> T | Exception:
    try:
        return function(*args, **kwargs)
    except KeiseiError as error:
        return _bare(error)
    except OSError as error:  # training writes and removes files while they are being read
        return WebError(500, f"a file cannot be read ({error}): reload the page and try again")
    except Exception as error:
        log.error("a request failed:\n%s", traceback.format_exc())  # text keeps no frames
        return RuntimeError(f"{type(error).__name__}: {error}")


def _bare(error: Exception) -> Exception:
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error
