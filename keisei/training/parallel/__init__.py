"""Parallel experience collection: workers play, the learner learns."""

from keisei.training.parallel.base_manager import BaseManager, make_manager
from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.serial_manager import SerialManager
from keisei.training.plan import ParallelError

__all__ = ["BaseManager", "ParallelError", "ParallelManager", "SerialManager", "make_manager"]
