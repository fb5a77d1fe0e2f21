"""What watches a run: each callback does one thing at the moments it cares about."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keisei.evaluation.match import MatchResult
from keisei.runs.metrics import MetricsStore
from keisei.runs.tensorboard import TensorBoardWriter
from keisei.runs.wandb_writer import WandbWriter
from keisei.shogi import FinishedGame
from keisei.shogi.records import GameRecord, write_record
from keisei.training.parallel.statistics import worker_rows

if TYPE_CHECKING:
    from keisei.training.trainer import Trainer


class Callback:
    """Override the moments that matter; the others do nothing.

    class UntilStrong(keisei.Callback):
        def on_evaluation(self, trainer, results):
            if results[0].win_rate > 0.9:
                raise keisei.StopRequested  # saves, and ends the training
    """

    def on_start(self, trainer: Trainer) -> None:
        """The run starts or resumes."""

    def on_update(self, trainer: Trainer, finished: Sequence[FinishedGame]) -> None:
        """An update is done; `finished` are the games that ended in it."""

    def on_evaluation(self, trainer: Trainer, results: Sequence[MatchResult]) -> None:
        """Matches against the opponents are done."""

    def on_checkpoint(self, trainer: Trainer, path: Path, seconds: float) -> None:
        """A checkpoint is safely on the disk."""

    def on_stretch(self, trainer: Trainer, changes: dict[str, Any]) -> None:
        """A stretch with other settings begins."""

    def on_stop(self, trainer: Trainer) -> None:
        """The run was asked to stop, and its state is saved."""

    def on_end(self, trainer: Trainer) -> None:
        """The run has played all its moves."""

    def on_close(self, trainer: Trainer) -> None:
        """The very last moment, whatever happened."""


def describe_changes(trainer: Trainer, changes: dict[str, Any]) -> str:
    """What a stretch changes, in a line."""
    new = ", ".join(f"{name}={value}" for name, value in changes.items())
    return f"from step {trainer.progress.steps:,} on: {new}"


class RecordMetrics(Callback):
    """Stores the metrics in the run's SQLite file and, if configured, for TensorBoard."""

    def __init__(self) -> None:
        self._open_files = contextlib.ExitStack()

    def on_start(self, trainer: Trainer) -> None:
        step = trainer.progress.steps
        self.store = self._open_files.enter_context(MetricsStore(trainer.run.metrics_path))
        self.store.truncate_after(step)  # what a lost update wrote would stand there twice
        self.store.log_event("info", f"started at step {step}")
        self.store.set_meta("total_timesteps", str(trainer.progress.total_timesteps))
        self._writers = [self.store.log]
        if trainer.config.logging.tensorboard:
            tensorboard = TensorBoardWriter(trainer.run.tensorboard_dir, step or None)
            self._open_files.callback(tensorboard.close)
            self._writers.append(tensorboard.log)

    def on_update(self, trainer: Trainer, finished: Sequence[FinishedGame]) -> None:
        self._log(trainer, trainer.progress.metrics)
        self.store.set_now("workers", worker_rows(trainer.manager))
        self.store.set_now("live games", trainer.live_games.state())
        saved = list(finished)[: trainer.config.logging.games_per_update]
        for number, ended in enumerate(saved, start=1):
            # Not `ended.game`: every shard has a game of that number, and it may end twice.
            record = GameRecord.from_finished(ended)
            self._save_game(trainer, "self-play", record, f"{number:03d}.kif")

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
                # UTF-8: the run's name is in it, which may be written in any script.
                name = f"{result.second}-{game.number:03d}.kifu"
                self._save_game(trainer, "evaluation", result.record(game), name)

    def _save_game(self, trainer: Trainer, kind: str, record: GameRecord, name: str) -> None:
        step, outcome = trainer.progress.steps, record.outcome
        path = trainer.run.games_dir / f"{step:012d}-{name}"
        write_record(record, path)
        self.store.log_game(
            step,
            kind=kind,
            black=record.black or "self",
            white=record.white or "self",
            winner=outcome.winner if outcome else None,
            reason=outcome.reason if outcome else "failure",
            length=len(record.moves),
            file=path.name,
        )

    def on_checkpoint(self, trainer: Trainer, path: Path, seconds: float) -> None:
        self.store.log_event("info", f"saved {path.name} in {seconds:.2f} s")

    def on_stretch(self, trainer: Trainer, changes: dict[str, Any]) -> None:
        self.store.log_event("info", describe_changes(trainer, changes))

    def on_stop(self, trainer: Trainer) -> None:
        self.store.log_event("info", "stopped on request")

    def on_end(self, trainer: Trainer) -> None:
        self.store.log_event("info", "finished")

    def on_close(self, trainer: Trainer) -> None:
        self._open_files.close()

    def _log(self, trainer: Trainer, values: dict[str, float]) -> None:
        for write in self._writers:
            write(trainer.progress.steps, values)


class Wandb(Callback):
    """Logs to Weights & Biases."""

    _writer: WandbWriter | None = None

    def on_start(self, trainer: Trainer) -> None:
        settings, config = trainer.config.wandb, trainer.config.model_dump(mode="json")
        run = trainer.run
        self._writer = WandbWriter(run.folder, run.name, settings.project, settings.mode, config)

    def on_update(self, trainer: Trainer, finished: Sequence[FinishedGame]) -> None:
        self._log(trainer, trainer.progress.metrics)

    def on_evaluation(self, trainer: Trainer, results: Sequence[MatchResult]) -> None:
        self._log(trainer, {f"wins against {r.second}": r.win_rate for r in results})

    def on_close(self, trainer: Trainer) -> None:
        if self._writer:
            self._writer.close()

    def _log(self, trainer: Trainer, values: dict[str, float]) -> None:
        if self._writer:
            self._writer.log(trainer.progress.steps, values)
