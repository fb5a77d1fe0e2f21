"""A run in a world: the same folder, checkpoints, metrics and exact resume as in Shogi.

::

    runs/<name>/
      config.yaml            all settings
      metrics.sqlite         returns, losses and measures of every agent, speed, events
      tensorboard/           the same numbers for TensorBoard
      checkpoints/           step_000000123456.pt: weights, memories, random states, the world
      learning_curve.png     the returns of every agent, and all that was measured
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import yaml

from keisei.errors import KeiseiError
from keisei.processes.machine import keep_freed_memory
from keisei.runs.checkpoint import CheckpointStore, check_storable, step_of, understanding
from keisei.runs.metrics import MetricsStore
from keisei.runs.run import Run, is_training
from keisei.runs.stopping import Stopper
from keisei.runs.tensorboard import TensorBoardWriter
from keisei.runs.trace import Trace, check_trace_file
from keisei.runs.wandb_writer import WandbWriter
from keisei.settings import to_yaml
from keisei.worlds.config import WorldRunConfig, load_world_config
from keisei.worlds.curves import draw_returns
from keisei.worlds.display import Lines, make_display
from keisei.worlds.environment import EpochResult
from keisei.worlds.parallel_environment import build
from keisei.worlds.registry import code_named_by

log = logging.getLogger(__name__)

BASELINE_EPOCHS = 2

Writer = TensorBoardWriter | WandbWriter


class WorldTraining:
    """Trains the agents of a run until its epochs are over, or until SIGINT or SIGTERM."""

    def __init__(self, config: WorldRunConfig, run: Run, trace_file: Path | None = None) -> None:
        self.config, self.run = config, run
        torch.set_num_threads(1)  # a second one would fight with the learners for their cores
        keep_freed_memory()
        self.trace = Trace(trace_file)
        self.environment = build(config, self.trace)
        self.checkpoints = CheckpointStore(run.checkpoints_dir, config.keep_checkpoints)
        self.random_return: list[float] | None = None
        self.turns_per_s = 0.0
        # Turns so far, over all copies: counted, since a resume may change how many an epoch has.
        self.steps = 0

    @property
    def total_steps(self) -> int:
        """The turns at the end of the run, over all copies."""
        left = self.config.epochs - self.environment.epoch
        return self.steps + left * self._steps_per_epoch

    @property
    def _steps_per_epoch(self) -> int:
        world = self.environment.world
        return world.max_turns * world.copies

    def load_latest(self) -> None:
        """Go on from the newest good checkpoint."""
        path, state = self.checkpoints.latest()
        with understanding(f"the settings do not fit the checkpoint {path}"):
            self.environment.load_state_dict(state["environment"])
            self.random_return = [float(value) for value in state["random_return"]]
        self.steps = step_of(path)
        if self.environment.epoch >= self.config.epochs:
            raise KeiseiError(
                f"{self.run.name} has run its {self.config.epochs} epochs; "
                f"for more, resume with -o epochs=N"
            )

    def train(self) -> bool:
        """Train; returns whether the run got to its end."""
        environment, display = self.environment, make_display(self)
        with self.run.lock(), MetricsStore(self.run.metrics_path) as metrics, Stopper() as stopper:
            self.run.change_config(to_yaml(self.config))
            metrics.truncate_after(self.steps)  # of a lost epoch; it would stand there twice
            metrics.log_event("info", f"started at epoch {environment.epoch}")
            metrics.set_meta("total_timesteps", str(self.total_steps))
            writers = self._open_writers()
            try:
                if self.random_return is None:
                    self.random_return = measure_random(self.config)
                metrics.set_meta("random_return", yaml.safe_dump(self.random_return))
                display.start()
                # An epoch takes a second or so: a stop waits for its end, and nothing is lost.
                while environment.epoch < self.config.epochs and stopper.requested is None:
                    self._epoch(metrics, writers, display)
                finished = environment.epoch >= self.config.epochs
                if finished:
                    environment.finish()
                self._save(metrics)
            finally:
                display.stop()
                for writer in writers:
                    writer.close()
                environment.close()
                self.trace.close()
        draw_returns(self.run.metrics_path, self.run.learning_curve_path, self.run.name)
        display.farewell(finished)
        return finished

    def _open_writers(self) -> list[Writer]:
        """What gets a copy of the metrics."""
        writers: list[Writer] = [TensorBoardWriter(self.run.tensorboard_dir, self.steps or None)]
        wandb, run = self.config.wandb, self.run
        if wandb.enabled:
            settings = self.config.model_dump(mode="json")
            writers.append(WandbWriter(run.folder, run.name, wandb.project, wandb.mode, settings))
        return writers

    def _epoch(self, metrics: MetricsStore, writers: Sequence[Writer], display: Lines) -> None:
        start = time.perf_counter()
        result = self.environment.run_epoch()
        self.steps += self._steps_per_epoch
        self.turns_per_s = self._steps_per_epoch / (time.perf_counter() - start)
        numbers = self._numbers(result)
        metrics.log(self.steps, numbers)
        for writer in writers:
            writer.log(self.steps, numbers)
        display.update(result)
        if self.environment.epoch % self.config.checkpoint_interval == 0:
            self._save(metrics)

    def _numbers(self, result: EpochResult) -> dict[str, float]:
        returns = {f"return agent_{i}": float(x) for i, x in enumerate(result.returns)}
        losses = {f"loss agent_{i}": loss for i, loss in result.losses.items()}
        each = result.by_agent
        measured = {name: float(np.mean(list(values.values()))) for name, values in each.items()}
        for name, values in each.items():
            measured |= {f"{name} agent_{i}": value for i, value in values.items()}
        return {
            **measured,
            **result.measures,
            **returns,
            **losses,
            "return": float(result.returns.mean()),
            "turns_per_s": self.turns_per_s,
            "failed_trainings": self.environment.failed_trainings,
            "memory_mb": memory_in_use() / 1e6,
        }

    def _save(self, metrics: MetricsStore) -> None:
        state = {
            "environment": self.environment.state_dict(),
            "random_return": self.random_return,
        }
        path = self.checkpoints.save(self.steps, state)
        metrics.log_event("info", f"saved {path.name}")


def memory_in_use() -> float:
    """Bytes of memory that this process holds (Linux; elsewhere nan)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return math.nan
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def measure_random(config: WorldRunConfig) -> list[float]:
    """What agents that act at random get in an episode, each: the line to beat."""
    alone = config.parallel.model_dump() | {"world_workers": 1, "backend": "process"}
    fewer = {"agents": ["random"], "copies": min(config.copies, 64), "parallel": alone}
    settings = config.model_dump() | fewer
    with build(WorldRunConfig.model_validate(settings)) as environment:
        results = environment.run_experiment(BASELINE_EPOCHS)
    returns = np.mean([result.returns for result in results], axis=0)
    return [float(value) for value in returns]


def try_settings(config: WorldRunConfig) -> None:
    """Refuse what cannot be run, before there is a folder of it."""
    with build(config.model_copy(update={"copies": 1})) as environment:
        environment.world.reset()  # things that do not fit are seen only now
        for agent in environment.own_learners:
            check_storable(agent.state_dict(), f"{type(agent.model).__name__}.state_dict()")


def start_world_training(
    world: str | None,
    config_file: Path | None,
    overrides: Sequence[str],
    name: str | None,
    resume: str | None,
    trace_file: Path | None,
    trust: bool = False,
) -> bool:
    """Train a new run, or go on with one; returns whether it got to its end.

    `trust`: may a run that goes on import the code that its settings name?
    """
    check_trace_file(trace_file)
    if resume is None:
        config = load_world_config(world, config_file, overrides)
        if "world" not in config.model_fields_set:
            raise KeiseiError("name a world: see `keisei worlds list`")
        try_settings(config)
        run = Run.create(Path(config.runs_dir), name, to_yaml(config))
        return WorldTraining(config, run, trace_file).train()
    if world or config_file or name:
        raise KeiseiError("--resume uses the run's own world, name and settings: leave them out")
    run = open_run(resume, overrides)
    training = WorldTraining(load_run_config(run, overrides, trust), run, trace_file)
    if training.checkpoints.paths():
        training.load_latest()
    elif not is_training(run.folder):  # else it does not start at all, and says why
        log.warning("%s has no checkpoint yet: it starts from the beginning", run.name)
    return training.train()


def open_run(name: str, overrides: Sequence[str] = ()) -> Run:
    """A run by name or folder."""
    defaults = load_world_config(overrides=[o for o in overrides if o.startswith("runs_dir=")])
    return Run.open(name, Path(defaults.runs_dir), of_world=True)


def load_run_config(run: Run, overrides: Sequence[str] = (), trust: bool = False) -> WorldRunConfig:
    """The settings of a run; code that they name must be trusted, or named in the overrides.

    A run may come from a stranger: a file must not be enough to have code imported.
    """
    config = load_world_config(None, run.config_path, overrides)
    named = {one.partition("=")[0].strip() for one in overrides}
    code = code_named_by(config).items()
    foreign = [f"{what} {name}" for what, name in code if what not in named]
    if foreign and not trust:
        raise KeiseiError(
            f"the run {run.name} names the {' and the '.join(foreign)}, which is code from outside "
            f"Keisei; if you trust it, add --trust: keisei worlds watch {run.name} --trust"
        )
    return config
