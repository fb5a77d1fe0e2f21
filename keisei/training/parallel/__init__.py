"""Parallel experience collection: worker processes play, the learner learns."""

from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.supervisor import ParallelError

__all__ = ["ParallelError", "ParallelManager"]
