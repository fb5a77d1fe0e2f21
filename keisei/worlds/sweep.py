"""`keisei worlds sweep`: one run for every combination of settings and seed, and a table of them.

Runs are named after what is varied, so a sweep that was stopped goes on where it was.
"""

from __future__ import annotations

import contextlib
import json
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
from keisei.processes.pool import Pool, open_ray_pool
from keisei.runs.metrics import MetricsReader
from keisei.runs.run import Run
from keisei.worlds.config import WorldRunConfig, load_world_config
from keisei.worlds.training import start_world_training, try_settings

MAY_CHANGE = {"epochs", "runs_dir"}  # when a sweep goes on
LAST_EPOCHS = 10  # whose mean is a run's result: one epoch alone varies


@dataclass(frozen=True)
class RunResult:
    """What the agents of a run got in the end, on average, beside random ones."""

    result: float
    random: float


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
    if json_file:
        rows = [
            {"settings": combo, "returns": [o.result for o in found], "random": found[0].random}
            for combo, found in results.items()
        ]
        json_file.write_text(json.dumps(rows, indent=2) + "\n")


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
        returns = [value for _, value in metrics.series("return")][: config.epochs]
        random = yaml.safe_load(metrics.meta("random_return") or "[0.0]")
    return RunResult(statistics.fmean(returns[-LAST_EPOCHS:]), statistics.fmean(random))


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
    table = Table(title=f"{world}: mean return of an agent in its last {LAST_EPOCHS} epochs")
    for column in ("settings", "mean", "least", "most", "random", "runs"):
        table.add_column(column, justify="left" if column == "settings" else "right")
    best_first = sorted(
        results.items(), key=lambda item: -statistics.fmean(o.result for o in item[1])
    )
    for combo, found in best_first:
        returns = [one.result for one in found]
        numbers = (statistics.fmean(returns), min(returns), max(returns), found[0].random)
        shown = " ".join(combo) or "as they are"
        table.add_row(shown, *(f"{number:.2f}" for number in numbers), str(len(returns)))
    return table
