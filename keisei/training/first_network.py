"""The network that a run begins with, where its settings name one (`training.start`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from keisei.config_schema import AppConfig, ModelConfig
from keisei.errors import KeiseiError
from keisei.runs.checkpoint import load_checkpoint, trained_weights
from keisei.settings import ConfigError
from keisei.trained import find_checkpoint, load_trained, model_of
from keisei.training.resuming import differences


@dataclass(frozen=True)
class FirstNetwork:
    """Weights to begin with, and the processor hours that went into them."""

    weights: dict[str, Tensor]
    cpu_hours: float


def first_network(config: AppConfig) -> FirstNetwork | None:
    """The network that `training.start` names, if it fits the settings; None: begin with a new one.

    Only the weights are taken over: the optimiser, the counters and the games start afresh.
    """
    name = config.training.start
    if not name:
        return None
    path = find_checkpoint(name, Path(config.logging.runs_dir))
    if path.suffix == ".onnx":
        raise KeiseiError(
            f"training.start: {path} is for other programs, and training cannot begin with it: "
            "take the checkpoint that it was exported from, or export it as .pt"
        )
    trained = load_trained(path)  # says so if it is not a network, or a broken one
    state = load_checkpoint(path)
    _check_shape(name, model_of(state), config.model)
    weights = {part: values.float() for part, values in trained_weights(state).items()}
    return FirstNetwork(weights, trained.cpu_hours)


def _check_shape(name: str, model: ModelConfig, wanted: ModelConfig) -> None:
    """Refuse a network of another shape, unless it just has fewer blocks: it can grow."""
    different = differences(model, wanted)
    if model.size.depth < wanted.size.depth:
        del different["model.depth"]
    if different:
        theirs = ", ".join(f"{setting}={was}" for setting, (was, _) in different.items())
        raise ConfigError(
            f"training.start: the network {name} has another shape than the settings: it has "
            f"{theirs}. Set that, or leave out training.start"
        )
