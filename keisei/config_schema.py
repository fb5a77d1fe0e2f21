"""All settings, with what they mean. Unknown keys and wrong values are refused.

>>> config = load_config(overrides=["training.learning_rate=1e-4"])
>>> config.training.learning_rate
0.0001
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, Optional, get_args

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from keisei import configs
from keisei.parallel_config import ParallelConfig
from keisei.settings import (
    ConfigError,
    Section,
    apply_override,
    explain,
    read_settings,
    setting_names,
)
from keisei.shogi.rules import HANDICAPS, START_SFEN, new_board


class EnvConfig(Section):
    """The game."""

    seed: int = Field(1, ge=0, lt=2**63, description="Seed of every random choice in the run.")
    device: str = Field("auto", description="auto (CUDA if available), cpu, cuda or cuda:N.")
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
    start_positions: list[str] = Field(
        default_factory=lambda: ["startpos"],
        min_length=1,
        description="Where games start, drawn at random: startpos, a handicap, or an SFEN.",
    )

    @field_validator("device")
    @classmethod
    def _known_device(cls, device: str) -> str:
        kind, _, number = device.partition(":")
        if kind not in ("auto", "cpu", "cuda") or (number and not number.isdigit()):
            raise ValueError("choose auto, cpu, cuda or cuda:N")
        return device

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


class ModelConfig(Section):
    """The network."""

    preset: Literal["tiny", "small", "full"] = Field(
        "tiny", description="tiny 2x64, small 6x128, full 9x256 with squeeze-excitation."
    )
    depth: Optional[int] = Field(  # noqa: UP045  # pydantic reads it on Python 3.10 too
        None, ge=0, le=40, description="Residual blocks; by default the preset's."
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
    policy_head: Literal["from_to", "flat"] = Field(
        "from_to", description="from_to scores moves by their squares; flat is one linear layer."
    )


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
    "vf_coef": "training.value_loss_coeff",
}

# The learners, by their name in `training.algorithm`: a module of `keisei`, and a class in it.
LEARNERS = {"ppo": "keisei.core.ppo_agent:PPOAgent"}


class TrainingConfig(Section):
    """PPO and the course of a run."""

    algorithm: str = Field("ppo", description="What learns from the rollouts: ppo.")
    total_timesteps: int = Field(
        1_000_000, ge=1, lt=10**12, description="Moves to play and learn from."
    )
    learning_rate: float = Field(
        1e-3, gt=0, le=1, description="Learning rate of Adam at the start."
    )
    learning_rate_end: float = Field(
        0.1, ge=0, le=1, description="Share of the learning rate left at the end (linear decay)."
    )
    gamma: float = Field(1.0, gt=0, le=1, description="Discount per move.")
    lambda_gae: float = Field(
        0.98, ge=0, le=1, description="Lambda of the advantage estimate (GAE)."
    )
    ppo_epochs: int = Field(1, ge=1, le=100, description="Passes over the data in each update.")
    minibatch_size: int = Field(128, ge=1, description="Steps per gradient update.")
    clip_epsilon: float = Field(
        0.2, gt=0, lt=1, description="How far the ratio of new to old policy may move from 1."
    )
    value_clip: float = Field(
        0.2, ge=0, description="How far a value may move in an update; 0 for no limit."
    )
    value_loss_coeff: float = Field(0.5, ge=0, description="Weight of the value loss.")
    entropy_coef: float = Field(0.01, ge=0, description="Weight of the entropy bonus at the start.")
    entropy_coef_end: float = Field(
        0.1, ge=0, le=1, description="Share of it left at the end (linear decay)."
    )
    max_grad_norm: float = Field(
        1.0, gt=0, description="Gradients longer than this are scaled down."
    )
    target_kl: float = Field(
        0.03,
        ge=0,
        description="Stop the update once the policy has moved this far (KL divergence); 0: never.",
    )
    normalize_advantages: bool = Field(
        True, description="Scale to mean 0 and standard deviation 1 per minibatch."
    )
    mixed_precision: bool = Field(False, description="bfloat16 autocast; CUDA only.")
    checkpoint_interval: int = Field(50_000, ge=1, description="Moves between checkpoints.")
    keep_checkpoints: int = Field(
        5, ge=1, description="How many checkpoints to keep, not counting those saved when stopping."
    )
    parallel: ParallelConfig = Field(default_factory=ParallelConfig, description="The shards.")

    @field_validator("algorithm")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in LEARNERS:
            raise ValueError(f"choose {' or '.join(LEARNERS)}")
        return name


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
        "alone, in a process of its own at the lowest priority: it takes what the training leaves.",
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


class WandbConfig(Section):
    """Weights & Biases (extra `wandb`)."""

    enabled: bool = Field(False, description="Also log there; a failure there never stops a run.")
    project: str = Field("keisei", description="Name of the project.")
    mode: Literal["online", "offline"] = Field("offline", description="offline just writes files.")


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
    training: TrainingConfig = Field(default_factory=TrainingConfig, description="PPO.")
    evaluation: EvaluationConfig = Field(
        default_factory=EvaluationConfig, description="Matches during training."
    )
    logging: LoggingConfig = Field(
        default_factory=LoggingConfig, description="What a run leaves behind."
    )
    wandb: WandbConfig = Field(default_factory=WandbConfig, description="Weights & Biases.")
    display: DisplayConfig = Field(default_factory=DisplayConfig, description="The terminal.")

    @model_validator(mode="after")
    def _fits(self) -> AppConfig:
        parallel, training = self.training.parallel, self.training
        if training.minibatch_size > parallel.update_steps:
            raise ValueError(
                f"training.minibatch_size is {training.minibatch_size}, but an update has only "
                f"{parallel.update_steps} steps (experience_batch_size, or num_workers x "
                "num_envs_per_worker x rollout_length)"
            )
        if parallel.model_sync_interval > parallel.max_policy_lag + 1:
            interval = parallel.model_sync_interval
            raise ValueError(
                f"training.parallel.model_sync_interval is {interval}: rollouts would be older "
                f"than max_policy_lag = {parallel.max_policy_lag} allows; leave that out, or set "
                f"it to at least {interval - 1}"
            )
        if parallel.backend != "ray" or "num_workers" in parallel.model_fields_set:
            parallel.check_opponents()  # else the cluster says how many workers there are
        return self


def load_config(file: Path | str | None = None, overrides: Iterable[str] = ()) -> AppConfig:
    """Settings by name or from a YAML file (or the defaults), changed by `section.field=value`."""
    data = read_settings(file and _find(file), "training:")
    for override in overrides:
        apply_override(data, override)
    return parse_config(data)


def _find(name: Path | str) -> Path:
    """The file of settings that come with Keisei, by their name; a user's own file as it is."""
    file = Path(name)
    if str(name) in configs.NAMES:
        return configs.FOLDER / f"{name}.yaml"
    if file.name == str(name) and not file.suffix and not file.exists():
        names = ", ".join(configs.NAMES)
        raise ConfigError(
            f"there are no settings {str(name)!r}: choose one of {names}, or name a YAML file"
        )
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
