"""Work in processes: what one was doing when it died is done again, and none is left behind."""

import os

import psutil
import pytest

from keisei.errors import KeiseiError
from keisei.evaluation.evaluate import MatchSettings, play_batch, play_in_batches
from keisei.evaluation.statistics import Sprt
from keisei.processes.pool import Pool, ProcessPool
from tests.evaluation.work import die, die_at_first, fail
from tests.processes import Process


@pytest.fixture
def pool():
    """Makes pools of two processes; they end with the test."""
    pools = []

    def make(function):
        pools.append(ProcessPool(function, 2))
        return pools[-1]

    yield make
    for one in pools:
        one.close()


def test_what_a_killed_process_was_doing_is_done_again(pool, tmp_path):
    work = pool(die_at_first)
    for key in "ab":
        work.submit(key, tmp_path / key)
    results = dict(work.finished(wait_for_all=True))
    assert sorted(results) == ["a", "b"]
    assert os.getpid() not in results.values()


def test_work_that_kills_every_process_is_an_error_and_not_an_endless_loop(pool, tmp_path):
    work = pool(die)
    work.submit("a", tmp_path)
    with pytest.raises(KeiseiError, match=r"died 3 times .* SIGKILL"):
        list(work.finished(wait_for_all=True))


def test_an_error_in_a_process_is_the_same_error_here(pool, tmp_path):
    work = pool(fail)
    work.submit("a", "here")
    with pytest.raises(KeiseiError, match=r"^not here$"):
        list(work.finished(wait_for_all=True))


def test_processes_end_with_a_parent_that_is_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from keisei.processes.pool import ProcessPool; import time\n"
        "pool = ProcessPool(time.sleep, 1)\n"
        "pool.submit('a', 600)\n"
        "print(next(iter(pool._working.values()))[0].pid, flush=True)\n"
        "list(pool.finished(wait_for_all=True))\n"
    )
    parent = Process([], script)
    worker = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    worker.wait(timeout=60)  # raises if it is still there


@pytest.mark.parametrize(("games", "sprt"), [(12, None), (48, Sprt(elo1=100))])
def test_a_match_is_the_same_whatever_the_number_of_processes(pool, games, sprt):
    settings = MatchSettings(games=games, at_once=4, sprt=sprt)
    here, there = (
        list(play_in_batches("greedy", "random", settings, where))[-1]
        for where in (Pool(play_batch), pool(play_batch))
    )
    assert here.games == there.games
    assert (len(here.games) < games) == (sprt is not None)


@pytest.mark.parametrize("games", [2, 8, 10, 32, 64, 100, 1000, 5000])
def test_batches_have_every_pair_of_games_once_and_get_smaller_at_the_end(games):
    batches = MatchSettings(games=games, at_once=16).batches()
    assert [number for batch in batches for number in batch] == list(range(games))
    assert all(batch.start % 2 == 0 for batch in batches)
    sizes = [len(batch) for batch in batches]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] <= max(sizes[0] // 2, 4)
    assert sizes[0] <= max(games // 8, 8)
