"""What other programs take is told apart from what our own processes take."""

import contextlib
import logging
import os
import re
import signal
import subprocess
import sys

import pytest

from keisei.processes.machine import cores
from keisei.processes.other_load import FreeCores
from keisei.training.parallel import ParallelManager

from .conftest import assert_same_bytes, serial_rounds, wait_for

# In a process of its own, which has no other children whose ends it could count meanwhile.
LOOK = """if True:
    import resource, subprocess, sys, time
    import psutil
    from keisei.processes.other_load import OtherLoad

    def busy():  # seconds of all cores since the machine started, whoever used them
        times = psutil.cpu_times()
        return sum(times) - times.idle - getattr(times, "iowait", 0.0)

    before = busy()
    others, start = OtherLoad(), time.perf_counter()
    burn = "import time\\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", burn], check=True, timeout=60)
    passed = time.perf_counter() - start
    others_took = others.look() * passed
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(others_took, used.ru_utime + used.ru_stime, busy() - before)
"""


def test_children_that_have_ended_are_not_other_programs():
    command = [sys.executable, "-c", LOOK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    others_took, child_took, all_took = map(float, done.stdout.split())
    assert child_took >= 0.5
    # The kernel counts in hundredths of a second, for each core and each kind of use.
    assert others_took <= all_took - 0.8 * child_took + 0.1


def test_cores_that_others_take_are_not_free_until_they_leave_them():
    taken = iter([0.0, 0.67, 1.0, 5.0, 0.1])
    free = FreeCores(lambda: next(taken), own=2)
    assert [free.count(now) for now in (10, 11, 12, 14, 16, 17, 18)] == [2, 2, 1, 1, 1, 1, 2]


@pytest.fixture
def other_programs():
    """As many busy programs as there are cores; none of them is a child of ours."""
    burn = "import time\nwhile time.process_time() < 300: pass"
    start = f"for i in $(seq {cores()}); do {sys.executable} -c '{burn}' >&- 2>&- & echo $!; done"
    done = subprocess.run(["sh", "-c", start], capture_output=True, timeout=60, check=True)
    pids = [int(pid) for pid in done.stdout.split()]
    yield pids
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_elastic_workers_play_one_at_a_time_while_others_need_the_cores_and_play_the_same(
    setup, other_programs, caplog
):
    config, agent = setup("num_workers=3", "elastic=true")
    with ParallelManager(config, agent) as manager:
        wait_for(manager, lambda: manager.get_statistics()["free_cores"] == 1)
        with caplog.at_level(logging.DEBUG, "keisei.training.parallel"):
            for expected in serial_rounds(config, agent, 2):
                for one, two in zip(expected, manager.collect_experiences(), strict=True):
                    assert_same_bytes(one, two)
        assert re.findall("begins|finished", caplog.text) == ["begins", "finished"] * 6
