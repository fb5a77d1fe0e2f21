import re

import numpy as np
import pytest

from keisei.config_schema import load_config
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.gae import zero_sum_gae
from keisei.core.policy import evaluate, uniform
from keisei.core.ppo_agent import PPOAgent
from keisei.runs.checkpoint import CheckpointStore
from keisei.selfplay.opponents import Opponent
from keisei.selfplay.shard import make_shard, new_rollout
from keisei.settings import ConfigError
from keisei.shogi.features import SIDE
from keisei.training.parallel import ParallelManager

from .conftest import make

SHARES = "opponent_shares={random: 0.5}"


def test_shares_of_the_workers_have_opponents_and_only_the_learners_moves_are_learned_from(setup):
    config, agent = setup("num_workers=2", SHARES)
    with ParallelManager(config, agent) as manager:
        self_play, against = manager.collect_experiences()
        assert self_play.learned.all()
        # The learner has Black in every other game.
        side = against.observations[..., SIDE]
        assert (against.learned[0] == [True, False, True, False]).all()
        assert (against.learned == (side == against.learned[0] ^ True))[:10].all()
        buffer = ExperienceBuffer(1.0, 0.95)
        buffer.add_batch(self_play)
        buffer.add_batch(against)
        buffer.compute_advantages_and_returns()
        batch = buffer.get_batch()
        assert len(batch.actions) == len(buffer) == 64 + against.learned.sum()
        seen = evaluate(agent.network, batch.positions)
        np.testing.assert_allclose(seen.values, batch.values, atol=1e-5)
        manager.collect_experiences()
        scores = manager.opponent_scores["random"]
        assert len(scores) > 0
        assert set(scores) <= {0, 0.5, 1}


def test_the_learners_log_probs_are_its_own_and_what_the_opponent_does_counts_for_them():
    config, agent = make()
    shard, rollout = make_shard(config, 0), new_rollout(config)
    shard.collect(agent.evaluate, rollout, 0, uniform)
    seen = evaluate(agent.network, rollout.positions)
    advantages, _ = zero_sum_gae(
        rollout.rewards, rollout.values, rollout.dones, rollout.last_values, 1.0, 0.9
    )
    buffer = ExperienceBuffer(1.0, 0.9)
    buffer.add_batch(rollout)
    buffer.compute_advantages_and_returns()
    np.testing.assert_array_equal(buffer.get_batch().advantages, advantages[rollout.learned])
    for i in np.flatnonzero(rollout.learned.ravel()):
        first, last = rollout.legal_offsets[i : i + 2]
        at = first + np.flatnonzero(rollout.legal[first:last] == rollout.actions.ravel()[i])[0]
        np.testing.assert_allclose(seen.log_probs[at], rollout.log_probs.ravel()[i], atol=1e-5)


def test_past_opponents_are_checkpoints_of_the_run_and_before_the_first_the_learner_itself(
    tmp_path,
):
    config, agent = make("opponent_shares={past: 1.0}")
    opponent = Opponent(config, 0, tmp_path)
    assert opponent.policy(0) is None
    store = CheckpointStore(tmp_path)
    path = store.save(1, {"agent": agent.state_dict()})
    policy = opponent.policy(1)
    shard = make_shard(config, 0)
    positions = shard.games.positions
    np.testing.assert_array_equal(policy(positions).values, agent.evaluate(positions).values)
    path.write_bytes(b"broken")
    assert Opponent(config, 0, tmp_path).policy(1) is None
    assert opponent.policy(2) is policy  # what it has loaded stays good


def test_a_network_that_has_grown_plays_its_checkpoints_of_before(tmp_path):
    past = "training.parallel.opponent_shares={past: 1.0}"
    before, after = (load_config(overrides=[past, f"model.depth={depth}"]) for depth in (1, 3))
    agent = PPOAgent(before)
    CheckpointStore(tmp_path).save(1, {"agent": agent.state_dict()})
    policy = Opponent(after, 0, tmp_path).policy(1)
    positions = make_shard(after, 0).games.positions
    np.testing.assert_array_equal(policy(positions).values, agent.evaluate(positions).values)


def test_shares_over_one_are_refused():
    with pytest.raises(ConfigError, match="add up to at most 1"):
        load_config(overrides=["training.parallel.opponent_shares={past: 0.7, random: 0.7}"])


@pytest.mark.parametrize(
    ("workers", "shares", "says"),
    [
        (2, "{past: 0.25, random: 0.5}", "num_workers is 2, which rounds to zero workers"),
        (2, "{past: 0.25}", "give at least 0.5, or more workers"),
        (3, "{past: 0.5, random: 0.5}", "round to 2 past and 2 random workers, but"),
    ],
)
def test_shares_that_workers_cannot_have_are_refused(workers, shares, says):
    with pytest.raises(ConfigError, match=says):
        make(f"num_workers={workers}", f"opponent_shares={shares}")


def test_a_share_that_is_said_to_be_enough_is():
    for workers in (1, 2, 3, 7, 13, 96, 4096):
        settings = [f"training.parallel.num_workers={workers}", "training.minibatch_size=1"]
        shares = "training.parallel.opponent_shares"
        with pytest.raises(ConfigError) as error:
            load_config(overrides=[*settings, f"{shares}={{past: 0.00001}}"])
        enough = re.search(r"at least ([\d.]+),", str(error.value))[1]
        config = load_config(overrides=[*settings, f"{shares}={{past: {enough}}}"])
        assert config.training.parallel.opponent_counts == {"past": 1}


def test_a_share_of_0_is_nobodys():
    config, _ = make("opponent_shares={past: 0}")
    assert Opponent(config, 0, None).kind is None


def test_games_from_before_there_were_opponents_can_be_gone_on_with():
    config, _ = make()
    state = make_shard(config, 0).state_dict()
    del state["sides"]
    shard = make_shard(config, 0)
    shard.load_state_dict(state)
    assert shard.state_dict()["sides"].tolist() == [0, 1, 0, 1]


def test_the_opponents_moves_are_drawn_from_its_own_policy():
    config, agent = make()
    shard, rollout = make_shard(config, 0), new_rollout(config)
    shard.collect(agent.evaluate, rollout, 0, uniform)
    counts = np.diff(rollout.legal_offsets).reshape(rollout.actions.shape)
    theirs = ~rollout.learned
    assert 0 < theirs.sum() < theirs.size
    np.testing.assert_allclose(rollout.log_probs[theirs], -np.log(counts[theirs]), rtol=1e-6)
    assert not np.allclose(rollout.log_probs[~theirs], -np.log(counts[~theirs]), rtol=1e-6)


def test_the_learner_changes_sides_after_each_game():
    config, agent = make("env.move_limit=3", "rollout_length=9")
    shard, rollout = make_shard(config, 0), new_rollout(config)
    shard.collect(agent.evaluate, rollout, 0, uniform)
    assert rollout.learned[:, 0].tolist() == [True, False] * 4 + [True]  # games of three moves
