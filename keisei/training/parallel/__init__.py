"""Parallel experience collection: worker processes play, the learner learns."""

from keisei.training.parallel.parallel_manager import ParallelError, ParallelManager

__all__ = ["ParallelError", "ParallelManager"]
