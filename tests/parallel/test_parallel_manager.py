import logging
import os
import signal

import pytest

from keisei.training import parallel
from keisei.training.parallel import ParallelError, ParallelManager, make_manager
from keisei.training.parallel.statistics import worker_rows

from .conftest import are_gone, assert_same_bytes, pids, serial_rounds, wait_for


@pytest.mark.parametrize(
    ("workers", "shared"), [(1, "true"), (2, "true"), (4, "true"), (2, "false")]
)
def test_workers_give_the_same_rollouts_as_serial_play_byte_for_byte(setup, workers, shared):
    config, agent = setup(f"num_workers={workers}", f"use_shared_memory={shared}")
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


def test_as_many_steps_as_wanted_are_brought_even_if_they_need_more_slots_than_there_are(setup):
    config, agent = setup("num_workers=2")
    with ParallelManager(config, agent) as manager:
        rollouts = manager.collect_experiences(target_steps=200)
        assert [r.num_steps for r in rollouts] == [64] * 4
        slots = manager._supervisor.collector.num_slots
        rollouts = manager.collect_experiences(target_steps=3 * slots * 64)
        assert len(rollouts) == 3 * slots
        assert all((r.actions >= 0).all() and (r.values == r.values).all() for r in rollouts)
        assert manager.get_statistics()["total_steps"] == (4 + 3 * slots) * 64


def test_after_its_timeout_a_collection_returns_what_there_is(setup):
    config, agent = setup("num_workers=2")
    with ParallelManager(config, agent) as manager:
        assert manager.collect_experiences(timeout=0) == []
        assert [r.num_steps for r in manager.collect_experiences()] == [64, 64]


def test_without_workers_the_same_is_played_in_this_process(setup):
    config, agent = setup("num_workers=2", "enabled=false")
    manager = make_manager(config, agent)
    assert manager.collect_experiences(timeout=0) == []
    for expected in serial_rounds(config, agent, 2):
        for one, two in zip(expected, manager.collect_experiences(), strict=True):
            assert_same_bytes(one, two)
    assert manager.get_statistics() == {"is_running": False, "workers": {}}


def test_paused_workers_play_no_more_until_they_are_resumed(setup):
    config, agent = setup("num_workers=2")
    with ParallelManager(config, agent) as manager:
        manager.pause_workers([0])
        assert len(manager.collect_experiences(target_steps=64)) == 1
        manager.resume_workers()
        assert len(manager.collect_experiences()) == 2
        manager.pause_workers()
        with pytest.raises(ParallelError, match="paused"):
            manager.collect_experiences()
        with pytest.raises(ParallelError, match=r"no worker \[9\]"):
            manager.pause_workers([9])


def test_a_renewed_worker_goes_on_with_the_games_of_the_one_before(setup):
    config, agent = setup("num_workers=2")
    with ParallelManager(config, agent) as manager:
        first, second, third = serial_rounds(config, agent, 3)
        assert_same_bytes(first[1], manager.collect_experiences()[1])
        before = pids(manager)
        manager.reset_workers([1])
        after = pids(manager)
        assert (after[0] == before[0], after[1] == before[1]) == (True, False)
        assert manager.get_statistics()["restarts"] == 0
        for expected in (second, third):
            for one, two in zip(expected, manager.collect_experiences(), strict=True):
                assert_same_bytes(one, two)


def test_the_number_of_workers_changes_while_they_run_and_no_rollout_is_lost(setup):
    config, agent = setup("num_workers=2", "mode=async")
    with ParallelManager(config, agent) as manager:
        before = pids(manager)
        manager.scale_to(3)
        assert len(manager.get_statistics()["workers"]) == 3
        manager.scale_to(1)  # while all of them play
        wait_for(manager, lambda: manager._supervisor.collector.waiting)
        statistics = manager.get_statistics()
        assert statistics["active_workers"] == 1
        assert are_gone([before[1]])
        waiting = statistics["queue_info"]["rollouts_waiting"]
        assert waiting == statistics["total_rollouts"]
        with pytest.raises(ParallelError, match=r"scale_to\(0\)"):
            manager.scale_to(0)


def test_statistics_tell_how_every_workers_games_ended_and_what_its_moves_were_rewarded_with(setup):
    config, agent = setup("num_workers=2", "env.move_limit=16", "env.material_reward=0.1")
    with ParallelManager(config, agent) as manager:
        rollouts = [rollout.copy() for rollout in manager.collect_experiences()]
        workers = manager.get_statistics()["workers"]
    for worker, rollout in zip(workers.values(), rollouts, strict=True):
        assert worker["results"]["drawn"] == 4  # by the move limit
        assert worker["mean_reward"] == pytest.approx(rollout.rewards.mean())
    assert any(rollout.rewards.any() for rollout in rollouts)


def test_statistics_tell_what_every_worker_does_and_where_the_rollouts_are(setup):
    config, agent = setup("num_workers=2")
    with ParallelManager(config, agent) as manager:
        manager.collect_experiences()
        statistics = manager.get_status()
        assert statistics["total_rollouts"] == 2
        assert statistics["queue_info"] == {
            "workers": 2,
            "ready": 2,
            "paused": 0,
            "slots_in_work": 0,
            "rollouts_waiting": 0,
            "slots_free": manager._supervisor.collector.num_slots - 2,  # the learner has two
        }
        assert statistics["synchronization"]["sync_count"] == 1
        assert statistics["learner_waited"] > 0
        for worker in statistics["workers"].values():
            assert worker["steps"] == 64
            assert 0 < worker["busy"] < 1
            assert 0 < worker["busy"] + worker["waiting"] + worker["syncing"] <= 1.01
        for row, index in zip(worker_rows(manager), (0, 1), strict=True):
            assert (row["worker"], row["state"], row["restarts"], row["lag"]) == (
                index,
                "running",
                0,
                0,
            )
            assert row["resident_mb"] > 1
            assert row["node"] is None
    assert manager.get_statistics() == {"is_running": False}


def test_what_the_plans_name_is_there_under_that_name(setup):
    names = ["ParallelManager", "SelfPlayWorker", "WorkerCommunicator", "ModelSynchronizer"]
    assert {*names, "ExperienceCollector"} <= set(parallel.__all__)
    config, agent = setup("num_workers=2")
    manager = ParallelManager(config, agent)
    assert manager.workers == []
    manager.start_workers()
    assert [worker.process.pid for worker in manager.workers] == list(pids(manager).values())
    assert isinstance(manager.communicator, parallel.WorkerCommunicator)
    assert manager.communicator.get_queue_info()["ready"] == 2
    assert manager.get_status()["queue_info"]["workers"] == 2
    manager.sync_model_to_workers()
    manager.stop_workers()
    assert manager.workers == []


def test_nothing_is_left_after_shutdown(setup):
    config, agent = setup("num_workers=2")
    files = set(os.listdir("/proc/self/fd"))
    manager = ParallelManager(config, agent)
    manager.start_workers()
    manager.start_workers()  # they are there already
    started = pids(manager)
    manager.collect_experiences()
    manager.shutdown()
    manager.shutdown()
    assert are_gone(started.values(), seconds=0)
    assert set(os.listdir("/proc/self/fd")) == files
    with pytest.raises(ParallelError, match="start_workers"):
        manager.collect_experiences()


def test_the_log_tells_the_life_of_every_worker_with_its_process(setup, caplog):
    caplog.set_level(logging.DEBUG, logger="keisei.training.parallel")
    config, agent = setup()
    with ParallelManager(config, agent) as manager:
        first = pids(manager)[0]
        manager.collect_experiences()
        agent.version += 1
        manager.synchronize_models()
        os.kill(first, signal.SIGKILL)
        wait_for(manager, lambda: pids(manager).get(0, first) != first)
        wait_for(manager, manager._supervisor.all_ready)
        second = pids(manager)[0]
        manager.reset_workers()
        third = pids(manager)[0]
    log = [record.getMessage() for record in caplog.records]
    one, two, three = (f"keisei-worker-0 (process {pid})" for pid in (first, second, third))
    life = [
        "version 0 of the weights is there for all workers",
        f"{one} starts",
        f"{one} is ready",
        f"{one} begins a rollout with version 0 in slot 0",
        f"{one} finished a rollout; ",
        "version 1 of the weights is there for all workers",
        f"{one} ended (SIGKILL (killed, or out of memory)): a new one takes its place",
        f"{two} starts",
        f"{two} is ready",
        f"{two} is told to leave",
        f"{two} has left",
        f"{three} starts",
        f"{three} is ready",
        f"all processes are stopped: ['{three}']",
    ]
    assert len(log) == len(life)
    for line, wanted in zip(log, life, strict=True):
        assert line.startswith(wanted)
