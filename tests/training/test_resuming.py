"""Every setting either can be changed when a run goes on, or is refused by its name."""

import pytest

from keisei.config_schema import AppConfig, load_config
from keisei.errors import KeiseiError
from keisei.runs.run import Run
from keisei.settings import setting_names, to_yaml
from keisei.training.start import open_run, resume_trainer
from keisei.training.trainer import Trainer
from tests.training.conftest import options

# Another value for each setting.
CAN_CHANGE = {
    "env.seed": 7,
    "env.device": "cpu",
    "env.move_limit": 50,
    "env.material_reward": 0.5,
    "env.adjudicate": 20.0,
    "env.random_moves": 8,
    "model.preset": "small",  # depth, width and the rest are given
    "training.total_timesteps": 4096,
    "training.learning_rate": 0.01,
    "training.learning_rate_end": 0.5,
    "training.gamma": 0.9,
    "training.lambda_gae": 0.5,
    "training.ppo_epochs": 2,
    "training.share_learned": 0.5,
    "training.minibatch_size": 32,
    "training.clip_epsilon": 0.1,
    "training.value_clip": 0,
    "training.value_loss_coef": 1,
    "training.entropy_coef": 0.1,
    "training.entropy_coef_end": 1,
    "training.max_grad_norm": 2,
    "training.target_kl": 0,
    "training.normalize_advantages": False,
    "training.precision": "bfloat16",
    "training.checkpoint_interval": 256,
    "training.keep_checkpoints": 1,
    "training.parallel.enabled": True,
    "training.parallel.backend": "ray",
    "training.parallel.ray_address": "localhost:1",
    "training.parallel.elastic": True,
    "training.parallel.rollout_length": 16,
    "training.parallel.mode": "async",
    "training.parallel.inference": "central",
    "training.parallel.experience_batch_size": 512,
    "training.parallel.episodes_per_worker": 1,
    "training.parallel.model_sync_interval": 2,
    "training.parallel.max_policy_lag": 9,
    "training.parallel.opponent_shares": "{random: 0.5}",
    "training.parallel.games_per_worker": 1,
    "training.parallel.worker_reset_interval": 1,
    "training.parallel.worker_timeout": 9,
    "training.parallel.max_restarts": 1,
    "training.parallel.queue_maxsize": 9,
    "training.parallel.use_shared_memory": False,
    "training.parallel.compression_enabled": True,
    "evaluation.interval": 9,
    "evaluation.games": 2,
    "evaluation.final_games": 0,
    "training.algorithm": "gumbel",
    "training.search.visits": 4,
    "training.search.considered": 4,
    "training.search.scale": 1.0,
    "training.search.window": 2,
    "training.average": 0.9,
    "stretches": "[{begin: 9, change: {training.gamma: 0.9}}]",
    "evaluation.opponents": "[greedy]",
    "evaluation.temperature": 0,
    "evaluation.rate": True,
    "logging.tensorboard": False,
    "logging.games_per_update": 0,
    "logging.games_per_evaluation": 0,
    "wandb.enabled": True,
    "wandb.project": "mine",
    "wandb.mode": "online",
    "display.live": "never",
    "display.refresh_per_second": 1,
}
CANNOT = {
    "env.move_limit": 10,
    "env.start_positions": "[startpos, lance]",
    "model.depth": 2,
    "model.width": 16,
    "model.se_ratio": 0.5,
    "model.policy_head": "flat",
    "model.planes": "core46",
    "training.start": "shipped",
    "training.parallel.num_workers": 3,
    "training.parallel.num_envs_per_worker": 8,
}
NOT_TRIED = {
    "logging.runs_dir": "says where the run is looked for",
}
GIVEN = ["model.se_ratio=0", "env.seed=5"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with a checkpoint after one update, in which games of 32 moves stand."""
    config = load_config(overrides=options(*GIVEN)[1::2])
    run = Run.create(tmp_path_factory.mktemp("runs"), "a", to_yaml(config))
    trainer = Trainer(config, run)
    trainer.update()
    trainer.checkpoints.save(trainer.progress.steps, trainer.state_dict())
    return run


def resume(run, name, value):
    return resume_trainer(*open_run(str(run.folder), [f"{name}={value}"]))


def test_every_setting_is_tried():
    names = setting_names(AppConfig)
    sections = {name.rpartition(".")[0] for name in names}
    assert set(names) - sections == {*CAN_CHANGE, *CANNOT, *NOT_TRIED}


@pytest.mark.parametrize("name", CAN_CHANGE)
def test_a_setting_that_can_change_works(run, name):
    trainer = resume(run, name, CAN_CHANGE[name])
    trainer.update()
    assert trainer.progress.updates == 2


@pytest.mark.parametrize("name", CANNOT)
def test_a_setting_that_cannot_change_is_refused_by_name(run, name):
    with pytest.raises(KeiseiError) as error:
        resume(run, name, CANNOT[name])
    assert str(error.value).startswith(f"{name} cannot ")
    assert "\n" not in str(error.value)


def test_a_longer_goal_is_the_goal(run):
    assert resume(run, "training.total_timesteps", 4096).progress.total_timesteps == 4096
