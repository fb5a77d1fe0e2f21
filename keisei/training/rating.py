"""Rating the checkpoints of a run while it trains."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection

from keisei.evaluation.background import LOG
from keisei.processes.line import describe_exit, start_process
from keisei.processes.nursery import Forked
from keisei.runs.quiet_output import QuietOutput
from keisei.shogi import FinishedGame
from keisei.training.callbacks import Callback
from keisei.training.trainer import Trainer

log = logging.getLogger(__name__)

_TIMEOUT = 10.0  # seconds to tell it what to do, and to see it end


class RateCheckpoints(Callback):
    """Lets a process rate the run while it trains; if that fails, training goes on without it."""

    def __init__(self) -> None:
        self._process: Forked | None = None
        self._connection: Connection | None = None

    def on_start(self, trainer: Trainer) -> None:
        try:
            started = start_process("keisei.evaluation.background", {}, _TIMEOUT)
            self._process, self._connection = started
            self._connection.send(trainer.run.folder.resolve())
        except OSError as error:
            log.warning("checkpoints are not rated: the process could not be started: %s", error)
            self._end()
            return
        print(
            f"checkpoints are rated in the background; ratings: {trainer.run.ladder_path}",
            file=QuietOutput(sys.stdout),
            flush=True,
        )

    def on_update(self, trainer: Trainer, finished: Sequence[FinishedGame]) -> None:
        code = self._process.poll() if self._process else None
        if code is not None:
            log.warning(
                "checkpoints are no longer rated: %s; %s may say why. `keisei ladder` can continue",
                describe_exit(code),
                trainer.run.folder / LOG,
            )
            self._end()

    def on_close(self, trainer: Trainer) -> None:
        self._end()

    def _end(self) -> None:
        if self._connection:
            self._connection.close()
        if self._process:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):  # it cannot be far, and nobody needs it
                self._process.wait(_TIMEOUT)
        self._process = self._connection = None
