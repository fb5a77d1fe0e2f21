"""How rarely an agent has seen what it sees: a reason to go where it has not been.

Chance alone may never find the first reward: in cleanup, an agent alone must clean for a while and
then cross the map before there is one. But it sees an apple long before it eats one, and what was
hardly ever seen is worth seeing again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.worlds.view import View


class Novelty:
    """Counts what one agent has seen in each cell of its window, over all copies and epochs.

    >>> novelty = Novelty(View((2,), np.dtype(np.uint8), np.eye(3, dtype=np.float32)), scale=1.0)
    >>> novelty.count(np.array([[0, 1]] * 4 + [[0, 2]]))
    >>> novelty.bonus(np.array([[0, 1], [0, 2]])).tolist()  # seen 4 times, and once
    [0.5, 1.0]
    """

    def __init__(self, view: View, scale: float) -> None:
        assert view.table is not None, "only windows of cells can be counted"
        self.scale = scale
        self._of_all = view.own is not None  # then only the agent's own part counts
        self.counts = np.zeros((*(view.own or view).shape, len(view.table)), np.int64)
        self._cells = np.arange(len(self.counts))

    def count(self, seen: npt.NDArray[Any]) -> None:
        """Remember that these windows [..., cells] were seen."""
        codes = self.counts.shape[1]
        places = (self._cells * codes + self._own(seen)).reshape(-1)
        self.counts += np.bincount(places, minlength=self.counts.size).reshape(-1, codes)

    def bonus(self, seen: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """What it is worth to see these windows [...]: 1 / sqrt(how often the rarest cell was)."""
        rarest = self.counts[self._cells, self._own(seen)].min(axis=-1)
        worth: npt.NDArray[np.float64] = self.scale / np.sqrt(np.maximum(rarest, 1))
        return worth.astype(np.float32)

    def _own(self, seen: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return seen[..., 0, :] if self._of_all else seen
