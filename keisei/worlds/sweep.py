"""`keisei worlds sweep`: one run for every combination of settings and seed, and a table of them.

Runs are named after what is varied, so a sweep that was stopped goes on where it was.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from keisei.errors import KeiseiError
from keisei.files import write_json
from keisei.processes.pool import Pool, open_ray_pool
from keisei.runs.metrics import MetricsReader
from keisei.runs.run import Run
from keisei.worlds.config import WorldRunConfig, load_world_config
from keisei.worlds.intervals import interquartile_mean, interval
from keisei.worlds.pooled_curves import draw
from keisei.worlds.training import start_world_training, try_settings

MAY_CHANGE = {"epochs", "runs_dir"}  # when a sweep goes on
LAST_EPOCHS = 10  # whose mean is a run's result: one epoch alone varies
MEASURES = ("efficiency", "equality", "sustainability", "peace")


@dataclass(frozen=True)
class RunResult:
    """What the agents of a run got, on average, beside random ones."""

    turns: list[int]  # at the end of each epoch, over all copies
    curves: dict[str, list[float]]  # by measure: of each epoch
    random: float

    @property
    def result(self) -> float:
        """What they got in the end."""
        return self.last("return")

    def last(self, measure: str) -> float:
        """A measure at the end."""
        return statistics.fmean(self.curves[measure][-LAST_EPOCHS:])


def combinations(vary: Sequence[str]) -> list[tuple[str, ...]]:
    """The overrides of every combination.

    >>> combinations(["copies=16,32", "double_dqn.learning_rate=1e-3,1e-4"])[1]
    ('copies=16', 'double_dqn.learning_rate=1e-4')
    """
    choices = []
    for one in vary:
        setting, equals, values = one.partition("=")
        if not equals or not all(values.split(",")):
            raise KeiseiError(f"--vary {one!r} is not of the form section.field=value,value,...")
        choices.append([f"{setting}={value}" for value in values.split(",")])
    return list(product(*choices))


def sweep(
    world: str,
    vary: Sequence[str],
    seeds: int,
    overrides: Sequence[str],
    name: str | None = None,
    ray: str | None = None,
    json_file: Path | None = None,
    plot: Path = Path("sweep.png"),
) -> None:
    """Train all runs, here one after another or on a cluster side by side, and show what came."""
    console = Console()
    name = name or f"sweep-{world.replace(':', '-')}"
    results: dict[tuple[str, ...], list[RunResult]] = {}
    jobs = [(combo, seed) for combo in combinations(vary) for seed in range(1, seeds + 1)]
    for combo, seed in jobs:  # what cannot be set is refused before anything is trained
        config = load_world_config(world, None, [*overrides, *combo, f"seed={seed}"])
        try_settings(config)
        _refuse_others(Path(config.runs_dir) / run_name(name, combo, seed), config)
    runs_dir = Path(load_world_config(world, None, overrides).runs_dir).resolve()
    fixed = [*overrides, f"runs_dir={runs_dir}"]
    with _open_pool(ray) as pool:
        for combo, seed in jobs:
            settings = [*fixed, *combo, f"seed={seed}"]
            pool.submit((combo, seed), world, settings, run_name(name, combo, seed))
        for (combo, seed), result in pool.finished(wait_for_all=True):
            results.setdefault(combo, []).append(result)
            shown = " ".join([*combo, f"seed={seed}"])
            console.print(f"{shown}: return {result.result:.2f}", highlight=False)
    console.print(_table(world, results))
    draw(world, results, plot)
    console.print(f"curves: {plot}", highlight=False, soft_wrap=True)
    if json_file:
        write_json(json_file, [_row(combo, found) for combo, found in results.items()])


def _row(combo: tuple[str, ...], found: Sequence[RunResult]) -> dict[str, Any]:
    """What a combination of settings came to, for a file."""
    returns = [one.result for one in found]
    low, high = interval(returns)
    return {
        "settings": combo,
        "returns": returns,
        "iqm": float(interquartile_mean(returns)),
        "interval": [float(low), float(high)],
        "random": found[0].random,
        "measures": {
            name: [one.last(name) for one in found]
            for name in MEASURES
            if all(name in one.curves for one in found)
        },
    }


def run_name(name: str, combo: Sequence[str], seed: int) -> str:
    """A run's name that says what is special of it.

    >>> run_name("try", ["double_dqn.learning_rate=1e-3"], 2)
    'try-learning_rate=1e-3-seed=2'
    """
    special = []
    for one in combo:
        setting, _, value = one.partition("=")
        special.append(f"{setting.rpartition('.')[2]}={value}")
    return "-".join([name, *special, f"seed={seed}"])


def train_one(world: str, settings: Sequence[str], name: str) -> RunResult:
    """Train a run, or go on with it, or only read what came of it."""
    config = load_world_config(world, None, settings)
    folder = Path(config.runs_dir) / name
    if not folder.exists():
        start_world_training(world, None, settings, name, None, None)
    elif _epochs_of(folder) < config.epochs:
        code = [one for one in settings if one.partition("=")[0].strip() == "agents"]
        more = [f"epochs={config.epochs}", f"world={world}", *code]
        start_world_training(None, None, more, None, str(folder), None)
    if _epochs_of(folder) < config.epochs:
        raise KeiseiError(f"the sweep was stopped in {name}; run the same command to continue")
    with MetricsReader(Run(folder).metrics_path) as metrics:
        series = {name: metrics.series(name)[: config.epochs] for name in ("return", *MEASURES)}
        random = yaml.safe_load(metrics.meta("random_return") or "[0.0]")
    turns = [turn for turn, _ in series["return"]]
    # A measure may be undefined in some epochs: then there is no curve of it.
    whole = {name: points for name, points in series.items() if len(points) == len(turns)}
    curves = {name: [value for _, value in points] for name, points in whole.items()}
    return RunResult(turns, curves, statistics.fmean(random))


def _refuse_others(folder: Path, config: WorldRunConfig) -> None:
    """Refuse a folder whose run has other settings: its result would pass for that of these."""
    if not folder.exists():
        return
    there = _flat(load_world_config(None, Run(folder).config_path).model_dump())
    here = _flat(config.model_dump())
    for setting in here | there:
        one, other = there.get(setting, "not set"), here.get(setting, "not set")
        if one != other and setting not in MAY_CHANGE:
            raise KeiseiError(
                f"{folder} is a run with other settings: {setting} is {one} there, and {other} "
                "here; give the sweep another --name, or move the folder away"
            )


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """All settings by their full names, such as `double_dqn.gamma`."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        full = f"{prefix}{name}"
        flat |= _flat(value, f"{full}.") if isinstance(value, dict) else {full: value}
    return flat


def _epochs_of(folder: Path) -> int:
    path = Run(folder).metrics_path
    if not path.exists():
        return 0
    with MetricsReader(path) as metrics:
        return len(metrics.series("return"))


@contextlib.contextmanager
def _open_pool(ray: str | None) -> Iterator[Pool[tuple[tuple[str, ...], int], RunResult]]:
    if ray is None:
        yield Pool(train_one)
    else:
        with open_ray_pool(ray, train_one) as pool:
            yield pool


def _table(world: str, results: dict[tuple[str, ...], list[RunResult]]) -> Table:
    """The best first, with the interquartile mean over the runs and its interval."""
    table = Table(title=f"{world}: return of an agent in the last {LAST_EPOCHS} epochs of a run")
    for column in ("settings", "IQM", "95 % interval", "least", "most", "random", "runs"):
        table.add_column(column, justify="left" if column == "settings" else "right")
    rows = [_row(combo, found) for combo, found in results.items()]
    for row in sorted(rows, key=lambda row: -row["iqm"]):
        returns, (low, high) = row["returns"], row["interval"]
        numbers = (f"{x:.2f}" for x in (min(returns), max(returns), row["random"]))
        shown = " ".join(row["settings"]) or "as they are"
        sure = f"{low:.2f} to {high:.2f}" if len(returns) > 1 else ""
        table.add_row(shown, f"{row['iqm']:.2f}", sure, *numbers, str(len(returns)))
    return table
