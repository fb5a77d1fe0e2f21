"""Parallel experience collection: workers play, the learner learns."""

from keisei.selfplay.plan import ParallelError
from keisei.training.parallel.base_manager import BaseManager, make_manager
from keisei.training.parallel.experience_collector import ExperienceCollector
from keisei.training.parallel.model_sync import ModelSynchronizer
from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.self_play_worker import SelfPlayWorker
from keisei.training.parallel.serial_manager import SerialManager
from keisei.training.parallel.worker_communicator import WorkerCommunicator

__all__ = [
    "BaseManager",
    "ExperienceCollector",
    "ModelSynchronizer",
    "ParallelError",
    "ParallelManager",
    "SelfPlayWorker",
    "SerialManager",
    "WorkerCommunicator",
    "make_manager",
]
