"""A run may begin with the network of another one (`training.start`)."""

import pytest
import torch

from keisei.config_schema import load_config
from keisei.errors import KeiseiError
from keisei.models import NETWORKS
from keisei.runs.checkpoint import load_checkpoint, trained_weights
from keisei.runs.run import Run
from keisei.settings import to_yaml
from keisei.shogi import VectorShogi
from keisei.trained import export_network, find_checkpoint, load_trained
from keisei.training.callbacks import Callback
from keisei.training.first_network import first_network
from keisei.training.start import open_run, resume_trainer, train
from keisei.training.trainer import Trainer
from keisei.training.training_loop_manager import TrainingLoopManager
from tests.training.conftest import assert_same_state, options, run_keisei, state

SHORT = ("training.total_timesteps=1024", "evaluation.final_games=0", "training.average=0.9")


def new_trainer(folder, *overrides):
    config = load_config(overrides=options(*overrides)[1::2])
    return Trainer(config, Run.create(folder, None, to_yaml(config)))


def assert_begins_with(trainer, weights):
    for network in (trainer.agent.network, trainer.agent.average):
        for name, values in network.state_dict().items():
            assert torch.equal(values, weights[name].float()), name


def test_a_run_begins_with_the_weights_of_another_run_and_counts_on_from_its_hours(
    tmp_path, whole_run, undisturbed
):
    trainer = new_trainer(tmp_path, f"training.start={whole_run}", *SHORT)
    assert_begins_with(trainer, undisturbed["agent"]["network"])
    assert trainer.progress.steps == trainer.agent.version == 0
    trainer.checkpoints.save(0, trainer.state_dict())
    before = load_trained(find_checkpoint(str(whole_run))).cpu_hours
    path = trainer.checkpoints.paths()[-1]
    assert load_trained(path).cpu_hours == before > 0
    export_network(path, tmp_path / "exported.pt")
    assert load_trained(tmp_path / "exported.pt").cpu_hours == before


def test_a_run_begins_with_an_exported_network_also_in_workers(tmp_path, whole_run, undisturbed):
    exported = tmp_path / "exported.pt"
    export_network(find_checkpoint(str(whole_run)), exported)
    half = {name: w.half() for name, w in undisturbed["agent"]["network"].items()}
    assert_begins_with(new_trainer(tmp_path / "runs", f"training.start={exported}", *SHORT), half)
    command = options(f"training.start={exported}", *SHORT)
    for name, enabled in (("here", "false"), ("workers", "true")):
        changes = ("-o", f"training.parallel.enabled={enabled}")
        done = run_keisei("train", "--name", name, *command, *changes, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    here, workers = (state(tmp_path / "runs" / name) for name in ("here", "workers"))
    assert_same_state(here, workers)


def test_a_network_that_is_begun_with_can_grow_and_plays_the_same_moves_at_first(
    tmp_path, whole_run
):
    start = f"training.start={whole_run}"
    trainer = new_trainer(tmp_path / "grown", start, "model.depth=3", *SHORT)
    network, first = trainer.agent.network, new_trainer(tmp_path, start, *SHORT).agent.network
    assert (len(network.tower), len(first.tower)) == (3, 1)
    games = VectorShogi(16, seed=1)
    for _ in range(20):
        games.step(games.random_actions())
    planes = network.planes(games.observations)
    for now, before in zip(network(planes), first(planes), strict=True):
        assert torch.equal(now, before)
    old = {name: values.clone() for name, values in network.state_dict().items()}
    for _ in range(4):
        trainer.update()
    for name, values in network.state_dict().items():
        assert not torch.equal(values, old[name]), name  # the new blocks learn, too


def test_the_network_that_comes_with_keisei_is_a_start_as_the_documentation_has_it():
    config = load_config(overrides=["training.start=shipped", "model.depth=4"])
    assert load_trained(NETWORKS["shipped"]).cpu_hours > 0
    assert first_network(config).weights


def test_a_resumed_run_needs_the_network_it_began_with_no_more(tmp_path, whole_run):
    exported = tmp_path / "exported.pt"
    export_network(find_checkpoint(str(whole_run)), exported)
    trainer = new_trainer(tmp_path, f"training.start={exported}", *SHORT)
    run = trainer.run
    again = resume_trainer(*open_run(run, []))  # there is no checkpoint yet
    assert again.progress.hours_before == trainer.progress.hours_before > 0
    trainer.update()
    trainer.checkpoints.save(trainer.progress.steps, trainer.state_dict())
    exported.unlink()
    resumed = resume_trainer(*open_run(run, []))
    assert_same_state(resumed.state_dict(), trainer.state_dict())


def test_what_a_run_began_with_is_kept_before_its_first_update(tmp_path, whole_run, undisturbed):
    seen = []

    class Moments(Callback):
        def on_checkpoint(self, trainer, path, seconds):
            seen.append(("checkpoint", trainer.progress.steps))

        def on_update(self, trainer, finished):
            seen.append(("update", trainer.progress.steps))

    trainer = new_trainer(tmp_path, f"training.start={whole_run}", *SHORT)
    trainer.callbacks = [Moments()]
    TrainingLoopManager(trainer).run()
    assert seen[:2] == [("checkpoint", 0), ("update", 256)]
    kept = load_checkpoint(trainer.checkpoints.folder / "step_000000000000.pt")
    for name, values in trained_weights(kept).items():
        assert torch.equal(values, undisturbed["agent"]["network"][name].float()), name


@pytest.mark.parametrize(
    ("start", "changes", "told"),
    [
        ("{run}", ["model.width=16"], "model.width=8"),
        ("{run}", ["model.width=16", "model.depth=2"], "model.width=8. Set"),
        ("{run}", ["model.depth=0"], "model.depth=1"),
        ("{run}", ["model.planes=core46"], "model.planes=attack60"),
        ("nowhere", [], "nowhere"),
        ("nowhere.pt", [], "nowhere.pt"),
        ("{onnx}", [], "other programs"),
        ("{rubbish}", [], "rubbish.pt"),
    ],
)
def test_what_cannot_be_begun_with_is_refused_before_there_is_a_run(
    tmp_path, whole_run, start, changes, told
):
    files = {"run": whole_run, "onnx": tmp_path / "a.onnx", "rubbish": tmp_path / "rubbish.pt"}
    if "onnx" in start:
        export_network(find_checkpoint(str(whole_run)), files["onnx"])
    files["rubbish"].write_bytes(b"rubbish")
    overrides = [*options()[1::2], f"training.start={start.format(**files)}", *changes]
    with pytest.raises(KeiseiError) as error:
        train(None, overrides, name="mine", runs=tmp_path / "runs")
    assert told in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "runs" / "mine").exists()
