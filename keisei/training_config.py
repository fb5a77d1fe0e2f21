"""The settings of learning, and of the stretches of a run."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from keisei.parallel_config import ParallelConfig
from keisei.settings import Section

# The learners, by their name in `training.algorithm`: a module of `keisei`, and a class in it.
LEARNERS = {
    "ppo": "keisei.core.ppo_agent:PPOAgent",
    "gumbel": "keisei.core.gumbel_learner:GumbelLearner",
}


class SearchConfig(Section):
    """Self-play with search (gumbel)."""

    visits: int = Field(16, ge=2, le=4096, description="Search visits per move.")
    considered: int = Field(8, ge=2, le=64, description="Moves that each search considers.")
    scale: float = Field(
        0.5, gt=0, le=10, description="How strongly the search's values reshape the policy."
    )
    window: int = Field(
        1,
        ge=1,
        le=100,
        description="Updates whose moves are learned from: the newest and those before it. Moves "
        "are learned from as often as with 1, but spread over so many updates, mixed with others.",
    )


class TrainingConfig(Section):
    """Learning and the course of a run."""

    algorithm: str = Field(
        "ppo",
        description="ppo learns from how the games turn out; gumbel searches every move and learns "
        "to play what the search found.",
    )
    search: SearchConfig = Field(
        default_factory=SearchConfig, description="Self-play with search (gumbel)."
    )
    start: str = Field(
        "",
        description="The network that training begins with: a run, a checkpoint, an exported file, "
        "or shipped, the one that comes with Keisei. Empty: a new one that knows nothing.",
    )
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
    share_learned: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Share of the moves that ppo learns from. Moves with a surprising outcome are "
        "drawn more often and weighted down accordingly. Workers play faster than the learner "
        "learns: with 0.5 it sees more games in the same time.",
    )
    minibatch_size: int = Field(128, ge=1, description="Steps per gradient update.")
    clip_epsilon: float = Field(
        0.2, gt=0, lt=1, description="How far the ratio of new to old policy may move from 1."
    )
    value_clip: float = Field(
        0.2, ge=0, description="How far a value may move in an update; 0 for no limit."
    )
    value_loss_coef: float = Field(0.5, ge=0, description="Weight of the value loss.")
    entropy_coef: float = Field(0.01, ge=0, description="Weight of the entropy bonus at the start.")
    entropy_coef_end: float = Field(
        0.1, ge=0, le=1, description="Share of entropy_coef left at the end (linear decay)."
    )
    average: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Matches and exported networks use an average of the weights; each update "
        "keeps this share of it. Self-play uses the newest weights. 0 for no average.",
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
        True, description="Scale advantages to mean 0 and standard deviation 1 per minibatch."
    )
    precision: Literal["float32", "bfloat16", "auto"] = Field(
        "float32",
        description="Number format for playing and learning; auto: bfloat16 if faster here.",
    )
    checkpoint_interval: int = Field(50_000, ge=1, description="Moves between checkpoints.")
    keep_checkpoints: int = Field(
        5, ge=1, description="How many checkpoints to keep, not counting those saved when stopping."
    )
    parallel: ParallelConfig = Field(default_factory=ParallelConfig, description="The shards.")

    @model_validator(mode="before")
    @classmethod
    def _read_old_precision(cls, data: Any) -> Any:
        """Settings of old runs have a `mixed_precision`."""
        if not isinstance(data, dict) or "mixed_precision" not in data:
            return data
        rest = {name: value for name, value in data.items() if name != "mixed_precision"}
        return {"precision": "bfloat16", **rest} if data["mixed_precision"] else rest

    @property
    def searches(self) -> bool:
        """Are the moves of self-play searched for?"""
        return self.algorithm == "gumbel"

    @field_validator("algorithm")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in LEARNERS:
            raise ValueError(f"choose {' or '.join(LEARNERS)}")
        return name


# What a stretch cannot change: the games in play and the weights go on in it. (`model.depth` can:
# a network grows by blocks that pass on what they get.)
_FOR_THE_WHOLE_RUN = (
    "env.seed",
    "env.device",
    "env.move_limit",
    "env.start_positions",
    "model.preset",
    "model.width",
    "model.se_ratio",
    "model.planes",
    "model.policy_head",
    "training.precision",
    "training.start",
    "training.total_timesteps",
    "training.parallel.num_workers",
    "training.parallel.num_envs_per_worker",
    "training.parallel.backend",
    "logging",
    "wandb",
    "display",
    "stretches",
)


class Stretch(Section):
    """A part of a run with settings of its own."""

    begin: int = Field(ge=1, description="The step at which it begins.")
    change: dict[str, Any] = Field(description="Settings by their dotted names.")

    @field_validator("change")
    @classmethod
    def _may_change(cls, change: dict[str, Any]) -> dict[str, Any]:
        for name in change:
            if any(name == one or name.startswith(f"{one}.") for one in _FOR_THE_WHOLE_RUN):
                raise ValueError(f"{name} cannot change within a run")
            if any(one.startswith(f"{name}.") for one in _FOR_THE_WHOLE_RUN):
                raise ValueError(
                    f"{name} has settings that cannot change within a run: name each one that "
                    f"does, as {name}.SETTING"
                )
        return change
