"""The openings of matches: `openings.txt`, which says where they come from."""

from __future__ import annotations

from importlib import resources

import numpy as np


def load_openings(seed: int | None = None) -> list[tuple[str, ...]]:
    """All openings as USI moves from the start position, shuffled if a seed is given.

    >>> lines = load_openings()
    >>> len(lines) == len(set(lines)) >= 300
    True
    """
    text = resources.files("keisei.evaluation").joinpath("openings.txt").read_text("ascii")
    lines = [tuple(line.split()) for line in text.splitlines() if line and line[0] != "#"]
    if seed is not None:
        np.random.default_rng(seed).shuffle(lines)
    return lines
