"""What the learner plays against in a shard: itself, past checkpoints, or random moves."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from keisei.config_schema import AppConfig
from keisei.core.neural_network import load_grown
from keisei.core.policy import Policy, evaluate, uniform
from keisei.core.precision import acting_network
from keisei.errors import KeiseiError
from keisei.runs.checkpoint import CheckpointStore, load_checkpoint, step_of, trained_weights

log = logging.getLogger(__name__)

OpponentKind = Literal["past", "random"]


def opponent_of_shard(config: AppConfig, index: int) -> OpponentKind | None:
    """The kind of a shard's opponent; None is self-play.

    The last shards have the opponents, so that the first one shows self-play.

    >>> from keisei.config_schema import load_config
    >>> shares = "training.parallel.opponent_shares={past: 0.25, random: 0.25}"
    >>> config = load_config(overrides=["training.parallel.num_workers=4", shares])
    >>> [opponent_of_shard(config, index) for index in range(4)]
    [None, None, 'random', 'past']
    """
    parallel = config.training.parallel
    place = parallel.num_workers - 1 - index
    for kind, count in parallel.opponent_counts.items():
        if 0 <= place < count:
            return kind
        place -= count
    return None


class Opponent:
    """The opponent of one shard; a past one is drawn for every rollout."""

    def __init__(self, config: AppConfig, index: int, checkpoints: Path | None) -> None:
        self._config = config
        self._index = index
        self._folder = checkpoints
        self.kind = opponent_of_shard(config, index)
        self._newest: Path | None = None  # the checkpoint that named the steps to draw from
        self._steps: list[int] | None = None
        self._loaded: Path | None = None
        self._policy: Policy | None = None

    def policy(self, version: int) -> Policy | None:
        """The opponent for a rollout with the weights of `version`; None is the learner itself."""
        if self.kind == "random":
            return uniform
        return self._past(version) if self.kind == "past" and self._folder else None

    def _past(self, version: int) -> Policy | None:
        """A checkpoint of the run; before there is one, the learner plays itself."""
        try:
            paths = self._to_draw_from()
            if not paths:
                return None
            rng = np.random.default_rng([self._config.env.seed, self._index, version])
            path = paths[rng.integers(len(paths))]
            if path != self._loaded:
                weights = trained_weights(load_checkpoint(path))
                network = acting_network(self._config)
                load_grown(network, weights)  # it may be from before the network grew
                self._policy = partial(evaluate, network)
                self._loaded = path
        except (KeiseiError, OSError) as error:  # removed just now, as too old
            log.warning("the past opponent is kept as it was: %s", error)
        return self._policy

    def _to_draw_from(self) -> list[Path]:
        """The checkpoints that the newest one names; all of them in old runs, which name none.

        Those of stops are not among them: a run that was stopped has the same opponents as one that
        was not.
        """
        assert self._folder is not None
        store = CheckpointStore(self._folder)
        paths = store.paths()
        if paths and paths[-1] != self._newest:
            progress = store.latest()[1].get("progress", {})
            self._newest, self._steps = paths[-1], progress.get("past_opponents")
        return [path for path in paths if self._steps is None or step_of(path) in self._steps]
