"""The bonus for what an agent has rarely seen."""

import numpy as np
import pytest

from keisei.worlds.config import DoubleDQNSettings, PPOSettings
from keisei.worlds.double_dqn import DoubleDQN
from keisei.worlds.memory import Buffer
from keisei.worlds.novelty import Novelty
from keisei.worlds.ppo import PPO
from keisei.worlds.view import View

VIEW = View((1,), np.dtype(np.uint8), np.eye(9, dtype=np.float32))


def remembered(algorithm, codes, done, cut=None):
    """A memory in which these codes were seen, for no reward, with an end at one turn."""
    memory = Buffer(8, 1, VIEW.shape, VIEW.dtype, algorithm.extras)
    extras = dict.fromkeys(algorithm.extras, 0)
    for turn, code in enumerate(codes):
        memory.add([[code]], [0], [0.0], [turn == done], **extras)
    if cut is not None:
        memory.cut([[cut]], [True], **extras)
    return memory


@pytest.fixture
def novelty():
    """An agent that has seen the code n n * n times: it is worth 1 / n to see it again."""
    novelty = Novelty(VIEW, scale=1.0)
    for code in range(9):
        novelty.count(np.full((code * code, 1), code))
    return novelty


def test_dqn_learns_that_it_is_worth_something_to_see_what_is_rarely_seen(novelty):
    algorithm = DoubleDQN(VIEW, 2, DoubleDQNSettings(batch_size=100))
    memory = remembered(algorithm, [1, 2, 4, 8], done=1)
    drawn = algorithm.draw(memory, 1, 4, np.random.default_rng(1), novelty)
    got = set(zip(drawn["state"].ravel().tolist(), drawn["reward"].ravel().tolist(), strict=True))
    assert got == {(1, 1 / 2), (2, 0.0), (4, 1 / 8)}  # after 2 another episode begins
    assert (memory.newest(4)["reward"] == 0).all()


def test_dqn_with_a_gru_learns_the_same_of_sequences(novelty):
    settings = DoubleDQNSettings(batch_size=3, sequence=3, network="gru", hidden=[2])
    algorithm = DoubleDQN(VIEW, 2, settings)
    drawn = algorithm.draw(
        remembered(algorithm, [1, 2, 4, 8], done=1), 1, 4, np.random.default_rng(1), novelty
    )
    assert drawn["reward"][0, 0, :-1].tolist() == [1 / 2, 0.0, 1 / 8]


def test_ppo_learns_the_same_up_to_a_cut_and_beyond(novelty):
    settings = PPOSettings(batch_size=4, gamma=0, lambda_gae=0)
    algorithm = PPO(VIEW, 2, settings)
    memory = remembered(algorithm, [1, 2, 4, 8], done=1, cut=5)
    drawn = algorithm.draw(memory, 1, 5, np.random.default_rng(1), novelty)
    got = dict(zip(drawn["state"].ravel().tolist(), drawn["return"].ravel().tolist(), strict=True))
    assert got == pytest.approx({1: 1 / 2, 2: 0, 4: 1 / 8, 8: 1 / 5})


@pytest.mark.parametrize("kind", ["double_dqn", "ppo"])
def test_every_turn_is_counted_once_and_kept_with_the_run(make, kind):
    environment, other = make(f"agents=[{kind}]"), make(f"agents=[{kind}]")
    environment.run_experiment(3)
    learner = environment.learners[0][1]
    learner.train_step()  # by hand, with nothing new to count
    turns = 3 * (20 + 1) * 4  # with a look beyond the cut of each episode
    assert (learner.novelty.counts.sum(axis=1) == turns).all()
    other.load_state_dict(environment.state_dict())
    assert np.array_equal(other.learners[0][1].novelty.counts, learner.novelty.counts)


def test_agents_count_for_themselves_and_not_at_all_if_told_so(make):
    environment = make("agents=[double_dqn, {kind: double_dqn, novelty: 0}]")
    environment.run_experiment(1)
    first, second = (learner for _, learner in environment.learners)
    assert first.novelty is not None
    assert second.novelty is None
    drawn = second.draw(3)
    assert set(drawn["reward"].ravel().tolist()) <= {-3.0, 0.0, 1.0, 3.0, 5.0}
