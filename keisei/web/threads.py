"""Work that would hold up the event loop, done in threads; and how its errors come back.

A rsshogi board must not be touched, nor even forgotten, by another thread than its own. An
exception keeps the frames that it went through, and all that is in them: so what leaves a thread
is a bare one. What nobody foresaw is logged where it happened, with its traceback.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from keisei.errors import KeiseiError

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class WebError(KeiseiError):
    """A request that cannot be answered; `status` is the HTTP code."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class NotFound(WebError):
    """The thing asked for does not exist."""

    def __init__(self, message: str) -> None:
        super().__init__(404, message)


class Busy(WebError):
    """Too much is going on."""

    def __init__(self, what: str) -> None:
        super().__init__(503, f"{what}: try again in a moment")


class Threads:
    """A few threads with a limit to what waits for them."""

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
        # Also when the client has gone and nobody waits: the thread is busy until it is done.
        future.add_done_callback(self._count_done)
        outcome = await asyncio.shield(future)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _count_done(self, _: object) -> None:
        self._under_way -= 1

    @property
    def busy(self) -> bool:
        """Is something under way?"""
        return self._under_way > 0

    def close(self) -> None:
        """Begin nothing more."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)


def _call(
    function: Callable[..., T], args: tuple[object, ...], kwargs: dict[str, object]
) -> T | Exception:
    try:
        return function(*args, **kwargs)
    except KeiseiError as error:
        return _bare(error)
    except OSError as error:  # a training writes and removes files while they are looked at
        return WebError(500, f"a file cannot be read ({error}): reload the page and try again")
    except Exception as error:
        log.error("a request failed:\n%s", traceback.format_exc())  # as text: it keeps no frames
        return RuntimeError(f"{type(error).__name__}: {error}")


def _bare(error: Exception) -> Exception:
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error
