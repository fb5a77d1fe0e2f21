"""Showing a ladder as a table and as a plot of Elo over training; and the command itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from keisei.errors import KeiseiError
from keisei.evaluation.ladder import Ladder, LadderSettings, climb, find_entries
from keisei.evaluation.ratings import Rating, ranked
from keisei.figures import save_figure
from keisei.processes.machine import give_way
from keisei.runs.run import Run, is_training

_POLL = 15.0  # seconds between two looks for a new checkpoint
_COLORS = ("#2563a8", "#d9772b", "#3f9b5f", "#8455a8", "#c8553d")


def run_ladder(
    name: str, runs_dir: Path, settings: LadderSettings, watch: bool, ray: str | None = None
) -> None:
    """Rate a run; with `watch`, rate each new checkpoint until its training ends."""
    run = Run.open(name, runs_dir)
    if watch:
        give_way()  # training comes first
    with run.lock_ladder():
        _rate(run, settings, watch, ray)


def _rate(run: Run, settings: LadderSettings, watch: bool, ray: str | None) -> None:
    console = Console()
    while True:
        going = watch and is_training(run.folder)
        seen = _checkpoints(run)
        try:
            if seen or not going:  # otherwise the first checkpoint will come soon
                _rate_checkpoints(run, settings, console, ray)
        except (KeiseiError, OSError):
            # Training removes old checkpoints, perhaps the one that was being rated.
            if not going or seen <= _checkpoints(run):
                raise
        if not going:
            return
        while _checkpoints(run) == seen and is_training(run.folder):
            time.sleep(_POLL)


def _rate_checkpoints(
    run: Run, settings: LadderSettings, console: Console, ray: str | None
) -> None:
    """Rate the checkpoints that are there, and show all ratings."""
    ladder, stopped = Ladder.load(run.ladder_path), False
    try:
        climb(ladder, find_entries(run, settings), settings, run.ladder_path, console.print, ray)
    except KeyboardInterrupt:
        stopped = True  # the games so far are shown and stored
    ladder.save(run.ladder_path)
    console.print(table(ladder))
    picture = run.folder / "ladder.png"
    draw(ladder, picture, run.name)
    console.print(f"stored in {run.ladder_path}, drawn in {picture}", highlight=False)
    if stopped:
        console.print("stopped; run the same command to continue")
        raise KeyboardInterrupt


def _checkpoints(run: Run) -> set[str]:
    return {path.name for path in run.checkpoints_dir.glob("step_*.pt")}


def table(ladder: Ladder) -> Table:
    """All players, strongest first."""
    shown = Table(title="Elo above the random player")
    for name, side in (("player", "left"), ("Elo", "right"), ("95 %", "right"), ("games", "right")):
        shown.add_column(name, justify=side)  # type: ignore[arg-type]
    ratings = ranked(ladder.ratings())
    for rating in ratings:
        interval = f"{rating.low:.0f} to {rating.high:.0f}" if rating.width else "reference"
        shown.add_row(rating.name, f"{rating.elo:.0f}", interval, str(rating.games))
    shown.caption = f"the references' ratings are those of {ladder.yardstick.made}, taken as exact"
    return shown


def draw(ladder: Ladder, path: Path, title: str) -> None:
    """Plot Elo over steps and over CPU hours as a PNG; references are horizontal lines."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6), dpi=100, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    figure.suptitle(f"{title}: Elo".replace("$", r"\$"), fontsize=15, fontweight="bold")
    ratings = ladder.ratings()
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, unit in ((left, "steps"), (right, "cpu_hours")):
        draw_curves(axes, ladder, ratings, unit)
        _reference_lines(axes, ladder, ratings)
        axes.set_xlabel("training steps" if unit == "steps" else "CPU hours of training")
        axes.grid(color="#e4e4e4", lw=0.8)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    left.set_ylabel("Elo above the random player")
    left.xaxis.set_major_formatter(lambda steps, _: f"{steps / 1000:,.0f}k")
    _reference_names(right, ladder, ratings)
    if any(e.steps is not None and e.name in ratings for e in ladder.entries.values()):
        left.legend(loc="upper left", frameon=False)
    save_figure(figure, path)


def draw_curves(axes: Any, ladder: Ladder, ratings: dict[str, Rating], unit: str) -> None:
    """Elo over `unit`: a curve for the policy alone, and one for each number of nodes."""
    curves: dict[str, list[tuple[float, Rating]]] = {}
    for entry in ladder.entries.values():
        at = getattr(entry, unit)
        if at is not None and entry.name in ratings:
            nodes = entry.name.partition(", ")[2] if entry.name.endswith(" nodes") else ""
            curves.setdefault(nodes, []).append((at, ratings[entry.name]))
    for (nodes, points), color in zip(sorted(curves.items()), _COLORS * 4, strict=False):
        points.sort(key=lambda point: point[0])
        elos = [rating.elo for _, rating in points]
        spread = [rating.high - rating.elo for _, rating in points]
        axes.errorbar(
            [at for at, _ in points],
            elos,
            yerr=spread,
            color=color,
            marker="o",
            capsize=3,
            lw=1.8,
            label=nodes or "policy alone",
        )


def _reference_lines(axes: Any, ladder: Ladder, ratings: dict[str, Rating]) -> None:
    axes.axhline(0, color="black", lw=1)
    for entry in ladder.entries.values():
        if entry.steps is None and entry.name in ratings:
            axes.axhline(ratings[entry.name].elo, color="#999999", lw=0.8, ls="--", zorder=0)


def _reference_names(axes: Any, ladder: Ladder, ratings: dict[str, Rating]) -> None:
    """Write the references' names at the right edge, moved apart where they would overlap."""
    entries = [entry for entry in ladder.entries.values() if entry.steps is None]
    known = [ratings[entry.name] for entry in entries if entry.name in ratings]
    low, high = axes.get_ylim()
    step, lowest = (high - low) / 30, -float("inf")
    for rating in sorted(known, key=lambda rating: rating.elo):
        lowest = max(rating.elo, lowest + step)
        axes.annotate(
            rating.name,
            xy=(1, rating.elo),
            xytext=(1.03, lowest),
            xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
            color="#555555",
            arrowprops={"arrowstyle": "-", "color": "#cccccc", "lw": 0.8},
        )
