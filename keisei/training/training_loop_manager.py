"""The course of a run: collect, learn, look, save, and stop when asked."""

from __future__ import annotations

import time
from typing import Any

from keisei.training.stopping import Stopper, StopRequested
from keisei.training.trainer import Trainer


class TrainingLoopManager:
    """Runs a trainer until its steps are played, or until SIGINT or SIGTERM.

    A stop throws away the update that is under way and saves the state from before it, so that it
    takes a moment, and so that the resumed run is exactly the one that was not stopped.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self._boundary: dict[str, Any] = {}

    def run(self) -> bool:
        """Train; returns whether the run got to its end."""
        trainer = self.trainer
        with trainer.run.lock(), Stopper() as stopper:
            self._each("on_start")
            try:
                self._train(stopper)
            except StopRequested:
                self._save(self._boundary)
                self._each("on_stop")
                return False
            finally:
                self._each("on_close")
        return True

    def _train(self, stopper: Stopper) -> None:
        trainer, progress = self.trainer, self.trainer.progress
        self._boundary = trainer.state_dict()
        while True:
            # Due by what was done last, not by `step % interval`, which update borders may never
            # meet. At the start of a resumed run, what the stop cut short is made up for.
            if self._due(progress.last_evaluation, trainer.config.evaluation.interval):
                with stopper.interruptible():
                    self._evaluate(trainer.config.evaluation.games)
                self._boundary = trainer.state_dict()
            if progress.steps and self._due(
                progress.last_checkpoint, trainer.config.training.checkpoint_interval
            ):
                self._checkpoint()
            if progress.finished:
                break
            with stopper.interruptible():
                finished = trainer.update()
            self._each("on_update", finished)
            self._boundary = trainer.state_dict()
        if progress.last_checkpoint != progress.steps:
            self._checkpoint()
        if trainer.config.evaluation.final_games:
            with stopper.interruptible():
                self._evaluate(trainer.config.evaluation.final_games)
        self._each("on_end")

    def _due(self, last: int | None, interval: int) -> bool:
        return last is None or self.trainer.progress.steps - last >= interval

    def _evaluate(self, games: int) -> None:
        self._each("on_evaluation", self.trainer.evaluate(games))
        self.trainer.progress.last_evaluation = self.trainer.progress.steps

    def _checkpoint(self) -> None:
        self.trainer.progress.last_checkpoint = self.trainer.progress.steps
        self._boundary = self.trainer.state_dict()
        self._save(self._boundary)

    def _save(self, state: dict[str, Any]) -> None:
        start = time.perf_counter()
        path = self.trainer.checkpoints.save(state["progress"]["steps"], state)
        self._each("on_checkpoint", path, time.perf_counter() - start)

    def _each(self, moment: str, *details: Any) -> None:
        for callback in self.trainer.callbacks:
            getattr(callback, moment)(self.trainer, *details)
