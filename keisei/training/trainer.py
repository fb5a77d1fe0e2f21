"""The trainer: one run's agent, shards, experience and checkpoints."""

from __future__ import annotations

import copy
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from keisei.config_schema import AppConfig
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.ppo_agent import Metrics, PPOAgent
from keisei.core.runtime import share_cores
from keisei.evaluation.match import MatchResult, play_match
from keisei.evaluation.players import GreedyPlayer, Player, PolicyPlayer, RandomPlayer
from keisei.settings import to_yaml
from keisei.shogi import FinishedGame, ShogiGame
from keisei.shogi.vector_shogi import moves_in_state
from keisei.training.callbacks import Callback
from keisei.training.checkpoint import CheckpointStore
from keisei.training.live_games import LiveGames
from keisei.training.opponents import Opponent
from keisei.training.parallel import BaseManager, ParallelError, make_manager
from keisei.training.parallel.statistics import score_metrics, worker_metrics
from keisei.training.progress import Progress
from keisei.training.run import Run
from keisei.training.shard import SelfPlayShard, make_shard, new_rollout
from keisei.training.trace import Trace

log = logging.getLogger(__name__)

OPPONENTS: dict[str, Callable[[int], Player]] = {"random": RandomPlayer, "greedy": GreedyPlayer}


class Trainer:
    """Holds what a run needs and knows how to do each part of it.

    `TrainingLoopManager` decides when; callbacks see what happened. Use it as

        run = Run.create(Path("runs"), None, to_yaml(config))
        trainer = Trainer(config, run)
        TrainingLoopManager(trainer).run()
    """

    def __init__(
        self,
        config: AppConfig,
        run: Run,
        callbacks: Sequence[Callback] = (),
        trace: Trace | None = None,
    ) -> None:
        self.config = config
        self.run = run
        self.callbacks = list(callbacks)
        self.trace = trace or Trace(None)
        self.agent = PPOAgent(config)
        self.buffer = ExperienceBuffer(config.training.gamma, config.training.lambda_gae)
        self.progress = Progress(config.training.total_timesteps)
        self.workers: BaseManager | None = None
        # The games of each shard ({} before its first rollout): whoever plays them goes on here.
        self._states: list[dict[str, Any]] = [{}] * config.training.parallel.num_workers
        self._shards: list[SelfPlayShard] = []  # while they are played in this process
        self._opponents: list[Opponent] = []  # theirs
        self.opponent_scores: dict[str, list[float]] = {}  # in what was collected last
        self.checkpoints = CheckpointStore(run.checkpoints_dir, config.training.keep_checkpoints)
        self.live_games = LiveGames(config.env.start_sfens(), len(self._states))

    # -- collecting --------------------------------------------------------------------------

    def start_workers(self) -> None:
        """Start the worker processes, if the settings want them and they can run."""
        parallel = self.config.training.parallel
        if not parallel.enabled or self.workers:
            return
        self._states, self._shards = self.shard_states(), []
        self.workers = make_manager(self.config, self.agent, self.checkpoints.folder, self.trace)
        try:
            self.workers.start_workers(self._states)
            if parallel.mode == "async":  # in sync mode workers wait while the learner learns
                share_cores(self.workers.workers_here)
        except ParallelError as error:
            self._go_on_serially(error)

    def stop_workers(self) -> None:
        """Stop the worker processes, if there are any; their games can be gone on with."""
        if self.workers:
            self._states = self.shard_states()
            self.workers.shutdown()
            self.workers = None
            share_cores(0)

    def collect(self) -> list[FinishedGame]:
        """Fill the buffer with what an update learns from, wherever it is played."""
        if self.workers:
            before = self.shard_states()
            try:
                self.workers.synchronize_models()
                rollouts = self.workers.collect_experiences()
                for shard, rollout in zip(self.workers.collected_from, rollouts, strict=True):
                    self.buffer.add_batch(rollout)
                    self.live_games.follow(shard, rollout)
                self.opponent_scores = self.workers.opponent_scores
                return self.workers.finished_games
            except ParallelError as error:
                self.buffer.clear()
                self._go_on_serially(error)
                self._states = before  # some shards may have gone on, and for nothing
        return self.collect_serial()

    def _go_on_serially(self, error: ParallelError) -> None:
        log.warning(
            "%s; training goes on in one process. `kill -USR1 %d` starts the workers again",
            error,
            os.getpid(),
        )
        self.stop_workers()

    def collect_serial(self) -> list[FinishedGame]:
        """Fill the buffer with rollouts of the shards in turn, as many of each as workers play.

        Everybody plays one; then as many as an update still wants; then who has yet to end games.
        """
        parallel = self.config.training.parallel
        finished: list[FinishedGame] = []
        games: Counter[int] = Counter()
        self.opponent_scores = {}
        everybody = wanted = list(range(len(self._states)))
        while wanted:
            for index in wanted:
                ended = self._play(index)
                games[index] += len(ended)
                finished += ended
            missing = parallel.update_steps - sum(r.num_steps for r in self.buffer.rollouts)
            wanted = everybody[: max(-(-missing // parallel.rollout_steps), 0)]
            if not wanted:
                wanted = [i for i in everybody if games[i] < parallel.episodes_per_worker]
        return finished

    def _play(self, index: int) -> list[FinishedGame]:
        """Add a rollout of one shard to the buffer; returns the games that ended."""
        shard, rollout = self.shards[index], new_rollout(self.config)
        opponent, version = self._opponents[index], self.agent.version
        other = opponent.policy(version)
        finished = shard.collect(self.agent.evaluate, rollout, version, other)
        if opponent.kind:
            self.opponent_scores.setdefault(opponent.kind, []).extend(shard.scores)
        self.buffer.add_batch(rollout)
        self.live_games.follow(index, rollout)
        return finished

    @property
    def shards(self) -> list[SelfPlayShard]:
        """The shards in this process, made when they are first needed here."""
        if not self._shards:
            indices, folder = range(len(self._states)), self.checkpoints.folder
            shards = [make_shard(self.config, index) for index in indices]
            for shard, state in zip(shards, self._states, strict=True):
                if state:
                    shard.load_state_dict(state)
            self._opponents = [Opponent(self.config, index, folder) for index in indices]
            self._shards = shards  # last: the live view's thread may look meanwhile
        return self._shards

    def shard_states(self) -> list[dict[str, Any]]:
        """The games of all shards as they are now."""
        if self.workers:
            return self.workers.shard_states()
        return [shard.state_dict() for shard in self._shards] or self._states

    def current_game(self) -> ShogiGame:
        """One of the games in play, made anew for the thread that asks.

        It never makes the shards: their games belong to the thread that made them.
        """
        if self._shards:
            return self._shards[0].games.game(0)
        starts, state = self.config.env.start_sfens(), self.shard_states()[0]
        start, moves = moves_in_state(state, starts) if state else (starts[0], [])
        return ShogiGame.from_moves(start, moves, move_limit=self.config.env.move_limit)

    # -- learning and looking ------------------------------------------------------------------

    def perform_ppo_update(self) -> Metrics:
        """Learn from the buffer, and empty it."""
        with self.trace.span("learn"):
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
            **score_metrics(self.opponent_scores),
            **(worker_metrics(self.workers) if self.workers else {}),
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
                "shards": self.shard_states(),
                "progress": self.progress.state_dict(),
                "config": to_yaml(self.config),
            }
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict()` of a run with the same network and shards."""
        if len(state["shards"]) != len(self._states):
            raise ValueError(
                f"the checkpoint has {len(state['shards'])} shards, the settings want "
                f"{len(self._states)}: training.parallel.num_workers cannot change on resume"
            )
        self.agent.load_state_dict(state["agent"])
        self.stop_workers()
        self._states, self._shards = state["shards"], []
        self.live_games.go_on(self._states)
        games = self.config.training.parallel.num_envs_per_worker
        for shard in self._states:
            if shard and len(shard["move_counts"]) != games:
                raise ValueError(f"the state has {len(shard['move_counts'])} games, not {games}")
        self.progress.load_state_dict(state["progress"])
