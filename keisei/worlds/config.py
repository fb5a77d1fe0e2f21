"""All settings of worlds, with what they mean. Unknown keys and wrong values are refused.

>>> load_world_config("treasure_hunt", overrides=["copies=16"]).copies
16
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

from pydantic import Field, ValidationError, model_validator

from keisei import configs
from keisei.processes.machine import cores
from keisei.settings import (
    ConfigError,
    Device,
    Section,
    WandbConfig,
    apply_override,
    explain,
    read_settings,
    setting_names,
    unknown_settings,
)
from keisei.worlds.social import SocialSettings

KINDS = ("double_dqn", "iqn", "ppo", "random")  # of agents; all others are code: MODULE:CLASS


class LearnerSettings(Section):
    """What both kinds of learner can be told."""

    network: Literal["mlp", "cnn", "gru"] = Field(
        "mlp",
        description="mlp: plain layers. cnn: filters for windows and pixels before them. gru: the "
        "last hidden layer remembers the turns before.",
    )
    hidden: list[Annotated[int, Field(ge=1)]] = Field(
        default_factory=lambda: [256, 128], description="Sizes of the network's hidden layers."
    )
    channels: list[Annotated[int, Field(ge=1)]] = Field(
        default_factory=lambda: [16, 32], description="Filters in each layer of a cnn."
    )
    sequence: int = Field(
        16,
        ge=1,
        description="Turns of a sequence that a gru learns from; it looks back no further.",
    )
    last_layer_scale: float = Field(
        0.1, ge=0, description="Size of what an untrained network says: 1 is that of its inputs."
    )
    learning_rate: float = Field(5e-4, gt=0, le=1, description="Learning rate of Adam.")
    adam_eps: float = Field(
        1e-8, gt=0, description="Adam's eps: much smaller gradients move the weights less."
    )
    gamma: float = Field(0.95, ge=0, le=1, description="Discount per turn.")
    batch_size: int = Field(64, ge=1, description="Experiences per training step.")
    replay_ratio: float = Field(
        0.01, gt=0, description="Training steps per experience, the same in every mode."
    )
    max_grad_norm: float = Field(
        10.0, gt=0, description="Gradients longer than this are scaled down, per agent."
    )
    novelty: float = Field(
        0.1,
        ge=0,
        description="Bonus for seeing what was never seen in that cell of the window; after n "
        "times, 1 / sqrt(n) of it. In grid worlds only; returns do not count it; 0: none.",
    )

    @model_validator(mode="after")
    def _a_gru_has_a_size(self) -> LearnerSettings:
        if self.network == "gru" and not self.hidden:
            raise ValueError("hidden: a gru needs at least one layer, its own")
        return self


class DoubleDQNSettings(LearnerSettings):
    """Double DQN."""

    memory: int = Field(100_000, ge=2, description="Experiences that an agent remembers.")
    memory_mb: int = Field(
        1000, ge=1, description="Megabytes that it may take: pictures may leave room for fewer."
    )
    epsilon_start: float = Field(
        1.0, ge=0, le=1, description="Share of random actions at the start."
    )
    epsilon_end: float = Field(0.05, ge=0, le=1, description="Share of random actions at the end.")
    epsilon_epochs: int = Field(
        50, ge=1, description="Epochs over which it falls from start to end (linear)."
    )
    target_step: float = Field(
        0.01, gt=0, le=1, description="How far the target network follows at each update; 1: whole."
    )
    target_interval: int = Field(
        1, ge=1, description="Training steps between updates of the target network."
    )


class IQNSettings(DoubleDQNSettings):
    """IQN."""

    quantiles: int = Field(
        8, ge=1, description="Quantiles of an experience that are compared with as many after it."
    )


class PPOSettings(LearnerSettings):
    """PPO."""

    batch_size: int = Field(256, ge=1, description="Experiences per training step.")
    clip_epsilon: float = Field(
        0.2, gt=0, lt=1, description="How far the policy's ratio may move from 1."
    )
    lambda_gae: float = Field(
        0.95, ge=0, le=1, description="Lambda of the advantage estimate (GAE)."
    )
    entropy_coef: float = Field(0.01, ge=0, description="Weight of the entropy bonus.")
    value_loss_coef: float = Field(0.5, ge=0, description="Weight of the value loss.")
    central_critic: bool = Field(
        False,
        description="The value is learned from what all agents see, as in MAPPO; each agent still "
        "acts by what it sees itself. Off: every agent is an individual.",
    )
    max_grad_norm: float = Field(
        0.5, gt=0, description="Gradients longer than this are scaled down, per agent."
    )


class ParallelWorldsConfig(Section):
    """What is done together, and what at the same time."""

    enabled: bool = Field(
        True,
        description="If off, agents take turns in one thread, which is easy to debug (--debug).",
    )
    parallel_actions: bool = Field(
        True, description="All networks answer in one stacked product (not in sequential turns)."
    )
    parallel_training: bool = Field(
        True, description="Learners step together: a short calibration chooses how."
    )
    async_learning: bool = Field(
        False, description="Collect while learning; new weights arrive one training later."
    )
    train_interval: int = Field(1, ge=1, description="Epochs between trainings.")
    num_workers: Optional[int] = Field(  # noqa: UP045  # pydantic reads it on Python 3.10 too
        None,
        ge=1,
        le=256,
        description="Learner threads or processes; by default as many as there are cores for.",
    )
    use_threads: bool = Field(False, description="Run learners in threads rather than processes.")
    learner_timeout: float = Field(
        120.0, gt=0, description="Seconds after which a training that has not finished is given up."
    )

    world_workers: Optional[int] = Field(  # noqa: UP045
        None,
        ge=1,
        le=256,
        description="Workers that step the copies of the world, each its share; by default this "
        "process alone, or on Ray one for each CPU. The numbers are the same with any of them. It "
        "pays where a turn takes long, as in many worlds of PettingZoo.",
    )
    backend: Literal["process", "ray"] = Field(
        "process",
        description="What these workers are: processes on this machine, or actors on a Ray "
        "cluster.",
    )
    ray_address: str = Field(
        "auto",
        description="The cluster's head as HOST:PORT. auto: the cluster of `ray start`, or else "
        "one on just this machine, for the length of the run.",
    )

    @property
    def splits_world(self) -> bool:
        """Are the copies stepped by workers?"""
        return self.enabled and (self.backend == "ray" or (self.world_workers or 1) > 1)

    def workers_for(self, agents: int) -> int:
        """How many learner threads or processes; one core is left for collecting."""
        if self.num_workers is not None:
            return min(self.num_workers, agents)
        free = cores() - (1 if self.async_learning else 0)
        return max(1, min(agents, free))


class WorldRunConfig(Section):
    """All settings of a run in a world."""

    world: str = Field("treasure_hunt", description="The world; see `keisei worlds list`.")
    world_settings: dict[str, Any] = Field(
        default_factory=dict,
        description="The world's own settings; see `keisei worlds config WORLD`.",
    )
    seed: int = Field(1, ge=0, description="Seed of every random choice in the run.")
    device: Device = Field(
        "auto",
        description="Where networks act and learn: auto (CUDA if available), cpu, cuda or cuda:N.",
    )
    copies: int = Field(128, ge=1, le=65_536, description="Copies of the world, side by side.")
    epochs: int = Field(200, ge=1, description="Episodes that each copy plays.")
    turn_order: Literal["simultaneous", "sequential", "random"] = Field(
        "simultaneous",
        description="simultaneous: all see the same world, then act, agent 0 first. random: the "
        "same, in an order that is drawn for each turn and copy. sequential: agent 0 first, and "
        "each sees what the one before did, which cannot be batched over agents.",
    )
    agents: list[Any] = Field(
        ["double_dqn"],
        min_length=1,
        description="The kind of each agent: double_dqn, iqn, ppo, random, your own MODULE:CLASS; "
        "with settings of its own {kind: ppo, gamma: 0.9}. A list shorter than their number is "
        "repeated.",
    )
    shared_weights: bool = Field(
        False,
        description="Learners of one kind with equal settings are one network, which learns from "
        "all of them; memories and chance stay their own. Off: every agent is an individual.",
    )
    double_dqn: DoubleDQNSettings = Field(
        default_factory=DoubleDQNSettings, description="Settings of double DQN agents."
    )
    iqn: IQNSettings = Field(default_factory=IQNSettings, description="Settings of IQN agents.")
    ppo: PPOSettings = Field(default_factory=PPOSettings, description="Settings of PPO agents.")
    social: SocialSettings = Field(
        default_factory=SocialSettings, description="What agents learn from beside their reward."
    )
    parallel: ParallelWorldsConfig = Field(
        default_factory=ParallelWorldsConfig, description="What runs in parallel."
    )
    checkpoint_interval: int = Field(50, ge=1, description="Epochs between checkpoints.")
    keep_checkpoints: int = Field(3, ge=1, description="How many checkpoints to keep.")
    runs_dir: str = Field("runs", description="The folder with all runs.")
    wandb: WandbConfig = Field(default_factory=WandbConfig, description="Weights & Biases.")

    @model_validator(mode="after")
    def _workers_step_all_agents_at_once(self) -> WorldRunConfig:
        if self.turn_order == "sequential" and self.parallel.splits_world:
            raise ValueError(
                "parallel.world_workers: with turn_order=sequential, a world is stepped in one "
                "process: choose simultaneous or random"
            )
        return self

    @model_validator(mode="after")
    def _agents_can_be_made(self) -> WorldRunConfig:
        for number in range(len(self.agents)):
            self.agent(number)
        return self

    def agent(self, number: int) -> tuple[str, LearnerSettings | dict[str, Any]]:
        """The kind of an agent, and its settings: those of its kind, changed by its own.

        >>> settings = WorldRunConfig(agents=["ppo", {"kind": "ppo", "gamma": 0.5}])
        >>> [settings.agent(number)[1].gamma for number in range(3)]
        [0.95, 0.5, 0.95]
        """
        place = number % len(self.agents)
        said = self.agents[place]
        own = dict(said) if isinstance(said, dict) else {"kind": said}
        kind = own.pop("kind", None)
        if kind == "random" and own:
            raise ValueError(f"agents.{place}: a random agent has no settings, not {own}")
        if kind == "random" or (isinstance(kind, str) and ":" in kind):
            return kind, own
        if kind not in KINDS:
            raise ValueError(
                f"agents.{place}: the kind of an agent is {', '.join(KINDS)} or MODULE:CLASS, "
                f"not {kind!r}"
            )
        general: LearnerSettings = getattr(self, kind)
        try:
            return kind, type(general).model_validate(general.model_dump() | own)
        except ValidationError as error:
            names = setting_names(type(general), f"{kind}.")
            lines = [f"agents.{place}.{explain(e, names)}" for e in error.errors()]
            raise ValueError("; ".join(lines)) from None


def load_world_config(
    world: str | None = None, file: Path | str | None = None, overrides: Iterable[str] = ()
) -> WorldRunConfig:
    """Settings by name or from a YAML file (or the defaults), changed by `field=value`."""
    path = file and configs.find(file, configs.WORLD_NAMES, configs.WORLD_FOLDER)
    if file and not path:
        raise unknown_settings(file, configs.WORLD_NAMES)
    data = read_settings(path, "copies: 128")
    if world is not None:
        data["world"] = world
    for override in overrides:
        apply_override(data, override)
    try:
        return WorldRunConfig.model_validate(data)
    except ValidationError as error:
        names = setting_names(WorldRunConfig) + _names_of_world(str(data.get("world")))
        lines = "; ".join(explain(e, names) for e in error.errors())
        raise ConfigError(lines.replace("`keisei config`", "`keisei worlds config`")) from None


def _names_of_world(name: str) -> list[str]:
    """The world's own settings, to suggest one that was put in the wrong place."""
    from keisei.worlds.registry import WORLDS  # which needs this module

    return setting_names(WORLDS[name].Settings, "world_settings.") if name in WORLDS else []
