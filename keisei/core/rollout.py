"""A rollout: a block of experience [T steps, G games] from one shard, stored compactly."""

# ruff: noqa: RUF009  # a field declares its shape and type by a call

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.shogi import OBSERVATION_BYTES, Positions

Layout = dict[str, tuple[tuple[int, ...], Any]]  # the shape and dtype of each array


def _per_step(dtype: Any, *more: int) -> Any:
    return field(metadata={"dtype": dtype, "shape": lambda t, g, legal: (t, g, *more)})


def _per_game(dtype: Any) -> Any:
    return field(metadata={"dtype": dtype, "shape": lambda t, g, legal: (g,)})


def _per_legal_action(dtype: Any, searched: bool = False) -> Any:
    return field(
        metadata={"dtype": dtype, "shape": lambda t, g, legal: (legal,), "searched": searched}
    )


def _offsets(dtype: Any) -> Any:
    return field(metadata={"dtype": dtype, "shape": lambda t, g, legal: (t * g + 1,)})


@dataclass(kw_only=True)
class Rollout:
    """T steps of G games, each value from the side of the player who moved.

    The legal actions of all steps stand end to end in `legal`; those of step t in game g begin at
    `legal_offsets[t * G + g]`. `last_values` are of the positions after the last step. Where moves
    were searched, `improved` has the probabilities of the legal actions after the search and
    `values` what it found; else `improved` is empty. A field that is declared here has its place in
    shared memory, in files and on the wire.
    """

    observations: npt.NDArray[np.uint8] = _per_step(np.uint8, OBSERVATION_BYTES)
    legal: npt.NDArray[np.int16] = _per_legal_action(np.int16)
    improved: npt.NDArray[np.float32] = _per_legal_action(np.float32, searched=True)
    legal_offsets: npt.NDArray[np.int64] = _offsets(np.int64)
    actions: npt.NDArray[np.int16] = _per_step(np.int16)
    log_probs: npt.NDArray[np.float32] = _per_step(np.float32)
    values: npt.NDArray[np.float32] = _per_step(np.float32)
    rewards: npt.NDArray[np.float32] = _per_step(np.float32)
    dones: npt.NDArray[np.bool_] = _per_step(np.bool_)
    learned: npt.NDArray[np.bool_] = _per_step(np.bool_)  # False: an opponent's or a random move
    last_values: npt.NDArray[np.float32] = _per_game(np.float32)
    version: int = -1

    def add_legal(
        self, end: int, legal: npt.NDArray[np.int16], improved: npt.NDArray[np.float32]
    ) -> int:
        """Write legal actions behind the first `end`; where they do not fit, into more room."""
        self.legal = _write(self.legal, end, legal)
        self.improved = _write(self.improved, end, improved)
        return end + len(legal)

    def cut_legal(self, end: int) -> None:
        """Let go of the room behind the first `end` legal actions."""
        self.legal, self.improved = self.legal[:end], self.improved[:end]

    @property
    def positions(self) -> Positions:
        """What was played, one position after the other: all games of a step, then the next."""
        seen = self.observations.reshape(self.num_steps, -1)
        return Positions(seen, self.legal, self.legal_offsets)

    def copy(self) -> Rollout:
        """A rollout of its own, which does not look at anybody's memory."""
        arrays = {name: v.copy() for name, v in vars(self).items() if isinstance(v, np.ndarray)}
        return replace(self, **arrays)

    @property
    def nbytes(self) -> int:
        """The memory of its arrays."""
        return sum(v.nbytes for v in vars(self).values() if isinstance(v, np.ndarray))

    @property
    def num_steps(self) -> int:
        """How many moves it holds, over all games."""
        return self.actions.size


def _write(room: npt.NDArray[Any], end: int, added: npt.NDArray[Any]) -> npt.NDArray[Any]:
    new_end = end + len(added)
    if len(added) and new_end > len(room):
        room = np.concatenate([room[:end], np.empty(2 * new_end - end, room.dtype)])
    room[end:new_end] = added
    return room


def rollout_layout(steps: int, games: int, legal: int, searched: bool = False) -> Layout:
    """The arrays of a rollout with room for so many legal actions in all.

    >>> rollout_layout(steps=128, games=64, legal=9)["actions"]
    ((128, 64), <class 'numpy.int16'>)
    """
    layout: Layout = {}
    for one in fields(Rollout):
        if one.metadata:
            room = legal if searched or not one.metadata.get("searched") else 0
            layout[one.name] = one.metadata["shape"](steps, games, room), one.metadata["dtype"]
    return layout


def empty_rollout(steps: int, games: int, searched: bool = False) -> Rollout:
    """A rollout to be filled, with room for some legal actions; all its moves are learned from."""
    layout = rollout_layout(steps, games, steps * games * 64, searched)
    arrays: dict[str, Any] = {name: np.zeros(*array) for name, array in layout.items()}
    rollout = Rollout(**arrays)
    rollout.learned[:] = True
    return rollout
