"""examples/reference.py, the whole algorithm on one page, is what the trainer computes."""

import ast
import importlib
from dataclasses import asdict, fields

import pytest

from keisei.config_schema import load_config
from keisei.runs.run import Run
from keisei.settings import to_yaml
from keisei.training.trainer import Trainer
from tests.docs.pages import ROOT
from tests.training.conftest import TINY, assert_same

PAGE = ROOT / "examples/reference.py"
# Three updates in such haste that every limit is met: of ratio, values, gradient and divergence.
HASTE = [
    "training.total_timesteps=768",
    "training.ppo_epochs=3",
    "training.learning_rate=0.02",
    "training.max_grad_norm=0.2",
    "training.target_kl=0.01",
    "training.value_clip=0.02",
]


@pytest.fixture
def reference(monkeypatch):
    monkeypatch.syspath_prepend(PAGE.parent)
    return importlib.import_module("reference")


def settings_of(reference, config):
    """The reference's settings, with the values that a run's have."""
    sections = [config.env, config.model, config.training, config.training.parallel]
    values = {name: value for section in sections for name, value in section}
    return reference.Settings(**{f.name: values[f.name] for f in fields(reference.Settings)})


@pytest.mark.parametrize("workers", ["false", "true"])
def test_the_trainer_ends_with_the_weights_of_the_reference(
    reference, tmp_path, one_thread, workers
):
    config = load_config(overrides=[*TINY, *HASTE, f"training.parallel.enabled={workers}"])
    trainer = Trainer(config, Run.create(tmp_path, "a", to_yaml(config)))
    trainer.start_workers()
    try:
        for _ in range(3):
            trainer.update()
    finally:
        trainer.stop_workers()
    *_, (network, metrics) = reference.train(settings_of(reference, config))
    assert metrics["steps"] == trainer.progress.steps == 768
    assert_same(network.state_dict(), trainer.agent.state_dict()["network"])


def test_the_reference_has_the_defaults_of_the_settings(reference):
    config = load_config(overrides=["model.depth=2", "model.width=64"])  # the preset's
    ours, theirs = asdict(reference.Settings()), asdict(settings_of(reference, config))
    assert {name for name in ours if ours[name] != theirs[name]} <= {
        "total_timesteps",
        "num_workers",
    }


def test_the_reference_is_one_page_and_uses_nothing_of_keisei_but_its_shogi():
    text = PAGE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 350
    imported = {
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    ours = {name for name in imported if name.startswith("keisei")}
    assert {name for name in ours if not name.startswith("keisei.shogi")} == set()
