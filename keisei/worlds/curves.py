"""The learning curves of a run in a world: the returns of every agent, beside random ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from keisei.figures import save_figure
from keisei.runs.metrics import MetricsReader
from keisei.worlds.drawing import AGENT_COLORS


def draw_returns(metrics: Path, path: Path, title: str) -> None:
    """Draw what each agent got in each epoch, as a PNG of 1000 x 500 to `path`."""
    # Here, because it takes half a second; and no pyplot, which would keep every figure alive.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), dpi=100, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    with MetricsReader(metrics) as reader:
        names = sorted(
            (name for name in reader.names() if name.startswith("return agent_")),
            key=lambda name: int(name.rpartition("_")[2]),
        )
        for agent, name in enumerate(names):
            _line(axes, reader.series(name), agent)
        random_return = yaml.safe_load(reader.meta("random_return") or "[]")
    if random_return:
        mean = float(np.mean(random_return))
        axes.axhline(mean, color="#555555", ls="--", lw=1.2, label=f"random agents: {mean:.3g}")
    # Dollars would begin a formula, and a run may be called anything.
    axes.set_title(title.replace("$", r"\$"), loc="left", fontweight="bold")
    axes.set_xlabel("turns, over all copies of the world")
    axes.set_ylabel("return of an episode")
    axes.xaxis.set_major_formatter(lambda turns, _: f"{turns / 1e6:g}M" if turns else "0")
    axes.grid(color="#e4e4e4", lw=0.8)
    axes.spines[:].set_visible(False)
    if len(names) <= 10:
        axes.legend(frameon=False)
    save_figure(figure, path)


def _line(axes: Any, series: list[tuple[int, float]], agent: int) -> None:
    """An agent's returns pale, and their moving mean strong."""
    steps = np.array([step for step, _ in series])
    values = np.array([value for _, value in series], np.float64)
    color = AGENT_COLORS[agent % len(AGENT_COLORS)]
    window = max(len(values) // 30, 1)
    mean = np.convolve(values, np.ones(window) / window, "valid")
    axes.plot(steps, values, color=color, lw=0.7, alpha=0.3)
    axes.plot(steps[window - 1 :], mean, color=color, lw=1.8, label=f"agent {agent}")
