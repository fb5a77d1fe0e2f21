"""The course of a run: collect, learn, look, save, and stop when asked."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import torch

from keisei.core.learner import DivergedError
from keisei.runs.checkpoint import CheckpointError, step_of
from keisei.runs.stopping import Stopper, StopRequested
from keisei.settings import to_yaml
from keisei.training.trainer import Trainer

log = logging.getLogger(__name__)


class TrainingLoopManager:
    """Runs a trainer until its steps are played, or until SIGINT, SIGTERM or SIGHUP.

    A stop throws away the update that is under way and saves the state from before it, so that it
    takes a moment, and so that the resumed run is exactly the one that was not stopped. So does an
    error, before it goes its way.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self._boundary: dict[str, Any] = {}

    def run(self) -> bool:
        """Train; returns whether the run finished."""
        with self.trainer.run.lock(), Stopper() as stopper:
            self.trainer.run.change_config(to_yaml(self.trainer.settings))
            try:
                self._each("on_start")
                self.trainer.start_workers()
                self._train(stopper)
            except StopRequested:
                self.trainer.load_state_dict(self._boundary)
                self._save()
                self._each("on_stop")
                return False
            except Exception as error:
                self._rescue(error)
                raise
            finally:
                self.trainer.stop_workers()
                self._close()
        return True

    def _train(self, stopper: Stopper) -> None:
        trainer, progress = self.trainer, self.trainer.progress
        progress.last_match_done = False  # a finished run may have been given more to play
        self._boundary = trainer.state_dict()
        if trainer.settings.training.start and not trainer.checkpoints.paths():
            self._save()  # what it names may be another network when this run is resumed
        while not progress.finished:
            # Due by what was done last, not by `step % interval`, which update borders may never
            # meet. At the start of a resumed run, what the stop cut short is made up for.
            evaluation = trainer.config.evaluation
            if self._due(progress.last_evaluation, evaluation.interval):
                self._evaluate(stopper, evaluation.games)
            if stopper.wants_workers:
                stopper.wants_workers = False
                trainer.start_workers()
            before = progress.steps
            with stopper.interruptible():
                finished = trainer.update()
            self._boundary = trainer.state_dict()
            self._each("on_update", finished)
            if self._due(progress.last_checkpoint, trainer.config.training.checkpoint_interval):
                self._save()
            if changes := trainer.enter_stretch(before):
                self._each("on_stretch", changes)
        if trainer.config.evaluation.final_games:
            self._evaluate(stopper, trainer.config.evaluation.final_games)
        progress.last_match_done = True
        self._save()
        self._each("on_end")

    def _due(self, last: int | None, interval: int) -> bool:
        return last is None or self.trainer.progress.steps - last >= interval

    def _evaluate(self, stopper: Stopper, games: int) -> None:
        with stopper.interruptible(), self.trainer.trace.span("evaluate"):
            results = self.trainer.evaluate(games)
        self.trainer.progress.last_evaluation = self.trainer.progress.steps
        self._boundary = self.trainer.state_dict()
        self._each("on_evaluation", results)

    def _save(self) -> None:
        start = time.perf_counter()
        path = self._write()
        self._each("on_checkpoint", path, time.perf_counter() - start)

    def _write(self) -> Path:
        """Save the state. A stop changes neither when the next save is due nor the past opponents:

        its checkpoint is not one of them, and pushes none of them out.
        """
        progress, store = self.trainer.progress, self.trainer.checkpoints
        settings = self.trainer.config.training
        if self._due(progress.last_checkpoint, settings.checkpoint_interval):
            progress.last_checkpoint = progress.steps
            past = [*progress.past_opponents, progress.steps]
            progress.past_opponents = past[-settings.keep_checkpoints :]
        self._boundary = self.trainer.state_dict()
        steps = {step_of(path) for path in store.paths()} | {progress.steps}
        oldest = min(progress.past_opponents, default=0)
        store.keep = max(settings.keep_checkpoints, sum(step >= oldest for step in steps))
        with self.trainer.trace.span("save"):
            return store.save(progress.steps, self._boundary)

    def _rescue(self, error: Exception) -> None:
        """Save the state from before an error, if there is one that is good and can be saved.

        Just before a network diverges it is hardly sound: there the checkpoints before are better.
        """
        if not self._boundary or isinstance(error, (CheckpointError, DivergedError)):
            return
        weights = self._boundary["agent"]["network"].values()
        if not all(torch.isfinite(weight).all() for weight in weights):
            return
        try:
            self.trainer.load_state_dict(self._boundary)
            log.warning("an error ended the run; its state is saved in %s", self._write())
        except Exception as another:
            log.warning("an error ended the run, and its state could not be saved: %s", another)

    def _each(self, moment: str, *details: Any) -> None:
        for callback in self.trainer.callbacks:
            getattr(callback, moment)(self.trainer, *details)

    def _close(self) -> None:
        """The last moment: one callback's failure must not keep the others from closing."""
        for callback in self.trainer.callbacks:
            try:
                callback.on_close(self.trainer)
            except Exception:
                log.exception("%s could not close", type(callback).__name__)
