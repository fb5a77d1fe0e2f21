"""Every agent is an individual: its own network, memory, learner and chance."""

from itertools import combinations

import numpy as np
import pytest
import torch

from keisei.worlds.learning import HereLearning, ThreadLearning, train_chunks
from keisei.worlds.stack import clone, leaves_of, rows
from tests.worlds.conftest import LEARNERS, weights_of


def collected(make, kind, agents=3):
    """A team with its drawn minibatches [agents, steps, batch, ...]."""
    environment = make(f"agents=[{kind}]", f"world_settings.num_agents={agents}")
    environment.collect_epoch()
    team = environment.teams[0]
    drawn = [learner.draw(5) for learner in team.learners]
    return team, {name: np.stack([one[name] for one in drawn]) for name in drawn[0]}


@pytest.mark.parametrize("kind", LEARNERS)
def test_the_gradient_of_an_agents_loss_for_anothers_weights_is_exactly_zero(make, kind):
    team, batches = collected(make, kind)
    leaves = leaves_of(team.stack, team.algorithm.weights)
    first_batch = {name: array[:, 0] for name, array in batches.items()}
    losses = team.algorithm.loss(leaves, team.stack, first_batch)
    for agent in range(3):
        grads = torch.autograd.grad(losses[agent], list(leaves.values()), retain_graph=True)
        for grad in grads:
            others = [grad[other] for other in range(3) if other != agent]
            assert all(torch.count_nonzero(other) == 0 for other in others)
        assert any(torch.count_nonzero(grad[agent]) for grad in grads)


@pytest.mark.parametrize("kind", LEARNERS)
def test_training_together_or_each_alone_gives_the_same_weights(make, kind):
    team, batches = collected(make, kind)
    together, alone = clone(team.stack), clone(team.stack)
    train_chunks(team.algorithm, together, batches, chunk=3)
    for agent in range(3):
        own = {name: array[agent : agent + 1] for name, array in batches.items()}
        team.algorithm.learn(rows(alone, agent, agent + 1), own)
    for name in together:
        assert torch.allclose(together[name], alone[name], rtol=0, atol=1e-6), name
    last = team.algorithm.weights[-2]
    assert not torch.equal(together[last], team.stack[last])


def test_no_two_agents_share_memory_except_as_rows_of_a_stack(make):
    for environment in (make("parallel.enabled=false"), make()):
        spans = []
        for _, learner in environment.learners:
            spans.append(
                [
                    (tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size())
                    for tensor in learner.state.values()
                ]
            )
        for mine, yours in combinations(spans, 2):
            assert all(b <= c or d <= a for a, b in mine for c, d in yours)
        first, second = (learner for _, learner in environment.learners)
        for name, array in first.memory.arrays.items():
            assert not np.shares_memory(array, second.memory.arrays[name])


def test_an_agent_learns_the_same_whoever_learns_beside_it(make):
    """With the same samples, the weights of its companions change nothing for it."""
    team, batches = collected(make, "double_dqn")
    other = clone(team.stack)
    other["w0"][1:] *= 2
    train_chunks(team.algorithm, other, batches, chunk=3)
    train_chunks(team.algorithm, team.stack, batches, chunk=3)
    for name in other:
        assert torch.equal(other[name][0], team.stack[name][0]), name


def test_agents_begin_with_different_networks_and_draw_different_samples(make):
    environment = make()
    environment.run_experiment(1)
    first, second = weights_of(environment)
    assert not torch.equal(first["w0"], second["w0"])
    one, two = (learner.draw(1) for _, learner in environment.learners)
    assert not np.array_equal(one["state"], two["state"])


def test_a_sum_of_gradients_is_clipped_for_each_agent_by_itself(make):
    team, batches = collected(make, "double_dqn")
    calm = clone(team.stack)
    wild = {name: array.copy() for name, array in batches.items()}
    wild["reward"][1] *= 1e6
    train_chunks(team.algorithm, calm, batches, chunk=3)
    train_chunks(team.algorithm, team.stack, wild, chunk=3)
    for name in calm:
        assert torch.equal(calm[name][[0, 2]], team.stack[name][[0, 2]]), name


@pytest.mark.parametrize("kind", [HereLearning, ThreadLearning])
def test_a_training_changes_a_copy_and_never_the_weights_that_act(make, kind):
    team, batches = collected(make, "double_dqn")
    acting, learning = clone(team.stack), kind("learner", team.algorithm, 3)
    learning.begin(team.stack, batches)
    outcome = learning.finish(timeout=60)
    for name in acting:
        assert torch.equal(team.stack[name], acting[name]), name
    assert not torch.equal(outcome.state["w0"], acting["w0"])


@pytest.mark.parametrize("parallel", ["true", "false"])
def test_every_agent_remembers_its_own_reward(make, parallel):
    environment = make(f"parallel.enabled={parallel}", "world_settings.spawn_chance=0")
    world = environment.world
    world.reset()
    world.grid[1][:] = 0
    for agent, (column, thing) in enumerate([(3, "gem"), (7, "bone")]):
        world.positions[agent] = world.first_cell + world.cell(4, column)
        world.grid[1][world.positions[agent]] = world.bodies[agent]
        for row, side in ((3, 0), (5, 0), (4, -1), (4, 1)):  # wherever it goes
            world.put(thing, world.first_cell[:, None] + world.cell(row, column + side))
    environment.next_turn()
    got = [agent.model.memory.newest(1)["reward"] for agent in environment.agents]
    assert [set(rewards.ravel().tolist()) for rewards in got] == [{5.0}, {-3.0}]
    assert environment.returns.tolist() == [5.0, -3.0]
