"""The learning curve: one picture of how a run went, beside its checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError
from keisei.evaluation.ladder import Ladder
from keisei.evaluation.ladder_report import draw_curves
from keisei.evaluation.match import MatchResult
from keisei.evaluation.ratings import Rating
from keisei.figures import save_figure
from keisei.runs.metrics import MetricsReader
from keisei.runs.run import Run
from keisei.training.callbacks import Callback

if TYPE_CHECKING:
    from keisei.training.trainer import Trainer

log = logging.getLogger(__name__)

_BLUE, _ORANGE = "#2563a8", "#d9772b"
_RESULTS = {"wins": "#3f9b5f", "draws": "#e3c567", "losses": "#c8553d"}
_GOAL = 0.95  # of the games against random play: from there on it says no more
_WINDOWS = 25  # the strong line is the mean over this part of a curve


class LearningCurve(Callback):
    """Draws the run's picture after each evaluation and when the run stops or ends."""

    def on_evaluation(self, trainer: Trainer, results: Sequence[MatchResult]) -> None:
        # Before the first update there is nothing to see; after the last one `on_end` draws it.
        if trainer.progress.updates and not trainer.progress.finished:
            self.on_end(trainer)

    def on_stop(self, trainer: Trainer) -> None:
        self.on_end(trainer)

    def on_end(self, trainer: Trainer) -> None:
        try:
            # Its own reader: the writer may not be open yet, or not any more.
            with MetricsReader(trainer.run.metrics_path) as reader:
                path, name = trainer.run.learning_curve_path, trainer.run.name
                draw_learning_curve(reader, path, name, _ladder(trainer.run))
        except Exception as error:
            log.warning("the learning curve could not be drawn: %s", error)


def _ladder(run: Run) -> Ladder:
    try:
        return Ladder.load(run.ladder_path)
    except (KeiseiError, OSError) as error:
        log.warning("the learning curve is drawn without ratings: %s", error)
        return Ladder()


def draw_learning_curve(
    reader: MetricsReader, path: Path, title: str, ladder: Ladder | None = None
) -> None:
    """Draw the run as a PNG of 1200 x 800 to `path`; what was not measured stays empty.

    If checkpoints are rated, it is higher, and Elo is on top.
    """
    # Here, because it takes half a second; and no pyplot, which would keep every figure alive.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ratings = ladder.ratings() if ladder else {}
    entries = ladder.entries.values() if ladder else ()
    top = int(any(entry.steps is not None and entry.name in ratings for entry in entries))
    height = 8 + 3.66 * top
    figure = Figure(figsize=(12, height), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    # Dollars would begin a formula, and a run may be called anything.
    figure.suptitle(title.replace("$", r"\$"), fontsize=15, fontweight="bold")
    # Fixed margins: to find them out takes matplotlib as long as all the rest.
    margins = {"left": 0.07, "right": 0.93, "bottom": 0.56 / height, "top": 1 - 0.88 / height}
    grid = figure.add_gridspec(2 + top, 2, wspace=0.36, hspace=0.26, **margins)
    if ladder and top:
        _elo(figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[0, 1]), ladder, ratings)
    _results(figure, grid[top, 0], reader)
    _pair(figure.add_subplot(grid[top, 1]), reader, "self-play", "decided", "game_length")
    _pair(figure.add_subplot(grid[top + 1, 0]), reader, "policy", "entropy", "kl")
    _pair(figure.add_subplot(grid[top + 1, 1]), reader, "value", "value_loss", "explained_variance")
    save_figure(figure, path)


def _elo(steps: Any, hours: Any, ladder: Ladder, ratings: dict[str, Rating]) -> None:
    """Elo on the yardstick, over steps and over processor hours."""
    _frame(steps, "Elo, with 95 % intervals")
    draw_curves(steps, ladder, ratings, "steps")
    steps.legend(loc="lower right", fontsize=8, frameon=False)
    _frame(hours, "Elo by processor time", unit="processor hours")
    draw_curves(hours, ladder, ratings, "cpu_hours")
    for axes in (steps, hours):
        axes.set_xlim(left=0)


def _results(figure: Any, place: Any, reader: MetricsReader) -> None:
    """One strip of wins, draws and losses for each opponent."""
    prefix = "wins against "
    opponents = [name.removeprefix(prefix) for name in reader.names() if name.startswith(prefix)]
    opponents.sort(key=lambda name: (name != "random", name))
    strips = place.subgridspec(max(len(opponents), 1), 1, hspace=0.08)
    for row, opponent in enumerate(opponents or [""]):
        axes = figure.add_subplot(strips[row])
        last = row + 1 >= len(opponents)
        _frame(axes, f"against {opponent}" if opponent else "against others", show_steps=last)
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        if opponent:
            _stack(axes, reader, opponent)
            if row == 0:
                anchor = {"loc": "lower right", "bbox_to_anchor": (1, 1)}
                axes.legend(**anchor, ncols=3, fontsize=8, frameon=False)
        else:
            _say_empty(axes)


def _stack(axes: Any, reader: MetricsReader, opponent: str) -> None:
    # A run that was evaluated twice at a step (short and final) has two values: the last counts.
    parts = [dict(reader.series(f"{kind} against {opponent}")) for kind in _RESULTS]
    steps = sorted(set.intersection(*map(set, parts)))
    shares = np.nan_to_num([[part[step] for step in steps] for part in parts])
    if len(steps) == 1:  # an area needs a width
        steps, shares = [steps[0] - 1, steps[0] + 1], shares.repeat(2, axis=1)
    if steps:
        colors = list(_RESULTS.values())
        axes.stackplot(steps, shares, colors=colors, labels=list(_RESULTS), alpha=0.85, lw=0)
        axes.plot(steps, shares[0], color="#1f5c36", lw=1.5, marker="o", ms=3)
        axes.set_xlim(steps[0], steps[-1])
    if opponent == "random":
        axes.axhline(_GOAL, color="black", lw=1, ls="--")
        axes.text(1.01, _GOAL, f"{_GOAL:.0%}", transform=axes.transAxes, va="center", fontsize=8)


def _pair(axes: Any, reader: MetricsReader, title: str, left: str, right: str) -> None:
    """Two metrics over the steps, each with its own scale."""
    _frame(axes, title)
    found = False
    for name, side, color in ((left, axes, _BLUE), (right, axes.twinx(), _ORANGE)):
        found |= _line(side, reader.series(name), color)
        side.set_ylabel("KL" if name == "kl" else name.replace("_", " "), color=color)
        side.tick_params(axis="y", colors=color, length=0)
        side.spines[:].set_visible(False)
        _scale(side, name)
    if not found:
        _say_empty(axes)


def _line(axes: Any, series: Sequence[tuple[int, float]], color: str) -> bool:
    """Draw the values pale and their moving mean strong; was there anything to draw?"""
    steps = np.array([step for step, _ in series])
    values = np.array([value for _, value in series], dtype=np.float64)
    if not np.isfinite(values).any():
        return False
    window = max(len(values) // _WINDOWS, 1)
    few = len(values) < 40
    if window > 1:
        axes.plot(steps, values, color=color, lw=0.8, alpha=0.3)
    axes.plot(
        steps, _moving_mean(values, window), color=color, lw=1.8, marker="o" if few else "", ms=3
    )
    return True


def _moving_mean(values: npt.NDArray[np.float64], window: int) -> npt.NDArray[np.float64]:
    """The mean of the last `window` values; gaps do not count, and stay gaps."""
    known = np.isfinite(values)
    sums = np.cumsum(np.where(known, values, 0.0))
    counts = np.cumsum(known)
    sums[window:] -= sums[:-window].copy()
    counts[window:] -= counts[:-window].copy()
    return np.where(known, sums / np.maximum(counts, 1), np.nan)


def _scale(axes: Any, name: str) -> None:
    """Limit the axis to the range where the metric means something."""
    low, high = axes.get_ylim()
    if name == "decided":
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    elif name == "explained_variance":
        axes.set_ylim(max(low, -1), 1)
    else:
        axes.set_ylim(0, high * 1.05)


def _frame(axes: Any, title: str, show_steps: bool = True, unit: str = "steps") -> None:
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.grid(color="#e4e4e4", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=9, labelbottom=show_steps)
    axes.xaxis.set_major_formatter(EngFormatter(sep="") if unit == "steps" else "{x:.4g}")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=unit == "steps"))
    if show_steps:
        axes.set_xlabel(unit, fontsize=9)


def _say_empty(axes: Any) -> None:
    axes.text(0.5, 0.5, "nothing yet", transform=axes.transAxes, ha="center", color="#999999")
