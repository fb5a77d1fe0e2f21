"""Parallel experience collection: workers play, the learner learns."""

from keisei.selfplay.plan import ParallelError
from keisei.training.parallel.base_manager import BaseManager, make_manager
from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.serial_manager import SerialManager

__all__ = ["BaseManager", "ParallelError", "ParallelManager", "SerialManager", "make_manager"]
