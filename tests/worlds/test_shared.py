"""Learners that share one network, if the settings say so."""

import numpy as np
import pytest
import torch

from keisei.worlds.learning import merged
from tests.worlds.conftest import LEARNERS, same, trajectory, weights_of

SHARED = "shared_weights=true"
ASYNC = ["parallel.async_learning=true", "parallel.parallel_training=false"]
MODES = {
    "plain": ["parallel.enabled=false"],
    "one by one": ["parallel.parallel_actions=false", "parallel.parallel_training=false"],
    "at once": [],
}


def assert_equal(first, second):
    for one, other in zip(weights_of(first), weights_of(second), strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("kind", LEARNERS)
def test_the_weights_are_the_same_for_all_and_in_every_mode(make, kind):
    made = [make(SHARED, f"agents=[{kind}]", *mode) for mode in MODES.values()]
    results = [environment.run_experiment(3)[-1].returns for environment in made]
    first, second = weights_of(made[0])
    assert all(torch.equal(first[name], second[name]) for name in first)
    for environment, returns in zip(made[1:], results[1:], strict=True):
        assert_equal(made[0], environment)
        assert np.array_equal(returns, results[0])


@pytest.mark.parametrize("kind", LEARNERS)
def test_agents_with_one_network_act_the_same_together_and_one_by_one(make, kind):
    plain = make(SHARED, f"agents=[{kind}]", *MODES["plain"])
    assert same(trajectory(plain, 30), trajectory(make(SHARED, f"agents=[{kind}]"), 30))


def test_learning_beside_acting_gives_the_same_in_threads_and_processes(make):
    threads = make(SHARED, *ASYNC, "parallel.use_threads=true")
    processes = make(SHARED, *ASYNC)
    threads.run_experiment(4)
    processes.run_experiment(4)
    assert_equal(threads, processes)
    assert len(processes.groups) == 1


def test_a_shared_network_learns_from_all_of_its_agents(make):
    shared = make(SHARED, *MODES["plain"])
    shared.collect_epoch()
    (_, first), (_, second) = shared.learners
    assert first.state["w0"].data_ptr() == second.state["w0"].data_ptr()
    assert first.memory is not second.memory
    both = merged([first.draw(2), second.draw(2)])
    assert both["action"].shape == (1, 2, 16)
    assert not np.array_equal(both["state"][:, :, :8], both["state"][:, :, 8:])


def test_a_run_with_shared_weights_goes_on_as_it_was_kept(make):
    kept, loaded = make(SHARED), make(SHARED)
    kept.run_experiment(2)
    loaded.load_state_dict(kept.state_dict())
    kept.run_experiment(2)
    loaded.run_experiment(2)
    assert_equal(kept, loaded)


def test_only_learners_of_one_kind_and_with_equal_settings_share(make):
    agents = "agents=[double_dqn, double_dqn, {kind: double_dqn, gamma: 0.5}, ppo]"
    environment = make(SHARED, agents, "world_settings.num_agents=4")
    environment.run_experiment(1)
    places = [learner.state["w0"].data_ptr() for _, learner in environment.learners]
    assert places[0] == places[1]
    assert len(set(places)) == 3
