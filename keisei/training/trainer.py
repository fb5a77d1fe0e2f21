"""The trainer: one run's agent, shards, experience and checkpoints."""

from __future__ import annotations

import copy
import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from keisei.config_schema import AppConfig
from keisei.core.learner import Metrics, make_learner
from keisei.core.precision import resolve_precision
from keisei.core.rollout import Rollout
from keisei.evaluation.match import MatchResult, play_games
from keisei.evaluation.players import GreedyPlayer, Player, PolicyPlayer, RandomPlayer
from keisei.processes.machine import choose_device
from keisei.runs.checkpoint import CheckpointStore
from keisei.runs.run import Run
from keisei.runs.trace import Trace
from keisei.selfplay.shard import has_games
from keisei.settings import to_yaml
from keisei.shogi import FinishedGame, ShogiGame
from keisei.shogi.vector_shogi import moves_in_state
from keisei.training.callbacks import Callback
from keisei.training.first_network import first_network
from keisei.training.live_games import LiveGames
from keisei.training.parallel import BaseManager, ParallelError, SerialManager, make_manager
from keisei.training.parallel.statistics import score_metrics
from keisei.training.progress import Progress
from keisei.training.resuming import check_settings

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
        # Of all stretches; `config` has those of now.
        self.settings = resolve_precision(config, choose_device(config.env.device))
        self.run = run
        self.callbacks = list(callbacks)
        self.trace = trace or Trace(None)
        self.progress = Progress(config.training.total_timesteps)
        self.checkpoints = CheckpointStore(run.checkpoints_dir, config.training.keep_checkpoints)
        self.rollouts: list[Rollout] = []  # collected, and not yet learned from
        shards = config.training.parallel.num_workers
        self.live_games = LiveGames(config.env.start_sfens(), shards)
        self.manager: BaseManager
        self._set_up(0)
        if not self.checkpoints.paths() and (first := first_network(config)):
            self.agent.load_weights(first.weights)
            self.progress.hours_before = first.cpu_hours
        self._play_here([{}] * shards)

    def _set_up(self, steps: int) -> None:
        """Take the settings that hold at a step, and a learner by them."""
        self.config = self.settings.at(steps)
        self.agent = make_learner(self.config)

    # -- collecting --------------------------------------------------------------------------

    def _play_here(
        self, shards: Sequence[dict[str, Any]], acting: dict[str, Any] | None = None
    ) -> None:
        """Have the shards played in this process, from these games on and with these weights."""
        self.manager = SerialManager(self.config, self.agent, self.checkpoints.folder, self.trace)
        self.manager.start_workers(shards, acting)

    def start_workers(self) -> None:
        """Have the shards played as configured, if possible."""
        if self.manager.is_running:
            return
        shards, acting = self.manager.shard_states(), self.manager.acting_state()
        self.manager = make_manager(self.config, self.agent, self.checkpoints.folder, self.trace)
        try:
            self.manager.start_workers(shards, acting)
        except ParallelError as error:
            self._give_up_workers(error, shards)

    def stop_workers(self) -> None:
        """Stop the workers, if there are any; their games can be continued."""
        self.manager.shutdown()
        self._play_here(self.manager.shard_states(), self.manager.acting_state())

    def collect(self) -> list[FinishedGame]:
        """Get the rollouts that an update learns from, wherever they are played."""
        before = self.manager.shard_states()
        try:
            self.manager.synchronize_models()
            self.rollouts = self.manager.collect_experiences()
        except ParallelError as error:
            self._give_up_workers(error, before)  # some shards may have gone on, and for nothing
            self.rollouts = self.manager.collect_experiences()
        for shard, rollout in zip(self.manager.collected_from, self.rollouts, strict=True):
            self.live_games.follow(shard, rollout)
        return self.manager.finished_games

    def _give_up_workers(self, error: ParallelError, shards: Sequence[dict[str, Any]]) -> None:
        log.warning(
            "%s; training goes on in one process. `kill -USR1 %d` starts the workers again",
            error,
            os.getpid(),
        )
        self.manager.shutdown()
        self._play_here(shards, self.manager.acting_state())

    def current_game(self) -> ShogiGame:
        """One of the games in play, as a copy for the calling thread."""
        starts, state = self.config.env.start_sfens(), self.manager.shard_states()[0]
        start, moves = moves_in_state(state, starts) if has_games(state) else (starts[0], [])
        return ShogiGame.from_moves(start, moves, move_limit=self.config.env.move_limit)

    # -- learning and looking ------------------------------------------------------------------

    def learn(self) -> Metrics:
        """Learn from the rollouts, and let go of them."""
        with self.trace.span("learn"):
            share = self.settings.share_of_stretch(self.progress.steps)
            metrics = self.agent.update(self.rollouts, share)
        self.rollouts = []
        return metrics

    def update(self) -> list[FinishedGame]:
        """Collect, learn and count: one update of the run."""
        start = time.perf_counter()
        finished = self.collect()
        collected = time.perf_counter()
        steps = sum(int(rollout.learned.sum()) for rollout in self.rollouts)
        metrics = self.learn()
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
            **score_metrics(self.manager.opponent_scores),
            **self.manager.metrics(),
        }
        return finished

    def evaluate(self, games: int) -> list[MatchResult]:
        """Play short matches against the configured opponents.

        The seeds follow from the step alone, and nothing of the run's random state is used: a run
        is the same whether it is evaluated or not.
        """
        env, evaluation = self.config.env, self.config.evaluation
        seed = env.seed * 1_000_003 + self.progress.steps
        results = []
        policy = self.agent.evaluate_average
        for name in evaluation.opponents:
            me = PolicyPlayer(policy, self.run.name, seed, evaluation.temperature)
            other = OPPONENTS[name](seed + 1)
            results.append(play_games(me, other, games, seed=seed, move_limit=env.move_limit))
        return results

    def enter_stretch(self, before: int) -> dict[str, Any]:
        """Go on by the settings of the stretch that began since step `before`, if one did."""
        begun = [
            one for one in self.settings.stretches if before < one.begin <= self.progress.steps
        ]
        if begun:
            workers = self.manager.is_running
            self.load_state_dict(self.state_dict())
            if workers:
                self.start_workers()
        return {name: value for one in begun for name, value in one.change.items()}

    # -- stop and go on ------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that the run needs to continue exactly, as a copy."""
        return copy.deepcopy(
            {
                "agent": self.agent.state_dict(),
                "shards": self.manager.shard_states(),
                "acting": self.manager.acting_state(),
                "progress": self.progress.state_dict(),
                "config": to_yaml(self.settings),
            }
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict()` of a run with the same network and shards."""
        check_settings(self.settings, state)
        shards = state["shards"]
        self.manager.shutdown()
        self._set_up(state["progress"]["steps"])
        self.agent.load_state_dict(state["agent"])
        self._play_here(shards, state.get("acting"))
        self.live_games.go_on(shards)
        self.progress.load_state_dict(state["progress"])
