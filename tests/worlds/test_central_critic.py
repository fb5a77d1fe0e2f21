"""A critic that looks at what all agents see, beside policies that do not."""

import numpy as np
import pytest
import torch

from keisei.errors import KeiseiError
from keisei.worlds import make_environment
from keisei.worlds.central_ppo import CRITIC, CentralPPO
from keisei.worlds.config import PPOSettings
from keisei.worlds.ppo import PPO
from keisei.worlds.stack import leaves_of
from keisei.worlds.view import View
from tests.worlds.conftest import same, trajectory, weights_of

AGENTS = [
    f"agents=[{{kind: ppo, network: {network}, central_critic: true}}]"
    for network in ("mlp", "cnn", "gru")
]
OWN = View((3,), np.dtype(np.uint8), np.eye(2, dtype=np.float32))


def batch_of(states, returns):
    """A minibatch of one agent in which nothing but the value is to be learned."""
    count = len(states)
    numbers = {"log_prob": np.full(count, -np.log(2)), "advantage": np.zeros(count)}
    arrays = {"state": states, "action": np.zeros(count, np.int64), "return": returns, **numbers}
    return {
        name: array.astype(np.float32 if array.dtype == np.float64 else array.dtype)[None, None]
        for name, array in arrays.items()
    }


def test_policies_depend_on_what_the_agent_sees_and_values_on_what_all_see():
    algorithm = CentralPPO(OWN.of_all(2), 2, PPOSettings(hidden=[8], last_layer_scale=1.0))
    state = algorithm.new_state(torch.Generator().manual_seed(1))
    seen = np.random.default_rng(1).integers(0, 2, (2, 1, 2, 3)).astype(np.uint8)
    seen[1, 0, 0] = seen[0, 0, 0]  # its own part is the same, what the other sees is not
    seen[1, 0, 1] = 1 - seen[0, 0, 1]
    one, other = (
        algorithm.answer(state, torch.from_numpy(algorithm.view.encode(part))[None], None)[0]
        for part in seen
    )
    assert torch.equal(one[..., :2], other[..., :2])
    assert not torch.equal(one[..., 2], other[..., 2])


def test_the_critic_learns_what_only_another_sees_and_a_critic_of_ones_own_cannot():
    rng = np.random.default_rng(1)
    settings = PPOSettings(hidden=[16], learning_rate=0.01, entropy_coef=0)
    left = {}
    for name in ("central", "own"):
        view = OWN.of_all(2) if name == "central" else OWN
        algorithm = (CentralPPO if name == "central" else PPO)(view, 2, settings)
        state = algorithm.new_state(torch.Generator().manual_seed(1))
        for _ in range(300):
            seen = rng.integers(0, 2, (64, 2, 3)).astype(np.uint8)
            returns = seen[:, 1, 0].astype(np.float64)  # what the other has in its first cell
            seen = seen if name == "central" else seen[:, 0]
            trained = algorithm.learn(state, batch_of(seen, returns))
        left[name] = float(trained.losses[0])
    assert left["central"] < 0.01
    assert left["own"] > 0.08  # half of the variance of a coin, 0.25


def test_the_loss_of_a_policy_does_not_reach_the_critic_nor_that_of_the_value_the_policy():
    algorithm = CentralPPO(OWN.of_all(2), 2, PPOSettings(hidden=[8], entropy_coef=0))
    state = algorithm.new_state(torch.Generator().manual_seed(1))
    seen = np.random.default_rng(1).integers(0, 2, (16, 2, 3)).astype(np.uint8)
    batch = {name: array[:, 0] for name, array in batch_of(seen, np.ones(16)).items()}
    leaves = leaves_of(state, algorithm.weights)
    grads = torch.autograd.grad(algorithm.loss(leaves, state, batch).sum(), list(leaves.values()))
    for name, grad in zip(leaves, grads, strict=True):
        assert bool(grad.any()) == name.startswith(CRITIC), name


@pytest.mark.parametrize("agents", AGENTS)
def test_every_mode_gives_the_same_trajectories_and_weights(make, agents):
    options = [agents, "turn_order=random"]
    plain, together = (
        make(*options, "parallel.enabled=false", world="tag"),
        make(*options, world="tag"),
    )
    assert same(trajectory(plain, 40), trajectory(together, 40))
    off = ["parallel.parallel_actions=false", "parallel.parallel_training=false"]
    one, other = make(*options, "parallel.enabled=false"), make(*options, *off)
    one.run_experiment(2)
    other.run_experiment(2)
    for first, second in zip(weights_of(one), weights_of(other), strict=True):
        assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_state_that_is_loaded_goes_on_exactly(make):
    kept, loaded = make(AGENTS[0]), make(AGENTS[0])
    kept.run_experiment(2)
    loaded.load_state_dict(kept.state_dict())
    first, second = kept.run_experiment(2), loaded.run_experiment(2)
    assert all(np.array_equal(a.returns, b.returns) for a, b in zip(first, second, strict=True))


def test_novelty_counts_what_the_agent_itself_sees(make):
    environment = make(AGENTS[0])
    environment.run_experiment(1)
    learner = environment.agents[0].model
    assert learner.novelty.counts.shape[0] == 25
    assert learner.memory.arrays["state"].shape[2:] == (2, 25)


def test_agents_that_see_in_different_ways_are_refused():
    settings = ["copies=1", AGENTS[0]]
    with pytest.raises(KeiseiError, match="central critic needs agents that all see"):
        make_environment("pettingzoo:mpe2.simple_speaker_listener_v4", settings)
