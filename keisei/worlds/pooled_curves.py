"""The runs of a sweep in one picture: a curve for each combination of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from keisei.figures import save_figure
from keisei.worlds.curves import dress
from keisei.worlds.drawing import AGENT_COLORS
from keisei.worlds.intervals import interquartile_mean, interval


class Curves(Protocol):
    """What is drawn of a run."""

    @property
    def turns(self) -> list[int]: ...
    @property
    def curves(self) -> dict[str, list[float]]: ...
    @property
    def random(self) -> float: ...


def draw(world: str, results: Mapping[tuple[str, ...], Sequence[Curves]], path: Path) -> None:
    """The interquartile mean over the runs, pale around it its 95 % interval, of each measure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    every = [run for runs in results.values() for run in runs]
    measures = [name for name in every[0].curves if all(name in run.curves for run in every)]
    small = [name for name in measures if name != "return"]
    figure = Figure(figsize=(10, 7), dpi=100, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, max(len(small), 1), height_ratios=[5, 2.2])
    main = figure.add_subplot(grid[0, :])
    _pooled(main, results, "return")
    main.axhline(every[0].random, color="#555555", ls="--", lw=1.2, label="random agents")
    main.set_title(world.replace("$", r"\$"), loc="left", fontweight="bold")
    main.set_xlabel("turns, over all copies of the world")
    main.set_ylabel("return of an episode")
    main.legend(frameon=False)
    for number, name in enumerate(small):
        axes = figure.add_subplot(grid[1, number])
        _pooled(axes, results, name)
        axes.set_title(name, loc="left", fontsize="medium")
        axes.tick_params(labelsize="small")
    save_figure(figure, path)


def _pooled(axes: Any, results: Mapping[tuple[str, ...], Sequence[Curves]], name: str) -> None:
    for number, (combo, runs) in enumerate(results.items()):
        color = AGENT_COLORS[number % len(AGENT_COLORS)]
        values = np.array([run.curves[name] for run in runs])
        low, high = interval(values)
        turns, label = runs[0].turns, " ".join(combo) or "as they are"
        axes.fill_between(turns, low, high, color=color, alpha=0.2, lw=0)
        label = f"{label} ({len(runs)} runs)".replace("$", r"\$")
        axes.plot(turns, interquartile_mean(values), color=color, lw=1.8, label=label)
    dress(axes)
