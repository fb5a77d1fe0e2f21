import os
import signal
import time

import numpy as np
import pytest

from keisei.config_schema import load_config
from keisei.core import precision
from keisei.selfplay.plan import UpdatePlan
from keisei.settings import ConfigError
from keisei.training.parallel import ParallelError, ParallelManager, make_manager
from keisei.training.parallel.model_sync import pack_weights, unpack_weights
from keisei.training.parallel.ray_sizing import fit_to_cluster
from keisei.training.parallel.statistics import worker_metrics
from tests.parallel.conftest import are_gone, assert_same_bytes, make, pids, serial_rounds

pytestmark = pytest.mark.usefixtures("own_cluster")


def ray_manager(*overrides):
    config, agent = make("backend=ray", *overrides)
    return config, agent, make_manager(config, agent)


def rounds_are_serial(manager, config, agent, rounds):
    for expected in rounds:
        for one, two in zip(expected, manager.collect_experiences(), strict=True):
            assert_same_bytes(one, two)


NATIVE = pytest.mark.skipif(
    not precision._is_native(), reason="this processor does not multiply bfloat16 itself"
)


@pytest.mark.parametrize(
    ("workers", "algorithm", "numbers"),
    [
        (1, "ppo", "float32"),
        (2, "gumbel", "float32"),
        pytest.param(2, "ppo", "bfloat16", marks=NATIVE),
        pytest.param(2, "gumbel", "bfloat16", marks=NATIVE),
    ],
)
def test_serial_process_and_ray_give_the_same_rollouts_byte_for_byte(workers, algorithm, numbers):
    wanted = [f"num_workers={workers}"]
    wanted += [f"training.algorithm={algorithm}", f"training.precision={numbers}"]
    config, agent, manager = ray_manager(*wanted)
    rounds = list(serial_rounds(config, agent, 3))
    with manager:
        rounds_are_serial(manager, config, agent, rounds)
    config, agent = make(*wanted)
    with ParallelManager(config, agent) as processes:
        rounds_are_serial(processes, config, agent, rounds)


def test_a_manager_of_processes_refuses_the_settings_of_ray():
    with pytest.raises(ParallelError, match="make_manager"):
        ParallelManager(*make("backend=ray")).start_workers()


def test_shares_of_workers_are_looked_at_when_the_cluster_says_how_many_there_are():
    settings = ["backend=ray", "opponent_shares={past: 0.001}"]
    config = load_config(overrides=[f"training.parallel.{setting}" for setting in settings])
    with pytest.raises(ConfigError, match="opponent_shares"):
        fit_to_cluster(config)


def test_new_weights_play_from_the_next_rollout_on():
    _, agent, manager = ray_manager("num_workers=2")
    with manager:
        manager.collect_experiences()
        states = manager.shard_states()
        unpack_weights(agent.network, pack_weights(agent.network) * 0.5)
        agent.version += 1
        manager.synchronize_models()
        rollouts = manager.collect_experiences()
        assert [rollout.version for rollout in rollouts] == [agent.version] * 2
    _, other, restarted = ray_manager("num_workers=2")
    other.network.load_state_dict(agent.network.state_dict())
    other.version = agent.version
    restarted.start_workers(states)
    try:  # going on with the games is the same as not having stopped
        for one, two in zip(rollouts, restarted.collect_experiences(), strict=True):
            assert_same_bytes(one, two)
    finally:
        restarted.shutdown()


def test_with_compression_the_rounded_weights_play():
    config, agent, manager = ray_manager("compression_enabled=true")
    rounded = pack_weights(agent.network, half=True).astype(np.float32)
    with manager:
        assert manager.get_statistics()["synchronization"]["bytes"] == 2 * len(rounded)
        (rollout,) = manager.collect_experiences()
    unpack_weights(agent.network, rounded)
    ((expected,),) = serial_rounds(config, agent, 1)
    assert_same_bytes(expected, rollout)


def test_a_killed_worker_comes_back_and_nothing_is_different_for_it():
    config, agent, manager = ray_manager("num_workers=2")
    first, second, third = serial_rounds(config, agent, 3)
    with manager:
        rounds_are_serial(manager, config, agent, [first])
        before = pids(manager)
        os.kill(before[1], signal.SIGKILL)
        rounds_are_serial(manager, config, agent, [second, third])
        statistics = manager.get_statistics()
        assert (statistics["restarts"], statistics["total_rollouts"]) == (1, 6)
        assert pids(manager)[1] != before[1]


def test_a_hung_worker_is_a_dead_one():
    config, agent, manager = ray_manager("num_workers=2", "worker_timeout=3")
    first, second = serial_rounds(config, agent, 2)
    with manager:
        rounds_are_serial(manager, config, agent, [first])
        hung = pids(manager)[1]
        os.kill(hung, signal.SIGSTOP)
        rollouts = manager.collect_experiences()
        assert are_gone([hung])
        # The other worker played on alone if the new one took longer than worker_timeout to start.
        assert_same_bytes(second[0], rollouts[0])
        assert sum(rollout.num_steps for rollout in rollouts) == 128
        assert manager.get_statistics()["restarts"] == 1


def test_a_learner_that_takes_its_time_does_not_make_its_workers_hung_ones():
    _, _, manager = ray_manager("num_workers=2", "mode=async", "worker_timeout=1")
    with manager:
        manager.collect_experiences()
        time.sleep(1.5)  # it learns
        manager.collect_experiences()
        assert manager.get_statistics()["restarts"] == 0


def test_workers_that_are_started_again_without_games_begin_anew():
    config, agent, manager = ray_manager("num_workers=2")
    first, second = serial_rounds(config, agent, 2)
    with manager:
        rounds_are_serial(manager, config, agent, [first, second])
        manager.shutdown()
        manager.start_workers()
        rounds_are_serial(manager, config, agent, [first])


def test_workers_that_fail_too_often_are_given_up():
    _, _, manager = ray_manager("max_restarts=0")
    with manager:
        manager.collect_experiences()
        os.kill(pids(manager)[0], signal.SIGKILL)
        with pytest.raises(ParallelError, match="max_restarts"):
            manager.collect_experiences()


def test_async_rollouts_count_once_and_no_more_than_two_of_a_worker_are_on_their_way():
    _, agent, manager = ray_manager("num_workers=2", "mode=async", "max_policy_lag=100")
    played = {0: [], 1: []}
    with manager:
        for _ in range(10):
            agent.version += 1
            manager.synchronize_models()
            manager.collect_experiences()
            for index, line in manager.lines.items():
                assert len(line.work) <= 2
                played[index].append(line.rollouts)
        statistics = manager.get_statistics()
        waiting = statistics["queue_info"]["rollouts_waiting"]
        assert statistics["total_rollouts"] - waiting >= 20
        assert statistics["total_steps"] == 64 * statistics["total_rollouts"]
        assert statistics["dropped_rollouts"] == 0
    assert all(counts == sorted(counts) for counts in played.values())


def test_the_numbers_of_an_update_are_there_when_all_workers_are_away():
    _, _, manager = ray_manager("mode=async")
    with manager:
        manager.collect_experiences()
        os.kill(pids(manager)[0], signal.SIGKILL)
        deadline = time.monotonic() + 60
        while pids(manager) and time.monotonic() < deadline:
            manager._give_work(UpdatePlan.of(manager.parallel))  # as while the learner waits
            manager._hear(1.0)
        assert worker_metrics(manager)["workers"] == 0


def test_every_worker_finishes_the_games_that_are_wanted_of_it():
    _, _, manager = ray_manager("num_workers=2", "episodes_per_worker=8")
    with manager:
        manager.collect_experiences()
        assert len(manager.finished_games) >= 16


def test_statistics_name_the_nodes_the_workers_on_each_and_the_bytes_moved():
    _, _, manager = ray_manager("num_workers=2")
    with manager:
        rollouts = manager.collect_experiences()
        statistics = manager.get_status()
        (node,) = statistics["cluster"]["nodes"]
        assert node["workers"] == 2
        assert statistics["cluster"]["rollout_bytes"] == sum(r.nbytes for r in rollouts)
        assert statistics["cluster"]["weights_bytes"] == pack_weights(manager.agent.network).nbytes
        assert statistics["cluster"]["object_store"]["bytes_free"] > 0
        assert statistics["cluster"]["object_store"]["spilled_bytes"] == 0
        for worker in statistics["workers"].values():
            assert worker["node"] == node["node"]
            assert 0 < worker["busy"] + worker["waiting"] + worker["syncing"] <= 1.01
        gone = list(pids(manager).values())
    assert are_gone(gone)
    assert manager.get_statistics()["is_running"] is False
