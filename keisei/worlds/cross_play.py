"""`keisei worlds evaluate`: frozen agents of several runs play with each other.

In every match one agent of one run takes the place that it learned in, among the agents of another
run: what it gets there, on average over all its places, is a cell of the matrix. On the diagonal
agents are among those that they learned with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from keisei.errors import KeiseiError
from keisei.figures import save_figure
from keisei.files import write_json
from keisei.random_streams import RandomStreams
from keisei.runs.run import Run
from keisei.worlds.agents import Agent
from keisei.worlds.environment import Environment
from keisei.worlds.registry import make_world
from keisei.worlds.watch import load_episode_of

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CrossPlay:
    """Returns of an episode: one agent of the row's run among the others of the column's."""

    runs: list[str]
    returns: Doubles  # of the one
    errors: Doubles  # half of a 95 % interval of these, by the episodes
    others: Doubles  # of the others, each


def cross_play(
    names: Sequence[str],
    episodes: int,
    seed: int = 0,
    trust: bool = False,
    runs: Path = Path("runs"),
    console: Console | None = None,
) -> CrossPlay:
    """Play all pairs of runs; every match begins with the same worlds."""
    opened = [Run.open(name, runs, of_world=True) for name in names]
    labels = [run.name for run in opened]
    if len(set(labels)) < len(labels):
        raise KeiseiError(f"name each run once, not {', '.join(labels)}")
    teams = [load_episode_of(run, seed, trust=trust, copies=episodes) for run in opened]
    _check_alike(labels, teams)
    count, places = len(teams), len(teams[0].agents)
    found = np.zeros((3, count, count))
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("playing", total=count * (1 + (count - 1) * places))
        for row, column in np.ndindex(count, count):
            matches = []
            # Among one's own, all places are played at once.
            for place in range(places) if row != column else [None]:
                agents = list(teams[column].agents)
                if place is not None:
                    agents[place] = teams[row].agents[place]
                matches.append((place, _play(teams[column], agents, seed)))
                progress.advance(task)
            found[:, row, column] = _sums(matches)
    for team in teams:
        team.close()
    return CrossPlay(labels, *found)


def _sums(matches: Sequence[tuple[int | None, Doubles]]) -> tuple[float, float, float]:
    """What the one got on average, half of its interval, and what the others got."""
    one = [got if place is None else got[[place]] for place, got in matches]
    others = [got if place is None else np.delete(got, place, axis=0) for place, got in matches]
    each = np.concatenate([got.mean(axis=0) for got in one])
    error = 1.96 * each.std(ddof=1) / len(each) ** 0.5 if len(each) > 1 else np.nan
    left = [got.mean() for got in others if len(got)]
    return float(each.mean()), float(error), float(np.mean(left)) if left else float("nan")


def _check_alike(labels: Sequence[str], teams: Sequence[Environment]) -> None:
    """Refuse runs whose agents could not take each other's places."""
    first = teams[0]
    for label, team in zip(labels[1:], teams[1:], strict=True):
        for what in ("world", "world_settings", "turn_order"):
            one, other = getattr(first.config, what), getattr(team.config, what)
            if one != other:
                raise KeiseiError(
                    f"{labels[0]} and {label} cannot play together: {what} is {one} in the one "
                    f"and {other} in the other"
                )


def _play(team: Environment, agents: Sequence[Agent], seed: int) -> Doubles:
    """One episode in every copy; returns [agents, episodes]. Nobody learns."""
    world = make_world(team.config)
    match = Environment(world, agents, team.config)
    for agent in agents:
        # As at the start: a match must not depend on those that were played before it.
        if isinstance(getattr(agent.model, "streams", None), RandomStreams):
            agent.model.streams = RandomStreams(seed * 1000 + agent.index, world.copies)
        agent.start_epoch(getattr(agent.model, "epoch", 0))
    world.reset()
    for _ in range(world.max_turns):
        match.next_turn()
    match.close()
    return match.episodes.each()


def evaluate(
    names: Sequence[str],
    episodes: int,
    seed: int,
    plot: Path,
    json_file: Path | None,
    trust: bool,
    runs: Path,
) -> None:
    """Play, print the matrix and draw it."""
    console = Console()
    result = cross_play(names, episodes, seed, trust, runs, console)
    table = Table(title="return of one agent of the row's run among agents of the column's run")
    for heading in ("", *result.runs):
        table.add_column(heading, justify="right")
    for name, values, errors in zip(result.runs, result.returns, result.errors, strict=True):
        cells = (f"{v:.2f} ± {e:.2f}" for v, e in zip(values, errors, strict=True))
        table.add_row(name, *cells)
    console.print(table)
    draw(result, plot)
    if json_file:
        write_json(json_file, _plain(result))
    console.print(f"picture: {plot}", highlight=False, soft_wrap=True)


def _plain(result: CrossPlay) -> dict[str, Any]:
    def numbers(matrix: Doubles) -> list[list[float | None]]:
        return [[None if np.isnan(x) else round(float(x), 4) for x in row] for row in matrix]

    matrices = {"returns": result.returns, "errors": result.errors, "others": result.others}
    return {"runs": result.runs, **{name: numbers(one) for name, one in matrices.items()}}


def draw(result: CrossPlay, path: Path) -> None:
    """The matrix as a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    count = len(result.runs)
    side = 2.5 + 0.9 * count
    figure = Figure(figsize=(side + 1, side), dpi=100, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    shown = axes.imshow(result.returns, cmap="viridis")
    names = [name.replace("$", r"\$") for name in result.runs]
    axes.set_xticks(range(count), names, rotation=30, ha="right")
    axes.set_yticks(range(count), names)
    axes.set_xlabel("among agents of")
    axes.set_ylabel("one agent of")
    middle = (result.returns.min() + result.returns.max()) / 2
    for row, column in np.ndindex(count, count):
        value = result.returns[row, column]
        color = "black" if value > middle else "white"
        axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=color)
    figure.colorbar(shown, label="return of an episode")
    save_figure(figure, path)
