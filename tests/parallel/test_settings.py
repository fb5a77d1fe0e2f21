"""Every field of `training.parallel` does what it says."""

import numpy as np
import pytest

from keisei.config_schema import load_config
from keisei.parallel_config import ParallelConfig
from keisei.processes.machine import cores
from keisei.settings import ConfigError
from keisei.training.parallel import ParallelManager
from keisei.training.parallel.model_sync import pack_weights, unpack_weights

from .conftest import make, pids, wait_for


def test_every_field_has_a_description_and_a_test_here_or_where_it_is_named():
    tested_elsewhere = {
        "enabled": "tests/training: with and without workers",
        "worker_timeout": "test_failures: a worker that hangs",
        "max_restarts": "test_failures: too many failures",
        "use_shared_memory": "test_parallel_manager: the same rollouts",
        "mode": "test_async",
        "max_policy_lag": "test_async",
        "inference": "test_central_inference",
        "opponent_shares": "test_opponents",
        "ray_address": "tests/cluster: a cluster that is joined, and a wrong address",
        "elastic": "tests/cluster: a node that joins",
    }
    tests_here = " ".join(name for name in globals() if name.startswith("test_"))
    for name, field in ParallelConfig.model_fields.items():
        assert field.description, name
        assert name in tested_elsewhere or name in tests_here, name


def test_num_workers_and_enabled_follow_the_machine():
    parallel = ParallelConfig()
    assert parallel.num_workers == cores()
    assert parallel.enabled == (cores() > 1)


def test_backend_is_process_and_others_are_refused_by_name():
    with pytest.raises(ConfigError, match=r"training\.parallel\.backend"):
        load_config(overrides=["training.parallel.backend=carrier_pigeon"])


def test_num_envs_per_worker_and_rollout_length_are_the_shape_of_a_rollout():
    config, agent = make("num_envs_per_worker=3", "rollout_length=7", "training.minibatch_size=8")
    with ParallelManager(config, agent) as manager:
        (rollout,) = manager.collect_experiences()
        assert rollout.actions.shape == (7, 3)


def test_experience_batch_size_is_what_a_collection_brings_at_least():
    config, agent = make("num_workers=2", "experience_batch_size=300")
    with ParallelManager(config, agent) as manager:
        assert sum(r.num_steps for r in manager.collect_experiences()) == 320


def test_episodes_per_worker_are_finished_in_every_collection():
    config, agent = make("num_workers=2", "episodes_per_worker=9")
    with ParallelManager(config, agent) as manager:
        rollouts = manager.collect_experiences()
        # Games end after at most 30 moves; a rollout has 16 moves of 4 games.
        assert len(rollouts) >= 2 * 3
        assert len(manager.finished_games) >= 2 * 9


def test_model_sync_interval_updates_pass_before_workers_get_new_weights():
    config, agent = make("model_sync_interval=3")
    with ParallelManager(config, agent) as manager:
        versions = []
        for agent.version in range(7):
            manager.synchronize_models()
            versions += [rollout.version for rollout in manager.collect_experiences()]
        assert versions == [0, 0, 0, 3, 3, 3, 6]
    with pytest.raises(ConfigError, match="model_sync_interval"):
        make("model_sync_interval=9", "max_policy_lag=2")


@pytest.mark.parametrize(("mode", "most"), [("sync", 1), ("async", 8)])
def test_weights_that_take_long_to_hand_over_are_handed_over_less_often(mode, most):
    config, agent = make("model_sync_interval=auto", f"mode={mode}")
    with ParallelManager(config, agent) as manager:
        assert manager.metrics()["sync_interval"] == 1
        for _ in range(4):
            manager._acting.adapt(cost=0.05)
        assert manager.sync_interval == most
        versions = []
        for agent.version in range(2 * most):
            manager.synchronize_models()
            versions.append(manager.published)
        assert manager.collect_experiences()
        assert versions[: most + 1] == ([0] * most + [most])[: 2 * most]
        for _ in range(4):
            manager._acting.adapt(cost=0.001)
        assert manager.sync_interval == 1


@pytest.mark.parametrize("limit", ["games_per_worker=4", "worker_reset_interval=128"])
def test_games_per_worker_and_worker_reset_interval_renew_the_process(limit):
    config, agent = make(limit)
    with ParallelManager(config, agent) as manager:
        first = pids(manager)[0]
        for _ in range(2):  # 32 moves of 4 games: each has ended at least once
            manager.collect_experiences()
        wait_for(manager, lambda: manager._supervisor.all_ready() and pids(manager)[0] != first)
        second = pids(manager)[0]
        assert len(manager.collect_experiences()) == 1
        assert pids(manager)[0] == second  # it has its own share before it
        assert manager.get_statistics()["restarts"] == 0


def test_queue_maxsize_rollouts_wait_for_the_learner_and_then_workers_wait():
    config, agent = make("mode=async", "queue_maxsize=3")
    with ParallelManager(config, agent) as manager:
        collector = manager._supervisor.collector
        wait_for(manager, lambda: not collector.free and len(collector.waiting) == 3 + 2)
        assert manager._supervisor.communicator.get_queue_info()["slots_in_work"] == 0
        taken = manager.collect_experiences()
        assert len(taken) == 1  # the oldest; the others are not lost
        assert manager.get_statistics()["dropped_rollouts"] == 0


def test_compression_enabled_sends_weights_in_half_precision():
    config, agent = make("use_shared_memory=false", "compression_enabled=true")
    full, half = pack_weights(agent.network), pack_weights(agent.network, half=True)
    assert half.nbytes * 2 == full.nbytes
    with ParallelManager(config, agent) as manager:
        (rollout,) = manager.collect_experiences()
    unpack_weights(agent.network, half)  # the rounded policy is the one that played
    with ParallelManager(make("use_shared_memory=true")[0], agent) as manager:
        (expected,) = manager.collect_experiences()
        np.testing.assert_array_equal(rollout.log_probs, expected.log_probs)
