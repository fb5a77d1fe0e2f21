"""The manager without workers: the same shards in this process, one after another."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from keisei.config_schema import AppConfig
from keisei.core.learner import Learner
from keisei.core.policy import evaluate
from keisei.core.rollout import Rollout
from keisei.core.runtime import one_thread
from keisei.runs.trace import Trace
from keisei.selfplay.opponents import Opponent
from keisei.selfplay.plan import UpdatePlan
from keisei.selfplay.shard import SelfPlayShard, make_shard, new_rollout
from keisei.training.parallel.base_manager import BaseManager
from keisei.training.parallel.experience_collector import ExperienceCollector, Finished
from keisei.training.parallel.messages import RolloutDone


class SerialManager(BaseManager):
    """Plays with the learner's network, on one thread as workers do: their sums are the same.

    The shards are made by the thread that collects, because games belong to the thread that made
    them; whoever else wants to look at them looks at `shard_states`.
    """

    def __init__(
        self,
        config: AppConfig,
        agent: Learner,
        checkpoints: Path | None = None,
        trace: Trace | None = None,
    ) -> None:
        super().__init__(config, agent, checkpoints, trace)
        self._collector = ExperienceCollector(config, num_slots=0)
        self._playing: list[tuple[SelfPlayShard, Opponent]] = []

    def start_workers(
        self, shards: Sequence[dict[str, Any]] = (), acting: dict[str, Any] | None = None
    ) -> None:
        """Go on with these games and weights at the next collection."""
        self._shards, self._playing = dict(enumerate(shards)), []
        self._acting.load_state_dict(acting or {})

    def shutdown(self) -> None:
        """There is nobody to stop."""

    @property
    def is_running(self) -> bool:
        """There are no workers."""
        return False

    def _publish(self) -> None:
        """They are here already."""

    def collect_experiences(
        self, target_steps: int | None = None, timeout: float | None = None
    ) -> list[Rollout]:
        """As everywhere; what plays is here, so nobody has to hand it new weights first."""
        self.synchronize_models()
        return super().collect_experiences(target_steps, timeout)

    def _collect(self, steps: int, timeout: float | None) -> list[Finished]:
        plan = replace(UpdatePlan.of(self.parallel, steps), mode="sync")
        everybody = range(self.parallel.num_workers)
        if not self._playing:
            self._playing = [self._make(index) for index in everybody]
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        with one_thread():
            while wanted := plan.to_begin(everybody, self._collector.tally({})):
                if time.monotonic() >= deadline:
                    break
                for index in wanted:
                    self._play(index)
        return self._collector.take(self.agent.version)

    def _make(self, index: int) -> tuple[SelfPlayShard, Opponent]:
        shard = make_shard(self.config, index, self._shards.get(index))
        return shard, Opponent(self.config, index, self._checkpoints)

    def _play(self, index: int) -> None:
        (shard, opponent), version = self._playing[index], self._acting.version
        rollout = new_rollout(self.config)
        policy = partial(evaluate, self._acting.network)
        with self.agent.precision():
            games = shard.collect(policy, rollout, version, opponent.policy(version))
        self._shards[index] = shard.state_dict()
        done = RolloutDone(
            None, version, len(rollout.legal), games, self._shards[index], shard.scores
        )
        self._collector.accept(index, replace(done, rollout=rollout), opponent.kind)

    @property
    def workers_here(self) -> int:
        """None; this process plays."""
        return 0

    def get_statistics(self) -> dict[str, Any]:
        """There are no workers to tell of."""
        return {"is_running": False, "workers": {}}

    def metrics(self) -> dict[str, float]:
        """Nothing beside what every update records."""
        return {}
