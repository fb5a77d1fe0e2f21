"""Parallel experience collection: workers play, the learner learns."""

from keisei.training.parallel.base_manager import BaseManager, ParallelError, make_manager
from keisei.training.parallel.parallel_manager import ParallelManager

__all__ = ["BaseManager", "ParallelError", "ParallelManager", "make_manager"]
