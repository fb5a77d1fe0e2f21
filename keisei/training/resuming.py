"""What a run that goes on may change of its settings, and what it may not."""

from __future__ import annotations

from typing import Any

from keisei.config_schema import AppConfig, ModelConfig, parse_config
from keisei.core.neural_network import PRESETS
from keisei.selfplay.shard import has_games
from keisei.settings import ConfigError, parse_yaml


def check_settings(config: AppConfig, state: dict[str, Any]) -> None:
    """Refuse, by name, settings that do not fit the network and the games of a checkpoint."""
    before = parse_config(parse_yaml(state["config"]))
    if _shape(before.model) != _shape(config.model):
        for name in ModelConfig.model_fields:
            _must_be_same(f"model.{name}", getattr(before.model, name), getattr(config.model, name))
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


def _must_be_same(name: str, before: object, now: object) -> None:
    if before != now:
        raise ConfigError(f"{name} cannot change on resume: it was {before!r}, not {now!r}")


def _shape(model: ModelConfig) -> tuple[object, ...]:
    """What the settings make of the network, however they say it."""
    preset = PRESETS[model.preset]
    given = (model.depth, model.width, model.se_ratio)
    resolved = (p if g is None else g for p, g in zip(preset, given, strict=True))
    return (*resolved, model.policy_head, model.planes)
