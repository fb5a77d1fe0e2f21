"""What a person sees while agents learn: a live view in a terminal, else a line now and then."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table

from keisei.runs.quiet_output import QuietOutput
from keisei.worlds.drawing import colored_text
from keisei.worlds.environment import EpochResult
from keisei.worlds.registry import code_named_by, is_pettingzoo
from keisei.worlds.world import World

if TYPE_CHECKING:
    from keisei.worlds.training import WorldTraining

LINES = 100  # that a run prints at most
SHOWN_AGENTS = 12


def make_display(training: WorldTraining) -> Lines:
    """The live view if it can be drawn, else plain lines."""
    drawable = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return LiveView(training) if drawable else Lines(training)


class Lines:
    """A line every few epochs."""

    def __init__(self, training: WorldTraining) -> None:
        self.training = training
        self.output = QuietOutput(sys.stdout)

    def start(self) -> None:
        """The run begins or goes on."""
        training = self.training
        self.say(f"run {training.run.name} starts at epoch {training.environment.epoch}")

    def update(self, result: EpochResult) -> None:
        """An epoch is over."""
        done, epochs = result.epoch + 1, self.training.config.epochs
        if done % max(epochs // LINES, 1) and done < epochs:
            return
        returns = ", ".join(f"{value:.1f}" for value in result.returns[:SHOWN_AGENTS])
        failed = self.training.environment.failed_trainings
        self.say(
            f"epoch {done}/{epochs} | {self.training.turns_per_s:,.0f} turns/s | returns {returns}"
            + (f" | failed trainings {failed}" if failed else "")
        )

    def stop(self) -> None:
        """Nothing more will be shown of epochs."""

    def farewell(self, finished: bool) -> None:
        """How it ended."""
        training = self.training
        run, steps = training.run, training.steps
        if finished:
            self.say(f"finished: {steps:,} turns; learning curve: {run.learning_curve_path}")
            film = f" --film {run.name}.gif" if is_pettingzoo(training.config.world) else ""
            self.say(f"look at it with: keisei worlds watch {self._name()}{film}")
        else:
            self.say(
                f"Stopped at epoch {training.environment.epoch}. Everything is saved; "
                f"continue with: keisei worlds train --resume {self._name()}"
            )

    def say(self, line: str) -> None:
        """Print a line at once."""
        self.output.write(line + "\n")
        self.output.flush()

    def _name(self) -> str:
        run, usual = self.training.run, type(self.training.config)().runs_dir
        known = str(run.folder.parent) == usual
        trust = " --trust" if code_named_by(self.training.config) else ""
        return shlex.quote(run.name if known else str(run.folder)) + trust


class LiveView(Lines):
    """The first copy of the world, and what each agent gets, redrawn after each epoch."""

    def __init__(self, training: WorldTraining) -> None:
        super().__init__(training)
        self._live = Live(console=Console(), refresh_per_second=4)

    def start(self) -> None:
        self._live.start()

    def update(self, result: EpochResult) -> None:
        self._live.update(self._view(result))

    def stop(self) -> None:
        self._live.stop()

    def _view(self, result: EpochResult) -> RenderableType:
        training = self.training
        table = Table(
            title=f"{training.run.name}: epoch {result.epoch + 1} of {training.config.epochs}",
            caption=f"{training.turns_per_s:,.0f} turns/s",
        )
        for heading in ("agent", "return", "random", "loss"):
            table.add_column(heading, justify="right")
        random_return = training.random_return or []
        for agent, value in enumerate(result.returns[:SHOWN_AGENTS]):
            baseline = f"{random_return[agent]:.1f}" if agent < len(random_return) else ""
            loss = result.losses.get(agent)
            shown = "" if loss is None else f"{loss:.4f}"
            table.add_row(str(agent), f"{value:.1f}", baseline, shown)
        world = training.environment.world
        return Columns([table, colored_text(world)]) if isinstance(world, World) else table
