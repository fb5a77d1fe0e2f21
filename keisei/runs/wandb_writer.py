"""A copy of a run's scalars for Weights & Biases (extra `wandb`)."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

log = logging.getLogger(__name__)


class WandbWriter:
    """Logs to Weights & Biases. If it is missing or fails, one warning says so; the run goes on."""

    def __init__(
        self,
        folder: Path,
        name: str,
        project: str,
        mode: Literal["online", "offline"],
        settings: Mapping[str, Any],
    ) -> None:
        self._run: Any = None
        with self._never_failing():
            import wandb

            self._run = wandb.init(
                project=project, name=name, mode=mode, dir=str(folder), config=dict(settings)
            )

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write the values of several metrics at `step`."""
        with self._never_failing():
            if self._run:
                self._run.log(dict(values), step=step)

    def close(self) -> None:
        with self._never_failing():
            if self._run:
                self._run.finish()

    @contextlib.contextmanager
    def _never_failing(self) -> Iterator[None]:
        try:
            yield
        except ImportError:
            log.warning("wandb is enabled but not installed: pip install wandb")
        except Exception as error:
            log.warning("Weights & Biases failed and is off from now on: %s", error)
            self._run = None
