"""The trainer: one run's agent, shards, experience and checkpoints."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from keisei.config_schema import AppConfig, to_yaml
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.ppo_agent import Metrics, PPOAgent
from keisei.evaluation.match import MatchResult, play_match
from keisei.evaluation.players import GreedyPlayer, Player, PolicyPlayer, RandomPlayer
from keisei.shogi import FinishedGame, ShogiGame
from keisei.training.callbacks import Callback
from keisei.training.checkpoint import CheckpointStore
from keisei.training.parallel import ParallelError, ParallelManager
from keisei.training.progress import Progress
from keisei.training.run import Run
from keisei.training.shard import make_shard, new_rollout

log = logging.getLogger(__name__)

OPPONENTS: dict[str, Callable[[int], Player]] = {"random": RandomPlayer, "greedy": GreedyPlayer}


class Trainer:
    """Holds what a run needs and knows how to do each part of it.

    `TrainingLoopManager` decides when; callbacks see what happened. Use it as

        run = Run.create(Path("runs"), None, to_yaml(config))
        trainer = Trainer(config, run)
        TrainingLoopManager(trainer).run()
    """

    def __init__(self, config: AppConfig, run: Run, callbacks: Sequence[Callback] = ()) -> None:
        self.config = config
        self.run = run
        self.callbacks = list(callbacks)
        self.agent = PPOAgent(config)
        self.buffer = ExperienceBuffer(config.training.gamma, config.training.lambda_gae)
        self.progress = Progress(config.training.total_timesteps)
        self.shards = [
            make_shard(config, index) for index in range(config.training.parallel.num_workers)
        ]
        self.workers: ParallelManager | None = None
        self.checkpoints = CheckpointStore(run.checkpoints_dir, config.training.keep_checkpoints)

    # -- collecting --------------------------------------------------------------------------

    def start_workers(self) -> None:
        """Start the worker processes, if the settings want them and they can run."""
        if not self.config.training.parallel.enabled:
            return
        self.workers = ParallelManager(self.config, self.agent)
        try:
            # A resumed run's workers must not play the games of before once more.
            self.workers.start_workers(incarnation=self.progress.updates)
        except ParallelError as error:
            self._go_on_serially(error)

    def stop_workers(self) -> None:
        """Stop the worker processes, if there are any."""
        if self.workers:
            self.workers.shutdown()
            self.workers = None

    def collect(self) -> list[FinishedGame]:
        """Fill the buffer with one rollout of every shard, wherever they are played."""
        if self.workers:
            try:
                self.workers.synchronize_models()
                for rollout in self.workers.collect_experiences():
                    self.buffer.add_batch(rollout)
                return self.workers.finished_games
            except ParallelError as error:
                self.buffer.clear()
                self._go_on_serially(error)
        return self.collect_serial()

    def current_game(self) -> ShogiGame:
        """One of the games in play, to be looked at; made anew, for the thread that asks."""
        return self.workers.current_game() if self.workers else self.shards[0].games.game(0)

    def _go_on_serially(self, error: ParallelError) -> None:
        log.warning("%s; training goes on in one process", error)
        self.stop_workers()

    def collect_serial(self) -> list[FinishedGame]:
        """Fill the buffer with one rollout of every shard, one after another."""
        finished: list[FinishedGame] = []
        for shard in self.shards:
            rollout = new_rollout(self.config)
            finished += shard.collect(self.agent.evaluate, rollout, self.agent.version)
            self.buffer.add_batch(rollout)
        return finished

    # -- learning and looking ------------------------------------------------------------------

    def perform_ppo_update(self) -> Metrics:
        """Learn from the buffer, and empty it."""
        self.buffer.compute_advantages_and_returns()
        metrics = self.agent.learn(self.buffer, self.progress.fraction)
        self.buffer.clear()
        return metrics

    def update(self) -> list[FinishedGame]:
        """Collect, learn and count: one update of the run."""
        start = time.perf_counter()
        finished = self.collect()
        collected = time.perf_counter()
        steps = len(self.buffer)
        metrics = self.perform_ppo_update()
        end = time.perf_counter()
        progress = self.progress
        progress.steps += steps
        progress.updates += 1
        progress.seconds += end - start
        progress.count_games(finished)
        progress.metrics = {
            **metrics,
            **progress.game_metrics(),
            "steps_per_s": steps / (end - start),
            "collect_steps_per_s": steps / (collected - start),
            "learn_steps_per_s": steps / (end - collected),
            "version": self.agent.version,
        }
        return finished

    def evaluate(self, games: int) -> list[MatchResult]:
        """Play short matches against the configured opponents.

        The seeds follow from the step alone, and nothing of the run's random state is used: a run
        is the same whether it is evaluated or not.
        """
        seed = self.config.env.seed * 1_000_003 + self.progress.steps
        results = []
        for name in self.config.evaluation.opponents:
            me = PolicyPlayer(
                self.agent.evaluate, self.run.name, seed, self.config.evaluation.temperature
            )
            opponent = OPPONENTS[name](seed + 1)
            results.append(
                play_match(me, opponent, games, seed=seed, move_limit=self.config.env.move_limit)
            )
        return results

    # -- stop and go on ------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that the run's future depends on; a copy that later changes do not touch."""
        return copy.deepcopy(
            {
                "agent": self.agent.state_dict(),
                "shards": [shard.state_dict() for shard in self.shards],
                "progress": self.progress.state_dict(),
                "config": to_yaml(self.config),
            }
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict()` of a run with the same network and shards."""
        if len(state["shards"]) != len(self.shards):
            raise ValueError(
                f"the checkpoint has {len(state['shards'])} shards, the settings want "
                f"{len(self.shards)}: training.parallel.num_workers cannot change on resume"
            )
        self.agent.load_state_dict(state["agent"])
        for shard, shard_state in zip(self.shards, state["shards"], strict=True):
            shard.load_state_dict(shard_state)
        self.progress.load_state_dict(state["progress"])
