import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from keisei.processes import line
from keisei.processes.nursery import Nursery
from keisei.training.parallel import (
    ParallelError,
    ParallelManager,
    SerialManager,
    supervisor,
    worker_communicator,
)
from tests.processes import Process

from .conftest import (
    are_gone,
    assert_same_bytes,
    begin,
    files_in_shared_memory,
    pids,
    serial_rounds,
    wait_for,
)


def test_killed_workers_are_replaced_and_the_rollouts_are_the_same_as_without(setup):
    config, agent = setup("num_workers=2", "rollout_length=128")
    with ParallelManager(config, agent) as manager:
        supervisor = manager._supervisor
        for number, expected in enumerate(serial_rounds(config, agent, 4)):
            before = pids(manager)
            # Nobody, one, or all of them are killed in the middle of a rollout.
            begin(manager)
            wait_for(manager, lambda: any(one.slots for one in supervisor.communicator.workers))
            for index in range(number % 3):
                os.kill(before[index], signal.SIGKILL)
            rollouts = manager.collect_experiences()
            for one, two in zip(expected, rollouts, strict=True):
                assert_same_bytes(one, two)
        statistics = manager.get_statistics()
        assert statistics["restarts"] == 3
        assert [worker["restarts"] for worker in statistics["workers"].values()] == [2, 1]
        assert statistics["total_rollouts"] == 8


def test_a_worker_killed_while_nobody_collects_is_back_by_itself(setup):
    config, agent = setup("num_workers=2")
    with ParallelManager(config, agent) as manager:
        before = pids(manager)
        os.kill(before[1], signal.SIGKILL)
        wait_for(
            manager,
            lambda: (
                pids(manager).get(1, before[1]) != before[1] and manager._supervisor.all_ready()
            ),
        )


def kill_while_playing(manager, how):
    """Kill the first worker in the middle of a rollout, and wait until another is there."""
    lines = manager._supervisor.communicator.lines
    begin(manager)
    wait_for(manager, lambda: 0 in lines and lines[0].slots)
    killed = lines[0].process.pid
    os.kill(killed, how)
    wait_for(manager, lambda: 0 in lines and lines[0].process.pid != killed and lines[0].ready)


def test_games_go_on_however_often_their_worker_is_killed_while_it_plays_them(setup):
    config, agent = setup("num_workers=2", "rollout_length=512", "worker_timeout=1")
    (expected,) = serial_rounds(config, agent, 1)
    with ParallelManager(config, agent) as manager:
        for how in (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGSTOP):
            kill_while_playing(manager, how)
        for one, two in zip(expected, manager.collect_experiences(), strict=True):
            assert_same_bytes(one, two)
        assert manager.get_statistics()["restarts"] >= 5


def test_games_in_which_a_worker_crashes_twice_are_given_up_and_never_come_back(setup):
    config, agent = setup("rollout_length=512")
    states, seen = (), set()
    for incarnation in (1, 2):
        manager = ParallelManager(config, agent)
        manager.start_workers(states)
        for _ in range(2):
            kill_while_playing(manager, signal.SIGSEGV)
        states = manager.shard_states()  # as a checkpoint has them
        manager.shutdown()
        assert states == [{"incarnation": incarnation}]
    for incarnation in range(3):
        manager = SerialManager(config, agent)
        manager.start_workers([{"incarnation": incarnation}])
        seen.add(manager.collect_experiences()[0].actions.tobytes())
        assert manager.shard_states()[0]["incarnation"] == incarnation
    assert len(seen) == 3


def test_workers_may_be_killed_while_they_start_again_and_again(setup):
    config, agent = setup()
    with ParallelManager(config, agent) as manager:
        supervisor, killed = manager._supervisor, set()
        os.kill(pids(manager)[0], signal.SIGKILL)
        while len(killed) < 5:
            with supervisor.changed:
                supervisor.changed.wait(timeout=10)
                line = supervisor.communicator.lines.get(0)
                if line and not line.ready and line.process.pid not in killed:
                    os.kill(line.process.pid, signal.SIGKILL)
                    killed.add(line.process.pid)
                elif line and line.ready:  # it was quicker
                    os.kill(line.process.pid, signal.SIGKILL)
        assert len(manager.collect_experiences()) == 1


def test_a_worker_that_is_halted_while_it_starts_is_replaced_after_the_timeout(setup):
    config, agent = setup("worker_timeout=1")
    with ParallelManager(config, agent) as manager:
        supervisor = manager._supervisor
        lines, halted = supervisor.communicator.lines, None
        os.kill(pids(manager)[0], signal.SIGKILL)
        while halted is None:
            with supervisor.changed:
                supervisor.changed.wait(timeout=10)
                if 0 in lines and not lines[0].ready:
                    halted = lines[0].process.pid
                    os.kill(halted, signal.SIGSTOP)
                elif 0 in lines:
                    os.kill(lines[0].process.pid, signal.SIGKILL)
        assert len(manager.collect_experiences(timeout=60)) == 1
        assert are_gone([halted])


def test_who_takes_the_place_of_a_paused_worker_is_paused_too(setup):
    config, agent = setup("num_workers=2")
    with ParallelManager(config, agent) as manager:
        manager.pause_workers([0])
        killed = pids(manager)[0]
        os.kill(killed, signal.SIGKILL)
        wait_for(
            manager,
            lambda: pids(manager).get(0, killed) != killed and manager._supervisor.all_ready(),
        )
        assert len(manager.collect_experiences(target_steps=64)) == 1
        assert manager.get_statistics()["queue_info"]["paused"] == 1


def test_a_worker_that_hangs_is_replaced_after_its_timeout(setup):
    config, agent = setup("num_workers=2", "worker_timeout=2")
    with ParallelManager(config, agent) as manager:
        stopped = pids(manager)[0]
        os.kill(stopped, signal.SIGSTOP)
        assert len(manager.collect_experiences()) == 2
        assert manager.get_statistics()["restarts"] == 1
        assert are_gone([stopped])


def test_too_many_failures_are_an_error_that_names_the_worker(setup):
    config, agent = setup("max_restarts=0")
    with ParallelManager(config, agent) as manager:
        os.kill(pids(manager)[0], signal.SIGKILL)
        with pytest.raises(ParallelError, match=r"keisei-worker-0 ended \(SIGKILL"):
            manager.collect_experiences()


def test_workers_that_cannot_start_are_an_error_with_their_reason(setup, tmp_path, monkeypatch):
    # A module of this name that cannot be imported stands before the real one.
    (tmp_path / "rsshogi.py").write_text("raise ImportError('broken on purpose')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(line, "_nursery", Nursery())  # one that has not loaded it yet
    config, agent = setup()
    with pytest.raises(ParallelError, match="before it was ready"), ParallelManager(config, agent):
        pass


def test_workers_have_the_code_of_the_process_that_started_them(setup, tmp_path, monkeypatch):
    for name in ("traceback", "select", "keisei"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a stranger in the current folder')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(line, "_nursery", Nursery())
    with ParallelManager(*setup()) as manager:
        assert len(manager.collect_experiences()) == 1
        assert manager.get_statistics()["restarts"] == 0


def test_the_process_that_starts_the_workers_may_be_killed(setup):
    config, agent = setup("num_workers=2")
    first, second = serial_rounds(config, agent, 2)
    with ParallelManager(config, agent) as manager:
        for one, two in zip(first, manager.collect_experiences(), strict=True):
            assert_same_bytes(one, two)
        (nursery,) = {psutil.Process(pid).ppid() for pid in pids(manager).values()}
        os.kill(nursery, signal.SIGKILL)
        for one, two in zip(second, manager.collect_experiences(), strict=True):
            assert_same_bytes(one, two)


def test_the_process_that_starts_the_workers_may_be_halted_while_one_is_killed(setup, monkeypatch):
    monkeypatch.setattr(worker_communicator, "STOP_TIMEOUT", 0.2)  # all the same, but sooner
    config, agent = setup("num_workers=2")
    (expected,) = serial_rounds(config, agent, 1)
    with ParallelManager(config, agent) as manager:
        worker = pids(manager)[0]
        nursery = psutil.Process(worker).parent()
        given_up = threading.Event()
        monkeypatch.setattr(supervisor.log, "warning", lambda *_: given_up.set())
        nursery.suspend()  # nobody says how the worker ended, nor starts another
        try:
            os.kill(worker, signal.SIGKILL)
            assert given_up.wait(60)
        finally:
            nursery.resume()
        for one, two in zip(expected, manager.collect_experiences(), strict=True):
            assert_same_bytes(one, two)


def test_an_exception_in_a_worker_reaches_the_user_with_its_traceback(setup, caplog):
    config, agent = setup("num_workers=2")
    with ParallelManager(config, agent) as manager:
        pid = pids(manager)[1]
        used = psutil.Process(pid).memory_info().vms
        resource.prlimit(pid, resource.RLIMIT_AS, (used, used))  # it may not take any more memory
        wanted = manager.parallel.rollout_steps * 40
        manager.collect_experiences(target_steps=wanted)
        statistics = manager.get_statistics()
    assert statistics["restarts"] >= 1
    assert "Traceback" in caplog.text
    assert "self_play_worker.py" in caplog.text
    assert "keisei-worker-1" in caplog.text


def test_an_error_of_the_supervisor_itself_is_one_of_the_workers_with_its_traceback(setup, caplog):
    config, agent = setup()
    with pytest.raises(ParallelError, match="the supervisor failed: TypeError"):
        ParallelManager(config, agent).start_workers([{"no pipe takes": threading.Lock()}])
    assert "Traceback" in caplog.text


def test_no_file_descriptors_left_is_an_error_that_says_so(setup):
    config, agent = setup("num_workers=2")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)  # the lowest number that is free: others may be open above it
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 2, limit[1]))
    try:
        with pytest.raises(ParallelError, match="Too many open files"):
            ParallelManager(config, agent).start_workers()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def test_memory_that_cannot_be_had_is_an_error_that_says_so(setup):
    config, agent = setup("num_envs_per_worker=10000", "rollout_length=1000000")
    with pytest.raises(ParallelError, match=r"could not be allocated .* GiB are needed and"):
        ParallelManager(config, agent).start_workers()


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from tests.parallel.conftest import make
from keisei.training.parallel import ParallelManager

config, agent = make("num_workers=2", "inference={inference}")
manager = ParallelManager(config, agent)
manager.start_workers()
print(*[line.process.pid for line in manager._supervisor.communicator.lines.values()], flush=True)
while True:
    manager.collect_experiences()
"""


def forked(script):
    return Process([], script)


def fresh(script):
    return subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("inference", "start"), [("local", forked), ("central", fresh)])
def test_all_leave_when_the_main_process_is_killed_and_a_script_needs_no_guard(
    tmp_path, inference, start
):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parents[2]), inference=inference))
    before = files_in_shared_memory()
    main = start(script)
    started = [int(pid) for pid in main.stdout.readline().split()]
    names = {Path(f"/proc/{pid}/comm").read_text().strip() for pid in started}
    assert names >= {"keisei-worker-0", "keisei-worker-1"}
    assert ("keisei-inferenc" in names) == (inference == "central")
    main.kill()
    main.communicate(timeout=30)
    assert are_gone(started)
    assert files_in_shared_memory() <= before
