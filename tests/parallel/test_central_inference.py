import os
import signal

import numpy as np

from keisei.core.policy import evaluate
from keisei.training.parallel import ParallelManager
from keisei.training.parallel.worker_communicator import INFERENCE

from .conftest import assert_same_bytes, begin, pids, serial_rounds, wait_for


def test_one_process_answers_all_workers_and_they_play_what_they_would_by_themselves(setup):
    config, agent = setup("num_workers=2", "inference=central")
    with ParallelManager(config, agent) as manager:
        for expected in serial_rounds(config, agent, 2):
            for one, two in zip(expected, manager.collect_experiences(), strict=True):
                assert_same_bytes(one, two)
        statistics = manager.get_statistics()
        assert statistics["inference"]["evaluations"] >= 2 * 2 * 64


def test_workers_that_began_with_older_weights_end_with_them(setup):
    config, agent = setup("num_workers=2", "inference=central", "mode=async", "max_policy_lag=99")
    old = {name: weight.clone() for name, weight in agent.network.state_dict().items()}
    versions = set()
    with ParallelManager(config, agent) as manager:
        for weight in agent.network.parameters():
            weight.data.mul_(1.5)
        agent.version = 1
        manager.synchronize_models()
        while 1 not in versions:
            for rollout in manager.collect_experiences():
                versions.add(rollout.version)
                new = {name: weight.clone() for name, weight in agent.network.state_dict().items()}
                agent.network.load_state_dict(old if rollout.version == 0 else new)
                seen = evaluate(agent.network, rollout.positions)
                np.testing.assert_allclose(seen.values, rollout.values.ravel(), atol=1e-5)
                agent.network.load_state_dict(new)


def test_the_inference_process_may_be_killed(setup):
    config, agent = setup("num_workers=2", "inference=central")
    with ParallelManager(config, agent) as manager:
        (expected,) = serial_rounds(config, agent, 1)
        lines = manager._supervisor.communicator.lines
        killed = lines[INFERENCE].process.pid
        begin(manager)
        wait_for(manager, lambda: all(line.slots for line in lines.values() if line.index >= 0))
        os.kill(killed, signal.SIGKILL)
        before = pids(manager)
        rollouts = manager.collect_experiences()
        for one, two in zip(expected, rollouts, strict=True):
            assert_same_bytes(one, two)
        assert pids(manager) == before  # the workers waited for its successor
        assert lines[INFERENCE].process.pid != killed
