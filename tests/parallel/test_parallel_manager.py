import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from keisei.core.rollout import Rollout
from keisei.training.parallel import ParallelError, ParallelManager
from keisei.training.shard import make_shard, new_rollout


def assert_same_bytes(one: Rollout, two: Rollout) -> None:
    for name, value in vars(one).items():
        other = getattr(two, name)
        if isinstance(value, np.ndarray):
            assert value.dtype == other.dtype, name
            assert value.tobytes() == other.tobytes(), name
        else:
            assert value == other, name


def serial_rounds(config, agent, rounds):
    shards = [make_shard(config, i) for i in range(config.training.parallel.num_workers)]
    for _ in range(rounds):
        rollouts = []
        for shard in shards:
            rollout = new_rollout(config)
            shard.collect(agent.evaluate, rollout, agent.version)
            rollouts.append(rollout)
        yield rollouts


def pids(manager):
    return {i: row["pid"] for i, row in manager.get_statistics()["workers"].items()}


def alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        os.sched_yield()


@pytest.mark.parametrize("shared", ["true", "false"])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_workers_give_the_same_rollouts_as_serial_play_byte_for_byte(setup, workers, shared):
    config, agent = setup(
        f"training.parallel.num_workers={workers}", f"training.parallel.use_shared_memory={shared}"
    )
    with ParallelManager(config, agent) as manager:
        for expected in serial_rounds(config, agent, 3):
            rollouts = manager.collect_experiences()
            for one, two in zip(expected, rollouts, strict=True):
                assert_same_bytes(one, two)


def test_rollouts_whose_legal_actions_do_not_fit_the_slot_arrive_whole(setup):
    most = "R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1"
    config, agent = setup(f"env.start_positions=['{most}']", "env.move_limit=1")
    with ParallelManager(config, agent) as manager:
        (rollout,) = manager.collect_experiences()
        assert len(rollout.legal) == 593 * rollout.num_steps
        ((expected,),) = serial_rounds(config, agent, 1)
        assert_same_bytes(expected, rollout)


def test_target_steps_brings_at_least_so_many(setup):
    config, agent = setup("training.parallel.num_workers=2")
    with ParallelManager(config, agent) as manager:
        rollouts = manager.collect_experiences(target_steps=200)
        assert sum(r.num_steps for r in rollouts) == 256
        assert manager.get_statistics()["total_steps"] == 256
        assert len(manager.current_game().moves) == 32 % 30  # of move_limit


def test_new_weights_reach_the_workers_at_the_next_rollout(setup):
    config, agent = setup("training.parallel.num_workers=2")
    with ParallelManager(config, agent) as manager:
        assert [r.version for r in manager.collect_experiences()] == [0, 0]
        agent.version = 7
        manager.synchronize_models()
        assert [r.version for r in manager.collect_experiences()] == [7, 7]


def test_a_killed_worker_is_replaced_and_collection_goes_on(setup):
    config, agent = setup("training.parallel.num_workers=2")
    with ParallelManager(config, agent) as manager:
        manager.collect_experiences()
        before = pids(manager)
        for pid in before.values():
            os.kill(pid, signal.SIGKILL)
        rollouts = manager.collect_experiences()
        assert [r.num_steps for r in rollouts] == [64, 64]
        stats = manager.get_statistics()
        assert stats["restarts"] == 2
        assert stats["total_rollouts"] == 4
        assert not set(before.values()) & set(pids(manager).values())


def test_a_worker_that_hangs_is_replaced_after_its_timeout(setup):
    config, agent = setup("training.parallel.num_workers=2", "training.parallel.worker_timeout=2")
    with ParallelManager(config, agent) as manager:
        stopped = pids(manager)[0]
        os.kill(stopped, signal.SIGSTOP)
        assert len(manager.collect_experiences()) == 2
        assert manager.get_statistics()["restarts"] == 1
        assert not alive(stopped)


def test_too_many_failures_are_an_error_that_names_the_worker(setup):
    config, agent = setup("training.parallel.max_restarts=0")
    with ParallelManager(config, agent) as manager:
        os.kill(pids(manager)[0], signal.SIGKILL)
        with pytest.raises(ParallelError, match=r"keisei-worker-0 ended \(SIGKILL"):
            manager.collect_experiences()


def test_workers_that_cannot_start_are_an_error_with_their_reason(setup, tmp_path, monkeypatch):
    # A module of this name that cannot be imported stands before the real one.
    (tmp_path / "rsshogi.py").write_text("raise ImportError('broken on purpose')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    config, agent = setup()
    with pytest.raises(ParallelError, match="before it was ready"), ParallelManager(config, agent):
        pass


def test_paused_workers_play_no_more_until_they_are_resumed(setup):
    config, agent = setup("training.parallel.num_workers=2")
    with ParallelManager(config, agent) as manager:
        manager.pause_workers([0])
        assert len(manager.collect_experiences()) == 1
        manager.resume_workers()
        assert len(manager.collect_experiences()) == 2
        manager.pause_workers()
        with pytest.raises(ParallelError, match="paused"):
            manager.collect_experiences()
        with pytest.raises(ParallelError, match=r"no worker \[9\]"):
            manager.pause_workers([9])


def test_workers_can_be_reset_and_their_number_changed_while_running(setup):
    config, agent = setup("training.parallel.num_workers=2")
    with ParallelManager(config, agent) as manager:
        before = pids(manager)
        manager.reset_workers([1])
        after = pids(manager)
        assert (after[0] == before[0], after[1] == before[1]) == (True, False)
        manager.scale_to(3)
        assert len(manager.collect_experiences()) == 3
        manager.scale_to(1)
        assert len(manager.collect_experiences()) == 1
        assert not any(alive(pid) for pid in before.values() if pid != before[0])


def test_nothing_is_left_after_shutdown(setup):
    config, agent = setup("training.parallel.num_workers=2")
    files = set(os.listdir("/proc/self/fd"))
    manager = ParallelManager(config, agent)
    manager.start_workers()
    started = pids(manager)
    manager.collect_experiences()
    manager.shutdown()
    manager.shutdown()
    assert not any(alive(pid) for pid in started.values())
    assert set(os.listdir("/proc/self/fd")) == files
    with pytest.raises(ParallelError, match="start_workers"):
        manager.collect_experiences()


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from tests.parallel.conftest import make
from keisei.training.parallel import ParallelManager

config, agent = make("training.parallel.num_workers=2")
manager = ParallelManager(config, agent)
manager.start_workers()
print(*[row["pid"] for row in manager.get_statistics()["workers"].values()], flush=True)
while True:
    manager.collect_experiences()
"""


def test_workers_leave_when_the_main_process_is_killed_and_a_script_needs_no_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parents[2])))
    before = set(os.listdir("/dev/shm"))
    main = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    workers = [int(pid) for pid in main.stdout.readline().split()]
    assert len(workers) == 2
    names = {Path(f"/proc/{pid}/comm").read_text().strip() for pid in workers}
    assert names == {"keisei-worker-0", "keisei-worker-1"}
    main.kill()
    main.communicate(timeout=30)
    wait_until(lambda: not any(alive(pid) for pid in workers), seconds=10)
    assert set(os.listdir("/dev/shm")) <= before
