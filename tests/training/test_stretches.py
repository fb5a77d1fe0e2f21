"""A run in stretches: other settings from a step on, and exact through stops at any border."""

import numpy as np
import pytest

from keisei.config_schema import AppConfig, load_config
from keisei.core.neural_network import depth_of
from keisei.runs.checkpoint import load_checkpoint
from keisei.runs.run import Run
from keisei.settings import ConfigError, to_yaml
from keisei.shogi import VectorShogi
from keisei.trained import export_network, load_trained
from keisei.training.callbacks import Callback
from keisei.training.first_network import first_network
from keisei.training.start import open_run, resume_trainer
from keisei.training.trainer import Trainer
from keisei.training.training_loop_manager import TrainingLoopManager
from keisei.training_config import Stretch
from tests.training.conftest import assert_same_state, options

# An update of the tests' settings has 256 steps: the borders are after the 2nd and the 4th.
STRETCHES = (
    "stretches=[{begin: 512, change: {training.algorithm: gumbel, training.average: 0.5, "
    "training.search.visits: 4, training.parallel.rollout_length: 16}}, "
    "{begin: 900, change: {training.learning_rate: 0.0001}}]"
)
WHOLE = options(
    STRETCHES,
    "training.total_timesteps=1536",
    "training.checkpoint_interval=256",
    "evaluation.games=2",
    "evaluation.final_games=0",
)


def trainer_of(folder, *overrides):
    config = load_config(overrides=[*WHOLE[1::2], *overrides])
    return Trainer(config, Run.create(folder, None, to_yaml(config)), [])


class Notes(Callback):
    def __init__(self):
        self.changes, self.algorithms, self.rates = [], [], []

    def on_update(self, trainer, finished):
        self.algorithms.append(trainer.config.training.algorithm)
        self.rates.append(trainer.progress.metrics["learning_rate"])

    def on_stretch(self, trainer, changes):
        self.changes.append((trainer.progress.steps, sorted(changes)))


@pytest.mark.parametrize("enabled", ["false", "true"])
def test_settings_change_at_the_borders_and_schedules_run_within_each_stretch(tmp_path, enabled):
    trainer = trainer_of(tmp_path, f"training.parallel.enabled={enabled}")
    notes = Notes()
    trainer.callbacks.append(notes)
    TrainingLoopManager(trainer).run()
    steps = trainer.config.training.parallel.update_steps
    assert steps < 256  # shorter rollouts since the first border
    assert notes.algorithms[:3] == ["ppo", "ppo", "gumbel"]
    assert [step for step, _ in notes.changes] == [512, 896 + steps if 896 % steps else 1024][
        :1
    ] + [step for step, _ in notes.changes[1:]]
    assert notes.changes[1][1] == ["training.learning_rate"]
    assert notes.rates[0] == notes.rates[2] == 0.001  # each stretch begins with all of its rate
    assert notes.rates[1] < notes.rates[0]
    assert notes.rates[-1] < 0.0001


def test_a_run_stopped_before_at_and_after_a_border_ends_as_one_that_was_not(tmp_path):
    whole = trainer_of(tmp_path)
    TrainingLoopManager(whole).run()
    for path in whole.checkpoints.paths()[:-1]:
        run = Run.create(tmp_path, None, to_yaml(whole.settings))
        run.checkpoints_dir.mkdir(exist_ok=True)
        (run.checkpoints_dir / path.name).write_bytes(path.read_bytes())
        resumed = resume_trainer(*open_run(str(run.folder), []))
        resumed.callbacks = []
        TrainingLoopManager(resumed).run()
        assert_same_state(resumed.state_dict(), whole.state_dict())


GROWING = (
    "stretches=[{begin: 512, change: {model.depth: 3}}, {begin: 900, change: {model.depth: 4}}]",
    "training.average=0.5",
    "training.parallel.model_sync_interval=2",  # workers play with weights of before they grew
)


def test_a_network_grows_in_a_run_and_a_stop_at_any_moment_changes_nothing(tmp_path):
    whole = trainer_of(tmp_path, *GROWING)
    TrainingLoopManager(whole).run()
    depths = [
        depth_of(load_checkpoint(path)["agent"]["network"]) for path in whole.checkpoints.paths()
    ]
    assert depths == [1, 3, 3, 4, 4]
    for path in whole.checkpoints.paths()[:-1]:
        run = Run.create(tmp_path, None, to_yaml(whole.settings))
        run.checkpoints_dir.mkdir(exist_ok=True)
        (run.checkpoints_dir / path.name).write_bytes(path.read_bytes())
        resumed = resume_trainer(*open_run(str(run.folder), ["training.parallel.enabled=true"]))
        resumed.callbacks = []
        TrainingLoopManager(resumed).run()
        ends = [{**one.state_dict(), "config": ""} for one in (resumed, whole)]
        assert_same_state(*ends)


def test_a_network_that_grew_plays_the_same_moves_and_can_be_exported_and_begun_with(tmp_path):
    trainer = trainer_of(tmp_path, *GROWING, "training.total_timesteps=512")
    TrainingLoopManager(trainer).run()
    trainer.settings.training.total_timesteps = 1024
    games = VectorShogi(8, seed=1)
    before = trainer.agent.evaluate(games.positions)
    trainer.enter_stretch(511)
    assert len(trainer.agent.network.tower) == 3
    for one, other in zip(trainer.agent.evaluate(games.positions), before, strict=True):
        np.testing.assert_array_equal(one, other)
    trainer.update()
    trainer.checkpoints.save(999, trainer.state_dict())
    path = trainer.checkpoints.paths()[-1]
    for file in ("mine.pt", "mine.onnx"):
        export_network(path, tmp_path / file)
        assert load_trained(tmp_path / file).steps == trainer.progress.steps
    start = f"training.start={tmp_path / 'mine.pt'}"
    assert (
        "tower.2.conv1.weight"
        in first_network(load_config(overrides=[start, "model.depth=3", "model.width=8"])).weights
    )


def test_a_run_whose_network_has_grown_does_not_go_on_with_a_smaller_one(tmp_path):
    trainer = trainer_of(tmp_path, *GROWING, "training.total_timesteps=768")
    TrainingLoopManager(trainer).run()
    with pytest.raises(ConfigError, match="the network has grown to model"):
        resume_trainer(*open_run(str(trainer.run.folder), ["stretches=[]"]))


def test_settings_that_were_changed_in_python_hold_with_and_without_stretches(tmp_path):
    config = AppConfig()
    config.training.parallel.num_workers = 3
    assert config.at(0).training.parallel.num_workers == 3
    config.stretches = [Stretch(begin=9, change={"training.algorithm": "gumbel"})]
    assert config.at(9).training.parallel.num_workers == 3
    assert config.at(9).training.algorithm == "gumbel"


@pytest.mark.parametrize(
    ("stretches", "problem"),
    [
        ("[{begin: 9, change: {model.width: 8}}]", "model.width cannot change within a run"),
        ("[{begin: 9, change: {model.depth: 0}}]", "model.depth is 0, but .* it can only grow"),
        (
            "[{begin: 8, change: {model.depth: 4}}, {begin: 9, change: {model.depth: 3}}]",
            "from step 9: model.depth is 3, but the network has 4 blocks",
        ),
        ("[{begin: 9, change: {training.algoritm: gumbel}}]", "did you mean training.algorithm"),
        ("[{begin: 9, change: {}}, {begin: 9, change: {}}]", "9 must come after 9"),
        ("[{begin: 9, change: {env: 3}}]", "env has settings that .* as env.SETTING"),
        ("[{begin: 9, change: {model: {depth: 4}}}]", "name each one .* as model.SETTING"),
        ("[{begin: 9, change: {training.parallel: {num_workers: 1}}}]", "training.parallel has"),
        ("[{begin: 9, change: {training.search: 3}}]", "training.search is a section"),
        ("[{begin: 0, change: {}}]", "begin"),
    ],
)
def test_a_stretch_that_cannot_be_is_refused_before_the_run_begins(stretches, problem):
    with pytest.raises(ConfigError, match=problem):
        load_config(overrides=[f"stretches={stretches}"])
