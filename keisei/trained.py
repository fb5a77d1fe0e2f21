"""Networks of finished and running trainings, ready to play."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from keisei.config_schema import ModelConfig
from keisei.core.neural_network import ActorCriticResTower, build_network, depth_of
from keisei.core.policy import Policy, evaluate
from keisei.core.precision import plays_in
from keisei.core.runtime import traced
from keisei.curve import Curve
from keisei.errors import KeiseiError
from keisei.models import NETWORKS
from keisei.onnx_format import read_onnx, write_onnx
from keisei.runs.checkpoint import (
    CheckpointStore,
    load_checkpoint,
    save_checkpoint,
    trained_weights,
    understanding,
)
from keisei.runs.run import Run
from keisei.settings import parse_yaml

_FEW = 8  # positions to trace a network with; it takes any number


@dataclass(frozen=True)
class TrainedNetwork:
    """A network from a checkpoint: its policy, and how much training went into it."""

    policy: Policy
    path: Path
    steps: int
    # Hours of playing and learning, times the processes that did it; also those of the network that
    # the run began with.
    cpu_hours: float
    curve: Curve  # what its values stand for (`keisei calibrate`)


def load_trained(path: Path, limit: int | None = None) -> TrainedNetwork:
    """The network of one file (of at most `limit` bytes): a checkpoint's, or ONNX; on the CPU."""
    if path.suffix == ".onnx":
        return _load_onnx(path, limit)
    state = load_checkpoint(path, limit)
    with understanding(f"checkpoint {path} has no network that this Keisei can use"):
        # Of the settings only what is needed: an old run may have others that are gone by now.
        settings = parse_yaml(state["config"])
        network = _network(model_of(state), trained_weights(state))
        network = plays_in(network, settings["training"].get("precision", "float32"))
        parallel = settings["training"]["parallel"]
        processes = int(parallel["num_workers"]) if parallel["enabled"] else 1
        progress = state["progress"]
        hours = float(progress["seconds"]) * processes / 3600
        hours += float(progress.get("hours_before", 0))
        curve = _curve(state.get("curve", {}))
        steps = int(progress["steps"])
    policy = partial(evaluate, network, forward=traced(network, _FEW))
    return TrainedNetwork(policy, path, steps, hours, curve)


def _load_onnx(path: Path, limit: int | None) -> TrainedNetwork:
    with understanding(f"{path} has no network that this Keisei can use"):
        policy, facts = read_onnx(path, limit)
        curve = _curve(facts["curve"])
        steps, hours = int(facts["steps"]), float(facts["cpu_hours"])
    return TrainedNetwork(policy, path, steps, hours, curve)


def _curve(points: dict[str, Any]) -> Curve:
    return Curve(**{name: tuple(map(float, numbers)) for name, numbers in points.items()})


def model_of(state: dict[str, Any]) -> ModelConfig:
    """The settings of a checkpoint's network, with the depth to which it has grown."""
    model = ModelConfig.model_validate(parse_yaml(state["config"])["model"])
    grown = {"depth": depth_of(trained_weights(state))}
    return ModelConfig.model_validate({**model.model_dump(), **grown})  # within the limits


def _network(config: ModelConfig, weights: dict[str, torch.Tensor]) -> ActorCriticResTower:
    """The network with these weights; one of another size is not even made."""
    with torch.device("meta"):  # shapes alone: a stranger's settings could ask for gigabytes
        expected = {name: part.shape for name, part in build_network(config).state_dict().items()}
    if expected != {name: part.shape for name, part in weights.items()}:
        raise ValueError("its weights do not have the sizes that its settings give")
    broken = [name for name, part in weights.items() if not torch.isfinite(part).all()]
    if broken:
        raise ValueError(f"{broken[0]} has NaN or infinite weights: take another checkpoint")
    network = build_network(config)
    network.load_state_dict(weights)
    return network.eval()


def find_checkpoint(name: str, runs_dir: Path = Path("runs")) -> Path:
    """The file that `name` means: a file, the newest of a run, or one that comes with Keisei."""
    if name in NETWORKS:
        return NETWORKS[name]
    path = Path(name)
    is_file = os.path.isfile(path)  # which, unlike a Path's, is never an error
    if path.suffix in (".pt", ".onnx") or is_file:
        if not is_file:
            raise KeiseiError(f"there is no checkpoint {name}; runs keep theirs in checkpoints/")
        return path
    run = Run.open(name, runs_dir)
    paths = CheckpointStore(run.checkpoints_dir).paths()
    if not paths:
        raise KeiseiError(f"the run {run.folder} has no checkpoint yet; wait for its first one")
    return paths[-1]


def export_network(checkpoint: Path, file: Path, form: str | None = None) -> None:
    """Write the network of a checkpoint alone, as `pt` or `onnx`; by default as the file ends.

    `pt` is in half precision, a small file: a checkpoint of the same format that `load_trained`
    reads, and that a run cannot resume. `onnx` is for other programs (see `onnx_format`).
    """
    form = form or file.suffix.removeprefix(".")
    if form not in ("pt", "onnx") or file.suffix != f".{form}":
        raise KeiseiError(
            f"{file} must end in .pt, or in .onnx with the format onnx: commands recognise "
            "networks by their ending"
        )
    if file.exists():
        raise KeiseiError(f"{file} already exists: choose another name, or remove it")
    if not file.parent.is_dir():
        raise KeiseiError(f"cannot write {file}: {file.parent} is not a folder")
    trained = load_trained(checkpoint)  # an error now is better than one where the file is used
    state = load_checkpoint(checkpoint)
    if form == "onnx":
        facts = {
            "steps": trained.steps,
            "cpu_hours": trained.cpu_hours,
            "curve": vars(trained.curve),
        }
        write_onnx(_network(model_of(state), trained_weights(state)), facts, file)
        return
    network = {name: weights.half() for name, weights in trained_weights(state).items()}
    if not all(torch.isfinite(weights).all() for weights in network.values()):
        raise KeiseiError(f"{checkpoint} has weights that are too large for half precision")
    kept = ("steps", "seconds", "hours_before")
    progress = {name: state["progress"][name] for name in kept if name in state["progress"]}
    exported = {"agent": {"network": network}, "progress": progress, "config": state["config"]}
    if "curve" in state:
        exported["curve"] = state["curve"]
    save_checkpoint(file, exported)
