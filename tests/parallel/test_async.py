import numpy as np
import pytest

from keisei.core.policy import evaluate
from keisei.training.parallel import ParallelError, ParallelManager

from .conftest import wait_for


def test_workers_go_on_playing_while_nobody_collects(setup):
    config, agent = setup("mode=async", "num_workers=2", "queue_maxsize=6")
    with ParallelManager(config, agent) as manager:
        wait_for(manager, lambda: manager._supervisor.collector.totals["rollouts"] >= 6)
        assert len(manager.collect_experiences()) == 2
        assert manager.get_statistics()["queue_info"]["rollouts_waiting"] >= 4


def test_a_rollout_was_played_from_end_to_end_by_the_weights_of_its_version(setup):
    config, agent = setup("mode=async", "num_workers=2", "max_policy_lag=50")
    weights = {}
    with ParallelManager(config, agent) as manager:
        for version in range(8):
            weights[version] = {k: v.clone() for k, v in agent.network.state_dict().items()}
            rollouts = [rollout.copy() for rollout in manager.collect_experiences()]
            lags = manager._supervisor.collector.lags
            assert lags == [agent.version - rollout.version for rollout in rollouts]
            for rollout in rollouts:
                assert_played_by(agent.network, weights, rollout)
            agent.network.load_state_dict(weights[version])
            for weight in agent.network.parameters():
                weight.data.mul_(1.3)
            agent.version += 1
            manager.synchronize_models()
        assert max(rollout.version for rollout in rollouts) > 0


def assert_played_by(network, weights, rollout):
    network.load_state_dict(weights[rollout.version])
    seen = evaluate(network, rollout.positions)
    np.testing.assert_allclose(seen.values, rollout.values.ravel(), atol=1e-5)


def test_rollouts_that_lag_too_far_behind_are_dropped_and_counted(setup):
    config, agent = setup("mode=async", "max_policy_lag=2", "queue_maxsize=2")
    with ParallelManager(config, agent) as manager:
        collector = manager._supervisor.collector
        wait_for(manager, lambda: len(collector.waiting) == 4)
        agent.version = 5
        manager.synchronize_models()
        (rollout,) = manager.collect_experiences()
        assert rollout.version == 5
        statistics = manager.get_statistics()
        assert statistics["dropped_rollouts"] >= 4
        assert statistics["max_lag"] == 0


def test_weights_that_were_never_handed_on_are_an_error_and_not_an_endless_wait(setup):
    config, agent = setup("max_policy_lag=2")
    with ParallelManager(config, agent) as manager:
        agent.version = 3
        with pytest.raises(ParallelError, match=r"3 versions old.*synchronize_models"):
            manager.collect_experiences()


def test_a_slow_worker_does_not_hold_up_the_others(setup):
    config, agent = setup("mode=async", "num_workers=2", "experience_batch_size=640")
    with ParallelManager(config, agent) as manager:
        manager.pause_workers([0])
        rollouts = manager.collect_experiences()
        assert sum(rollout.num_steps for rollout in rollouts) >= 640
