import pickle
from collections import Counter

import numpy as np
import pytest

from keisei.config_schema import load_config
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.policy import best, sample, segment_log_softmax
from keisei.core.ppo_agent import PPOAgent
from keisei.core.rollout import empty_rollout
from keisei.selfplay.shard import SelfPlayShard
from keisei.settings import ConfigError
from keisei.shogi.features import MOVE_COUNT, SIDE

SMALL = ["model.depth=1", "model.width=16"]


@pytest.fixture(scope="module")
def agent():
    return PPOAgent(load_config(overrides=SMALL), "cpu")


def collect(agent, games=3, steps=20, index=0):
    settings = {"first_stream": index * games, "move_limit": 12, "material_reward": 0.01}
    rollout = empty_rollout(steps, games)
    SelfPlayShard(games, 1, **settings).collect(agent.evaluate, rollout, version=5)
    return rollout


def buffer(*rollouts):
    held = ExperienceBuffer(gamma=1.0, lambda_gae=0.9)
    for rollout in rollouts:
        held.add_batch(rollout)
    return held


def assert_same(a, b):
    ours, others = ([*vars(x.positions).values(), *x[1:]] for x in (a, b))
    for mine, other in zip(ours, others, strict=True):
        assert np.array_equal(mine, other)


def test_a_recorded_step_names_its_action_among_its_legal_actions(agent):
    held = buffer(collect(agent), collect(agent, games=2, index=1))
    held.compute_advantages_and_returns()
    batch = held.get_batch()
    assert len(held) == len(batch.actions) == 3 * 20 + 2 * 20
    for i, action in enumerate(batch.actions):
        assert action in batch.positions.legal[batch.positions.segment(i)]


def test_single_moves_are_not_left_out_of_what_other_buffers_get(agent):
    rollout = collect(agent, games=1, steps=1)
    held = buffer(rollout)
    held.add(rollout.observations[0, 0], rollout.legal, int(rollout.actions[0, 0]), -1, 0, 0, True)
    for use in (held.get_serializable_batch, lambda: buffer().merge_buffers([held])):
        with pytest.raises(ValueError, match="call compute_advantages_and_returns first"):
            use()
    held.compute_advantages_and_returns()
    for merge, what in (
        ("merge_worker_buffers", held.get_serializable_batch()),
        ("merge_buffers", held),
    ):
        other = buffer()
        getattr(other, merge)([what])
        assert len(other) == 2


def name(batch, i):
    return batch.positions.observations[i].tobytes() + batch.log_probs[i].tobytes()


def test_minibatches_hold_every_step_once_with_its_own_legal_actions(agent):
    held = buffer(collect(agent), collect(agent, index=1))
    held.compute_advantages_and_returns()
    every = held.get_batch()
    seen = Counter()
    keys = {name(every, i): i for i in range(len(every.actions))}
    for batch in held.minibatches(16, np.random.default_rng(0)):
        for j in range(len(batch.actions)):
            i = keys[name(batch, j)]
            mine = batch.positions.legal[batch.positions.segment(j)]
            assert np.array_equal(mine, every.positions.legal[every.positions.segment(i)])
            assert batch.actions[j] == every.actions[i]
            seen[name(batch, j)] += 1
    assert seen == Counter(name(every, i) for i in range(len(every.actions)))


@pytest.mark.parametrize("size", [1, 7, 16])
def test_minibatches_are_nearly_equal_so_that_no_rest_counts_as_much_as_a_whole_one(agent, size):
    held = buffer(collect(agent))
    held.compute_advantages_and_returns()
    for wanted in (size, len(held) - 1, len(held), 2 * len(held)):
        parts = held.minibatches(wanted, np.random.default_rng(0))
        sizes = [len(batch.actions) for batch in parts]
        assert sum(sizes) == len(held)
        assert max(sizes) <= wanted
        assert max(sizes) - min(sizes) <= 1


def test_rollouts_of_two_workers_keep_their_own_advantages(agent):
    one, two = collect(agent), collect(agent, games=4, index=1)
    alone, other, both = buffer(one), buffer(two), buffer(one, two)
    for held in (alone, other, both):
        held.compute_advantages_and_returns()
    joined = np.concatenate([alone.get_batch().advantages, other.get_batch().advantages])
    assert np.array_equal(both.get_batch().advantages, joined)


def test_serialized_batches_come_back_the_same_and_carry_no_code(agent):
    held = buffer(collect(agent), collect(agent, index=1))
    data = held.get_serializable_batch()
    other = buffer()
    other.merge_worker_buffers([data, buffer().get_serializable_batch()])
    assert [r.version for r in other.rollouts] == [5, 5]
    held.compute_advantages_and_returns()
    other.compute_advantages_and_returns()
    assert_same(held.get_batch(), other.get_batch())
    with pytest.raises(ValueError):
        other.merge_worker_buffers([pickle.dumps({"count": 1})])


def test_moves_added_one_by_one_equal_the_same_rollout(agent):
    rollout = collect(agent, games=1)
    single = buffer()
    for t in range(20):
        start, end = rollout.legal_offsets[t : t + 2]
        single.add(
            rollout.observations[t, 0],
            rollout.legal[start:end],
            int(rollout.actions[t, 0]),
            float(rollout.log_probs[t, 0]),
            float(rollout.values[t, 0]),
            float(rollout.rewards[t, 0]),
            bool(rollout.dones[t, 0]),
        )
    whole = buffer(rollout)
    assert len(single) == len(whole) == 20
    single.compute_advantages_and_returns(last_value=float(rollout.last_values[0]))
    whole.compute_advantages_and_returns()
    assert_same(single.get_batch(), whole.get_batch())


def test_an_empty_buffer_is_still_a_buffer_and_says_what_is_missing():
    empty = buffer()
    assert empty
    assert len(empty) == 0
    with pytest.raises(ValueError, match="collect some"):
        empty.compute_advantages_and_returns()
    with pytest.raises(ValueError, match="compute_advantages"):
        empty.get_batch()


def test_clear_forgets_everything(agent):
    held = buffer(collect(agent))
    held.compute_advantages_and_returns()
    held.clear()
    assert len(held) == 0
    with pytest.raises(ValueError, match="compute_advantages"):
        held.get_batch()


def test_the_softmax_of_a_segment_ignores_the_others():
    scores = np.array([1, 2, 3, 1000, -1000], np.float32)
    probs = np.exp(segment_log_softmax(scores, np.array([0, 3, 5])))
    expected = np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum()
    assert probs[:3] == pytest.approx(expected, rel=1e-5)
    assert probs[3:].tolist() == [1, 0]


def test_draws_follow_the_probabilities_and_never_leave_the_segment():
    log_probs = np.log(np.array([0.2, 0.8, 1.0, 0.5, 0.5], np.float32))
    offsets = np.array([0, 2, 3, 5])
    uniforms = np.linspace(0, 0.9999, 1000)
    draws = np.array([sample(log_probs, offsets, np.full(3, u)) for u in uniforms])
    assert (draws[:, 0] == 1).mean() == pytest.approx(0.8, abs=0.01)
    assert set(draws[:, 1]) == {2}
    assert set(draws[:, 2]) == {3, 4}
    assert best(log_probs, offsets).tolist() == [1, 2, 3]


def test_an_action_without_probability_is_never_drawn():
    log_probs = np.array([-np.inf, 0.0, -np.inf], np.float32)
    for u in (0.0, 0.5, np.nextafter(1, 0)):
        assert sample(log_probs, np.array([0, 3]), np.array([u])).tolist() == [1]


def test_advantages_end_at_the_seam_between_two_workers_of_equal_size(agent):
    first, second = collect(agent), collect(agent, index=1)
    for number, rollout in enumerate((first, second)):  # a fresh network gives the same everywhere
        rollout.values[:] = np.random.default_rng(number).uniform(-1, 1, rollout.values.shape)
        rollout.last_values[:] = number
    apart = [buffer(first), buffer(second)]
    together = buffer(first, second)
    for held in (*apart, together):
        held.compute_advantages_and_returns()
    for name in ("advantages", "returns"):
        alone = [getattr(held.get_batch(), name) for held in apart]
        np.testing.assert_array_equal(getattr(together.get_batch(), name), np.concatenate(alone))


def test_values_and_last_values_are_those_of_their_own_game(agent):
    seen, rng = [], np.random.default_rng(1)

    def policy(*positions):  # a fresh network gives the same everywhere
        values = rng.uniform(-1, 1, 3).astype(np.float32)
        seen.append(agent.evaluate(*positions)._replace(values=values))
        return seen[-1]

    rollout = empty_rollout(9, 3)
    SelfPlayShard(3, 1, move_limit=12).collect(policy, rollout, version=5)
    np.testing.assert_array_equal(rollout.values, [one.values for one in seen[:-1]])
    np.testing.assert_array_equal(rollout.last_values, seen[-1].values)
    assert len(set(rollout.last_values.tolist())) == 3


@pytest.mark.parametrize(("pawns", "reward"), [(0, 0.0), (20, 0.5), (5, 1.0)])
def test_a_game_at_the_move_limit_counts_for_who_has_more_material(agent, pawns, reward):
    rollout, rook_more = empty_rollout(2, 1), "4k4/9/9/9/9/9/9/9/4K4 b R 1"
    shard = SelfPlayShard(1, 1, move_limit=2, adjudicate=pawns, start_sfens=[rook_more])
    (game,) = shard.collect(agent.evaluate, rollout, version=5)
    assert game.outcome.reason == "move limit"
    assert rollout.rewards[:, 0].tolist() == [0, -reward]  # White moved last


def test_a_share_of_the_steps_is_drawn_by_surprise_and_stands_for_all_of_them(agent):
    rollout, rng = collect(agent, games=8, steps=60), np.random.default_rng(1)
    rollout.rewards[:] = 0.01 * rng.standard_normal(rollout.rewards.shape) ** 3
    held = buffer(rollout)
    held.compute_advantages_and_returns()
    every = held.get_batch()
    drawn = [b for _ in range(200) for b in held.minibatches(64, rng, share=0.25)]
    assert sum(len(b.actions) for b in drawn) == 200 * 120
    weights = np.concatenate([b.weights for b in drawn])
    assert weights.mean() == pytest.approx(1, abs=0.02)
    for name in ("advantages", "returns", "values"):
        mean = np.mean(weights * np.concatenate([getattr(b, name) for b in drawn]))
        assert mean == pytest.approx(getattr(every, name).mean(), abs=0.002)
    surprise = np.abs(np.concatenate([b.advantages for b in drawn]))
    assert surprise.mean() > 1.2 * np.abs(every.advantages).mean()
    assert weights.max() <= 5.01


def test_steps_without_any_surprise_are_drawn_alike(agent):
    rollout = collect(agent)
    rollout.rewards[:], rollout.values[:], rollout.last_values[:] = 0, 0, 0
    held = buffer(rollout)
    held.compute_advantages_and_returns()
    (batch,) = held.minibatches(30, np.random.default_rng(0), share=0.5)
    assert len(batch.actions) == 30
    np.testing.assert_allclose(batch.weights, 1, rtol=1e-6)


def random_shard(games, **more):
    return SelfPlayShard(games, 1, move_limit=30, random_moves=6, **more)


def play(shard, agent, steps, opponent=None):
    rollout = empty_rollout(steps, shard.games.num_games)
    shard.collect(agent.evaluate, rollout, version=5, opponent=opponent)
    return rollout


def test_games_begin_with_up_to_so_many_random_moves_which_are_not_learned_from(agent):
    rollout = play(random_shard(64), agent, steps=60)
    lengths = Counter()
    for row in range(64):
        played = rollout.observations[:, row, MOVE_COUNT]
        begins = np.flatnonzero(played == 0)
        for begin, end in zip(begins, [*begins[1:], 60], strict=True):
            learned = rollout.learned[begin:end, row]
            lengths[int((~learned).sum())] += 1
            assert learned.tolist() == sorted(learned.tolist())  # the random ones come first
    assert set(lengths) == set(range(7))
    first = rollout.actions[0][~rollout.learned[0]]
    assert len(set(first.tolist())) > 15  # of 30


def test_random_moves_go_on_where_they_stopped(agent):
    whole, half = random_shard(8), random_shard(8)
    expected = play(whole, agent, steps=24)
    first = play(half, agent, steps=3)
    resumed = random_shard(8)
    resumed.load_state_dict(half.state_dict())
    second = play(resumed, agent, steps=21)
    for name in ("actions", "learned"):
        both = np.concatenate([getattr(first, name), getattr(second, name)])
        np.testing.assert_array_equal(both, getattr(expected, name))


def test_games_in_play_go_by_fewer_random_moves_as_soon_as_these_are_set(agent):
    shard = SelfPlayShard(32, 1, move_limit=200, random_moves=100)
    play(shard, agent, steps=5)
    shard.random_moves = 0
    assert play(shard, agent, steps=5).learned.all()
    shard.random_moves = 10
    rollout = play(shard, agent, steps=60)
    assert rollout.learned[rollout.observations[:, :, MOVE_COUNT] >= 10].all()


@pytest.mark.parametrize("setting", ["training.parallel.rollout_length=32", "env.move_limit=32"])
def test_random_moves_that_could_fill_a_whole_rollout_are_refused(setting):
    with pytest.raises(ConfigError, match=r"random_moves is 40: .* set it to at most 31"):
        load_config(overrides=["env.random_moves=40", setting])


def test_against_an_opponent_neither_its_moves_nor_random_ones_are_learned_from(agent):
    rollout = play(random_shard(8), agent, steps=12, opponent=agent.evaluate)
    mine = rollout.observations[0, :, SIDE] == np.arange(8) % 2
    later = rollout.observations[:, :, MOVE_COUNT] >= 6
    assert not rollout.learned[0][~mine].any()
    assert rollout.learned[later].mean() == 0.5
