"""Curves with as many points as a chart can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from keisei.web.runs import RunsFolder
from keisei.web.schema import SeriesAnswer

Points = list[tuple[int, float | None]]


def series(
    runs: RunsFolder, name: str, metrics: Sequence[str], points: int, by_time: bool = False
) -> SeriesAnswer:
    """Some metrics of a run, over steps or seconds; a metric that it lacks is empty."""
    with runs.reading(name) as reader:
        if reader is None:
            return SeriesAnswer(series={metric: [] for metric in metrics})
        return SeriesAnswer(
            series={one: thin_out(reader.series(one, by_time), points) for one in metrics}
        )


def thin_out(series: Sequence[tuple[int, float]], points: int) -> Points:
    """At most `points` of them: the first and the last, and means over those in between.

    A mean over NaN or infinity is None: a gap stays a gap.

    >>> thin_out([(0, 1.0), (1, 2.0), (2, 4.0), (3, 5.0), (4, 6.0), (5, 7.0)], 4)
    [(0, 1.0), (1, 3.0), (3, 5.5), (5, 7.0)]
    """
    if len(series) <= points:
        return [(step, _finite(value)) for step, value in series]
    inner = series[1:-1]
    count = max(points - 2, 1)
    edges = [len(inner) * i // count for i in range(count + 1)]
    chunks = [inner[start:end] for start, end in pairwise(edges)]
    first, last = series[0], series[-1]
    return [
        (first[0], _finite(first[1])),
        *(_mean(chunk) for chunk in chunks if chunk),
        (last[0], _finite(last[1])),
    ]


def _mean(chunk: Sequence[tuple[int, float]]) -> tuple[int, float | None]:
    step = sum(step for step, _ in chunk) // len(chunk)
    return step, _finite(sum(value for _, value in chunk) / len(chunk))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
