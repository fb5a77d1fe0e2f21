"""What watches a run: each callback does one thing at the moments it cares about."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keisei.evaluation.match import MatchGame, MatchResult
from keisei.runs.metrics import MetricsStore, TensorBoardWriter
from keisei.shogi import FinishedGame
from keisei.shogi.records import GameRecord, write_record
from keisei.training.parallel.statistics import worker_rows

if TYPE_CHECKING:
    from keisei.training.trainer import Trainer

log = logging.getLogger(__name__)


class Callback:
    """Override the moments that matter; the others do nothing."""

    def on_start(self, trainer: Trainer) -> None:
        """The run begins or goes on."""

    def on_update(self, trainer: Trainer, finished: Sequence[FinishedGame]) -> None:
        """An update is done; `finished` are the games that ended in it."""

    def on_evaluation(self, trainer: Trainer, results: Sequence[MatchResult]) -> None:
        """Matches against the opponents are done."""

    def on_checkpoint(self, trainer: Trainer, path: Path, seconds: float) -> None:
        """A checkpoint is safely on the disk."""

    def on_stop(self, trainer: Trainer) -> None:
        """The run was asked to stop, and its state is saved."""

    def on_end(self, trainer: Trainer) -> None:
        """The run has played all its moves."""

    def on_close(self, trainer: Trainer) -> None:
        """The very last moment, whatever happened."""


class RecordMetrics(Callback):
    """Keeps the numbers in the run's SQLite file and, if wanted, for TensorBoard."""

    def __init__(self) -> None:
        self._open_files = contextlib.ExitStack()

    def on_start(self, trainer: Trainer) -> None:
        step = trainer.progress.steps
        self.store = self._open_files.enter_context(MetricsStore(trainer.run.metrics_path))
        self.store.truncate_after(step)  # what a lost update wrote would stand there twice
        self.store.log_event("info", f"started at step {step}")
        self.store.set_meta("total_timesteps", str(trainer.progress.total_timesteps))
        self.tensorboard = (
            TensorBoardWriter(trainer.run.tensorboard_dir, step or None)
            if trainer.config.logging.tensorboard
            else None
        )
        if self.tensorboard:
            self._open_files.callback(self.tensorboard.close)

    def on_update(self, trainer: Trainer, finished: Sequence[FinishedGame]) -> None:
        self._log(trainer, trainer.progress.metrics)
        self.store.set_now("workers", worker_rows(trainer.manager))
        self.store.set_now("live games", trainer.live_games.state())
        saved = list(finished)[: trainer.config.logging.games_per_update]
        for number, end in enumerate(saved, start=1):
            # Not `end.game`: every shard has a game of that number, and it may end twice.
            file = save_game(trainer, end, f"{trainer.progress.steps:012d}-{number:03d}.kif")
            self.store.log_game(
                trainer.progress.steps,
                kind="self-play",
                black="self",
                white="self",
                winner=end.outcome.winner,
                reason=end.outcome.reason,
                length=end.length,
                file=file.name,
            )

    def on_evaluation(self, trainer: Trainer, results: Sequence[MatchResult]) -> None:
        for result in results:
            shares = {"wins": result.wins, "draws": result.draws, "losses": result.losses}
            self._log(
                trainer,
                {
                    f"{kind} against {result.second}": n / result.played
                    for kind, n in shares.items()
                },
            )
            self.store.log_event("info", f"step {trainer.progress.steps}: {result}")
            for game in result.games[: trainer.config.logging.games_per_evaluation]:
                self._save_match_game(trainer, result, game)

    def _save_match_game(self, trainer: Trainer, result: MatchResult, game: MatchGame) -> None:
        record = result.record(game)
        step = trainer.progress.steps
        # UTF-8: the run's name is in it, which may be written in any script.
        path = trainer.run.games_dir / f"{step:012d}-{result.second}-{game.number:03d}.kifu"
        write_record(record, path)
        self.store.log_game(
            step,
            kind="evaluation",
            black=record.black,
            white=record.white,
            winner=game.outcome.winner if game.outcome else None,
            reason=game.outcome.reason if game.outcome else "failure",
            length=len(game.moves),
            file=path.name,
        )

    def on_checkpoint(self, trainer: Trainer, path: Path, seconds: float) -> None:
        self.store.log_event("info", f"saved {path.name} in {seconds:.2f} s")

    def on_stop(self, trainer: Trainer) -> None:
        self.store.log_event("info", "stopped on request")

    def on_end(self, trainer: Trainer) -> None:
        self.store.log_event("info", "finished")

    def on_close(self, trainer: Trainer) -> None:
        self._open_files.close()

    def _log(self, trainer: Trainer, values: dict[str, float]) -> None:
        self.store.log(trainer.progress.steps, values)
        if self.tensorboard:
            self.tensorboard.log(trainer.progress.steps, values)


def save_game(trainer: Trainer, end: FinishedGame, name: str) -> Path:
    """Write a game of the run as KIF into its folder of games."""
    path = trainer.run.games_dir / name
    write_record(GameRecord.from_finished(end), path)
    return path


class Wandb(Callback):
    """Logs to Weights & Biases. Its absence or failure is said once and never stops the run."""

    def __init__(self) -> None:
        self._run: Any = None

    def on_start(self, trainer: Trainer) -> None:
        settings = trainer.config.wandb
        try:
            import wandb

            self._run = wandb.init(
                project=settings.project,
                name=trainer.run.name,
                mode=settings.mode,
                dir=str(trainer.run.folder),
                config=trainer.config.model_dump(mode="json"),
            )
        except ImportError:
            log.warning("wandb is enabled but not installed: pip install wandb")
        except Exception as error:
            self._give_up(error)

    def on_update(self, trainer: Trainer, finished: Sequence[FinishedGame]) -> None:
        self._log(trainer, trainer.progress.metrics)

    def on_evaluation(self, trainer: Trainer, results: Sequence[MatchResult]) -> None:
        self._log(trainer, {f"wins against {r.second}": r.win_rate for r in results})

    def on_close(self, trainer: Trainer) -> None:
        if self._run:
            try:
                self._run.finish()
            except Exception as error:
                self._give_up(error)

    def _log(self, trainer: Trainer, values: dict[str, float]) -> None:
        if self._run:
            try:
                self._run.log(values, step=trainer.progress.steps)
            except Exception as error:
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        log.warning("Weights & Biases failed and is off from here: %s", error)
        self._run = None
