"""Processes that are forked from one that has loaded what they need."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from keisei.processes.nursery import Nursery

COUNTING = "tests.parallel.counting"


@pytest.fixture(scope="module")
def nursery():
    return Nursery()


def test_a_process_gets_all_its_files_however_many(nursery):
    files = [os.dup(0) for _ in range(450)]  # more than the kernel passes on at once
    try:
        assert nursery.start(COUNTING, {"files": files}, "", True).wait(60) == 450 % 256
    finally:
        for file in files:
            os.close(file)


def test_an_error_is_printed_and_is_exit_code_1(capfd):
    nursery = Nursery()
    assert nursery.start(COUNTING, {"other": [0]}, "", True).wait(60) == 1
    assert "ValueError: not enough values to unpack" in capfd.readouterr().err


def test_how_a_process_was_killed_is_known_and_waits_have_limits(nursery):
    process = nursery.start("tests.parallel.waiting", {}, "", True)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM
    process.kill()  # does nothing more


def test_a_nursery_that_was_killed_is_replaced(nursery):
    first = nursery.start("tests.parallel.waiting", {}, "", True)
    parent = psutil.Process(first.pid).ppid()
    os.kill(parent, signal.SIGKILL)
    psutil.Process(parent).wait(60)
    assert nursery.start(COUNTING, {"files": [0]}, "", True).wait(60) == 1
    os.kill(first.pid, signal.SIGKILL)


def test_the_nursery_goes_with_its_process():
    code = (
        "from keisei.processes.nursery import Nursery; import psutil, sys; n = Nursery()\n"
        "p = n.start('tests.parallel.waiting', {}, '', True)\n"
        "print(psutil.Process(p.pid).ppid(), p.pid, flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as parent:
        nursery, child = (psutil.Process(int(pid)) for pid in parent.stdout.readline().split())
        parent.kill()
    assert not psutil.wait_procs([nursery], timeout=60)[1]
    child.kill()
