import threading

import numpy as np
import pytest
import torch

from keisei.config_schema import PRESETS, load_config
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.learner import DivergedError
from keisei.core.neural_network import ActorCriticResTower
from keisei.core.ppo_agent import PPOAgent
from keisei.core.rollout import empty_rollout
from keisei.selfplay.shard import SelfPlayShard
from keisei.shogi import NUM_ACTIONS, ShogiGame


def filled(agent, games=4, steps=16):
    shard = SelfPlayShard(games, 1, move_limit=10, material_reward=0.01)
    buffer = ExperienceBuffer(1.0, 0.95)
    rollout = empty_rollout(steps, games)
    shard.collect(agent.evaluate, rollout, agent.version)
    buffer.add_batch(rollout)
    buffer.compute_advantages_and_returns()
    return buffer


@pytest.mark.parametrize("head", ["from_to", "flat"])
@pytest.mark.parametrize("preset", PRESETS)
def test_before_any_update_the_ratio_is_one_and_nothing_is_clipped(preset, head):
    size = ["training.minibatch_size=8", "training.ppo_epochs=1"]
    config = load_config(overrides=[f"model.preset={preset}", f"model.policy_head={head}", *size])
    agent = PPOAgent(config, "cpu")
    # Weights as after some learning: fresh residual branches are zero and would hide a difference.
    with torch.no_grad():
        for weight in agent.network.parameters():
            weight.add_(torch.randn_like(weight) * 0.02)
    metrics = agent.learn(filled(agent, steps=4))
    assert metrics["first_ratio_error"] < 1e-3
    assert metrics["first_clip_fraction"] == 0


@pytest.mark.parametrize("head", ["from_to", "flat"])
def test_the_networks_modes_for_playing_and_learning_compute_the_same(head):
    network = ActorCriticResTower(2, 16, 0.25, head)
    planes = torch.rand(5, 60, 9, 9)
    one, two = network.train()(planes), network.eval()(planes)
    assert torch.equal(one[0], two[0])
    assert torch.equal(one[1], two[1])


@pytest.mark.parametrize("head", ["from_to", "flat"])
def test_every_one_of_the_13527_actions_has_a_score_of_its_own(head):
    network = ActorCriticResTower(1, 16, 0.0, head)
    policy, _ = network(torch.rand(1, 60, 9, 9))
    actions = torch.arange(NUM_ACTIONS)
    scores = network.scores(policy, torch.zeros(NUM_ACTIONS, dtype=torch.long), actions)
    assert len(scores.unique()) > 0.99 * NUM_ACTIONS


@pytest.mark.parametrize("size", [1, 63])
def test_a_minibatch_of_one_step_does_not_spoil_the_network(size):
    agent = small_agent(f"training.minibatch_size={size}")
    held = filled(agent)
    assert len(held) == 64  # so that 63 leave one
    agent.learn(held)
    assert all(torch.isfinite(weight).all() for weight in agent.network.parameters())


def test_values_are_between_minus_one_and_one():
    network = ActorCriticResTower(1, 16)
    with torch.no_grad():
        network.value.value.weight.fill_(100.0)
    _, values = network(torch.randn(50, 60, 9, 9) * 10)
    assert values.abs().max() <= 1


def small_agent(*overrides):
    defaults = ["model.depth=1", "model.width=16", "training.minibatch_size=32"]
    return PPOAgent(load_config(overrides=[*defaults, *overrides]), "cpu")


def test_illegal_actions_are_never_chosen_and_the_log_prob_is_of_the_choice():
    agent, game = small_agent(), ShogiGame()
    for _ in range(30):
        legal = game.legal_actions()
        action, log_prob, value = agent.select_action(game.observation(), legal)
        assert action in legal
        assert log_prob < 0
        assert -1 <= value <= 1
        game.step(action)


def test_an_update_changes_the_weights_and_the_version_and_reports_finite_numbers():
    agent = small_agent()
    before = agent.network.stem.weight.clone()
    metrics = agent.learn(filled(agent))
    assert agent.version == 1
    assert not torch.equal(before, agent.network.stem.weight)
    assert all(np.isfinite(value) for value in metrics.values())


def test_the_schedules_fall_in_a_line_to_their_end():
    agent = small_agent("training.learning_rate=0.01", "training.learning_rate_end=0.5")
    rates = [agent.learn(filled(agent), progress)["learning_rate"] for progress in (0, 0.5, 1, 2)]
    assert rates == pytest.approx([0.01, 0.0075, 0.005, 0.005])


def test_an_update_stops_at_the_target_kl():
    eager = small_agent("training.target_kl=0.00001", "training.ppo_epochs=50")
    assert eager.learn(filled(eager))["minibatches"] < 50 * 2
    free = small_agent("training.target_kl=0", "training.ppo_epochs=5")
    assert free.learn(filled(free))["minibatches"] == 5 * 2


def test_learning_goes_on_exactly_from_a_saved_state():
    one = small_agent()
    one.learn(filled(one))
    two = small_agent("env.seed=99")
    two.load_state_dict(one.state_dict())
    for agent in (one, two):
        agent.learn(filled(agent))
    for a, b in zip(one.network.parameters(), two.network.parameters(), strict=True):
        assert torch.equal(a, b)
    assert two.version == 2


def test_the_weights_follow_from_the_seed_alone():
    torch.manual_seed(5)
    one = small_agent()
    torch.manual_seed(6)
    two = small_agent()
    other = small_agent("env.seed=2")
    assert torch.equal(one.network.stem.weight, two.network.stem.weight)
    assert not torch.equal(one.network.stem.weight, other.network.stem.weight)


def test_a_diverged_network_is_named_and_not_saved_over():
    agent = small_agent()
    buffer = filled(agent)
    with torch.no_grad():
        agent.network.stem.weight.fill_(float("nan"))
    with pytest.raises(DivergedError, match="diverged"):
        agent.learn(buffer)


def test_the_entropy_bonus_keeps_the_policy_open():
    entropies = []
    for bonus in (0, 1):
        size = ["model.depth=1", "model.width=16", "training.minibatch_size=8"]
        free = ["training.target_kl=0", "training.value_loss_coef=0"]
        config = load_config(overrides=[*size, *free, f"training.entropy_coef={bonus}"])
        agent = PPOAgent(config, "cpu")
        with torch.no_grad():  # a fresh policy is as open as can be
            generator = torch.Generator().manual_seed(1)
            for weight in agent.network.parameters():
                weight.add_(torch.randn(weight.shape, generator=generator) * 0.3)
        buffer = filled(agent)
        before, *_, after = (agent.learn(buffer)["entropy"] for _ in range(4))
        entropies.append(after - before)
    assert entropies[1] > max(entropies[0], 0)


@pytest.mark.parametrize(("advantage", "pushes"), [(1, False), (-1, True)])
def test_a_policy_that_has_moved_far_enough_is_not_pushed_further(advantage, pushes):
    alone = ["training.value_loss_coef=0", "training.normalize_advantages=false"]
    config = load_config(overrides=["model.depth=1", "model.width=16", *alone])
    agent = PPOAgent(config, "cpu")
    batch = filled(agent).get_batch()
    moved = batch._replace(  # by a factor of e: the limit is 1.2
        log_probs=batch.log_probs - 1, advantages=np.full_like(batch.advantages, advantage)
    )
    seen = agent.network(agent.network.planes(moved.positions.observations))
    loss, _ = agent._loss(moved, len(moved.actions), *seen, entropy_coef=0.0)
    loss.backward()
    steps = [w.grad.abs().max().item() for w in agent.network.parameters() if w.grad is not None]
    assert (max(steps) > 0) == pushes


def test_a_value_that_has_moved_too_far_is_charged_for_what_it_was_allowed():
    agent = PPOAgent(load_config(overrides=["model.depth=1", "model.width=8"]), "cpu")
    old, value, worth = torch.tensor([[0.0], [0.5], [1.0]])
    assert agent._value_errors(value, old, worth).item() == pytest.approx((1 - 0.2) ** 2)
    assert agent._value_errors(value, value, worth).item() == pytest.approx((1 - 0.5) ** 2)


@pytest.mark.parametrize("threads", [2, 3])
def test_halves_of_a_minibatch_side_by_side_teach_what_the_whole_does(threads):
    """On two threads, each a half: the same bits every time, and but for roundings one thread's."""
    learned, before = [], torch.get_num_threads()
    for count in (1, threads, threads):
        torch.set_num_threads(count)
        agent = small_agent("training.minibatch_size=63", "training.max_grad_norm=1e9")
        metrics = agent.learn(filled(agent))
        assert torch.get_num_threads() == count
        learned.append(
            torch.cat([weight.detach().flatten() for weight in agent.network.parameters()])
        )
        learned.append(torch.tensor([metrics[name] for name in sorted(metrics)]))
    torch.set_num_threads(before)
    one, its_metrics, two, two_metrics, again, again_metrics = learned
    assert torch.equal(two, again)
    assert torch.equal(two_metrics, again_metrics)
    assert torch.allclose(one, two, atol=1e-5)
    assert torch.allclose(its_metrics, two_metrics, atol=1e-4)


def test_an_error_on_the_other_thread_reaches_the_learner_and_leaves_it_whole():
    agent, before = small_agent(), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(ZeroDivisionError):
            agent.descend(filled(agent).get_batch(), fails_elsewhere)
        assert torch.get_num_threads() == 2
        assert agent.learn(filled(agent))["policy_loss"] != 0
    finally:
        torch.set_num_threads(before)


def fails_elsewhere(part, count, policy, values):
    if threading.current_thread() is not threading.main_thread():
        raise ZeroDivisionError
    return values.sum(), {}
