"""Parallel experience collection: workers play, the learner learns."""

from pathlib import Path

from keisei.config_schema import AppConfig
from keisei.core.learner import Learner
from keisei.runs.trace import Trace
from keisei.selfplay.plan import ParallelError
from keisei.training.parallel.base_manager import BaseManager
from keisei.training.parallel.experience_collector import ExperienceCollector
from keisei.training.parallel.model_sync import ModelSynchronizer
from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.ray_manager import RayManager
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


def make_manager(
    config: AppConfig,
    agent: Learner,
    checkpoints: Path | None = None,
    trace: Trace | None = None,
) -> BaseManager:
    """The manager that the settings ask for: of processes, of a Ray cluster, or of no workers."""
    parallel = config.training.parallel
    workers = RayManager if parallel.backend == "ray" else ParallelManager
    manager: type[BaseManager] = workers if parallel.enabled else SerialManager
    return manager(config, agent, checkpoints, trace)
