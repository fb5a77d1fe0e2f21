"""Threads of the server: bounded, and nothing of a thread leaves it."""

import asyncio
import threading

import pytest
from rsshogi.core import Board

from keisei.errors import KeiseiError
from keisei.web.threads import Busy, Threads, WebError


def run(work):
    return asyncio.run(asyncio.wait_for(work(), 60))


def test_more_than_may_wait_is_refused_and_later_there_is_room():
    async def work():
        threads, release = Threads("test", 1, waiting=1), threading.Event()
        first = asyncio.create_task(threads.run(release.wait, 30))
        second = asyncio.create_task(threads.run(int, "7"))
        await asyncio.sleep(0)
        assert threads.busy
        with pytest.raises(Busy, match="overloaded"):
            await threads.run(int)
        release.set()
        assert await first
        assert await second == 7
        assert await threads.run(int, "8") == 8
        threads.close()
        with pytest.raises(Busy, match="stopping"):
            await threads.run(int)

    run(work)


def test_work_whose_client_has_gone_still_counts():
    async def work():
        threads, release = Threads("test", 1, waiting=0), threading.Event()
        task = asyncio.create_task(threads.run(release.wait, 30))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(Busy):
            await threads.run(int)
        release.set()
        threads.close()

    run(work)


def test_a_file_that_cannot_be_read_is_a_sentence_for_the_page(tmp_path):
    async def work():
        threads = Threads("test", 1, waiting=0)
        with pytest.raises(WebError, match=r"gone\.kif.*try again"):
            await threads.run((tmp_path / "gone.kif").read_text)
        threads.close()

    run(work)


def fail_with_a_board(error):
    board = Board()
    try:
        raise ValueError(board.to_sfen())
    except ValueError as cause:
        raise error("failed") from cause


@pytest.mark.parametrize("error", [KeiseiError, OSError, ZeroDivisionError])
def test_an_error_leaves_its_thread_without_what_it_went_through(error):
    async def work():
        threads = Threads("test", 1, waiting=0)
        with pytest.raises((KeiseiError, RuntimeError), match="failed") as caught:
            await threads.run(fail_with_a_board, error)
        threads.close()
        return caught.value

    failure = run(work)
    assert failure.__cause__ is failure.__context__ is None
    frames, trace = [], failure.__traceback__
    while trace:
        frames.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "fail_with_a_board" not in frames
