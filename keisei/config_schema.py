"""All settings, with what they mean. Unknown keys and wrong values are refused.

>>> config = load_config(overrides=["training.learning_rate=1e-4"])
>>> config.training.learning_rate
0.0001
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, Optional, get_args

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from keisei import configs
from keisei.settings import (
    ConfigError,
    Device,
    Section,
    WandbConfig,
    apply_override,
    explain,
    read_settings,
    set_value,
    setting_names,
    unknown_settings,
)
from keisei.shogi.rules import HANDICAPS, START_SFEN, new_board
from keisei.training_config import Stretch, TrainingConfig


class EnvConfig(Section):
    """The game."""

    seed: int = Field(1, ge=0, lt=2**63, description="Seed of every random choice in the run.")
    device: Device = Field("auto", description="auto (CUDA if available), cpu, cuda or cuda:N.")
    move_limit: int = Field(
        512,
        ge=1,
        le=65_535,
        description="Moves after which a game is drawn. Short limits make "
        "most early games draws, which teach little.",
    )
    material_reward: float = Field(
        0.01,
        ge=0,
        le=1,
        description="Reward for each pawn's worth of material that a move gains. "
        "0 leaves only winning and losing.",
    )
    adjudicate: float = Field(
        0.0,
        ge=0,
        le=1000,
        description="At the move limit, the side that is this many pawns of material ahead is "
        "rewarded as if it had won, and in proportion for a smaller lead; 0: a draw. For learning "
        "only: in records and matches it is always a draw.",
    )
    random_moves: int = Field(
        0,
        ge=0,
        le=100,
        description="Each game of self-play begins with 0 to this many random moves, which are not "
        "learned from. The network then learns to play positions that it would not get itself "
        "into.",
    )
    start_positions: list[str] = Field(
        default_factory=lambda: ["startpos"],
        min_length=1,
        description="Where games start, drawn at random: startpos, a handicap, or an SFEN.",
    )

    @field_validator("start_positions")
    @classmethod
    def _playable(cls, positions: list[str]) -> list[str]:
        for position in positions:
            if position != "startpos" and position not in HANDICAPS:
                new_board(position)
        return positions

    def start_sfens(self) -> list[str]:
        """The start positions as SFENs."""
        named = {"startpos": START_SFEN, **HANDICAPS}
        return [named.get(position, position) for position in self.start_positions]


class Size(NamedTuple):
    """Of a network's tower; `se_ratio` 0 means no squeeze-excitation."""

    depth: int
    width: int
    se_ratio: float


PRESETS = {
    "tiny": Size(depth=2, width=64, se_ratio=0.0),
    "small": Size(depth=6, width=128, se_ratio=0.0),
    "full": Size(depth=9, width=256, se_ratio=0.25),
}


class ModelConfig(Section):
    """The network."""

    preset: Literal["tiny", "small", "full"] = Field(
        "tiny", description="tiny 2x64, small 6x128, full 9x256 with squeeze-excitation."
    )
    depth: Optional[int] = Field(  # noqa: UP045  # pydantic reads it on Python 3.10 too
        None,
        ge=0,
        le=40,
        description="Residual blocks; by default the preset's. A stretch may have more of them.",
    )
    width: Optional[int] = Field(  # noqa: UP045
        None, ge=8, le=1024, description="Channels; by default the preset's."
    )
    se_ratio: Optional[float] = Field(  # noqa: UP045
        None,
        ge=0,
        le=1,
        description="Squeeze-excitation ratio, 0 for none; by default the preset's.",
    )
    planes: Literal["core46", "attack60"] = Field(
        "attack60",
        description="What the network sees: the position (core46), or also which squares are "
        "attacked, by what, and where checks would come from (attack60).",
    )
    policy_head: Literal["from_to", "flat"] = Field(
        "from_to", description="from_to scores moves by their squares; flat is one linear layer."
    )

    @model_validator(mode="before")
    @classmethod
    def _read_old_planes(cls, data: Any) -> Any:
        """A run's saved settings are complete: one without planes is from before there were two."""
        others = set(cls.model_fields) - {"planes"}
        if isinstance(data, dict) and "planes" not in data and others <= set(data):
            return {**data, "planes": "core46"}
        return data

    @property
    def size(self) -> Size:
        """The preset's, with what is given otherwise.

        >>> ModelConfig(depth=4).size
        Size(depth=4, width=64, se_ratio=0.0)
        """
        given = {name: getattr(self, name) for name in Size._fields}
        changed = {name: value for name, value in given.items() if value is not None}
        return PRESETS[self.preset]._replace(**changed)


# What other programs call our settings.
ELSEWHERE = {
    "max_game_length": "env.move_limit",
    "max_moves": "env.move_limit",
    "max_moves_per_game": "env.move_limit",
    "batch_size": "training.minibatch_size",
    "buffer_size": "training.parallel.experience_batch_size",
    "clip_range": "training.clip_epsilon",
    "ent_coef": "training.entropy_coef",
    "gae_lambda": "training.lambda_gae",
    "hidden_dim": "model.width",
    "lr": "training.learning_rate",
    "n_epochs": "training.ppo_epochs",
    "n_steps": "training.parallel.rollout_length",
    "num_layers": "model.depth",
    "num_envs": "training.parallel.num_envs_per_worker",
    "steps_per_epoch": "training.parallel.experience_batch_size",
    "timeout": "training.parallel.worker_timeout",
    "total_steps": "training.total_timesteps",
    "vf_coef": "training.value_loss_coef",
}


class EvaluationConfig(Section):
    """Short matches against fixed opponents while training."""

    interval: int = Field(100_000, ge=1, description="Moves between evaluations.")
    games: int = Field(64, ge=2, description="Games per opponent, half of them with each colour.")
    final_games: int = Field(200, ge=0, description="Games per opponent at the end; 0 for none.")
    opponents: list[Literal["random", "greedy"]] = Field(
        ["random"], description="random plays random moves; greedy takes material."
    )
    temperature: float = Field(
        0.5,
        ge=0,
        le=10,
        description="0 plays the most likely move; 1 samples from the policy as it is. A little "
        "randomness keeps a good player from repeating a position four times.",
    )
    rate: bool = Field(
        False,
        description="Also rate the checkpoints on the yardstick while training, by their policy "
        "alone, in a separate process at the lowest priority.",
    )


class LoggingConfig(Section):
    """What a run leaves behind."""

    runs_dir: str = Field("runs", description="The folder with all runs.")
    tensorboard: bool = Field(True, description="Write TensorBoard events as well.")
    games_per_update: int = Field(
        1, ge=0, description="Finished self-play games saved as KIF after each update."
    )
    games_per_evaluation: int = Field(
        4, ge=0, description="Games against each opponent saved as KIF after each evaluation."
    )


class DisplayConfig(Section):
    """The terminal."""

    live: Literal["auto", "always", "never"] = Field(
        "auto", description="Show a live view (auto: in a terminal), or one line per update."
    )
    refresh_per_second: float = Field(
        2.0, gt=0, le=30, description="Refresh rate of the live view."
    )


class AppConfig(Section):
    """All settings of a run."""

    env: EnvConfig = Field(default_factory=EnvConfig, description="The game.")
    model: ModelConfig = Field(default_factory=ModelConfig, description="The network.")
    training: TrainingConfig = Field(default_factory=TrainingConfig, description="Learning.")
    evaluation: EvaluationConfig = Field(
        default_factory=EvaluationConfig, description="Matches during training."
    )
    logging: LoggingConfig = Field(
        default_factory=LoggingConfig, description="What a run leaves behind."
    )
    wandb: WandbConfig = Field(default_factory=WandbConfig, description="Weights & Biases.")
    display: DisplayConfig = Field(default_factory=DisplayConfig, description="The terminal.")
    stretches: list[Stretch] = Field(
        default_factory=list,
        description="Later parts of the run with other settings, each from a step on: "
        "[{begin: 262144, change: {training.algorithm: gumbel}}]. Schedules run within each part.",
    )

    def at(self, steps: int) -> AppConfig:
        """The settings that hold after so many steps, with the changes of all stretches so far.

        >>> config = load_config(
        ...     overrides=["stretches=[{begin: 9, change: {training.algorithm: gumbel}}]"]
        ... )
        >>> config.at(8).training.algorithm, config.at(9).training.algorithm
        ('ppo', 'gumbel')
        """
        begun = [stretch for stretch in self.stretches if steps >= stretch.begin]
        if not begun:
            return self
        data = self.model_dump(mode="json", exclude={"stretches"})
        if "num_workers" not in self.training.parallel.model_fields_set:
            del data["training"]["parallel"]["num_workers"]  # a cluster may still say how many
        for stretch in begun:
            for name, value in stretch.change.items():
                set_value(data, name, value)
        return parse_config(data)

    def share_of_stretch(self, steps: int) -> float:
        """How much of the stretch that a step lies in is done, from 0 to 1: schedules run by it."""
        borders = [0, *(stretch.begin for stretch in self.stretches), self.training.total_timesteps]
        begin = max(border for border in borders if border <= steps or border == 0)
        end = min((border for border in borders if border > steps), default=steps)
        return (steps - begin) / (end - begin) if end > begin else 1.0

    @model_validator(mode="after")
    def _fits(self) -> AppConfig:
        parallel, training = self.training.parallel, self.training
        if training.minibatch_size > parallel.update_steps:
            raise ValueError(
                f"training.minibatch_size is {training.minibatch_size}, but an update has only "
                f"{parallel.update_steps} steps (experience_batch_size, or num_workers x "
                "num_envs_per_worker x rollout_length)"
            )
        shortest = min(parallel.rollout_length, self.env.move_limit)
        if self.env.random_moves >= shortest:
            raise ValueError(
                f"env.random_moves is {self.env.random_moves}: it must be smaller than "
                "training.parallel.rollout_length and env.move_limit, or there could be nothing "
                f"to learn from in a rollout; set it to at most {shortest - 1}"
            )
        interval, _ = parallel.sync_intervals
        if interval > parallel.max_policy_lag + 1:
            raise ValueError(
                f"training.parallel.model_sync_interval is {interval}: rollouts would be older "
                f"than max_policy_lag = {parallel.max_policy_lag} allows; leave that out, or set "
                f"it to at least {interval - 1}"
            )
        if parallel.backend != "ray" or "num_workers" in parallel.model_fields_set:
            parallel.check_opponents()  # else the cluster says how many workers there are
        if training.searches and parallel.opponent_shares:
            raise ValueError(
                "training.parallel.opponent_shares: gumbel only plays against itself; leave it out"
            )
        for before, after in pairwise(self.stretches):
            if before.begin >= after.begin:
                raise ValueError(f"stretches: {after.begin} must come after {before.begin}")
        depth = self.model.size.depth
        for stretch in self.stretches:
            try:
                deeper = self.at(stretch.begin).model.size.depth
            except ConfigError as error:
                raise ValueError(f"stretches, from step {stretch.begin}: {error}") from None
            if deeper < depth:
                raise ValueError(
                    f"stretches, from step {stretch.begin}: model.depth is {deeper}, but the "
                    f"network has {depth} blocks by then, and it can only grow"
                )
            depth = deeper
        return self


def load_config(file: Path | str | None = None, overrides: Iterable[str] = ()) -> AppConfig:
    """Settings by name or from a YAML file (or the defaults), changed by `section.field=value`."""
    data = read_settings(file and _find(file), "training:")
    for override in overrides:
        apply_override(data, override)
    return parse_config(data)


def _find(name: Path | str) -> Path:
    """The file of settings that come with Keisei, by their name; a user's own file as it is."""
    file = configs.find(name, configs.NAMES, configs.FOLDER)
    if file is None:
        raise unknown_settings(name, configs.NAMES)
    return file


def parse_config(data: dict[str, Any]) -> AppConfig:
    """Settings from plain data."""
    try:
        return AppConfig.model_validate(data)
    except ValidationError as error:
        names = setting_names(AppConfig)
        problems = (explain(e, names, ELSEWHERE) for e in error.errors())
        raise ConfigError("; ".join(problems)) from None


def describe(section: Section | None = None, indent: int = 0) -> str:
    """The defaults as commented YAML, each with its description."""
    section = section or AppConfig()
    pad, lines = "  " * indent, []
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, Section):
            lines += [f"{pad}{name}:  # {field.description}", describe(value, indent + 1)]
        else:
            text = (
                yaml.safe_dump(value, default_flow_style=True).strip().removesuffix("...").strip()
            )
            choices = " | ".join(map(str, get_args(field.annotation)))
            allowed = (
                f" ({choices})" if getattr(field.annotation, "__origin__", None) is Literal else ""
            )
            about = f"{field.description or ''}{allowed}"
            lines += [f"{pad}# {about}"] * bool(about) + [f"{pad}{name}: {text}"]
    return "\n".join(lines)
