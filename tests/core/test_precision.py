"""bfloat16: exact where float32 is, near to it in what it says, and chosen only where it pays."""

import copy
import json
import os
import signal

import numpy as np
import pytest
import torch

from keisei.config_schema import ModelConfig, load_config
from keisei.core import precision
from keisei.core.neural_network import build_network
from keisei.core.policy import evaluate
from keisei.core.ppo_agent import PPOAgent
from keisei.core.precision import acting_network, in_precision, resolve_precision
from keisei.models import SHIPPED_PATH
from keisei.runs.run import Run
from keisei.selfplay.shard import make_shard, new_rollout
from keisei.settings import to_yaml
from keisei.shogi import VectorShogi
from keisei.shogi.actions import NUM_BOARD_ACTIONS
from keisei.trained import load_trained
from keisei.training.first_network import first_network
from keisei.training.parallel.model_sync import pack_weights, unpack_weights
from keisei.training.trainer import Trainer
from tests.training.conftest import assert_same_state, options

pytestmark = pytest.mark.skipif(
    not precision._is_native(), reason="this processor does not multiply bfloat16 itself"
)


def trainer_of(folder, *overrides):
    overrides = options("training.precision=bfloat16", *overrides)[1::2]
    config = load_config(overrides=overrides)
    return Trainer(config, Run.create(folder, None, to_yaml(config)))


@pytest.mark.parametrize("algorithm", ["ppo", "gumbel"])
def test_serial_workers_and_a_resumed_run_end_with_the_same_weights(tmp_path, algorithm):
    states = []
    for enabled in ("false", "true"):
        trainer = trainer_of(
            tmp_path, f"training.parallel.enabled={enabled}", f"training.algorithm={algorithm}"
        )
        trainer.start_workers()
        trainer.update()
        half = trainer.state_dict()
        trainer.update()
        trainer.stop_workers()
        states.append(trainer.state_dict())
    assert_same_state(*states)
    resumed = trainer_of(tmp_path, f"training.algorithm={algorithm}")
    resumed.load_state_dict(half)
    resumed.update()
    assert_same_state(resumed.state_dict(), states[0])


def test_the_recorded_probabilities_are_those_that_the_learner_begins_with():
    small = ["training.minibatch_size=64", "training.parallel.num_envs_per_worker=8"]
    small += ["training.parallel.rollout_length=16", "training.ppo_epochs=2"]
    wanted = ["training.precision=bfloat16", "training.target_kl=0"]
    config = load_config(overrides=[*wanted, *small])
    agent, shard = PPOAgent(config, "cpu"), make_shard(config, 0)
    acting = acting_network(config)
    errors = []
    for _ in range(3):
        acting.load_state_dict(agent.network.state_dict())
        rollout = new_rollout(config)
        shard.collect(lambda positions: evaluate(acting, positions), rollout, agent.version)
        errors.append(agent.update([rollout])["first_ratio_error"])
    assert max(errors) < 1e-3  # the bound of float32


def test_a_trained_network_learns_from_just_what_it_said_when_it_played():
    small = ["training.parallel.num_envs_per_worker=16", "training.parallel.rollout_length=64"]
    wanted = ["training.precision=bfloat16", "training.start=shipped", "model.depth=4"]
    config = load_config(overrides=[*wanted, *small])
    agent, first = PPOAgent(config, "cpu"), first_network(config)
    # No longer what bfloat16 can hold, like all weights that are being learned.
    agent.load_weights({name: 1.001 * weight for name, weight in first.weights.items()})
    acting = acting_network(config)
    acting.load_state_dict(agent.network.state_dict())
    rollout = new_rollout(config)
    make_shard(config, 0).collect(lambda positions: evaluate(acting, positions), rollout, 0)
    seen = rollout.positions
    with torch.no_grad(), agent.precision():
        policy, values = agent.network(agent.network.planes(seen.observations))
        log_probs = agent.log_probs(policy, seen)
    played = np.flatnonzero(seen.legal == rollout.actions.ravel()[seen.rows()])
    assert (rollout.actions >= NUM_BOARD_ACTIONS).any()  # drops start from learned vectors
    assert np.abs(log_probs.numpy()[played] - rollout.log_probs.ravel()).max() < 1e-5
    assert np.abs(values.numpy() - rollout.values.ravel()).max() < 1e-5


def test_a_bfloat16_network_says_nearly_the_same():
    network = load_trained(SHIPPED_PATH).policy.args[0]
    games = VectorShogi(64, 3)
    for _ in range(60):
        games.step(games.random_actions())
    exact = evaluate(network, games.positions)
    rough = evaluate(in_precision(network, "bfloat16"), games.positions)
    assert np.abs(exact.values - rough.values).max() < 0.05
    gap = np.exp(exact.log_probs) * (exact.log_probs - rough.log_probs)
    assert gap.sum() / 64 < 1e-3  # KL divergence, per position


def test_the_networks_input_is_in_the_order_that_its_layers_read():
    for name in ("float32", "bfloat16"):
        network = in_precision(build_network(ModelConfig(depth=1, width=8)), name)
        planes = network.planes(VectorShogi(3).observations)
        assert planes.is_contiguous(memory_format=torch.channels_last)


def test_a_move_has_the_score_and_the_gradient_of_float32_arithmetic():
    network = build_network(ModelConfig(depth=1, width=8))
    rows, actions = torch.zeros(1000, dtype=torch.long), torch.full((1000,), 7126)
    rough = torch.randn(243, 32).bfloat16().requires_grad_()
    exact = rough.detach().float().requires_grad_()
    scores = [network.scores(policy, rows, actions) for policy in (rough, exact)]
    assert torch.equal(*scores)
    playing = in_precision(copy.deepcopy(network), "bfloat16")
    assert torch.equal(playing.scores(rough.detach(), rows, actions), scores[1])
    for one in scores:
        one.sum().backward()
    assert torch.equal(rough.grad, exact.grad.bfloat16())  # 1,000 equal terms: no digit was lost


def test_weights_cross_to_workers_in_two_bytes_each_and_unchanged():
    network = in_precision(build_network(ModelConfig(depth=1, width=8)), "bfloat16")
    packed = pack_weights(network)
    assert packed.nbytes == 2 * sum(weight.numel() for weight in network.parameters())
    other = in_precision(build_network(ModelConfig(depth=1, width=8)), "bfloat16")
    unpack_weights(other, packed)
    for one, two in zip(network.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)


def test_auto_measures_once_and_remembers_it_for_the_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    config = load_config(overrides=["training.precision=auto", "model.depth=1"])
    chosen = resolve_precision(config, torch.device("cpu")).training.precision
    ((key, gain),) = json.loads((tmp_path / "keisei/precision.json").read_text()).items()
    assert chosen == ("bfloat16" if gain >= 1.1 else "float32")
    for known, wanted in ((0.5, "float32"), (2.0, "bfloat16")):
        (tmp_path / "keisei/precision.json").write_text(json.dumps({key: known}))
        assert resolve_precision(config, torch.device("cpu")).training.precision == wanted


def crash(model):
    os.kill(os.getpid(), signal.SIGILL)


def test_a_machine_that_crashes_in_bfloat16_gets_float32_and_lives(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(precision, "measure_gain", crash)
    config = load_config(overrides=["training.precision=auto"])
    assert resolve_precision(config, torch.device("cpu")).training.precision == "float32"


def test_a_run_keeps_what_auto_chose(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    config = load_config(overrides=options("training.precision=auto")[1::2])
    trainer = Trainer(config, Run.create(tmp_path, None, to_yaml(config)))
    chosen = trainer.config.training.precision
    assert chosen in ("float32", "bfloat16")
    assert f"precision: {chosen}" in trainer.state_dict()["config"]


def test_a_resume_where_bfloat16_is_only_emulated_says_so(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    trainer_of(tmp_path)
    assert "-o training.precision=float32 is faster here" in caplog.text


@pytest.mark.parametrize(("old", "new"), [("true", "bfloat16"), ("false", "float32")])
def test_settings_from_when_it_was_called_mixed_precision_mean_what_they_meant(old, new):
    config = load_config(overrides=[f"training.mixed_precision={old}"])
    assert config.training.precision == new


def test_a_processor_without_it_gets_float32_at_once(monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    config = load_config(overrides=["training.precision=auto"])
    assert resolve_precision(config, torch.device("cpu")).training.precision == "float32"
