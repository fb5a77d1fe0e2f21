"""The arithmetic of the learners, on networks of one layer that can be computed by hand."""

import numpy as np
import pytest
import torch

from keisei.worlds.config import DoubleDQNSettings, IQNSettings, PPOSettings
from keisei.worlds.double_dqn import DoubleDQN
from keisei.worlds.iqn import IQN
from keisei.worlds.memory import NO_ACTION, Buffer
from keisei.worlds.ppo import PPO, gae
from keisei.worlds.stack import Adam, clone, leaves_of
from keisei.worlds.view import View

VIEW = View((1,), np.dtype(np.float32))
GENERATOR = torch.Generator().manual_seed(1)


def answer(algorithm, state):
    """What the network says when it sees a 1."""
    return algorithm.answer(state, torch.ones(1, 1, 1), torch.zeros(1, 1, 0))[0]


def column(*numbers, dtype=np.float32):
    """[1 agent, batch, ...] of these."""
    return np.array([numbers], dtype)


@pytest.fixture
def dqn():
    algorithm = DoubleDQN(VIEW, 2, DoubleDQNSettings(hidden=[1], gamma=0.5, target_step=0.25))
    state = algorithm.new_state(GENERATOR)
    for name, weight in (("w0", [[[1.0]]]), ("w1", [[[1.0, 2.0]]])):
        state[name] = torch.tensor(weight)
        state[f"target.{name}"] = torch.tensor(weight)
    state["target.w1"] = torch.tensor([[[30.0, 10.0]]])  # it would choose the other action
    return algorithm, state


def batch_of(done):
    return {
        "state": column([1]),
        "action": column(0, dtype=np.int64),
        "reward": column(4),
        "done": column(done, dtype=np.bool_),
        "next_state": column([1]),
    }


@pytest.mark.parametrize(("done", "goal"), [(False, 4 + 0.5 * 10), (True, 4)])
def test_the_network_chooses_the_next_action_and_its_slower_copy_says_what_it_is_worth(
    dqn, done, goal
):
    algorithm, state = dqn
    loss = algorithm.loss(leaves_of(state, algorithm.weights), state, batch_of(done))
    assert loss.item() == pytest.approx(abs(1 - goal) - 0.5)  # smooth L1; the value is 1


def test_the_slower_copy_follows_by_its_step(dqn):
    algorithm, state = dqn
    algorithm.after_step(state)
    assert state["target.w1"].tolist() == [[[30 - 0.25 * 29, 10 - 0.25 * 8]]]


def test_the_slower_copy_waits_for_its_interval(dqn):
    algorithm, state = dqn
    algorithm.settings.target_interval = 3
    before = state["target.w1"].tolist()
    for steps in (1, 2):
        state["steps"][:] = steps
        algorithm.after_step(state)
        assert state["target.w1"].tolist() == before
    state["steps"][:] = 3
    algorithm.after_step(state)
    assert state["target.w1"].tolist() != before


def test_an_untrained_network_says_as_little_as_its_last_layer_is_scaled():
    said = []
    for scale in (1, 0.01):
        settings = DoubleDQNSettings(hidden=[64], last_layer_scale=scale)
        algorithm = DoubleDQN(VIEW, 2, settings)
        state = algorithm.new_state(torch.Generator().manual_seed(1))
        said.append(answer(algorithm, state))
    assert torch.allclose(said[0] * 0.01, said[1])


def test_gradients_far_below_adams_eps_move_nothing(dqn):
    algorithm, state = dqn
    moved = []
    for eps in (1e-8, 1e8):
        new = clone(state)
        leaves = leaves_of(new, algorithm.weights)
        loss = algorithm.loss(leaves, new, batch_of(done=True))
        Adam(learning_rate=0.1, max_grad_norm=10.0, eps=eps).step(new, loss, leaves)
        moved.append((new["w1"] - state["w1"]).abs().max().item())
    assert moved[0] == pytest.approx(0.1, rel=1e-3)
    assert moved[1] < 1e-6


def test_steps_that_are_no_numbers_change_nothing(dqn):
    algorithm, state = dqn
    before, batch = clone(state), batch_of(done=True)
    batch["reward"][:] = np.nan
    leaves = leaves_of(state, algorithm.weights)
    assert not algorithm.adam.step(state, algorithm.loss(leaves, state, batch), leaves).item()
    assert all(torch.equal(state[name], before[name]) for name in state)


def turns(rewards, values, done=None, look=None):
    """What a memory of one copy holds, with an end at one turn, or the row of a cut at one."""
    rows = np.arange(len(rewards))[:, None]
    numbers = {"reward": rewards, "value": values}
    arrays = {name: np.array(array, np.float32)[:, None] for name, array in numbers.items()}
    return arrays | {"done": rows == done, "action": np.where(rows == look, NO_ACTION, 0)}


def test_advantages_of_worlds_end_with_the_episode():
    got = gae(turns([1, 2, 4], [8, 16, 32], done=1), gamma=0.5, lam=1.0)
    assert got.ravel().tolist() == [1 + 0.5 * 2 - 8, 2 - 16, 4 - 32]


def test_advantages_go_up_to_a_cut_and_count_the_value_beyond_it():
    got = gae(turns([1, 0, 4], [8, 16, 32], look=1), gamma=0.5, lam=1.0)
    assert got.ravel().tolist() == [1 + 0.5 * 16 - 8, 0, 4 - 32]


def test_ppo_learns_returns_that_are_advantages_and_values_together():
    algorithm = PPO(VIEW, 2, PPOSettings(hidden=[1], batch_size=2, gamma=1, lambda_gae=1))
    memory = Buffer(2, 1, (1,), np.float32, algorithm.extras)
    for turn in range(2):
        memory.add([[turn]], [0], [1.0], [turn == 1], log_prob=[-0.7], value=[5.0])
    drawn = algorithm.draw(memory, 1, 2, np.random.default_rng(1))
    assert sorted(drawn["return"].ravel().tolist()) == [1, 2]  # what followed, whatever was thought


def test_ppo_makes_what_turned_out_better_more_likely():
    algorithm = PPO(VIEW, 2, PPOSettings(hidden=[4], entropy_coef=0, learning_rate=0.01))
    state = algorithm.new_state(GENERATOR)
    chance = answer(algorithm, state)[..., :-1].softmax(-1)[0, 0]
    batches = {
        "state": column([[1], [1]]),
        "action": column([0, 1], dtype=np.int64),
        "log_prob": chance.log().numpy()[None, None],
        "advantage": column([1, -1]),
        "return": column([0, 0]),
    }
    algorithm.learn(state, batches)
    after = answer(algorithm, state)[..., :-1].softmax(-1)[0, 0]
    assert after[0] > chance[0]


def test_iqn_learns_how_what_follows_is_spread():
    settings = IQNSettings(hidden=[32], learning_rate=0.01, quantiles=16)
    algorithm, rng = IQN(VIEW, 2, settings), np.random.default_rng(1)
    state = algorithm.new_state(torch.Generator().manual_seed(1))
    size = (1, 300, 64)  # one agent, steps, experiences
    reward = np.where(rng.random(size) < 0.75, 0, 4).astype(np.float32)  # 0, 0, 0 or 4
    batches = {
        "state": np.ones((*size, 1), np.float32),
        "next_state": np.ones((*size, 1), np.float32),
        "action": np.zeros(size, np.int64),
        "reward": reward,
        "done": np.ones(size, np.bool_),
        "tau": rng.random((*size, 16), np.float32),
        "tau_after": rng.random((*size, 16), np.float32),
    }
    algorithm.learn(state, batches)
    features, _ = algorithm.network.features(state, torch.ones(1, 1, 1), torch.zeros(1, 1, 0))
    low, high = algorithm.quantiles(state, features, torch.tensor([[[0.3, 0.95]]]))[0, 0, :, 0]
    assert abs(low) < 0.5
    assert abs(high - 4) < 0.5
    assert abs(answer(algorithm, state)[0, 0, 0] - 1) < 0.4
