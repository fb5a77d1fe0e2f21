"""The manager without workers: the same shards in this process, one after another."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from keisei.core.policy import evaluate
from keisei.core.rollout import Rollout
from keisei.core.runtime import one_thread
from keisei.selfplay.opponents import Opponent
from keisei.selfplay.plan import UpdatePlan
from keisei.selfplay.shard import SelfPlayShard, make_shard, new_rollout
from keisei.training.parallel.base_manager import BaseManager
from keisei.training.parallel.experience_collector import ExperienceCollector, Finished
from keisei.training.parallel.messages import RolloutDone


class SerialManager(BaseManager):
    """Plays with the learner's network, on one thread as workers do, so that sums are equal.

    The thread that collects makes the shards, because games belong to the thread that made them;
    other threads look at `shard_states`.
    """

    _playing: Sequence[tuple[SelfPlayShard, Opponent]] = ()  # made by the next collection

    def _start(self) -> None:
        self._playing = ()

    def shutdown(self) -> None:
        """There is nothing to stop."""

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
        collector = ExperienceCollector(self.parallel.max_policy_lag)
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        with one_thread():
            while wanted := plan.to_begin(everybody, collector.tally({})):
                if time.monotonic() >= deadline:
                    break
                for index in wanted:
                    collector.accept(index, self._play(index))
        return collector.take(self.agent.version)

    def _make(self, index: int) -> tuple[SelfPlayShard, Opponent]:
        shard = make_shard(self.config, index, self._shards.get(index))
        return shard, Opponent(self.config, index, self._checkpoints)

    def _play(self, index: int) -> RolloutDone:
        (shard, opponent), version = self._playing[index], self._acting.version
        rollout = new_rollout(self.config)
        policy = partial(evaluate, self._acting.network)
        games = shard.collect(policy, rollout, version, opponent.policy(version))
        self._shards[index] = state = shard.state_dict()
        return RolloutDone(None, version, games, state, shard.scores, rollout=rollout)

    @property
    def workers_here(self) -> int:
        """None; this process plays."""
        return 0

    def get_statistics(self) -> dict[str, Any]:
        """There are no workers."""
        return {"is_running": False, "workers": {}}

    def metrics(self) -> dict[str, float]:
        """Nothing beside what every update records."""
        return {}
