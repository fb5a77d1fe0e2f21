"""Measuring side by side, and showing the result as a table and as JSON."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from keisei.files import write_json

# Returns how many units were done, and in how many seconds if it measured the time itself.
Contender = Callable[[], "int | tuple[float, float]"]


def interleave(contenders: Mapping[str, Contender], rounds: int) -> dict[str, list[float]]:
    """Rates (units per second) of each contender in each round.

    All take their turn in every round, so that a machine that slows down slows all of them.
    """
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            done = run()
            took = time.perf_counter() - start
            units, seconds = done if isinstance(done, tuple) else (done, took)
            rates[name].append(units / seconds)
    return rates


def median_ratio(rates: dict[str, list[float]], name: str, base: str) -> float:
    """The median over the rounds of the rate of `name` divided by that of `base`."""
    pairs = zip(rates[name], rates[base], strict=True)
    return statistics.median(mine / other for mine, other in pairs)


def machine() -> dict[str, Any]:
    """What a reader needs to know to repeat a figure."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("keisei", "numpy", "rsshogi", "torch")},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def publish(
    title: str, rows: list[tuple[str, str]], result: dict[str, Any], file: Path | None
) -> None:
    """Print the rows as a table, and write the result with the machine's data to `file`."""
    table = Table(title=title)
    table.add_column("what")
    table.add_column("measured", justify="right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    if file:
        write_json(file, {**result, "machine": machine()})
