"""What a run that goes on may change of its settings, and what it may not."""

from __future__ import annotations

from typing import Any

from keisei.config_schema import AppConfig, ModelConfig, parse_config
from keisei.core.neural_network import depth_of
from keisei.selfplay.shard import has_games
from keisei.settings import ConfigError, parse_yaml


def check_settings(config: AppConfig, state: dict[str, Any]) -> None:
    """Refuse, by name, settings that do not fit the network and the games of a checkpoint."""
    before = parse_config(parse_yaml(state["config"]))
    for name, (was, now) in differences(before.model, config.model).items():
        _must_be_same(name, was, now)
    has = depth_of(state["agent"]["network"])
    if config.at(state["progress"]["steps"]).model.size.depth < has:
        raise ConfigError(
            f"the network has grown to model.depth={has} by now: leave the stretches that made it "
            "grow as they were"
        )
    _must_be_same("training.start", before.training.start, config.training.start)
    old, new = before.training.parallel, config.training.parallel
    _must_be_same("training.parallel.num_workers", len(state["shards"]), new.num_workers)
    name = "training.parallel.num_envs_per_worker"
    _must_be_same(name, old.num_envs_per_worker, new.num_envs_per_worker)
    if before.env.start_sfens() != config.env.start_sfens():
        name = "env.start_positions"
        _must_be_same(name, before.env.start_positions, config.env.start_positions)
    played = (int(max(shard["move_counts"])) for shard in state["shards"] if has_games(shard))
    if (longest := max(played, default=0)) >= config.env.move_limit:
        raise ConfigError(
            f"env.move_limit cannot be {config.env.move_limit}: one of the games that the run goes "
            f"on with has {longest} moves, so it must be at least {longest + 1}"
        )


def differences(one: ModelConfig, other: ModelConfig) -> dict[str, tuple[object, object]]:
    """The settings in which two networks differ in shape, however they say it: name, and both."""
    shapes = _shape(one), _shape(other)
    pairs = {f"model.{name}": (shapes[0][name], shapes[1][name]) for name in shapes[0]}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _must_be_same(name: str, before: object, now: object) -> None:
    if before != now:
        raise ConfigError(f"{name} cannot change on resume: it was {before!r}, not {now!r}")


def _shape(model: ModelConfig) -> dict[str, object]:
    """What the settings make of the network."""
    return {**model.size._asdict(), "policy_head": model.policy_head, "planes": model.planes}
