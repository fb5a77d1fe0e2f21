"""A second learner is one module and one line: here it is, and it trains wherever PPO does."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from keisei.config_schema import load_config
from keisei.core import rollout as rollouts
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.learner import Learner
from keisei.runs.run import Run
from keisei.settings import ConfigError, to_yaml
from keisei.training.parallel.slots import slot_layout
from keisei.training.trainer import Trainer
from keisei.training_config import LEARNERS
from tests.training.conftest import assert_same, assert_same_state, options


class Reinforce(Learner):
    """Plain REINFORCE: each played move becomes likelier by what it brought."""

    def update(self, rollouts, progress=0.0):
        buffer = ExperienceBuffer(gamma=1.0, lambda_gae=1.0)
        for rollout in rollouts:
            buffer.add_batch(rollout)
        buffer.compute_advantages_and_returns()
        batch = buffer.get_batch()
        positions = batch.positions
        rows = torch.from_numpy(positions.rows())
        policy, _ = self.network(self.network.planes(positions.observations))
        legal = torch.from_numpy(positions.legal.astype(np.int64))
        chances = self.network.scores(policy, rows, legal).exp()
        total = torch.zeros(len(batch.actions)).index_add(0, rows, chances)
        played = np.flatnonzero(positions.legal == batch.actions[rows.numpy()])
        loss = -((chances[played] / total).log() * torch.from_numpy(batch.returns)).mean()
        self.network.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in self.network.parameters():
                if weight.grad is not None:
                    weight -= 0.01 * weight.grad
        self.version += 1
        return {"policy_loss": loss.item()}


@pytest.fixture
def reinforce(monkeypatch):
    monkeypatch.setitem(LEARNERS, "reinforce", f"{__name__}:Reinforce")


def trainer_of(folder, algorithm, *overrides):
    config = load_config(overrides=options(f"training.algorithm={algorithm}", *overrides)[1::2])
    return Trainer(config, Run.create(folder, None, to_yaml(config)))


@pytest.mark.parametrize("algorithm", ["gumbel", "reinforce"])
def test_another_learner_trains_and_goes_on_in_one_process_and_with_workers(
    reinforce, tmp_path, algorithm
):
    more = ["training.average=0.5"] if algorithm == "gumbel" else []
    states = []
    for enabled in ("false", "true"):
        trainer = trainer_of(tmp_path, algorithm, f"training.parallel.enabled={enabled}", *more)
        trainer.start_workers()
        trainer.update()
        half = trainer.state_dict()
        trainer.update()
        trainer.stop_workers()
        assert trainer.progress.metrics["policy_loss"] != 0
        states.append(trainer.state_dict())
    assert_same_state(*states)
    resumed = trainer_of(tmp_path, algorithm, *more)
    resumed.load_state_dict(half)
    resumed.update()
    assert_same_state(resumed.state_dict(), states[0])


def test_a_search_by_central_inference_finds_what_it_finds_in_one_process(tmp_path):
    states = []
    for how in ("enabled=false", "inference=central"):
        more = ["training.parallel.enabled=true", f"training.parallel.{how}"]
        trainer = trainer_of(tmp_path, "gumbel", *more)
        trainer.start_workers()
        trainer.update()
        assert trainer.manager.is_running == (how != "enabled=false")
        trainer.stop_workers()
        states.append(trainer.state_dict())
    assert_same_state(*states)


def test_a_run_changes_from_ppo_to_search_and_goes_on_with_its_weights_and_games(tmp_path):
    first = trainer_of(tmp_path, "ppo", "training.parallel.enabled=false")
    first.update()
    state = first.state_dict()
    second = trainer_of(tmp_path, "gumbel", "training.average=0.9")
    second.load_state_dict(state)
    assert_same(second.agent.network.state_dict(), first.agent.network.state_dict())
    second.update()
    assert second.progress.metrics["search_kl"] > 0
    assert second.progress.updates == 2


def test_a_learner_that_nobody_has_written_is_refused_by_name():
    with pytest.raises(ConfigError, match="choose ppo or gumbel, not 'alchemy'"):
        load_config(overrides=["training.algorithm=alchemy"])


def test_a_field_of_a_rollout_is_declared_in_one_place_and_goes_wherever_rollouts_go(monkeypatch):
    @dataclass(kw_only=True)
    class Annotated(rollouts.Rollout):
        clocks: Any = rollouts._per_step(np.float32)  # noqa: RUF009

    monkeypatch.setattr(rollouts, "Rollout", Annotated)
    assert slot_layout(load_config(overrides=options()[1::2]), 3)["clocks"][0] == (3, 32, 4)
    rollout = rollouts.empty_rollout(5, 2)
    rollout.clocks[:] = 7
    assert (rollout.copy().clocks == 7).all()
    assert rollout.clocks.shape == (5, 2)
