"""Slots: the places of rollouts in shared memory."""

from __future__ import annotations

import numpy as np

from keisei.config_schema import AppConfig
from keisei.core.rollout import Rollout, rollout_layout
from keisei.parallel_config import ParallelConfig
from keisei.processes.shared_memory import Layout, SharedArrays

# Room for legal actions per step. Random games have 52 on average and a position at most 593; a
# rollout that needs more sends them in its message.
LEGAL_PER_STEP = 160


def slots_needed(parallel: ParallelConfig) -> int:
    """One in each worker's hands, some that wait, and those of the learner's update."""
    held = max(parallel.num_workers, -(-parallel.update_steps // parallel.rollout_steps))
    return parallel.num_workers + parallel.queue_maxsize + held


def slot_layout(config: AppConfig, num_slots: int) -> Layout:
    """The arrays of all slots; the first axis is the slot."""
    parallel = config.training.parallel
    steps, games = parallel.rollout_length, parallel.num_envs_per_worker
    legal = steps * games * LEGAL_PER_STEP
    layout = rollout_layout(steps, games, legal, config.training.searches)
    return {name: ((num_slots, *shape), dtype) for name, (shape, dtype) in layout.items()}


def rollout_in(slots: SharedArrays, slot: int) -> Rollout:
    """The rollout in a slot; it looks at the memory, nothing is copied."""
    return Rollout(**{name: slots[name][slot] for name in slots.layout})


def poison(slots: SharedArrays, slot: int) -> None:
    """Fill a slot with what is plainly wrong: not-a-number, and numbers that no action has."""
    for name in slots.layout:
        array = slots[name][slot]
        array.fill(np.nan if array.dtype.kind == "f" else -1 if array.dtype.kind == "i" else 255)
