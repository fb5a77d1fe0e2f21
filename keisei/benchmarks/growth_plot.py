"""The figures of `keisei benchmark growth`, as rows of a table and as one picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keisei.benchmarks.report import machine
from keisei.figures import save_figure

_BLUE, _ORANGE, _GREY = "#2563a8", "#d9772b", "#8a8a8a"

Figures = dict[str, Any]
Points = list[dict[str, Any]]


def rows(figures: Figures) -> list[tuple[str, str]]:
    """Every figure, as text.

    After the spread: how much of the network alone it is; and the time of the bare passes.
    """
    memory = figures["memory"]
    names = {
        "games": "games per worker: {games}",
        "workers": "workers: {workers}",
        "network": "network {preset}, {weights:,} weights",
    }
    found = [
        (name.format(**point), _speed(point))
        for key, name in names.items()
        for point in figures[key]
    ]
    found += [
        (f"memory of a worker, {point['games']} games", f"{point['worker_bytes'] / 2**20:.0f} MiB")
        for point in figures["games"]
    ]
    found += [
        ("memory of a worker without games", f"{memory['bytes_without_games'] / 2**20:.0f} MiB"),
        ("memory of a worker for each game", f"{memory['bytes_per_game'] / 2**10:.0f} KiB"),
        ("slots for each game, shared", f"{memory['slot_bytes_per_game'] / 2**10:.0f} KiB"),
    ]
    found += [(f"minibatch {point['minibatch']}", _update(point)) for point in figures["minibatch"]]
    return [
        *found,
        ("cores that other programs took", f"{figures['other_load']:.1f}"),
        ("all of this took", f"{figures['seconds']:.0f} s"),
    ]


def _speed(point: dict[str, Any]) -> str:
    rate, low, high = (point[f"steps_per_s{end}"] for end in ("", "_lowest", "_highest"))
    return f"{rate:,.0f} steps/s ({low:,.0f} to {high:,.0f}), {point['share_of_network_alone']:.2f}"


def _update(point: dict[str, Any]) -> str:
    time, low, high = (point[f"ms_per_sample{end}"] for end in ("", "_lowest", "_highest"))
    bare = point["forward_backward_ms_per_sample"]
    return f"{time:.2f} ms a sample ({low:.2f} to {high:.2f}), {bare:.2f}"


def draw(figures: Figures, path: Path) -> None:
    """All figures in five panels, as a PNG of 1500 x 900 to `path`."""
    # Here, because it takes half a second; and no pyplot, which would keep every figure alive.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.15)
    figure = Figure(figsize=(15, 9), dpi=100, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, 3).flat
    _speeds(panels[0], figures["games"], "games", "games per worker")
    _speeds(panels[1], figures["workers"], "workers", "workers")
    _speeds(panels[2], figures["network"], "weights", "weights of the network")
    names = [f"{point['preset']}\n{point['weights'] / 1e6:.2g} M" for point in figures["network"]]
    panels[2].set_xticks([point["weights"] for point in figures["network"]], names)
    _memories(panels[3], figures)
    _updates(panels[4], figures["minibatch"])
    _notes(panels[5], figures)
    save_figure(figure, path)


def _speeds(axes: Any, points: Points, over: str, label: str) -> None:
    """Collected steps/s, beside the network alone."""
    from matplotlib.ticker import LogLocator, NullLocator

    at = [point[over] for point in points]
    _frame(axes, f"Collection over {over}", label, "steps per second", at)
    alone = [point["network_alone_per_s"] for point in points]
    axes.plot(at, alone, color=_GREY, ls="--", marker="o", ms=4, label="network alone")
    _measured(axes, at, points, "steps_per_s", "workers")
    if over == "workers":
        axes.set_ylim(bottom=0)
    else:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda rate, _: f"{rate:,.0f}")
    axes.legend(frameon=False, fontsize=11)


def _memories(axes: Any, figures: Figures) -> None:
    """A worker's own memory, and its games' share of the slots."""
    points, memory = figures["games"], figures["memory"]
    at = [point["games"] for point in points]
    _frame(axes, "Memory of a worker over games", "games per worker", "MiB", at, log=False)
    own = [point["worker_bytes"] / 2**20 for point in points]
    line = [(memory["bytes_without_games"] + memory["bytes_per_game"] * x) / 2**20 for x in at]
    slots = [memory["slot_bytes_per_game"] * x / 2**20 for x in at]
    axes.plot(at, own, color=_BLUE, marker="o", ls="", label="its own")
    per_game = f"{memory['bytes_per_game'] / 2**10:.0f} KiB a game"
    axes.plot(at, line, color=_BLUE, lw=1.2, label=per_game)
    per_game = f"slots: {memory['slot_bytes_per_game'] / 2**10:.0f} KiB a game"
    axes.plot(at, slots, color=_ORANGE, lw=2, label=per_game)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=11)


def _updates(axes: Any, points: Points) -> None:
    """The learner's time per sample."""
    at = [point["minibatch"] for point in points]
    _frame(axes, "Learner over minibatch", "samples per minibatch", "ms per sample", at)
    bare = [point["forward_backward_ms_per_sample"] for point in points]
    axes.plot(at, bare, color=_GREY, ls="--", marker="o", ms=4, label="forward and backward alone")
    _measured(axes, at, points, "ms_per_sample", "PPO update")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=11)


def _measured(axes: Any, at: Sequence[float], points: Points, name: str, label: str) -> None:
    """Medians, with bars from the lowest to the highest."""
    middle = [point[name] for point in points]
    spread = [
        [point[name] - point[f"{name}_lowest"] for point in points],
        [point[f"{name}_highest"] - point[name] for point in points],
    ]
    axes.errorbar(at, middle, spread, color=_BLUE, marker="o", lw=2, capsize=4, label=label)


def _frame(
    axes: Any, title: str, across: str, up: str, at: Sequence[float], log: bool = True
) -> None:
    axes.set_title(title, loc="left", fontweight="bold", fontsize=14)
    axes.set_xlabel(across, fontsize=12)
    axes.set_ylabel(up, fontsize=12)
    if log:
        axes.set_xscale("log", base=2)
        axes.set_xticks(at, [f"{x:g}" for x in at])
        axes.minorticks_off()
    axes.grid(color="#e4e4e4", lw=0.8)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=11)


def _notes(axes: Any, figures: Figures) -> None:
    """What a reader must know about the panels."""
    about = machine()
    lines = [
        "2 workers, 64 games each, network tiny,",
        "unless the axis says otherwise.",
        "",
        f"Rounds: {figures['rounds']}; medians, with bars from the",
        "lowest to the highest.",
        "Network alone: one thread on each core that",
        "workers have, batches of as many games.",
        "",
        f"{about['processor']}, {about['cores']} cores;",
        f"other programs took {figures['other_load']:.1f} of them.",
    ]
    axes.set_axis_off()
    axes.text(0, 1, "\n".join(lines), va="top", fontsize=12, color="#444444", linespacing=1.5)
