"""The learning curves of a run: returns beside those of random agents, and what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from keisei.figures import save_figure
from keisei.runs.metrics import MetricsReader
from keisei.worlds.drawing import AGENT_COLORS

COLUMNS = 4  # of small pictures
NOT_DRAWN = {"return", "turns_per_s", "failed_trainings", "memory_mb"}
SHOWN_AGENTS = 10


def draw_returns(metrics: Path, path: Path, title: str) -> None:
    """Draw what each agent got in each epoch as a PNG, 1000 wide, with each measure below."""
    # Here, because it takes half a second; and no pyplot, which would keep every figure alive.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with MetricsReader(metrics) as reader:
        names = reader.names()
        measures = [name for name in names if not _agent_of(name) and name not in NOT_DRAWN]
        rows = -(-len(measures) // COLUMNS)
        figure = Figure(
            figsize=(10, 5 + 2.2 * rows), dpi=100, layout="constrained", facecolor="white"
        )
        FigureCanvasAgg(figure)
        heights = [5.0] + [2.2] * rows
        grid = figure.add_gridspec(rows + 1, COLUMNS, height_ratios=heights)
        _draw_returns(figure.add_subplot(grid[0, :]), reader, title)
        for number, measure in enumerate(sorted(measures)):
            axes = figure.add_subplot(grid[1 + number // COLUMNS, number % COLUMNS])
            _draw_measure(axes, reader, measure)
    save_figure(figure, path)


def _draw_returns(axes: Any, reader: MetricsReader, title: str) -> None:
    names = _by_agent(reader, "return")
    for agent, name in enumerate(names):
        _line(axes, reader.series(name), AGENT_COLORS[agent % len(AGENT_COLORS)], f"agent {agent}")
    random_return = yaml.safe_load(reader.meta("random_return") or "[]")
    if random_return:
        mean = float(np.mean(random_return))
        axes.axhline(mean, color="#555555", ls="--", lw=1.2, label=f"random agents: {mean:.3g}")
    # Dollars would begin a formula, and a run may be called anything.
    axes.set_title(title.replace("$", r"\$"), loc="left", fontweight="bold")
    axes.set_xlabel("turns, over all copies of the world")
    axes.set_ylabel("return of an episode")
    dress(axes)
    if len(names) <= SHOWN_AGENTS:
        axes.legend(frameon=False)


def _draw_measure(axes: Any, reader: MetricsReader, measure: str) -> None:
    """One measure: for all agents together, and thin for each if there are few."""
    names = _by_agent(reader, measure)
    for name in names if len(names) <= SHOWN_AGENTS else []:
        color = AGENT_COLORS[int(_agent_of(name)) % len(AGENT_COLORS)]
        steps, values = zip(*reader.series(name), strict=True)
        axes.plot(steps, values, color=color, lw=0.7, alpha=0.6)
    _line(axes, reader.series(measure), "#333333", measure)
    axes.set_title(measure.replace("$", r"\$"), loc="left", fontsize="medium")
    axes.tick_params(labelsize="small")
    dress(axes)


def _agent_of(name: str) -> str:
    """The number at the end of a metric of one agent, such as `q agent_3`; else nothing."""
    _, found, number = name.rpartition(" agent_")
    return number if found and number.isdecimal() else ""


def _by_agent(reader: MetricsReader, measure: str) -> list[str]:
    """The metrics of all agents that have this measure, in their order."""
    mine = [n for n in reader.names() if _agent_of(n) and n.startswith(f"{measure} agent_")]
    return sorted(mine, key=lambda name: int(_agent_of(name)))


def dress(axes: Any) -> None:
    """Turns in millions, a pale grid, and no frame."""
    axes.xaxis.set_major_formatter(lambda turns, _: f"{turns / 1e6:g}M" if turns else "0")
    axes.grid(color="#e4e4e4", lw=0.8)
    axes.spines[:].set_visible(False)


def _line(axes: Any, series: list[tuple[int, float]], color: str, label: str) -> None:
    """The values pale, and their moving mean strong."""
    steps = np.array([step for step, _ in series])
    values = np.array([value for _, value in series], np.float64)
    window = max(len(values) // 30, 1)
    mean = np.convolve(values, np.ones(window) / window, "valid")
    axes.plot(steps, values, color=color, lw=0.7, alpha=0.3)
    axes.plot(steps[window - 1 :], mean, color=color, lw=1.8, label=label)
