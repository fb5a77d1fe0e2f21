"""The settings of `training.parallel`: who plays the shards, and how much at a time."""

from __future__ import annotations

from typing import Annotated, Literal, Optional, Union

from pydantic import Field, field_validator, model_validator

from keisei.processes.machine import cores
from keisei.settings import Section


class ParallelConfig(Section):
    """The shards: what plays them, and how much at a time."""

    enabled: bool = Field(
        default_factory=lambda: cores() > 1,
        description="Play in worker processes; otherwise the shards take turns in this one. "
        "On by default with more than one core.",
    )
    backend: Literal["process", "ray"] = Field(
        "process",
        description="What workers are: processes on this machine, or actors on a Ray cluster.",
    )
    ray_address: str = Field(
        "auto",
        description="The cluster's head as HOST:PORT. auto: the cluster of `ray start`, or else "
        "one on just this machine, for the length of the run.",
    )
    num_workers: int = Field(
        default_factory=cores,
        ge=1,
        le=4096,
        description="Number of shards; each is played by one worker. By default one per core; with "
        "Ray, one per CPU of the cluster, minus one for the learner.",
    )
    elastic: bool = Field(
        False,
        description="Use what is free. Processes: fewer workers play at a time while other "
        "programs need the cores. Ray: the CPUs of nodes that join later are used, too; the "
        "default there if num_workers is not given.",
    )
    num_envs_per_worker: int = Field(
        128, ge=1, le=1_000_000, description="Games that a worker plays at the same time."
    )
    rollout_length: int = Field(
        64,
        ge=1,
        le=1_000_000,
        description="Moves of each game in one rollout. Longer ones see more games end.",
    )
    mode: Literal["sync", "async"] = Field(
        "sync",
        description="sync plays and learns in turns, strictly on-policy and repeatable; async "
        "plays while it learns, which pays off if the learner has its own cores or GPU.",
    )
    inference: Literal["local", "central", "auto"] = Field(
        "auto",
        description="local: each worker has the network. central: one process answers all workers, "
        "in async mode together in large batches. auto: central if the device is a GPU.",
    )
    experience_batch_size: Optional[int] = Field(  # noqa: UP045
        None,
        ge=1,
        description="Moves to learn from in an update; by default one rollout per worker.",
    )
    episodes_per_worker: int = Field(
        0,
        ge=0,
        description="Games that each worker must finish before an update; 0 for no minimum.",
    )
    model_sync_interval: Union[Annotated[int, Field(ge=1)], Literal["auto"]] = Field(  # noqa: UP007
        1,
        description="Updates between handing new weights to the workers. auto: 1 in sync mode; in "
        "async mode more, if handing them over takes over 2 % of the time.",
    )
    max_policy_lag: int = Field(
        4,
        ge=0,
        description="How many updates the weights that played a rollout may be behind the "
        "learner's; older rollouts are dropped and counted. The default is 4, and more with a "
        "larger model_sync_interval (11 with auto).",
    )
    opponent_shares: dict[Literal["past", "random"], float] = Field(
        default_factory=dict,
        description="Shares of the workers that play against past checkpoints of the run or "
        "against random moves; only the learner's own moves are learned from.",
    )
    games_per_worker: int = Field(
        0,
        ge=0,
        description="Finished games after which a worker's process is renewed; 0: never.",
    )
    worker_reset_interval: int = Field(
        0,
        ge=0,
        description="Moves after which a worker's process is renewed; 0: never.",
    )
    worker_timeout: float = Field(
        30.0,
        gt=0,
        le=86_400,
        description="Seconds without a sign of life after which a worker is replaced.",
    )
    max_restarts: int = Field(
        100,
        ge=0,
        description="Failed workers to replace before training continues without workers.",
    )
    queue_maxsize: int = Field(
        4, ge=1, description="Finished rollouts that may wait for the learner before workers pause."
    )
    use_shared_memory: bool = Field(
        True,
        description="Pass rollouts and weights in shared memory; otherwise they are copied through "
        "pipes.",
    )
    compression_enabled: bool = Field(
        False,
        description="Send weights in half precision where they are copied (with Ray, or not in "
        "shared memory). The policy that plays is then the rounded one.",
    )

    @model_validator(mode="after")
    def _lag_allows_the_interval(self) -> ParallelConfig:
        if "max_policy_lag" not in self.model_fields_set:
            # Past the check of assignments, which would come back here.
            self.__dict__["max_policy_lag"] = 3 + self._longest_interval
        return self

    @field_validator("opponent_shares")
    @classmethod
    def _no_more_than_all(cls, shares: dict[str, float]) -> dict[str, float]:
        if not (all(share >= 0 for share in shares.values()) and sum(shares.values()) <= 1):
            raise ValueError("shares must be at least 0 and add up to at most 1")
        return shares

    @model_validator(mode="after")
    def _no_central_inference_on_ray(self) -> ParallelConfig:
        if self.backend == "ray" and self.inference == "central":
            raise ValueError("inference: central needs backend: process; on Ray it must be local")
        return self

    @property
    def _longest_interval(self) -> int:
        """Between two synchronisations, if nobody said how old rollouts may be."""
        if self.model_sync_interval != "auto":
            return self.model_sync_interval
        return 8 if self.mode == "async" else 1

    @property
    def sync_intervals(self) -> tuple[int, int]:
        """The least and the most updates between handing over weights; auto is in between."""
        if self.model_sync_interval != "auto":
            return self.model_sync_interval, self.model_sync_interval
        return 1, (max(1, self.max_policy_lag - 3) if self.mode == "async" else 1)

    @property
    def rollout_steps(self) -> int:
        """Moves in one rollout."""
        return self.num_envs_per_worker * self.rollout_length

    @property
    def update_steps(self) -> int:
        """Moves that an update learns from, at least."""
        return self.experience_batch_size or self.num_workers * self.rollout_steps

    @property
    def opponent_counts(self) -> dict[Literal["past", "random"], int]:
        """The workers that have each kind of opponent."""
        return {
            kind: round(share * self.num_workers) for kind, share in self.opponent_shares.items()
        }

    def check_opponents(self) -> None:
        """Refuse shares that round to zero, or to more than there are workers."""
        counts = self.opponent_counts
        for kind, share in self.opponent_shares.items():
            if share and not counts[kind]:
                raise ValueError(
                    f"training.parallel.opponent_shares.{kind} is {share} and num_workers is "
                    f"{self.num_workers}, which rounds to zero workers: give at least "
                    f"{1 / self.num_workers:.2g}, or more workers"
                )
        if sum(counts.values()) > self.num_workers:
            each = " and ".join(f"{count} {kind}" for kind, count in counts.items())
            raise ValueError(
                f"training.parallel.opponent_shares round to {each} workers, but num_workers is "
                f"{self.num_workers}: give smaller shares, or more workers"
            )
