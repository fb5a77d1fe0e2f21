"""What several runs with different seeds come to: interquartile means, and how sure they are.

Few runs vary a lot, and one that is lucky or lost says little. So the middle half of them counts,
with an interval by bootstrap: as Agarwal et al. (2021) propose in "Deep reinforcement learning at
the edge of the statistical precipice".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

DRAWS = 2000  # of as many runs as there are, with repeats
SURE = 0.95


def interquartile_mean(values: npt.ArrayLike) -> Doubles:
    """The mean of the middle half of the values, along the first axis.

    Where a quarter is not a whole number of values, those at its ends count in part.

    >>> interquartile_mean([1.0, 2.0, 4.0, 100.0]).item()
    3.0
    >>> interquartile_mean([0.0, 3.0, 12.0]).item()  # 1/4, 1 and 1/4 of them
    4.0
    """
    ordered = np.sort(np.asarray(values, np.float64), axis=0)
    count = len(ordered)
    edges = np.clip(np.arange(count + 1), count / 4, 3 * count / 4)
    return np.asarray(np.average(ordered, axis=0, weights=np.diff(edges)))


def interval(values: npt.ArrayLike, seed: int = 0) -> tuple[Doubles, Doubles]:
    """Between which values the interquartile mean of runs [runs, ...] lies, for 95 % of the draws.

    >>> low, high = interval([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    >>> low.tolist(), high.tolist()
    ([1.0, 5.0], [3.0, 5.0])
    """
    runs: Any = np.asarray(values, np.float64)
    drawn = np.random.default_rng(seed).integers(0, len(runs), (len(runs), DRAWS))
    means = interquartile_mean(runs[drawn])  # [draws, ...]
    low, high = np.quantile(means, [(1 - SURE) / 2, (1 + SURE) / 2], axis=0)
    return low, high
