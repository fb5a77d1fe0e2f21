"""What a person sees while training: a live view in a terminal, else a line per update."""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import os
import shlex
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO, cast

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from keisei.config_schema import DisplayConfig, LoggingConfig
from keisei.evaluation.match import MatchResult
from keisei.runs.metrics import MetricsError, MetricsReader
from keisei.runs.quiet_output import QuietOutput
from keisei.shogi import FinishedGame
from keisei.shogi.board_text import board_text
from keisei.training.callbacks import Callback, describe_changes
from keisei.training.live_panels import LEARNING, Shares, Snapshot, clock, draw, number, percent
from keisei.training.trainer import Trainer

USUAL = Path(LoggingConfig().runs_dir)  # where commands look for a run by its name
_LOSSES = {"policy": "policy_loss", "value": "value_loss", "entropy": "entropy", "kl": "kl"}
HISTORY = 200  # points of a sparkline that are kept: more than a terminal has columns


def make_display(config: DisplayConfig) -> Callback:
    """The live view if configured and possible, else plain lines."""
    drawable = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if config.live == "always" or (config.live == "auto" and drawable):
        return LiveView(config.refresh_per_second)
    return PlainLines()


class Display(Callback):
    """What both kinds of display know about a run."""

    def __init__(self) -> None:
        self.output = QuietOutput(sys.stdout)
        self.against: dict[str, list[Shares]] = {}
        self.saved: Path | None = None

    def on_start(self, trainer: Trainer) -> None:
        for opponent in trainer.config.evaluation.opponents:
            names = (f"{kind} against {opponent}" for kind in ("wins", "draws", "losses"))
            past = _past(trainer.run.metrics_path, *names)
            self.against[opponent] = list(zip(*past, strict=False))
        self.first_step = trainer.progress.steps

    def welcome(self, trainer: Trainer) -> str:
        """What to say when a run begins or goes on."""
        precision = trainer.config.training.precision
        return f"run {trainer.run.name} starts at step {self.first_step:,}, in {precision}"

    def on_evaluation(self, trainer: Trainer, results: Sequence[MatchResult]) -> None:
        for result in results:
            counts = (result.wins, result.draws, result.losses)
            wins, draws, losses = (n / max(result.played, 1) for n in counts)
            self.against.setdefault(result.second, []).append((wins, draws, losses))

    def on_checkpoint(self, trainer: Trainer, path: Path, seconds: float) -> None:
        self.saved = path

    def summary(self, trainer: Trainer) -> list[tuple[str, str]]:
        """What to know about a run that is over."""
        progress, run = trainer.progress, trainer.run
        rate = progress.steps / progress.seconds if progress.seconds else math.nan
        return [
            ("steps", f"{progress.steps:,} in {progress.updates:,} updates"),
            ("games", f"{progress.games:,}"),
            ("time", f"{clock(progress.seconds)} of playing and learning"),
            ("speed", f"{number(rate)} steps/s"),
            *(
                (f"against {name}", "{} won, {} drawn, {} lost".format(*map(percent, shares[-1])))
                for name, shares in self.against.items()
                if shares
            ),
            ("run", str(run.folder)),
            ("learning curve", str(run.learning_curve_path)),
            ("checkpoint", str(self.saved or "none")),
        ]

    def farewell(self, trainer: Trainer) -> str:
        """What to say when the run was stopped."""
        # The update that was cut short may have been counted: what was saved is what holds.
        steps = int(self.saved.stem.rpartition("_")[2]) if self.saved else trainer.progress.steps
        return (
            f"Stopped at step {steps:,} of {trainer.progress.total_timesteps:,}. Everything is "
            f"saved; continue with: {_command()} train --resume {_name(trainer)}"
        )

    def next_steps(self, trainer: Trainer) -> Iterator[str]:
        """What to do with a run that is over: commands as they work in this terminal."""
        name, folder = _name(trainer), trainer.run.folder.parent
        where = "" if folder == USUAL else f" --runs {shlex.quote(str(folder))}"
        steps = 2 * trainer.progress.total_timesteps
        yield "What next:"
        for about, words in (
            ("see it, and play it", f"serve{where}"),
            ("in the terminal", f"play {name}"),
            ("how strong it is", f"evaluate {name} shipped"),
            ("train on", f"train --resume {name} -o training.total_timesteps={steps}"),
        ):
            yield f"  {about + ':':<20} {_command()} {words}"


class PlainLines(Display):
    """One line for each thing that happens, for a log file or a pipe."""

    def on_start(self, trainer: Trainer) -> None:
        super().on_start(trainer)
        self._say(self.welcome(trainer))

    def on_update(self, trainer: Trainer, finished: Sequence[FinishedGame]) -> None:
        progress, now = trainer.progress, trainer.progress.metrics
        parts = [
            f"step {progress.steps:,}/{progress.total_timesteps:,} {progress.fraction:.1%}",
            f"{number(now.get('steps_per_s'))} steps/s",
            f"{progress.games:,} games",
            f"decided {percent(now.get('decided'))}",
            f"length {number(now.get('game_length'))}",
            *(f"{name} {number(now.get(metric))}" for name, metric in _LOSSES.items()),
            f"clip {percent(now.get('clip_fraction'))}",
        ]
        parts += [
            f"wins against {name} {percent(shares[-1][0])}"
            for name, shares in self.against.items()
            if shares
        ]
        self._say(" | ".join(parts))

    def on_evaluation(self, trainer: Trainer, results: Sequence[MatchResult]) -> None:
        super().on_evaluation(trainer, results)
        for result in results:
            self._say(f"evaluation at step {trainer.progress.steps:,}: {result}")

    def on_checkpoint(self, trainer: Trainer, path: Path, seconds: float) -> None:
        super().on_checkpoint(trainer, path, seconds)
        self._say(f"checkpoint {path.name} saved in {seconds:.2f} s")

    def on_stretch(self, trainer: Trainer, changes: dict[str, Any]) -> None:
        self._say(describe_changes(trainer, changes))

    def on_stop(self, trainer: Trainer) -> None:
        self._say(self.farewell(trainer))

    def on_end(self, trainer: Trainer) -> None:
        for name, value in (("finished", trainer.run.name), *self.summary(trainer)):
            self._say(f"{name + ':':<16} {value}")
        for line in self.next_steps(trainer):
            self._say(line)

    def _say(self, line: str) -> None:
        self.output.write(line + "\n")
        self.output.flush()


class LiveView(Display):
    """A view of the run that rich draws in its own thread, `refresh_per_second` times a second."""

    def __init__(self, refresh_per_second: float = 2.0) -> None:
        super().__init__()
        self.console = Console(file=cast(TextIO, self.output), force_terminal=True)
        self.history = {name: deque[float](maxlen=HISTORY) for name in LEARNING}
        self._refresh_per_second = refresh_per_second
        self._live: Live | None = None
        self._last_view: RenderableType = ""
        self._board: Text | None = None
        self._move = 0
        self._phase = ""  # how the run ended
        self._end: float | None = None  # when the run will be over, as far as can be told
        self._diverted: list[tuple[logging.StreamHandler[Any], Any]] = []

    def on_start(self, trainer: Trainer) -> None:
        super().on_start(trainer)
        for name, past in zip(LEARNING, _past(trainer.run.metrics_path, *LEARNING), strict=True):
            self.history[name].extend(past)
        self._trainer = trainer
        self.console.print(Text(self.welcome(trainer)))
        self.started = self._trained_since = time.monotonic()
        self._live = Live(
            console=self.console,
            get_renderable=self._view,
            refresh_per_second=self._refresh_per_second,
            vertical_overflow="crop",
        )
        atexit.register(self._leave)  # gives the cursor back even if nobody calls on_close
        self._live.start(refresh=True)
        self._divert_logging()

    def on_update(self, trainer: Trainer, finished: Sequence[FinishedGame]) -> None:
        for name, values in self.history.items():
            values.append(trainer.progress.metrics.get(name, math.nan))
        progress, now = trainer.progress, time.monotonic()
        pace = (now - self._trained_since) / (progress.steps - self.first_step)
        self._end = now + pace * (progress.total_timesteps - progress.steps)

    def on_evaluation(self, trainer: Trainer, results: Sequence[MatchResult]) -> None:
        super().on_evaluation(trainer, results)
        if trainer.progress.steps == self.first_step:
            self._trained_since = time.monotonic()  # later evaluations count, this says nothing

    def on_stop(self, trainer: Trainer) -> None:
        self._leave("stopped")
        # Not wrapped by us: a command that is copied from the terminal must be in one piece.
        self.console.print(Text(self.farewell(trainer)), soft_wrap=True)

    def on_stretch(self, trainer: Trainer, changes: dict[str, Any]) -> None:
        self.console.print(Text(describe_changes(trainer, changes)))  # above the view

    def on_end(self, trainer: Trainer) -> None:
        self._leave("finished")
        title = Text(f"{trainer.run.name} has finished", "bold")
        table = Table(title=title, show_header=False)
        table.add_column(style="bold")
        table.add_column(overflow="fold")
        for row in self.summary(trainer):
            table.add_row(*map(Text, row))
        self.console.print(table)
        for line in self.next_steps(trainer):
            self.console.print(Text(line), soft_wrap=True)

    def on_close(self, trainer: Trainer) -> None:
        self._leave()

    def _leave(self, phase: str = "aborted") -> None:
        """Keep the last view on the screen, and restore the terminal."""
        self._phase = self._phase or phase
        live, self._live = self._live, None
        if live:
            atexit.unregister(self._leave)
            for handler, stream in self._diverted:
                handler.setStream(stream)
            live.stop()

    def _divert_logging(self) -> None:
        """Show log messages above the view, not across it."""
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and _is_terminal(handler.stream):
                self._diverted.append((handler, handler.stream))
                handler.setStream(sys.stderr)  # rich's now

    def _view(self) -> RenderableType:
        """The current view; the last one, if the training thread was changing what is shown."""
        with contextlib.suppress(Exception):
            self._last_view = draw(self._look(), *self.console.size)
        return self._last_view

    def _look(self) -> Snapshot:
        progress = self._trainer.progress
        self._read_board()
        return Snapshot(
            name=self._trainer.run.name,
            phase=self._phase or ("evaluating" if self._evaluates() else "training"),
            progress=progress,
            elapsed=time.monotonic() - self.started,
            left=None if self._end is None else max(self._end - time.monotonic(), 0.0),
            against=self.against,
            history=self.history,
            board=self._board,
            move=self._move,
        )

    def _evaluates(self) -> bool:
        progress = self._trainer.progress
        last, interval = progress.last_evaluation, self._trainer.config.evaluation.interval
        return last is None or progress.steps - last >= interval or progress.finished

    def _read_board(self) -> None:
        """Look at the first game; if it is being played right now, keep the last look."""
        with contextlib.suppress(Exception):
            game = self._trainer.current_game()
            self._board, self._move = board_text(game), len(game.moves)


def _name(trainer: Trainer) -> str:
    """What commands call the run: its name, or its folder if that is not in the usual one."""
    folder = trainer.run.folder
    return shlex.quote(folder.name if folder.parent == USUAL else str(folder))


def _command() -> str:
    """How this terminal starts Keisei: `make train` has it in .venv/bin, where no shell looks."""
    program = sys.argv[0]
    by_path = Path(program).name == "keisei" and not shutil.which("keisei")
    return shlex.quote(program) if by_path else "keisei"


def _past(metrics: Path, *names: str) -> list[list[float]]:
    """The values of these metrics from earlier sessions of the run."""
    try:
        with MetricsReader(metrics) as reader:
            return [[value for _, value in reader.series(name)] for name in names]
    except MetricsError:  # a new run has none
        return [[] for _ in names]


def _is_terminal(stream: Any) -> bool:
    return stream in (sys.__stdout__, sys.__stderr__) and stream.isatty()
