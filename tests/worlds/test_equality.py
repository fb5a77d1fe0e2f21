"""The same trajectories and weights in every mode."""

import os

import numpy as np
import pytest
import torch

from keisei.worlds.config import ParallelWorldsConfig
from keisei.worlds.stack import clone
from tests.worlds.conftest import LEARNERS, same, trajectory, weights_of

ASYNC = "parallel.async_learning=true"


def assert_equal_weights(first, second):
    for one, other in zip(weights_of(first), weights_of(second), strict=True):
        for name in one:
            assert torch.equal(one[name], other[name]), name


@pytest.mark.parametrize("world", ["treasure_hunt", "cleanup", "tag", "stag_hunt", "coins"])
@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("order", ["simultaneous", "random"])
def test_sequential_and_parallel_actions_give_the_same_trajectories(make, world, kind, order):
    options = [f"agents=[{kind}]", "double_dqn.epsilon_start=0.3", f"turn_order={order}"]
    options += ["iqn.epsilon_start=0.3"]
    plain = make(*options, "parallel.enabled=false", world=world)
    turns = 24  # an episode has 20
    assert same(trajectory(plain, turns), trajectory(make(*options, world=world), turns))


@pytest.mark.parametrize("kind", LEARNERS)
def test_with_parallelism_off_the_results_of_training_are_those_of_the_plain_way(make, kind):
    agents = f"agents=[{kind}]"
    plain = make(agents, "parallel.enabled=false")
    off = make(agents, "parallel.parallel_actions=false", "parallel.parallel_training=false")
    first, second = plain.run_experiment(3), off.run_experiment_parallel(3)
    assert_equal_weights(plain, off)
    assert all(np.array_equal(a.returns, b.returns) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("kind", LEARNERS)
def test_stacked_training_gives_the_weights_of_the_plain_way(make, kind):
    agents = f"agents=[{kind}]"
    plain, stacked = make(agents, "parallel.enabled=false"), make(agents)
    plain.run_experiment(2)
    stacked.run_experiment(2)
    for one, other in zip(weights_of(plain), weights_of(stacked), strict=True):
        for name in one:
            assert torch.allclose(one[name], other[name], rtol=0, atol=1e-5), name


@pytest.mark.parametrize("kind", LEARNERS)
def test_learning_beside_collecting_depends_on_the_seed_and_not_on_who_was_faster(make, kind):
    beside = [f"agents=[{kind}]", ASYNC, "parallel.parallel_training=false"]
    threads = make(*beside, "parallel.use_threads=true")
    processes = make(*beside)
    threads.run_experiment(4)
    processes.run_experiment(4)
    assert_equal_weights(threads, processes)


@pytest.mark.parametrize("kind", LEARNERS)
def test_a_state_that_is_loaded_goes_on_as_the_one_that_was_kept(make, kind):
    kept, loaded = make(f"agents=[{kind}]"), make(f"agents=[{kind}]")
    kept.run_experiment(2)
    loaded.load_state_dict(kept.state_dict())
    first, second = kept.run_experiment(2), loaded.run_experiment(2)
    assert_equal_weights(kept, loaded)
    assert all(np.array_equal(a.returns, b.returns) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(
    "mode", [["parallel.enabled=false"], [ASYNC]], ids=["plain", "in a process"]
)
def test_a_state_that_was_kept_does_not_change_when_training_goes_on(make, mode):
    environment = make(*mode)
    for _ in range(2):
        environment.run_epoch()
    kept = environment.state_dict()
    states = [model["state"] for model in kept["models"]]
    states += [done["state"] for done in kept["ready"].values()]
    before = [clone(state) for state in states]
    environment.run_experiment(2)
    for one, other in zip(before, states, strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_loaded_state_is_trained_in_its_own_way_whatever_was_trained_before(make):
    """Another size of the stacks might change the last bits of the weights."""
    environment = make()
    environment.run_experiment(1)
    for chunk in (1, 2, 1):
        state = environment.state_dict()
        state["plans"][0]["chunk"] = chunk
        environment.load_state_dict(state)
        environment.run_experiment(1)
        assert environment.groups[0].worker._chunk == chunk


def test_a_training_under_way_is_not_lost_when_a_run_goes_on_in_the_plain_way(make):
    beside, plain = make(ASYNC, "parallel.use_threads=true"), make("parallel.enabled=false")
    beside.run_epoch()
    kept = beside.state_dict()
    plain.load_state_dict(kept)
    again = plain.state_dict()["ready"]  # it may be kept once more before it is taken over
    assert again.keys() == kept["ready"].keys() == {0, 1}
    plain.run_experiment(1)
    steps = [int(learner.state["steps"]) for _, learner in plain.learners]
    assert steps == [8, 8]  # 2 epochs x 20 turns x 4 copies x 0.05
    assert plain.state_dict()["ready"] == {}


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_learners_are_as_many_as_the_cores_that_the_process_may_use():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert ParallelWorldsConfig().workers_for(8) == 1
    finally:
        os.sched_setaffinity(0, before)
    assert ParallelWorldsConfig().workers_for(1000) == len(before)


def test_every_mode_takes_as_many_training_steps(make):
    steps = []
    for options in (["parallel.enabled=false"], [], [ASYNC, "parallel.use_threads=true"]):
        environment = make(*options)
        environment.run_experiment(4)
        steps.append([int(learner.state["steps"]) for _, learner in environment.learners])
    assert steps == [[16, 16]] * 3  # 4 epochs x 20 turns x 4 copies x 0.05


def test_networks_of_different_shape_learn_in_processes_of_their_own(make):
    environment = make("agents=[double_dqn, ppo]")
    before = weights_of(environment)
    environment.run_experiment(1)
    names = [type(group.worker).__name__ for group in environment.groups]
    assert names == ["ProcessLearning"] * 2
    for old, new in zip(before, weights_of(environment), strict=True):
        assert not torch.equal(old["w0"], new["w0"])


@pytest.mark.parametrize("world", ["treasure_hunt", "cleanup", "tag", "stag_hunt", "coins"])
@pytest.mark.parametrize("order", ["simultaneous", "sequential", "random"])
def test_a_copy_of_a_world_lives_the_same_life_whatever_lives_beside_it(make, world, order):
    more = [f"turn_order={order}", *(["world_settings.hares=3"] if world == "stag_hunt" else [])]
    few, many = (trajectory(make(*more, f"copies={n}", world=world), 40) for n in (1, 9))
    first_of_many = [[array[:, :1] for array in turn] for turn in many]
    assert same(few, first_of_many)


def test_in_sequential_order_each_sees_what_the_one_before_did(make):
    environment = make("turn_order=sequential", "agents=[random]")
    world = environment.world
    world.reset()
    seen = []
    original = world.act

    def act(agent, actions):
        seen.append(world.pov().copy())
        original(agent, actions)

    world.act = act
    for _ in range(10):
        environment.take_turn()
    assert any(not np.array_equal(a, b) for a, b in zip(seen[::2], seen[1::2], strict=True))
