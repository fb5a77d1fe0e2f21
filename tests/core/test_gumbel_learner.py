"""Learning from search: the policy comes to play what the search found."""

import numpy as np
import pytest
import torch

from keisei.config_schema import load_config
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.gumbel_learner import GumbelLearner, mirror_some
from keisei.runs.checkpoint import load_checkpoint, save_checkpoint
from keisei.selfplay.shard import make_shard, new_rollout
from keisei.shogi.mirror import MIRRORED_ACTION
from tests.search.test_gumbel import by_material

SMALL = [
    "training.algorithm=gumbel",
    "model.depth=1",
    "model.width=16",
    "training.parallel.num_envs_per_worker=8",
    "training.parallel.rollout_length=16",
    "training.minibatch_size=64",
    "training.search.visits=8",
    "training.ppo_epochs=5",
    "training.learning_rate=1e-3",
]


@pytest.fixture(scope="module")
def played():
    config = load_config(overrides=SMALL)
    rollout = new_rollout(config)
    make_shard(config, 0).collect(by_material, rollout, 0)
    return config, rollout


def batch_of(rollout):
    buffer = ExperienceBuffer(1.0, 0.95)
    buffer.add_batch(rollout)
    buffer.compute_advantages_and_returns()
    return buffer.get_batch()


def test_the_policy_comes_nearer_to_what_the_search_found(played):
    config, rollout = played
    learner = GumbelLearner(config, "cpu")
    gaps = [learner.update([rollout])["search_kl"] for _ in range(20)]
    assert gaps[-1] < 0.7 * gaps[0]


def test_the_value_comes_nearer_to_what_came_of_the_games(played):
    config, rollout = played
    rollout = rollout.copy()
    rollout.rewards[-1], rollout.dones[-1] = 1.0, True
    learner = GumbelLearner(config, "cpu")
    losses = [learner.update([rollout])["value_loss"] for _ in range(20)]
    assert losses[-1] < 0.5 * losses[0]


def test_a_mirrored_position_keeps_its_moves_and_what_was_found_of_them(played):
    batch = batch_of(played[1])
    turned = mirror_some(batch, np.random.default_rng(1))
    old, new = batch.positions, turned.positions
    changed = (new.observations != old.observations).any(1)
    assert 0.3 < changed.mean() < 0.7
    own = changed[old.rows()]
    np.testing.assert_array_equal(new.legal[~own], old.legal[~own])
    np.testing.assert_array_equal(new.legal[own], MIRRORED_ACTION[old.legal[own]])
    np.testing.assert_array_equal(turned.improved, batch.improved)
    assert (new.legal == turned.actions[old.rows()]).sum() == len(batch.actions)


def test_averaged_weights_are_between_the_versions_and_play_the_matches(played):
    config, rollout = played
    config = config.model_copy(deep=True)
    config.training.average = 0.75
    learner = GumbelLearner(config, "cpu")
    versions = [learner.network.state_dict()["stem.weight"].clone()]
    for _ in range(5):
        learner.update([rollout])
        versions.append(learner.network.state_dict()["stem.weight"].clone())
    mean = versions[0]
    for number, version in enumerate(versions[1:], 1):
        mean = mean + max(0.25, 9 / (number + 10)) * (version - mean)
    torch.testing.assert_close(learner.average.stem.weight, mean)
    now, mean = learner.evaluate(rollout.positions), learner.evaluate_average(rollout.positions)
    assert not np.array_equal(now.values, mean.values)


def with_window(config, window):
    config = config.model_copy(deep=True)
    config.training.search.window = window
    return config


def test_moves_of_earlier_updates_are_learned_from_until_they_leave_the_window(played):
    config, rollout = played
    zeros = rollout.copy()
    zeros.rewards[:] = zeros.values[:] = zeros.last_values[:] = 0
    ones = zeros.copy()
    ones.values[:] = ones.last_values[:] = 1  # of both sides: no game, but easy to tell apart
    learner = GumbelLearner(with_window(config, 2), "cpu")
    seen = []
    learner.descend = lambda batch, _: seen.append(batch.returns) or {"kl": torch.zeros(())}
    shares = []
    for played_then in (ones, zeros, zeros):
        seen.clear()
        learner.update([played_then])
        values = np.concatenate(seen)
        assert len(values) == 5 * rollout.num_steps  # as much as with a window of one update
        shares.append((values != 0).mean())
    assert shares[0] > 0.9
    assert 0.3 < shares[1] < 0.7
    assert shares[2] == 0


def test_a_learner_goes_on_with_its_window(played, tmp_path):
    config, rollout = played
    config = with_window(config, 3)
    learner, resumed = GumbelLearner(config, "cpu"), GumbelLearner(config, "cpu")
    learner.update([rollout])
    save_checkpoint(tmp_path / "one.pt", learner.state_dict())
    resumed.load_state_dict(load_checkpoint(tmp_path / "one.pt"))
    for one in (learner, resumed):
        one.update([rollout])
    for mine, other in zip(learner.network.parameters(), resumed.network.parameters(), strict=True):
        assert torch.equal(mine, other)
